"""The memory as JSON text and back, and its monotonic times after a restart.

``topic_states``, ``removed`` and ``last_live`` are not written. Round trips are exact; equal replica lists are written
once. `after_restart` moves monotonic times by the wall clock's difference, except absences of brokers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from agent.errors import reason
from agent.values.memory import (
    ChangeCause,
    CopyMemory,
    Join,
    Memory,
    PartitionChange,
    PredictionMemory,
    RackChange,
    RackSighting,
    RateBase,
    Replicas,
    RestoreRate,
    RunningReassignment,
    StreamsMemory,
    TopicMemory,
)
from agent.values.typed_json import codec, from_json, read_json, to_json
from assignors.problem import TaskId, TopicPartition

VERSION = 1
MOST_BYTES = 64 * 1024 * 1024
"""The memory of 100,000 partitions is a fifth of it."""

_Json = Any


class UnreadableMemoryError(ValueError):
    """The text is not a readable memory; the sentence has the reason. The agent starts with an empty memory."""


def memory_to_json(memory: Memory) -> str:
    """The memory as one line of JSON with sorted keys."""
    lists: dict[Replicas, int] = {}
    topics = {
        name: [known.topic_id, [lists.setdefault(replicas, len(lists)) for replicas in known.replicas]]
        for name, known in memory.topics.items()
    }
    as_they_are = _AsTheyAre(*(getattr(memory, name) for name in _AsTheyAre._fields))
    value = {
        "v": VERSION,
        **to_json(_AsTheyAre, as_they_are),
        "brokers": {str(broker): sighting for broker, sighting in memory.brokers.items()},
        "replica_lists": list(lists),
        "topics": topics,
        "changes": [change._replace(subject=str(change.subject)) for change in memory.changes],
        "reassignments": [[*tp, *running] for tp, running in memory.reassignments.items()],
        "own_reassignments": sorted(memory.own_reassignments),
        "widened": [[*tp, replicas] for tp, replicas in memory.widened.items()],
        "streams": {name: _streams(known) for name, known in memory.streams.items()},
        "rate_bases": [_rate_base(base) for base in memory.rate_bases],
        "size_base": memory.size_base and _rate_base(memory.size_base),
        "foretold": memory.predictions,
    }
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def memory_from_json(text: str) -> Memory:
    """The memory that was written; raises UnreadableMemoryError for anything else."""
    try:
        value = read_json(text, most_bytes=MOST_BYTES, as_seen=True)
        version = value["v"]
        known = _memory(value) if version == VERSION else None
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise UnreadableMemoryError(f"the remembered state cannot be read ({reason(error)}); it is ignored") from error
    if known is None:
        sentence = f"the remembered state is of another version, this agent reads {VERSION}; it is ignored"
        raise UnreadableMemoryError(sentence)
    return known


def _streams(known: StreamsMemory) -> _Json:
    join = known.join
    return {
        "join": join and [join.key, join.after_ms, join.seen_ms, [[*task, end] for task, end in join.end_sums.items()]],
        "sums": [[process, *task, offset] for (process, task), offset in known.sums.items()],
        "copies": [[process, *task, *copy] for (process, task), copy in known.copies.items()],
        "rates": known.rates,
        "ready_ms": known.ready_ms,
    }


def _rate_base(base: RateBase) -> _Json:
    return [base.monotonic_ms, [[*tp, end, base.size_bytes.get(tp)] for tp, end in sorted(base.end_offsets.items())]]


_Rates = tuple[int, tuple[tuple[str, int, int, int | None], ...]]
_Example = tuple[tuple[str, int], Replicas, Replicas]


class _WrittenStreams(NamedTuple):
    join: tuple[str, int | None, int, tuple[tuple[str | int, int, int], ...]] | None
    sums: tuple[tuple[str, str | int, int, int], ...]
    copies: tuple[tuple[object, ...], ...]
    """Rows of `_COPY`; an older rackwise wrote them without their last value."""
    rates: tuple[tuple[float, float | None], ...]
    ready_ms: int | None = None


class _AsTheyAre(NamedTuple):
    """The parts of the memory that are written by their types alone."""

    cycle: int
    taken_ms: int
    monotonic_ms: int
    first_seen: Mapping[str, int]
    gone: Mapping[str, tuple[int, int]]
    groups: tuple[str, ...]
    rebalancing: Mapping[str, int]
    throttles: Mapping[str, int]
    acts: Mapping[str, int]
    bytes_per_record: Mapping[str, float]
    absent: Mapping[int, int] = MappingProxyType({})


class _Written(NamedTuple):
    """The shape of the other parts: rows, which are lists in the order of a value's fields.

    Partitions and tasks are cells of the rows: every cycle writes many, and an object for each costs time.
    """

    brokers: Mapping[int, tuple[str | None, str | None, str | None, int, int, tuple[int, ...]]]
    replica_lists: tuple[Replicas, ...]
    topics: Mapping[str, tuple[str | None, tuple[int, ...]]]
    changes: tuple[tuple[str, str, int, int, int, int, tuple[_Example, ...], int | None, bool], ...]
    reassignments: tuple[tuple[str, int, int, bool], ...]
    own_reassignments: tuple[tuple[str, int], ...]
    streams: Mapping[str, _WrittenStreams]
    rate_bases: tuple[_Rates, ...]
    size_base: _Rates | None
    widened: tuple[tuple[str, int, Replicas], ...] = ()
    foretold: Mapping[str, tuple[str, int, str, str, int, tuple[str, ...], bool, str | None]] = MappingProxyType({})


_BROKER = re.compile(r"[0-9]{1,10}")
_COPY_VALUES = 7
_COPY = codec(tuple[str, str | int, int, int, tuple[tuple[int, int], ...], bool, tuple[int, int] | None])


def _memory(value: _Json) -> Memory:
    written = from_json(_Written, value)
    return Memory(
        **from_json(_AsTheyAre, value)._asdict(),
        brokers={broker: RackSighting(*row) for broker, row in written.brokers.items()},
        topics={
            name: TopicMemory(topic_id, tuple(_nth(written.replica_lists, index) for index in indices))
            for name, (topic_id, indices) in written.topics.items()
        },
        changes=tuple(_change(*row) for row in written.changes),
        reassignments={
            TopicPartition(topic, partition): RunningReassignment(since_ms, own)
            for topic, partition, since_ms, own in written.reassignments
        },
        own_reassignments=frozenset(TopicPartition(*row) for row in written.own_reassignments),
        widened={TopicPartition(topic, partition): replicas for topic, partition, replicas in written.widened},
        streams={name: _read_streams(row) for name, row in written.streams.items()},
        rate_bases=tuple(_read_rate_base(*row) for row in written.rate_bases),
        size_base=None if written.size_base is None else _read_rate_base(*written.size_base),
        predictions={name: PredictionMemory(*row) for name, row in written.foretold.items()},
    )


def _nth(lists: tuple[Replicas, ...], index: int) -> Replicas:
    if index < 0:
        raise IndexError(f"there is no replica list {index}")
    return lists[index]


def _change(cause: str, subject: str, *row: Any) -> RackChange:
    relabelled = ChangeCause(cause) is ChangeCause.RELABELLED
    of = int(subject) if relabelled and _BROKER.fullmatch(subject) else subject
    change = RackChange(ChangeCause(cause), of, *row)
    if not change.examples or isinstance(of, int) is not relabelled:
        raise ValueError("a change of racks without a broker or an example")
    rows = tuple(PartitionChange(TopicPartition(*tp), before, after) for tp, before, after in change.examples)
    return change._replace(examples=rows)


def _read_streams(written: _WrittenStreams) -> StreamsMemory:
    join = None
    if written.join is not None:
        key, after_ms, seen_ms, ends = written.join
        join = Join(key, after_ms, seen_ms, {TaskId(s, p): end for s, p, end in ends})
    copies = {}
    for row in written.copies:
        process, subtopology, partition, *copy = _COPY.read([*row, None] if len(row) == _COPY_VALUES - 1 else [*row])
        copies[process, TaskId(subtopology, partition)] = CopyMemory(*copy)
    return StreamsMemory(
        join,
        {(process, TaskId(s, p)): offset for process, s, p, offset in written.sums},
        copies,
        tuple(RestoreRate(*rate) for rate in written.rates),
        written.ready_ms,
    )


def _read_rate_base(monotonic_ms: int, rows: tuple[tuple[str, int, int, int | None], ...]) -> RateBase:
    ends = {TopicPartition(topic, partition): end for topic, partition, end, _ in rows}
    sizes = {TopicPartition(topic, partition): size for topic, partition, _, size in rows if size is not None}
    return RateBase(monotonic_ms, ends, sizes)
