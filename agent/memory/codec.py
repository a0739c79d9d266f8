"""The memory as JSON text and back, so that it travels in telemetry and outlives the process.

Written: everything but ``topic_states``, which only saves work. Round trips are exact, so a replay sees what the cycle
saw. Equal replica lists, of which a cluster has few, are written once.

A restart may happen on another machine, where the monotonic clock means nothing: `after_restart` moves every monotonic
time by what the wall clock says has passed. That is the one place where a duration rests on the wall clock. Absences of
brokers are the exception: only what looks saw of them counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from agent.memory.values import (
    ChangeCause,
    CopyMemory,
    Foretold,
    Join,
    Memory,
    PartitionChange,
    RackChange,
    RackSighting,
    RateBase,
    Replicas,
    RestoreRate,
    RunningReassignment,
    StreamsMemory,
    TopicMemory,
)
from assignors.problem import TaskId, TopicPartition

VERSION = 1

_Json = Any
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class UnreadableMemoryError(ValueError):
    """The text is no memory that this version can read; the sentence says why. Start with an empty memory."""


def memory_to_json(memory: Memory) -> str:
    """The memory as one line of JSON with sorted keys."""
    lists: dict[Replicas, int] = {}
    topics = {
        name: [known.topic_id, [lists.setdefault(replicas, len(lists)) for replicas in known.replicas]]
        for name, known in memory.topics.items()
    }
    value = {
        "v": VERSION,
        "cycle": memory.cycle,
        "taken_ms": memory.taken_ms,
        "monotonic_ms": memory.monotonic_ms,
        "first_seen": dict(memory.first_seen),
        "gone": dict(memory.gone),
        "brokers": {str(broker): seen for broker, seen in memory.brokers.items()},
        "absent": {str(broker): since for broker, since in memory.absent.items()},
        "replica_lists": list(lists),
        "topics": topics,
        "groups": memory.groups,
        "changes": memory.changes,
        "reassignments": [[*tp, *running] for tp, running in memory.reassignments.items()],
        "own_reassignments": sorted(memory.own_reassignments),
        "widened": [[*tp, replicas] for tp, replicas in memory.widened.items()],
        "rebalancing": dict(memory.rebalancing),
        "streams": {name: _streams(known) for name, known in memory.streams.items()},
        "throttles": dict(memory.throttles),
        "acts": dict(memory.acts),
        "rate_bases": [_rate_base(base) for base in memory.rate_bases],
        "size_base": memory.size_base and _rate_base(memory.size_base),
        "foretold": memory.foretold,
        "bytes_per_record": dict(memory.bytes_per_record),
    }
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def memory_from_json(text: str) -> Memory:
    """The memory that was written; raises UnreadableMemoryError for anything else."""
    try:
        value = json.loads(text)
        version = value["v"]
        known = _memory(value) if version == VERSION else None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise UnreadableMemoryError(f"the remembered state cannot be read ({error!r}); it is ignored") from error
    if known is None:
        sentence = f"the remembered state is of version {version!r}, this agent reads {VERSION}; it is ignored"
        raise UnreadableMemoryError(sentence)
    return known


def after_restart(memory: Memory, taken_ms: int, monotonic_ms: int) -> Memory:
    """The same memory on this process's monotonic clock. A wall clock that went back counts as no time passed."""
    by = monotonic_ms - max(0, taken_ms - memory.taken_ms) - memory.monotonic_ms

    def moved(at_ms: int) -> int:
        return at_ms + by

    return replace(
        memory,
        monotonic_ms=moved(memory.monotonic_ms),
        gone={name: (since, moved(last)) for name, (since, last) in memory.gone.items()},
        brokers={
            broker: seen._replace(since_ms=moved(seen.since_ms), changes=tuple(map(moved, seen.changes)))
            for broker, seen in memory.brokers.items()
        },
        # While no agent looked the broker may have been there: that time does not count.
        absent=_each(memory.absent, lambda since_ms: monotonic_ms - (memory.monotonic_ms - since_ms)),
        changes=tuple(change._replace(seen_ms=moved(change.seen_ms)) for change in memory.changes),
        rebalancing=_each(memory.rebalancing, moved),
        streams=_each(memory.streams, lambda known: _moved_streams(known, moved)),
        throttles=_each(memory.throttles, moved),
        acts=_each(memory.acts, moved),
        rate_bases=tuple(base._replace(monotonic_ms=moved(base.monotonic_ms)) for base in memory.rate_bases),
        size_base=memory.size_base and memory.size_base._replace(monotonic_ms=moved(memory.size_base.monotonic_ms)),
    )


def _each(mapping: Mapping[_Key, _Value], change: Callable[[_Value], _Value]) -> dict[_Key, _Value]:
    return {key: change(value) for key, value in mapping.items()}


def _moved_streams(known: StreamsMemory, moved: Callable[[int], int]) -> StreamsMemory:
    join = known.join
    if join is not None:
        after_ms = None if join.after_ms is None else moved(join.after_ms)
        join = join._replace(after_ms=after_ms, seen_ms=moved(join.seen_ms))
    copies = {
        key: copy._replace(
            since_ms=moved(copy.since_ms),
            samples=tuple((moved(at_ms), lag) for at_ms, lag in copy.samples),
            nearest=None if copy.nearest is None else (moved(copy.nearest[0]), copy.nearest[1]),
        )
        for key, copy in known.copies.items()
    }
    ready_ms = None if known.ready_ms is None else moved(known.ready_ms)
    return known._replace(join=join, copies=copies, ready_ms=ready_ms)


# --- writing -------------------------------------------------------------------------------------------------


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
    rows = sorted(base.end_offsets.items())
    return [base.monotonic_ms, [[*tp, end, base.size_bytes.get(tp)] for tp, end in rows]]


# --- reading -------------------------------------------------------------------------------------------------


def _memory(value: _Json) -> Memory:
    lists = [tuple(map(int, replicas)) for replicas in value["replica_lists"]]
    return Memory(
        cycle=int(value["cycle"]),
        taken_ms=int(value["taken_ms"]),
        monotonic_ms=int(value["monotonic_ms"]),
        first_seen={str(name): int(since) for name, since in value["first_seen"].items()},
        gone={str(name): (int(since), int(last)) for name, (since, last) in value["gone"].items()},
        brokers={int(broker): _sighting(row) for broker, row in value["brokers"].items()},
        absent={int(broker): int(since) for broker, since in value.get("absent", {}).items()},
        topics={
            str(name): TopicMemory(topic_id, tuple(lists[index] for index in indices))
            for name, (topic_id, indices) in value["topics"].items()
        },
        groups=tuple(map(str, value["groups"])),
        changes=tuple(_change(row) for row in value["changes"]),
        reassignments={
            TopicPartition(str(topic), int(partition)): RunningReassignment(int(since), bool(own))
            for topic, partition, since, own in value["reassignments"]
        },
        own_reassignments=frozenset(TopicPartition(str(t), int(p)) for t, p in value["own_reassignments"]),
        widened={
            TopicPartition(str(topic), int(partition)): tuple(map(int, replicas))
            for topic, partition, replicas in value.get("widened", [])
        },
        rebalancing={str(name): int(at) for name, at in value["rebalancing"].items()},
        streams={str(name): _read_streams(row) for name, row in value["streams"].items()},
        throttles={str(subject): int(at) for subject, at in value["throttles"].items()},
        acts={str(subject): int(at) for subject, at in value["acts"].items()},
        rate_bases=tuple(_read_rate_base(*row) for row in value["rate_bases"]),
        size_base=None if value["size_base"] is None else _read_rate_base(*value["size_base"]),
        foretold={str(name): _read_foretold(row) for name, row in value.get("foretold", {}).items()},
        bytes_per_record={str(topic): float(size) for topic, size in value["bytes_per_record"].items()},
    )


def _read_foretold(row: _Json) -> Foretold:
    rebalance, subject, by, basis, crossing, outcomes, exact, missed = row
    return Foretold(
        str(rebalance), int(subject), str(by), str(basis), int(crossing), tuple(map(str, outcomes)), bool(exact), missed
    )


def _sighting(row: _Json) -> RackSighting:
    rack, known, previous, since_ms, polls, changes = row
    return RackSighting(rack, known, previous, int(since_ms), int(polls), tuple(map(int, changes)))


def _change(row: _Json) -> RackChange:
    cause, subject, at_ms, seen_ms, partitions, topics, examples, running_since_ms, shares_rack = row
    rows = tuple(
        PartitionChange(TopicPartition(str(tp[0]), int(tp[1])), tuple(before), tuple(after))
        for tp, before, after in examples
    )
    return RackChange(
        ChangeCause(cause),
        str(subject),
        int(at_ms),
        int(seen_ms),
        int(partitions),
        int(topics),
        rows,
        running_since_ms,
        bool(shares_rack),
    )


def _task(subtopology: int | str, partition: int) -> TaskId:
    return TaskId(subtopology, int(partition))


def _read_streams(row: _Json) -> StreamsMemory:
    join = row["join"]
    return StreamsMemory(
        None
        if join is None
        else Join(str(join[0]), join[1], int(join[2]), {_task(s, p): int(e) for s, p, e in join[3]}),
        {(str(process), _task(s, p)): int(offset) for process, s, p, offset in row["sums"]},
        {
            (str(process), _task(s, p)): CopyMemory(
                int(since_ms),
                tuple((int(at), int(lag)) for at, lag in samples),
                bool(warmup),
                (int(nearest[0][0]), int(nearest[0][1])) if nearest and nearest[0] else None,
            )
            for process, s, p, since_ms, samples, warmup, *nearest in row["copies"]
        },
        tuple(RestoreRate(float(low), None if high is None else float(high)) for low, high in row["rates"]),
        None if row.get("ready_ms") is None else int(row["ready_ms"]),
    )


def _join(row: _Json) -> Join | None:
    if row is None:
        return None
    key, after_ms, seen_ms, ends = row
    return Join(str(key), after_ms, int(seen_ms), {_task(s, p): int(end) for s, p, end in ends})


def _read_rate_base(monotonic_ms: int, rows: list[_Json]) -> RateBase:
    ends = {TopicPartition(str(topic), int(partition)): int(end) for topic, partition, end, _ in rows}
    sizes = {
        TopicPartition(str(topic), int(partition)): int(size) for topic, partition, _, size in rows if size is not None
    }
    return RateBase(int(monotonic_ms), ends, sizes)
