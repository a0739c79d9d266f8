"""New partitions in the forms that Kafka's own tools take: kafka-topics and kafka-reassign-partitions.

``kafka-topics --create`` takes the replicas of all partitions; ``--alter`` those of the existing ones as well, which it
then leaves alone. ``kafka-reassign-partitions`` takes the new ones once the topic has them, wherever they came to be.
"""

from __future__ import annotations

import json
from typing import Any

from agent.plan.new_partitions import NewPlacement


def placement_to_json(placement: NewPlacement) -> dict[str, Any]:
    """A placement with its figures and all its forms; the forms are None where Kafka would refuse."""
    answered = placement.refused is None
    spread = placement.spread
    return {
        "placement": placement.by,
        "topic": placement.topic,
        "sentence": placement.sentence,
        "partitions": len(placement.existing) + len(placement.replicas),
        "new_partitions": len(placement.replicas),
        "spread": None if spread is None else {name: _plain(value) for name, value in spread._asdict().items()},
        "command": kafka_topics_command(placement) if answered else None,
        "replica_assignment": replica_assignment(placement) if answered else None,
        "reassignment": _reassignment(placement) if answered else None,
    }


def replica_assignment(placement: NewPlacement) -> str:
    """What ``kafka-topics --replica-assignment`` reads."""
    return ",".join(":".join(map(str, of)) for of in (*placement.existing, *placement.replicas))


def kafka_topics_command(placement: NewPlacement) -> str:
    """The command that creates the topic, or alters it, with exactly these replicas."""
    assignment = f"--topic {placement.topic} --replica-assignment {replica_assignment(placement)}"
    if not placement.existing:
        return f"kafka-topics.sh --create {assignment}"
    return f"kafka-topics.sh --alter --partitions {len(placement.existing) + len(placement.replicas)} {assignment}"


def new_partitions_json(placement: NewPlacement) -> str:
    """What ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    return json.dumps(_reassignment(placement), separators=(",", ":"))


def _reassignment(placement: NewPlacement) -> dict[str, Any]:
    first = len(placement.existing)
    return {
        "version": 1,
        "partitions": [
            {"topic": placement.topic, "partition": number, "replicas": list(replicas)}
            for number, replicas in enumerate(placement.replicas, first)
        ],
    }


def _plain(value: int | tuple[int, int]) -> int | dict[str, int]:
    return {"least": value[0], "most": value[1]} if isinstance(value, tuple) else value
