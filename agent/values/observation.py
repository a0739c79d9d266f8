"""Observations: the brokers' raw answers of one look, which `observe` returns and `decode` reads.

Rows are named tuples, so that comparing 100,000 of them with the last cycle's is cheap. Member bytes are untouched. A
part that did not answer is a `Gap` and its field is empty; an empty field without a gap is a true answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar, cast

from agent.values.weights import WeightsReading
from assignors.problem import TaskId, TopicPartition


class ObservationPart(StrEnum):
    """The parts of an observation; each can be missing on its own."""

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
    """Why a part is missing."""

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


class GapScope(StrEnum):
    """Kind of a gap's subject."""

    NAMED = "named"
    """A group, topic, partition, table or address, by its name."""
    BROKER = "broker"
    """All that one broker would have answered."""
    SEVERAL = "several"
    """A number or a kind of them, without their names."""


class Gap(NamedTuple):
    """A missing part of an observation."""

    part: ObservationPart
    cause: GapCause
    subject: str
    """The missing broker (``broker 2``), group or topic, or ``""`` for the whole part."""
    detail: str
    """One sentence with the client's error."""
    scope: GapScope = GapScope.NAMED
    """Without meaning where the subject is empty."""

    @classmethod
    def of_broker(cls, part: ObservationPart, cause: GapCause, broker: int | str, detail: str) -> Gap:
        """The gap of an answer that broker did not give."""
        return cls(part, cause, f"broker {broker}", detail, GapScope.BROKER)

    @classmethod
    def of_several(cls, part: ObservationPart, cause: GapCause, subject: str, detail: str) -> Gap:
        """Several without their names; the subject says how many, or of which kind."""
        return cls(part, cause, subject, detail, GapScope.SEVERAL)

    @property
    def name(self) -> str:
        """The named subject; empty for the whole part, a broker or several."""
        return self.subject if self.scope is GapScope.NAMED else ""

    @property
    def is_missed(self) -> bool:
        """Whether the part was requested, is offered, and did not answer; never of weights, which are no part of it."""
        return self.cause not in _NOT_MISSED and self.part is not ObservationPart.WEIGHTS


_NOT_MISSED = frozenset({GapCause.NOT_ASKED, GapCause.UNSUPPORTED, GapCause.VANISHED})


class RawBroker(NamedTuple):
    """A registered broker."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool | None
    """None below DescribeCluster v2."""


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
    """A member of a classic group; both byte strings as the broker stores them."""

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
"""A described group; its class is its kind."""
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
    """A task's lag from the application's own endpoint."""

    group_id: str
    process_id: str
    """The process id (a UUID) where the endpoint gives it, else the client id."""
    task: TaskId
    role: str
    """``active`` or ``standby``; the application does not distinguish warm-ups from standbys."""
    lag: int
    observed_ms: int


class RawRackRow(NamedTuple):
    """One row of a rack table."""

    of: str
    """Kind of ``name``: ``broker`` (its id), ``host``, ``client.id`` or ``group.instance.id``."""
    name: str
    rack: str


class RawRackTable(NamedTuple):
    """The rack table of one locator (a file, a command, an entry point)."""

    locator: str
    """Its name in ``rack.locator.class``."""
    rows: tuple[RawRackRow, ...]
    """Sorted, each once; one name with two racks is a contradiction."""
    age_ms: int
    """0 when it answered in this look; else the age of its last good answer, which is used beside a gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalRights:
    """The principal's authorized operations on the cluster; None where the brokers do not report them."""

    cluster_describe: bool | None = None
    cluster_describe_configs: bool | None = None
    cluster_alter: bool | None = None
    topics_hidden: int | None = None
    """Number of known topics that are no longer shown for want of a right."""
    groups_hidden: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the cluster: every raw answer, and a gap for each missing one."""

    cluster_id: str
    controller: int | None
    brokers: tuple[RawBroker, ...]
    topics: tuple[RawTopic, ...]
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Topic -> configs in force (``min.insync.replicas``, throttled replicas, ...)."""
    broker_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Broker -> configs in force (``replica.selector.class``, throttle rates, defaults for new topics)."""
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    committed_offsets: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    """Group -> committed offsets, fetched *before* the end offsets so that lag is never negative."""
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    listed_groups: tuple[RawListedGroup, ...] = ()
    groups: tuple[RawGroup, ...] = ()
    """Described groups by kind, each kind sorted by id."""
    reassignments: tuple[RawReassignment, ...] = ()
    replica_bytes: Mapping[tuple[int, TopicPartition], int] = field(default_factory=dict)
    """(broker, partition) -> bytes on disk, without future replicas."""
    cordoned: frozenset[int] = frozenset()
    """Brokers whose log dirs are all cordoned (KIP-1066)."""
    application_lags: tuple[RawApplicationLag, ...] = ()
    rack_tables: tuple[RawRackTable, ...] = ()
    """In the order of ``rack.locator.class``; one that never answered is only a gap."""
    weights: WeightsReading | None = None
    """The pipeline's traffic and restore rates; None when not requested."""
    rights: PrincipalRights = field(default_factory=PrincipalRights)
    vanished_topics: tuple[str, ...] = ()
    """Topics of the look before that are deleted: another broker returns UNKNOWN_TOPIC_OR_PARTITION."""
    vanished_groups: tuple[str, ...] = ()
    """Groups of the look before that are gone by their coordinator's answer."""
    ages_ms: Mapping[ObservationPart, int] = field(default_factory=dict)
    """Part -> age of its answer, for parts that are not requested at every look; absent: of this look."""
    gaps: tuple[Gap, ...] = ()
    taken_ms: int
    """Wall clock when the look began, milliseconds since the epoch; for display and topics only."""
    monotonic_ms: int
    """Monotonic clock of the same instant; all durations are taken from it."""
    took_ms: int

    def described(self, kind: type[DescribedKind]) -> list[DescribedKind]:
        """The described groups of one kind, in their order."""
        return cast("list[DescribedKind]", [group for group in self.groups if type(group) is kind])


_UNKNOWN_WITHOUT = {
    ObservationPart.BROKERS: "racks are the last known ones, and no broker counts as absent",
    ObservationPart.TOPICS: "replicas that are not shown are not judged",
    ObservationPart.TOPIC_CONFIGS: "min ISR and throttles are unknown there",
    ObservationPart.BROKER_CONFIGS: "it is unknown whether reads go to the nearest replica",
    ObservationPart.GROUP_CONFIGS: "the settings of streams groups are unknown",
    ObservationPart.END_OFFSETS: "lags and byte rates are unknown there",
    ObservationPart.COMMITTED_OFFSETS: "lags are unknown there",
    ObservationPart.GROUPS: "groups that are not shown are not judged",
    ObservationPart.REASSIGNMENTS: "running reassignments are unknown, and so is whether a throttle is still needed",
    ObservationPart.LOG_DIRS: "sizes are unknown there, and so are byte rates",
    ObservationPart.RIGHTS: "other missing rights are unknown",
    ObservationPart.APPLICATION_LAGS: "lags of warm-ups and standbys are estimates",
    ObservationPart.RACK_LOCATORS: "racks that only they know are their last answers, or unknown",
    ObservationPart.WEIGHTS: "plans use rackwise's own measurements",
}


def effect_of(part: ObservationPart) -> str:
    """Facts that are unknown without the part."""
    return _UNKNOWN_WITHOUT[part]
