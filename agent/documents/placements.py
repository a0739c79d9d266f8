"""Placements of new partitions in the forms that kafka-topics and kafka-reassign-partitions take. Pure."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from agent.plan.new_partitions import NewPlacement, NewPlacementSpread

if TYPE_CHECKING:
    from agent.documents.plan import BrokerExtent, NewPlacementRow, PlacementSpread, ReassignmentFile

# New partitions in the forms that Kafka's own tools take: kafka-topics and kafka-reassign-partitions.
#
# ``kafka-topics --create`` takes the replicas of all partitions; ``--alter`` those of the existing ones as well, which
# it then leaves alone. ``kafka-reassign-partitions`` takes the new ones once the topic has them, wherever they came to
# be.


def placement_to_json(placement: NewPlacement, command: str = "kafka-topics.sh") -> NewPlacementRow:
    """A placement with its figures and all its forms; the forms are None where Kafka would refuse.

    ``command`` is the beginning of a call of ``kafka-topics``, with the options that lead to the cluster.
    """
    answered = placement.refused is None
    return {
        "placement": placement.by,
        "topic": placement.topic,
        "sentence": placement.sentence,
        "partitions": len(placement.existing) + len(placement.replicas),
        "new_partitions": len(placement.replicas),
        "spread": None if placement.spread is None else _spread(placement.spread),
        "command": kafka_topics_command(placement, command) if answered else None,
        "replica_assignment": replica_assignment(placement) if answered else None,
        "reassignment": _reassignment(placement) if answered else None,
    }


def replica_assignment(placement: NewPlacement) -> str:
    """What ``kafka-topics --replica-assignment`` reads."""
    return ",".join(":".join(map(str, of)) for of in (*placement.existing, *placement.replicas))


def kafka_topics_command(placement: NewPlacement, command: str) -> str:
    """The command that creates the topic, or alters it, with exactly these replicas."""
    assignment = f"--topic {shlex.quote(placement.topic)} --replica-assignment {replica_assignment(placement)}"
    if not placement.existing:
        return f"{command} --create {assignment}"
    return f"{command} --alter --partitions {len(placement.existing) + len(placement.replicas)} {assignment}"


def new_partitions_json(placement: NewPlacement) -> str:
    """What ``kafka-reassign-partitions --reassignment-json-file`` reads."""
    return json.dumps(_reassignment(placement), separators=(",", ":"))


def _reassignment(placement: NewPlacement) -> ReassignmentFile:
    first = len(placement.existing)
    return {
        "version": 1,
        "partitions": [
            {"topic": placement.topic, "partition": number, "replicas": list(replicas)}
            for number, replicas in enumerate(placement.replicas, first)
        ],
    }


def _spread(spread: NewPlacementSpread) -> PlacementSpread:
    return {
        "most_in_a_rack": spread.most_in_a_rack,
        "against_the_rule": spread.against_the_rule,
        "topic_replicas": _extent(spread.topic_replicas),
        "topic_leaders": _extent(spread.topic_leaders),
        "cluster_replicas": _extent(spread.cluster_replicas),
        "cluster_leaders": _extent(spread.cluster_leaders),
    }


def _extent(pair: tuple[int, int]) -> BrokerExtent:
    return {"least": pair[0], "most": pair[1]}
