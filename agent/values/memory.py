"""Memory: facts of earlier looks as one frozen value of each cycle's telemetry, and ages of absent brokers.

``since_ms`` of findings is epoch milliseconds; every time from which a duration is taken is monotonic, as its docstring
names it. With an empty memory the same faults are found, without ages, causes of changes, or rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from agent.values.number_format import lasted
from agent.values.observation import ObservationPart
from agent.values.snapshot import Snapshot, TopicState
from assignors.problem import TaskId, TopicPartition

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
Replicas = tuple[int, ...]
CopyKey = tuple[str, TaskId]
"""(process id, task): one copy of a task."""


class RackSighting(NamedTuple):
    """A broker's ``broker.rack`` over the looks; kept while the broker is absent."""

    rack: str | None
    """The last claim; None when the broker was there and had no rack."""
    known: str | None
    """The last rack that it had: the remembered rack of an absent broker."""
    previous: str | None
    """The rack before ``known``; None when there was no other."""
    since_ms: int
    """Monotonic: the first look of the present claim."""
    polls: int
    """Looks that saw the present claim, this one included."""
    changes: tuple[int, ...] = ()
    """Monotonic times of the latest changes of the claim, oldest first."""


class TopicMemory(NamedTuple):
    """A topic's id and replicas at the last look."""

    topic_id: str | None
    replicas: tuple[Replicas, ...]
    """By partition number, as before a reassignment that runs; ``()`` where it could not be seen."""


class ChangeCause(StrEnum):
    """Why the racks of a partition's replicas have changed."""

    RELABELLED = "a broker came back in another rack"
    REASSIGNED = "a reassignment that rackwise did not make"
    NEW_PARTITIONS = "partitions were added"
    CREATED_BLIND = "the topic was created without regard to racks"
    RECREATED = "the topic was deleted and created again"


class PartitionChange(NamedTuple):
    """One partition whose replicas are in other racks than before."""

    id: TopicPartition
    before: Replicas
    after: Replicas


class RackChange(NamedTuple):
    """Partitions whose replica racks changed for one cause; kept for a while, for display."""

    cause: ChangeCause
    subject: int | str
    """The broker's id when it was relabelled, else the topic."""
    at_ms: int
    """Epoch milliseconds of the look that saw it."""
    seen_ms: int
    """The same look on the monotonic clock."""
    partitions: int
    topics: int
    examples: tuple[PartitionChange, ...]
    """The first few."""
    running_since_ms: int | None = None
    """Epoch milliseconds since when the reassignment was seen running; None when it was never seen."""
    shares_rack: bool = False
    """True when replicas now share a rack while another is free."""


class RunningReassignment(NamedTuple):
    """A reassignment seen in flight."""

    since_ms: int
    """Epoch milliseconds."""
    own: bool


class Join(NamedTuple):
    """The last rebalance of a Streams group, with its time as far as looks bound it."""

    key: str
    """Differs from that of the rebalance before."""
    after_ms: int | None
    """Monotonic: the last look that still saw the join before. None when rackwise came later than the join."""
    seen_ms: int
    """Monotonic: the first look that saw it."""
    end_sums: Mapping[TaskId, int]
    """End-offset sums at that look; empty when rackwise came later than the join."""


class RestoreRate(NamedTuple):
    """Measured restore rate of a whole process, in records per second."""

    low: float
    """At least this fast."""
    high: float | None
    """At most this fast; None where it had finished before the first look."""


class CopyMemory(NamedTuple):
    """One copy of a task on one process."""

    since_ms: int
    """Monotonic: the first look that saw it there."""
    samples: tuple[tuple[int, int], ...]
    """(monotonic ms, lag) of the latest readings, oldest first; estimates are not kept."""
    warmup: bool
    """True when the last look classified it as a warm-up."""
    nearest: tuple[int, int] | None = None
    """(monotonic ms, lag) of the reading that was nearest to the end so far; None before the first."""


class StreamsMemory(NamedTuple):
    """Memory of one Kafka Streams application."""

    join: Join | None
    sums: Mapping[CopyKey, int]
    """Offset sums at the last join of every copy that was not running as active; 0 where none was sent."""
    copies: Mapping[CopyKey, CopyMemory]
    rates: tuple[RestoreRate, ...]
    """The latest restores that were measured, oldest first."""
    ready_ms: int | None = None
    """Monotonic: the first look since the last join with a caught-up warm-up; None while there is none."""


class PredictionMemory(NamedTuple):
    """The comparable part of a prediction of one group's next rebalance."""

    rebalance: str
    """The rebalance after which it was predicted."""
    subject: int
    """Digest of the readers and the placement that it was made for."""
    by: str
    """The assignor with its settings."""
    basis: str
    """Source of these (`PredictionBasis`)."""
    crossing: int
    """Reads across racks after all rebalances."""
    outcomes: tuple[str, ...]
    """Digests of the first and the last assignment; one when they are equal."""
    exact: bool
    missed: str | None = None
    """How the rebalance differed; None while it has not."""


class RateBase(NamedTuple):
    """End offsets at one look, the base of later rates."""

    monotonic_ms: int
    end_offsets: Mapping[TopicPartition, int]
    size_bytes: Mapping[TopicPartition, int] = MappingProxyType({})
    """Sizes of the same look; empty where only end offsets are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All state that outlives a cycle."""

    cycle: int = 0
    """Looks so far; 0 before the first."""
    taken_ms: int = 0
    """Wall clock of the last look."""
    monotonic_ms: int = 0
    """Monotonic clock of the last look."""
    first_seen: Mapping[str, int] = field(default_factory=dict)
    """Id of each finding of the last cycle -> epoch milliseconds."""
    gone: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Id of a recently ended finding -> (epoch ms first seen, monotonic ms last seen)."""
    brokers: Mapping[int, RackSighting] = field(default_factory=dict)
    absent: Mapping[int, int] = field(default_factory=dict)
    """Absent broker -> monotonic ms of the first look that missed it."""
    topics: Mapping[str, TopicMemory] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    """Ids of known groups; like a topic, one that is hidden but not gone stays."""
    changes: tuple[RackChange, ...] = ()
    reassignments: Mapping[TopicPartition, RunningReassignment] = field(default_factory=dict)
    own_reassignments: frozenset[TopicPartition] = frozenset()
    """Reassignments of rackwise itself in flight, by its journal."""
    widened: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    """Partitions that gained replicas at the last look without a listed reassignment."""
    rebalancing: Mapping[str, int] = field(default_factory=dict)
    """Group -> monotonic ms since when it is out of Stable at every look."""
    streams: Mapping[str, StreamsMemory] = field(default_factory=dict)
    throttles: Mapping[str, int] = field(default_factory=dict)
    """``topic/name`` or ``broker/id`` -> monotonic ms since when it is throttled with no reassignment running."""
    acts: Mapping[str, int] = field(default_factory=dict)
    """Subject of each recent act -> monotonic ms; for cooldowns."""
    rate_bases: tuple[RateBase, ...] = ()
    """At most two, oldest first."""
    size_base: RateBase | None = None
    """A look with sizes, from which the size of a record is learned."""
    predictions: Mapping[str, PredictionMemory] = field(default_factory=dict)
    """Group -> its last prediction, where a miss is detectable."""
    bytes_per_record: Mapping[str, float] = field(default_factory=dict)
    """Topic -> size on disk per record, as learned so far."""
    removed: frozenset[int] = frozenset()
    """Brokers that a simulation removes. Never written."""
    last_live: Mapping[int, int] = field(default_factory=dict)
    """Broker -> monotonic ms until when it was live by the running agent's memory; for commands. Never written."""
    topic_states: Mapping[str, TopicState] = field(default_factory=dict, compare=False, repr=False)
    """The objects of the last snapshot, so that an unchanged topic costs one identity check. Never written."""


# A broker is absent while a replica list names it, or an earlier look saw it, and it is not registered or is fenced
# (KIP-631). Nothing is moved because of an absence until it has lasted ``racks.broker_absent_for``. While the brokers
# did not answer, none is absent, and known absences stay.


class BrokerAbsence(NamedTuple):
    """The state of an absent broker."""

    for_ms: int | None
    """Observed length of the absence; None after a single look."""
    seen_before: bool
    """True where an earlier look saw it: the absence began with the first look that did not."""
    fenced: bool
    """True where it is registered and fenced."""
    has_replicas: bool
    """True where a replica list names it."""
    removed: bool = False
    """True where a simulation removes it: no look saw it absent."""
    live_ago_ms: int | None = None
    """How long ago the running agent saw it live; only for commands."""

    def awaited(self, absent_for_ms: int) -> bool:
        """Whether it may be a restart, so that nothing is moved because of it yet; False after a single look."""
        return self.has_replicas and self.for_ms is not None and self.for_ms < absent_for_ms


def absences(memory: Memory, snapshot: Snapshot) -> dict[int, BrokerAbsence]:
    """Every absent broker, sorted by id; ``memory`` is that of the looks before this one."""
    if _unanswered(snapshot):
        return {}
    states = {broker.id: broker for broker in snapshot.brokers}
    found: dict[int, BrokerAbsence] = {}
    named = _named(snapshot, [broker for broker, state in states.items() if not state.alive])
    for broker in _absent(memory, snapshot):
        state = states.get(broker)
        since_ms = memory.absent.get(broker, snapshot.monotonic_ms if memory.cycle else None)
        found[broker] = BrokerAbsence(
            None if since_ms is None else max(0, snapshot.monotonic_ms - since_ms),
            seen_before=broker in memory.brokers,
            live_ago_ms=None if broker not in memory.last_live else snapshot.monotonic_ms - memory.last_live[broker],
            fenced=state is not None and state.fenced is True,
            has_replicas=broker in named,
            removed=broker in memory.removed,
        )
    return found


def awaited(found: Mapping[int, BrokerAbsence], absent_for_ms: int) -> frozenset[int]:
    """Brokers whose absence may be a restart: nothing is moved because of it yet."""
    return frozenset(broker for broker, absence in found.items() if absence.awaited(absent_for_ms))


def absent_since(memory: Memory, snapshot: Snapshot) -> Mapping[int, int]:
    """Broker -> monotonic ms of the first look that missed it, for the next memory."""
    if _unanswered(snapshot):
        return memory.absent
    return {broker: memory.absent.get(broker, snapshot.monotonic_ms) for broker in _absent(memory, snapshot)}


def gone_for_good(memory: Memory, snapshot: Snapshot, absent_for_ms: int, gone: Iterable[int]) -> Memory:
    """The memory with those brokers absent for ``absent_for_ms`` and removed, for simulations."""
    since_ms = snapshot.monotonic_ms - absent_for_ms
    brokers = frozenset(gone)
    return replace(memory, absent={**memory.absent, **dict.fromkeys(brokers, since_ms)}, removed=brokers)


def _absent(memory: Memory, snapshot: Snapshot) -> list[int]:
    listed = {broker.id for broker in snapshot.brokers}
    absent = {broker.id for broker in snapshot.brokers if not broker.alive}
    return sorted(absent | ((memory.brokers.keys() | memory.last_live.keys()) - listed))


def _named(snapshot: Snapshot, absent: list[int]) -> frozenset[int]:
    """Absent brokers that a replica list names; one that is not registered is known from such a list alone."""
    if not absent:
        return frozenset()
    registered = {broker.id for broker in snapshot.brokers if broker.host is not None}
    lists = {state.replicas for topic in snapshot.topics.values() for state in topic.partitions}
    named = frozenset(chain.from_iterable(lists))
    return frozenset(broker for broker in absent if broker in named or broker not in registered)


def _unanswered(snapshot: Snapshot) -> bool:
    return any(gap.part is ObservationPart.BROKERS for gap in snapshot.gaps)


def absence_words(broker: int, absence: BrokerAbsence) -> str:
    """``broker 3 has been absent for 12 s``, ``broker 3 is absent now, since when is unknown``; or fenced."""
    if absence.removed:
        return f"broker {broker} is removed in this simulation"
    what = "fenced" if absence.fenced else "absent"
    if absence.for_ms is None:
        since = "since when is unknown"
        if absence.live_ago_ms is not None:
            since = f"and was live {lasted(absence.live_ago_ms)} ago, as the running agent saw it"
        return f"broker {broker} is {what} now, {since}"
    if absence.for_ms < 1_000:
        return f"broker {broker} has been {what} since this look"
    least = "" if absence.seen_before else "at least "
    return f"broker {broker} has been {what} for {least}{lasted(absence.for_ms)}"


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
            broker: sighting._replace(since_ms=moved(sighting.since_ms), changes=tuple(map(moved, sighting.changes)))
            for broker, sighting in memory.brokers.items()
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
