"""Replica lists as the JSON of ``kafka-reassign-partitions``, there and back, with the file that undoes them.

Both kinds of placement proposals are such files: a reassignment moves replicas, a leaders proposal only reorders them
(Kafka applies that at once; the leader follows at the next preferred election). The tool refuses a partition that is
listed twice, so two proposals about one partition make no file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from typing import Any, Literal, TypeGuard

from agent.values.foreign_json import ForeignJsonError, read_json
from agent.values.proposal import Proposal
from assignors.problem import TopicPartition

MOST_BYTES = 64 * 1024 * 1024
_MOST_NUMBER = 2**31 - 1
"""Numbers of brokers and partitions have 32 bits in Kafka."""


class BadReassignmentFile(ValueError):  # noqa: N818 (it names the file, as BadProblem names the problem)
    """A file that ``kafka-reassign-partitions`` would not take; the sentence says where it is wrong."""


def reassignment_json(proposals: Iterable[Proposal]) -> str:
    """What carries the proposals out, as ``--reassignment-json-file`` reads it."""
    return _written(proposals, "after")


def rollback_json(proposals: Iterable[Proposal]) -> str:
    """What brings the placement back that the proposals started from."""
    return _written(proposals, "before")


def read_reassignment_json(text: str | bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Partition -> replicas of such a file, sorted; ``log_dirs`` are left to the brokers.

    Raises ``BadReassignmentFile``.
    """
    try:
        data = read_json(text, most_bytes=MOST_BYTES)
    except ForeignJsonError as error:
        raise BadReassignmentFile(str(error)) from error
    if not isinstance(data, dict) or data.get("version", 1) != 1 or not isinstance(data.get("partitions"), list):
        raise BadReassignmentFile('expected {"version": 1, "partitions": [...]}')
    placements: dict[TopicPartition, tuple[int, ...]] = {}
    for number, entry in enumerate(data["partitions"]):
        partition, replicas = _entry(entry, number)
        if partition in placements:
            raise BadReassignmentFile(f"{partition} is listed twice")
        placements[partition] = replicas
    return dict(sorted(placements.items()))


def _written(proposals: Iterable[Proposal], side: Literal["before", "after"]) -> str:
    changes = sorted(chain.from_iterable(proposal.placements for proposal in proposals))
    twice = sorted({str(a.id) for a, b in pairwise(changes) if a.id == b.id})
    if twice:
        raise BadReassignmentFile(f"more than one proposal changes {', '.join(twice)}; choose one of them")
    return placements_json({change.id: change.after if side == "after" else change.before for change in changes})


def placements_json(placements: Mapping[TopicPartition, tuple[int, ...]]) -> str:
    """Partition -> replicas, as ``--reassignment-json-file`` reads it."""
    partitions = [
        {"topic": one.topic, "partition": one.partition, "replicas": list(replicas)}
        for one, replicas in placements.items()
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _entry(entry: Any, number: int) -> tuple[TopicPartition, tuple[int, ...]]:
    where = f"partitions[{number}]"
    if not isinstance(entry, dict):
        raise BadReassignmentFile(f"{where} is no object")
    topic: Any
    partition: Any
    topic, partition, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    if not isinstance(topic, str) or not topic:
        raise BadReassignmentFile(f"{where}.topic is no name")
    if not is_id(partition):
        raise BadReassignmentFile(f"{where}.partition is no number from 0")
    if not isinstance(replicas, list) or not replicas or not all(is_id(broker) for broker in replicas):
        raise BadReassignmentFile(f"{where}.replicas is no list of broker ids")
    if len(set(replicas)) != len(replicas):
        raise BadReassignmentFile(f"{where}.replicas names a broker twice")
    return TopicPartition(topic, partition), tuple(replicas)


def is_id(value: object) -> TypeGuard[int]:
    """Whether Kafka can have a broker or partition of that number."""
    return type(value) is int and 0 <= value <= _MOST_NUMBER
