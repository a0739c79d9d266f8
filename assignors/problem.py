"""Problems and results of the optimal assignors: consumer groups, Streams tasks, replicas.

Frozen values. Racks are given *per partition as a set*: the caller decides by which measure a rack counts (Kafka's: any
replica; or as read: the leader or an in-sync replica). Unknown is ``None`` and equal to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class TopicPartition(NamedTuple):
    """A topic partition by name, as Kafka's class of that name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TaskId(NamedTuple):
    """A Streams task, written ``0_1`` as Kafka writes it. ``subtopology`` is a string under KIP-1071."""

    subtopology: int | str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


class BadProblem(ValueError):  # noqa: N818 (named for what the caller passed)
    """A problem that contradicts itself; the sentence names the part that is wrong and what to do about it."""


# --- consumer partitions (KIP-881, KIP-848) ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """One member of a consumer group: what it asks for and what it holds."""

    id: str
    rack: str | None
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProblem:
    """Who shall read which partition."""

    members: tuple[ConsumerMember, ...]
    racks: Mapping[str, tuple[frozenset[str], ...]]
    """Topic -> for each partition the racks in which reading it is local."""
    weights: Mapping[TopicPartition, int] | None = None
    """What a partition weighs when it is read across racks (bytes per second); None: every partition weighs 1."""
    prices: Mapping[tuple[str, str], int] | None = None
    """(Rack of a replica, rack of the reader) -> what one unit of weight costs on that way; a pair not listed costs 1.
    A partition is read from its cheapest replica and for nothing in the reader's own rack; where either rack is not
    known, at the dearest price there is. None: every way across racks costs 1."""
    copartitioned: bool = False
    """Partition p of all topics of equal subscribers stays with one member (what range promises)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerResult:
    """An assignment with what it costs, and how far that is from what is possible."""

    assignment: Mapping[str, tuple[TopicPartition, ...]]
    """Every member id -> its partitions, sorted; a member without work has an empty tuple."""
    crossing: int
    """Weight of the partitions read across racks (a member without rack counts as crossing), times its price where
    the problem has prices."""
    moved: int
    """Partitions whose owner changed; one without an owner before does not count."""
    lower_bound: int
    """No assignment with the same balance has a smaller ``crossing``."""
    optimal: bool
    """True when ``crossing == lower_bound`` and ``moved`` is the least possible at that crossing."""


# --- Streams tasks (KIP-441, KIP-708, KIP-925, KIP-1071) ----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsTask:
    """A task and where the partitions that it reads and writes have replicas."""

    id: TaskId
    stateful: bool
    sources: tuple[frozenset[str], ...]
    """For each source partition the racks in which reading it is local."""
    changelogs: tuple[frozenset[str], ...] = ()
    weights: tuple[int, ...] | None = None
    """What each source partition weighs when it is read across racks (bytes per second); None: every one weighs 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProcess:
    """One KafkaStreams instance with its capacity (threads) and what it runs now."""

    id: str
    rack: str | None
    capacity: int
    tags: tuple[tuple[str, str], ...] = ()
    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProblem:
    """Which process shall run which task, and hold which standby."""

    tasks: tuple[StreamsTask, ...]
    processes: tuple[TaskProcess, ...]
    counts: Literal["fixed", "free"] = "free"
    """fixed: every process keeps the number of active tasks it has; free: floor or ceil of its share by capacity."""
    balance: Literal["none", "subtopology"] = "subtopology"
    """subtopology: the bound holds per subtopology and process as well (KIP-925 ``balance_subtopology``)."""
    traffic_cost: int = 10
    non_overlap_cost: int = 1
    num_standby_replicas: int = 0
    rack_aware_tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbyQuality:
    """How good the standbys are for the chosen active tasks, each figure with a proven bound.

    The figures count in this order: below a bound no standbys with the same earlier figures exist.
    """

    missing: int = 0
    """Configured standbys that no process can hold, because every process has a copy of the task already."""
    shared: int = 0
    """Copies that share a rack (or a value of a tag) with another copy of their task, the first with that value left
    out, summed over the tags. An unknown value counts as shared."""
    shared_bound: int = 0
    imbalance: int = 0
    """How far processes are off their shares of active tasks and standbys by capacity, summed: a task short of the
    rounded-down share counts 1; above the rounded-up share the first counts 1, the next two 2, the next four 3, …"""
    imbalance_bound: int = 0
    cost: int = 0
    """``traffic_cost`` per changelog partition without a replica in the rack of a standby plus
    ``non_overlap_cost`` per standby on a process that held no copy of the task."""
    cost_bound: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """Active tasks and standbys by process, priced as KIP-925 prices them."""

    active: Mapping[str, tuple[TaskId, ...]]
    standby: Mapping[str, tuple[TaskId, ...]]
    cost: int
    """``traffic_cost`` per crossing source partition plus ``non_overlap_cost`` per moved task (active tasks)."""
    crossing: int
    """Source partitions that cross; their weight where tasks have weights, and so in ``cost``."""
    moved: int
    lower_bound: int
    optimal: bool
    """True when ``cost == lower_bound``."""
    standbys: StandbyQuality | None = None
    """None without configured standbys."""


# --- replicas (KIP-36, KIP-455) -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaBroker:
    """A broker that holds or may take replicas."""

    id: int
    rack: str | None
    accepts: bool = True
    """False: keeps what it has but takes nothing new (offline, fenced, cordoned or excluded)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSet:
    """A partition's replicas in order: the first is the preferred leader."""

    id: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int | None = None
    """None when unknown; an unknown size counts as one byte, so that fewer moves still win."""
    readers: tuple[tuple[str, int], ...] = ()
    """(rack, readers there that read from a replica of their own rack where there is one, KIP-392)."""
    keeps_leader: bool = False
    """True: the first replica does not move, even to a broker that accepts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaProblem:
    """Replicas to place so that no rack holds more of a partition than it must."""

    brokers: tuple[ReplicaBroker, ...]
    partitions: tuple[ReplicaSet, ...]
    balance: bool = True
    """True: replica counts of the accepting brokers end as even as they can, within one of each other where that is
    possible, at the fewest bytes; False: only the rack rule counts and nothing moves that keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfeasiblePartition:
    """A partition for which no allowed placement keeps the rack rule, and the sentence why."""

    id: TopicPartition
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaResult:
    """New replica lists for the partitions that change, and only for those."""

    replicas: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    infeasible: tuple[InfeasiblePartition, ...] = ()
    moved_bytes: int = 0
    moved_replicas: int = 0
    lower_bound: int = 0
    """No set of moves that mends the rack rule, and with ``balance`` evens out as far, copies fewer bytes."""
    optimal: bool = True


# --- preferred leaders ----------------------------------------------------------------------------------------


class LeaderCandidate(NamedTuple):
    """A broker that may lead a partition."""

    broker: int
    first: int
    """What it costs before anything else."""
    last: int
    """What it costs among equals."""


class LeaderCapacity(NamedTuple):
    """How many more leaders each may have; what is not named has no room."""

    brokers: Mapping[int, int]
    racks: Mapping[str, int]
    rack_of: Mapping[int, str]
    hard: bool
    """True: no rack ever leads more. The racks must then have room for all partitions."""
