"""What the brokers answered, as they answered it: the value that ``observe`` returns and ``decode`` reads.

Raw rows are named tuples: a cluster has a hundred thousand of them, and comparing this cycle's rows with the last
cycle's must cost next to nothing. Member bytes are kept untouched. A part that did not answer is a `Gap`, and the
field is then empty *and named by the gap*: an empty field without a gap is a true answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

from agent.values.weights import WeightsReading
from assignors.problem import TaskId, TopicPartition


class ObservationPart(StrEnum):
    """A part of an observation that can be missing on its own."""

    BROKERS = "brokers"
    TOPICS = "topics"
    TOPIC_CONFIGS = "topic configs"
    BROKER_CONFIGS = "broker configs"
    GROUP_CONFIGS = "group configs"
    END_OFFSETS = "end offsets"
    COMMITTED_OFFSETS = "committed offsets"
    GROUPS = "groups"
    REASSIGNMENTS = "reassignments"
    LOG_DIRS = "log dirs"
    RIGHTS = "rights"
    APPLICATION_LAGS = "application lags"
    RACK_LOCATORS = "rack locators"
    WEIGHTS = "weights"


class GapCause(StrEnum):
    """Why a part is missing; the word decides what a reader may conclude."""

    TIMED_OUT = "no answer in time"
    UNREACHABLE = "could not be reached"
    NOT_ALLOWED = "not authorized"
    UNSUPPORTED = "not supported"
    ERROR = "answered with an error"
    UNUSABLE = "the answer cannot be used"
    VANISHED = "gone between two calls"
    DOUBTED = "fewer than before, not confirmed"
    TOO_LARGE = "larger than the limit"
    NOT_ASKED = "not requested"


class Gap(NamedTuple):
    """A part of the world that did not answer."""

    part: ObservationPart
    cause: GapCause
    subject: str
    """What is missing: a broker (``broker 2``), a group, a topic, or ``""`` for the whole part."""
    detail: str
    """One sentence with the error as the client gave it."""

    @property
    def is_missed(self) -> bool:
        """Whether it was asked for, is offered, and did not answer.

        Weights are no part of the cluster: without them plans go by what the agent knows itself, and say so.
        """
        return self.cause not in _NOT_MISSED and self.part is not ObservationPart.WEIGHTS


_NOT_MISSED = frozenset({GapCause.NOT_ASKED, GapCause.UNSUPPORTED, GapCause.VANISHED})


class RawBroker(NamedTuple):
    """A registered broker."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool | None
    """None where the broker is too old to tell (DescribeCluster below v2)."""


class RawPartition(NamedTuple):
    """A partition row of topic metadata."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


class RawTopic(NamedTuple):
    """A topic of the metadata answer."""

    name: str
    topic_id: str | None
    internal: bool
    partitions: tuple[RawPartition, ...]
    error: str | None


class RawMember(NamedTuple):
    """A member of a classic group; both byte strings exactly as the broker stored them."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class RawClassicGroup(NamedTuple):
    """A classic group as DescribeGroups answered it."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    """The chosen assignor; empty outside Stable."""
    members: tuple[RawMember, ...]
    coordinator: int | None


class RawConsumerMember(NamedTuple):
    """A member of a KIP-848 group."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    topic_regex: str | None
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    member_type: int
    """-1 unknown, 0 classic, 1 consumer (KIP-1099)."""


class RawConsumerGroup(NamedTuple):
    """A KIP-848 group as ConsumerGroupDescribe answered it."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[RawConsumerMember, ...]
    coordinator: int | None


class RawTasks(NamedTuple):
    """Active, standby and warm-up tasks of a KIP-1071 member."""

    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    warmup: tuple[TaskId, ...]


class RawStreamsMember(NamedTuple):
    """A member of a KIP-1071 group."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    process_id: str
    client_tags: tuple[tuple[str, str], ...]
    assignment: RawTasks
    target: RawTasks
    task_offsets: tuple[tuple[TaskId, int], ...]
    task_end_offsets: tuple[tuple[TaskId, int], ...]


class RawSubtopology(NamedTuple):
    """A subtopology as the group's members declared it."""

    id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]


class RawStreamsGroup(NamedTuple):
    """A KIP-1071 group as StreamsGroupDescribe answered it."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    subtopologies: tuple[RawSubtopology, ...] | None
    members: tuple[RawStreamsMember, ...]
    coordinator: int | None


RawGroup = RawClassicGroup | RawConsumerGroup | RawStreamsGroup
"""A group as its coordinator described it; its class says which kind it is."""
DescribedKind = TypeVar("DescribedKind", RawClassicGroup, RawConsumerGroup, RawStreamsGroup)


class RawListedGroup(NamedTuple):
    """A row of ListGroups; ``group_type`` is None below v5."""

    group_id: str
    protocol_type: str
    state: str | None
    group_type: str | None


class RawReassignment(NamedTuple):
    """A reassignment in flight."""

    id: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class RawApplicationLag(NamedTuple):
    """A task's lag as the application itself tells it."""

    group_id: str
    process_id: str
    """The process id (a UUID) where the endpoint gives it, else the client id."""
    task: TaskId
    role: str
    """``active`` or ``standby``; the application itself does not know a warm-up from a standby."""
    lag: int
    observed_ms: int


class RawRackRow(NamedTuple):
    """One row of a rack table: who is where."""

    of: str
    """What ``name`` is: ``broker`` (its id), ``host``, ``client.id`` or ``group.instance.id``."""
    name: str
    rack: str


class RawRackTable(NamedTuple):
    """What one rack locator (a file, a command, an entry point) told."""

    locator: str
    """Its name in ``rack.locator.class``."""
    rows: tuple[RawRackRow, ...]
    """Sorted, each once; one name may stand there with two racks, which is then a contradiction."""
    age_ms: int
    """0 when it answered in this look; else how old its last good answer is, which stands in, beside a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRights:
    """What the principal may do, as the brokers answered it; None where they did not tell."""

    cluster_describe: bool | None = None
    cluster_describe_configs: bool | None = None
    cluster_alter: bool | None = None
    topics_hidden: int | None = None
    """Topics the brokers are known to hold (rackwise saw them before) that are no longer shown."""
    groups_hidden: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the cluster: every raw answer, and a gap for each that is missing."""

    cluster_id: str
    controller: int | None
    brokers: tuple[RawBroker, ...]
    topics: tuple[RawTopic, ...]
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Topic -> the configs that matter, with the value in force (``min.insync.replicas``, throttled replicas, ...)."""
    broker_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Broker -> the configs that matter (``replica.selector.class``, throttle rates, defaults for new topics)."""
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    committed_offsets: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """Group -> committed offsets, asked *before* the end offsets so that lag is never negative."""
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    listed_groups: tuple[RawListedGroup, ...] = ()
    groups: tuple[RawGroup, ...] = ()
    """Groups of every kind that could be described, one after the other by kind, each kind sorted by id."""
    reassignments: tuple[RawReassignment, ...] = ()
    replica_bytes: Mapping[tuple[int, TopicPartition], int] = field(default_factory=dict)
    """(broker, partition) -> bytes on disk, future replicas left out."""
    cordoned: frozenset[int] = frozenset()
    """Brokers whose log dirs are all cordoned (KIP-1066)."""
    application_lags: tuple[RawApplicationLag, ...] = ()
    rack_tables: tuple[RawRackTable, ...] = ()
    """In the order of ``rack.locator.class``; one that never answered is missing here and named by a gap."""
    weights: WeightsReading | None = None
    """What the pipeline tells of traffic and restores; None when it was not asked for."""
    rights: PrincipalRights = field(default_factory=PrincipalRights)
    vanished_topics: tuple[str, ...] = ()
    """Topics of the look before that are gone: asked by name, a broker said that there is no such topic."""
    vanished_groups: tuple[str, ...] = ()
    """Groups of the look before that are gone: asked by name, the coordinator said that there is no such group."""
    ages_ms: Mapping[ObservationPart, int] = field(default_factory=dict)
    """Part -> how old its answer is, for a part that is not asked at every look; absent: asked in this look."""
    gaps: tuple[Gap, ...] = ()
    taken_ms: int
    """Wall clock when the look began, milliseconds since the epoch; for display and topics only."""
    monotonic_ms: int
    """Monotonic clock of the same instant; all durations are taken from it."""
    took_ms: int

    def described(self, kind: type[DescribedKind]) -> list[DescribedKind]:
        """The described groups of one kind, in their order."""
        return [group for group in self.groups if isinstance(group, kind)]
