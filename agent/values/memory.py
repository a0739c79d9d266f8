"""What is remembered between two looks: one frozen value, small enough to travel with every cycle's telemetry.

Two clocks: ``*_since_ms`` of findings are epoch milliseconds because people read them; everything that a duration is
taken from is on the monotonic clock and says so. Nothing here is needed to be right, only to be patient: with an empty
memory the same faults are found, but with no age, no cause of a change and no rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from agent.values.number_format import lasted
from agent.values.observation import ObservationPart
from agent.values.snapshot import Snapshot
from assignors.problem import TaskId, TopicPartition

if TYPE_CHECKING:
    from agent.values.snapshot import TopicState

Replicas = tuple[int, ...]
CopyKey = tuple[str, TaskId]
"""(process id, task): where a copy of a task lives."""


class RackSighting(NamedTuple):
    """What a broker has told about its rack over the looks; kept while the broker is absent."""

    rack: str | None
    """The last claim; None when the broker was there and told no rack."""
    known: str | None
    """The last rack that it told at all: what is remembered of an absent broker."""
    previous: str | None
    """The rack that it told before ``known``; None when it never told another."""
    since_ms: int
    """Monotonic: the first look of the present claim."""
    polls: int
    """Looks that saw the present claim, this one included."""
    changes: tuple[int, ...] = ()
    """Monotonic times of the latest changes of the claim, oldest first."""


class TopicMemory(NamedTuple):
    """What a topic looked like."""

    topic_id: str | None
    replicas: tuple[Replicas, ...]
    """By partition number, as before a reassignment that runs; ``()`` where it could not be seen."""


class ChangeCause(StrEnum):
    """Why the racks of a partition's replicas are not what they were."""

    RELABELLED = "a broker came back in another rack"
    REASSIGNED = "a reassignment that rackwise did not make"
    NEW_PARTITIONS = "partitions were added"
    CREATED_BLIND = "the topic was created without regard to racks"
    RECREATED = "the topic was deleted and created again"


class PartitionChange(NamedTuple):
    """One partition whose replicas live in other racks than before."""

    id: TopicPartition
    before: Replicas
    after: Replicas


class RackChange(NamedTuple):
    """Partitions whose replica racks changed for one cause; kept for a while so that it can be read."""

    cause: ChangeCause
    subject: str
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
    """The last rebalance of a Streams group, as far as looks can place it in time."""

    key: str
    """Tells it from the one before."""
    after_ms: int | None
    """Monotonic: the last look that still saw the join before. None when rackwise came later than the join."""
    seen_ms: int
    """Monotonic: the first look that saw it."""
    end_sums: Mapping[TaskId, int]
    """End-offset sums at that look; empty when rackwise came later than the join."""


class RestoreRate(NamedTuple):
    """How fast a whole process was seen to restore, in records per second, as far as the clock can tell."""

    low: float
    """At least this fast."""
    high: float | None
    """At most this fast; None where it was through before the first look."""


class CopyMemory(NamedTuple):
    """One copy of a task on one process."""

    since_ms: int
    """Monotonic: the first look that saw it there."""
    samples: tuple[tuple[int, int], ...]
    """(monotonic ms, lag) of the latest readings, oldest first; estimates are not kept."""
    warmup: bool
    """True when the last look took it for a warm-up."""
    nearest: tuple[int, int] | None = None
    """(monotonic ms, lag) of the reading that was nearest to the end so far; None before the first."""


class StreamsMemory(NamedTuple):
    """What is remembered of one Kafka Streams application."""

    join: Join | None
    sums: Mapping[CopyKey, int]
    """Offset sums at the last join of every copy that was not running as active; 0 where nothing was told."""
    copies: Mapping[CopyKey, CopyMemory]
    rates: tuple[RestoreRate, ...]
    """The latest restores that were measured, oldest first."""
    ready_ms: int | None = None
    """Monotonic: the first look since the last join that took a warm-up for caught up; None while none did."""


class PredictionMemory(NamedTuple):
    """What was predicted of one group's next rebalance, as little of it as can be compared."""

    rebalance: str
    """The rebalance after which it was predicted."""
    subject: int
    """Digest of the readers and the placement for which it holds."""
    by: str
    """The assignor with its settings."""
    basis: str
    """Whence these are known."""
    crossing: int
    """Reads across racks in the end."""
    outcomes: tuple[str, ...]
    """Digests of the first and the last assignment; one when they are equal."""
    exact: bool
    missed: str | None = None
    """How the rebalance turned out otherwise; None as long as nothing says so."""


class RateBase(NamedTuple):
    """End offsets at one look, from which rates are taken later."""

    monotonic_ms: int
    end_offsets: Mapping[TopicPartition, int]
    size_bytes: Mapping[TopicPartition, int] = MappingProxyType({})
    """Sizes that were asked in the same look; empty where only end offsets are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Everything that outlives a cycle."""

    cycle: int = 0
    """Looks so far; 0 before the first."""
    taken_ms: int = 0
    """Wall clock of the last look."""
    monotonic_ms: int = 0
    """Monotonic clock of the last look."""
    first_seen: Mapping[str, int] = field(default_factory=dict)
    """Id of each finding of the last cycle -> epoch milliseconds."""
    gone: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Id of a finding that went away lately -> (epoch ms first seen, monotonic ms last seen): it may come back."""
    brokers: Mapping[int, RackSighting] = field(default_factory=dict)
    absent: Mapping[int, int] = field(default_factory=dict)
    """Absent broker -> monotonic ms of the first look that missed it."""
    topics: Mapping[str, TopicMemory] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    """Ids of the groups that were there; like topics, one that is only no longer shown stays."""
    changes: tuple[RackChange, ...] = ()
    reassignments: Mapping[TopicPartition, RunningReassignment] = field(default_factory=dict)
    own_reassignments: frozenset[TopicPartition] = frozenset()
    """Moves that rackwise itself has in flight, as its journal knows them."""
    widened: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    """Partitions that the last look found with all replicas they had and more, though nothing was said to move."""
    rebalancing: Mapping[str, int] = field(default_factory=dict)
    """Group -> monotonic ms since when every look found it out of Stable."""
    streams: Mapping[str, StreamsMemory] = field(default_factory=dict)
    throttles: Mapping[str, int] = field(default_factory=dict)
    """``topic/name`` or ``broker/id`` -> monotonic ms since when it is throttled with no reassignment running."""
    acts: Mapping[str, int] = field(default_factory=dict)
    """Subject of each recent act -> monotonic ms; for cooldowns."""
    rate_bases: tuple[RateBase, ...] = ()
    """At most two, oldest first."""
    size_base: RateBase | None = None
    """A look in which sizes were asked, from which the size of a record is learned."""
    foretold: Mapping[str, PredictionMemory] = field(default_factory=dict)
    """Group -> what was last predicted of it, where a wrong guess would show."""
    bytes_per_record: Mapping[str, float] = field(default_factory=dict)
    """Topic -> size on disk per record, as learned so far."""
    removed: frozenset[int] = frozenset()
    """Brokers that a simulation takes away. Never written down."""
    last_live: Mapping[int, int] = field(default_factory=dict)
    """Broker that the agent beside a command has seen -> monotonic ms until when it was live, as far as the agent's
    memory tells. Never written down.
    """
    topic_states: Mapping[str, TopicState] = field(default_factory=dict, compare=False, repr=False)
    """The very objects of the last snapshot: an unchanged topic costs one identity check. Never written down; without
    them every topic is compared by value, with the same result."""


# Which brokers are absent, and since when: a restart takes a broker away for a while, and most of them come back.
#
# A broker is absent while a replica list names it, or an earlier look saw it, and it is not among the live brokers: it
# is not registered, or it is fenced (KIP-631). One look cannot tell a restart from a broker that is gone for good, so
# nothing is moved because of an absence until it has lasted ``racks.broker_absent_for``.
#
# Invariant: while the brokers did not answer, none is absent, and what was known of absences stays.


class BrokerAbsence(NamedTuple):
    """What is known of a broker that is absent."""

    for_ms: int | None
    """How long, as far as looks tell; None where only one look was taken."""
    seen_before: bool
    """True where an earlier look saw it: then the absence began with the first look that did not."""
    fenced: bool
    """True where it is registered and fenced."""
    has_replicas: bool
    """True where a replica list names it."""
    removed: bool = False
    """True where a simulation takes it away: it is absent in no look."""
    live_ago_ms: int | None = None
    """How long ago an agent saw it live, where a command's one look knows no more."""

    def awaited(self, absent_for_ms: int) -> bool:
        """Whether it may well be a restart: nothing is moved because of it yet. One look cannot tell: then False."""
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
    """Brokers that are waited for: nothing is moved because of their absence yet."""
    return frozenset(broker for broker, absence in found.items() if absence.awaited(absent_for_ms))


def absent_since(memory: Memory, snapshot: Snapshot) -> Mapping[int, int]:
    """Broker -> monotonic ms of the first look that missed it, for the next memory."""
    if _unanswered(snapshot):
        return memory.absent
    return {broker: memory.absent.get(broker, snapshot.monotonic_ms) for broker in _absent(memory, snapshot)}


def gone_for_good(memory: Memory, snapshot: Snapshot, absent_for_ms: int, gone: Iterable[int]) -> Memory:
    """The memory in which those brokers have been absent for long enough: a simulation is about what is so then."""
    since_ms = snapshot.monotonic_ms - absent_for_ms
    brokers = frozenset(gone)
    return replace(memory, absent={**memory.absent, **dict.fromkeys(brokers, since_ms)}, removed=brokers)


def _absent(memory: Memory, snapshot: Snapshot) -> list[int]:
    listed = {broker.id for broker in snapshot.brokers}
    away = {broker.id for broker in snapshot.brokers if not broker.alive}
    return sorted(away | ((memory.brokers.keys() | memory.last_live.keys()) - listed))


def _named(snapshot: Snapshot, away: list[int]) -> frozenset[int]:
    """Those that a replica list names; of one that is not registered nothing else tells."""
    if not away:
        return frozenset()
    registered = {broker.id for broker in snapshot.brokers if broker.host is not None}
    lists = {state.replicas for topic in snapshot.topics.values() for state in topic.partitions}
    named = frozenset(chain.from_iterable(lists))
    return frozenset(broker for broker in away if broker in named or broker not in registered)


def _unanswered(snapshot: Snapshot) -> bool:
    return any(gap.part is ObservationPart.BROKERS for gap in snapshot.gaps)


# --- words ------------------------------------------------------------------------------------------------------


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
