"""Snapshots: one immutable, sorted model of racks, replicas, groups and tasks for every stage after `model`.

Unknown is never a number and never equal to anything. Equal observations give equal snapshots, and a part that did not
change since the last cycle is the *same object*. For that reason structure that seldom changes (racks, replicas,
members) and figures that always change (offsets, sizes, lags) are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from agent.values.kafka import STICKY
from agent.values.limits import LocatorKind
from agent.values.observation import Gap, PrincipalRights
from agent.values.weights import NOT_WEIGHED, FreshWeights, WeightsState
from assignors.problem import TaskId, TopicPartition


class RackState(StrEnum):
    """Whether a rack is known."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CONFLICTING = "conflicting"


class Rack(NamedTuple):
    """A rack, three-valued. Only a known rack has a name, and only a known rack is equal to another.

    With rack locators (KIP-36) ``name`` may differ from ``rack_id``, the ``broker.rack`` or ``client.rack`` itself:
    Kafka's own assignors and placers see only that.
    """

    state: RackState
    name: str | None
    """The rack id exactly as Kafka compares it: case-sensitive, never empty. None unless known."""
    claims: tuple[str, ...] = ()
    """When conflicting: every claimed value, sorted."""
    remembered: bool = False
    """True for an absent broker whose rack was last seen in an earlier cycle."""
    source: str | None = None
    """The locator that knows it (or contradicts itself), by its name in ``rack.locator.class``; None for
    ``broker.rack`` or ``client.rack`` themselves; ``""`` where no locator knows it now."""
    sent: str | None = None
    """With a source: ``broker.rack`` or ``client.rack``, letter by letter; None when unset."""
    others: tuple[tuple[str, str], ...] = ()
    """(locator, rack) of every overruled locator with another rack, and of each locator's contradictions."""

    @property
    def rack_id(self) -> str | None:
        """``broker.rack`` or ``client.rack``, as Kafka compares it; None when unset."""
        return self.name if self.source is None else self.sent

    @property
    def silent(self) -> bool:
        """True when ``broker.rack`` or ``client.rack`` is unset, whatever locators know."""
        return self.state is RackState.UNKNOWN if self.source is None else self.sent is None


UNKNOWN_RACK = Rack(RackState.UNKNOWN, None)


class BrokerState(NamedTuple):
    """A broker with its rack; one that is only named by replica lists is present with ``alive`` False."""

    id: int
    host: str | None
    port: int | None
    rack: Rack
    alive: bool
    fenced: bool | None
    cordoned: bool


class LocatorState(NamedTuple):
    """A rack locator, and the age of its answer."""

    name: str
    """Its name in ``rack.locator.class``."""
    rows: int | None
    """Rows of its table, or its rules; None for ``wire``, and for one that never answered."""
    age_ms: int | None
    """Age of its answer; 0 for rules and for an answer of this look; None for one that never answered."""


class PartitionState(NamedTuple):
    """One partition of topic metadata, at the snapshot's time."""

    id: TopicPartition
    leader: int | None
    replicas: tuple[int, ...]
    """In assignment order, the first is the preferred leader; while a reassignment runs, the union of old and new."""
    isr: tuple[int, ...]
    offline: tuple[int, ...]


class TopicState(NamedTuple):
    """A topic with its partitions by number."""

    name: str
    topic_id: str | None
    internal: bool
    own: bool
    """True for rackwise's own topics, which have no proposals unless a setting includes them."""
    partitions: tuple[PartitionState, ...]
    min_isr: int | None
    """``min.insync.replicas`` in force; None when the configs did not answer."""
    cleanup_policy: str | None
    leader_throttle: str | None
    """``leader.replication.throttled.replicas`` as set on the topic; None when unset or unknown."""
    follower_throttle: str | None


class Reassignment(NamedTuple):
    """A reassignment in flight; ``own`` is True when rackwise's journal knows it."""

    id: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    own: bool


class GroupKind(StrEnum):
    """The four kinds of group that rackwise judges, share groups, and the rest."""

    CLASSIC_CONSUMER = "classic consumer"
    CLASSIC_STREAMS = "classic streams"
    CONSUMER = "consumer"
    """KIP-848."""
    STREAMS = "streams"
    """KIP-1071."""
    SHARE = "share"
    """KIP-932: the members of a share group read the records of a partition side by side."""
    OTHER = "other"
    """Connect workers and everything else that assigns no partitions to readers."""


CLASSIC_KINDS = frozenset((GroupKind.CLASSIC_CONSUMER, GroupKind.CLASSIC_STREAMS))
"""The group's leader assigns; only these groups can be asked for a rebalance."""
TASK_KINDS = frozenset((GroupKind.CLASSIC_STREAMS, GroupKind.STREAMS))  # applications, whose members have tasks
COORDINATOR_KINDS = {GroupKind.CONSUMER: "consumer groups (KIP-848)", GroupKind.STREAMS: "streams groups (KIP-1071)"}
"""Kinds whose coordinator assigns, with Kafka's own assignors without looking at racks -> their name in sentences."""
PLUGIN_ASSIGNOR = "rackwise"
"""The name of the plug-in for brokers among the assignors of KIP-848 groups (docs/plugin.md)."""
ONLY_ASSIGNORS = {GroupKind.STREAMS: STICKY}
"""The one assignor of a kind whose groups do not report theirs."""


class MemberDefect(NamedTuple):
    """Bytes of a member that could not be read."""

    what: str
    """``subscription``, ``assignment`` or the user data of either."""
    reason: str
    sentence: str


class Member(NamedTuple):
    """A member of a consumer or Streams group."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rack: Rack
    subscription_version: int | None
    """Version of the classic subscription; below 3 it cannot carry a rack. None under KIP-848/1071 or when hidden."""
    topics: tuple[str, ...]
    topic_regex: str | None
    owned: tuple[TopicPartition, ...] | None
    """Partitions that it sent as owned at its last join; None when it sent none."""
    assigned: tuple[TopicPartition, ...] | None
    """Partitions that it is assigned now; None when unknown (group not Stable, bytes undecodable)."""
    target: tuple[TopicPartition, ...] | None
    """KIP-848 and KIP-1071: the target assignment."""
    generation: int | None
    """Classic: the generation before the last join; None when it was not sent. Epochs are never put here."""
    epoch: int | None
    """KIP-848/1071 member epoch."""
    defects: tuple[MemberDefect, ...] = ()


class ConsumerGroup(NamedTuple):
    """A group of plain consumers, classic or KIP-848."""

    id: str
    kind: GroupKind
    state: str
    """In Kafka's spelling."""
    assignor: str | None
    """Protocol name (classic, Stable only) or server-side assignor; None when hidden."""
    members: tuple[Member, ...]
    hidden: bool
    """True while the coordinator shows no member bytes because a rebalance is running."""
    epoch: int | None
    assignment_epoch: int | None

    @property
    def readers(self) -> tuple[Member, ...]:
        """Its members, which read partitions."""
        return self.members


class TaskRole(StrEnum):
    """The role of a copy of a task. The classic protocol sends a warm-up as a standby."""

    ACTIVE = "active"
    STANDBY = "standby"
    WARMUP = "warm-up"


class StreamsProcess(NamedTuple):
    """One KafkaStreams instance: its members, rack, tags and tasks."""

    id: str
    rack: Rack
    tags: tuple[tuple[str, str], ...]
    capacity: int
    """Stream threads, which is the number of its members."""
    member_ids: tuple[str, ...]
    client_ids: tuple[str, ...]
    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    """Standbys; under the classic protocol warm-ups are among them until `TaskCopy.role` separates them."""
    warmup: tuple[TaskId, ...]


class TaskStatefulness(StrEnum):
    """The kind of a task's state. Unknown never counts as stateless or as caught up."""

    CHANGELOG = "state with a changelog topic"
    SOURCE_CHANGELOG = "state whose changelog is a source topic"
    NO_CHANGELOG = "state without a changelog"
    STATELESS = "no state"
    UNKNOWN = "unknown"


class TaskState(NamedTuple):
    """A task of a Streams group with the partitions it reads and restores from."""

    id: TaskId
    sources: tuple[TopicPartition, ...]
    changelogs: tuple[TopicPartition, ...]
    statefulness: TaskStatefulness
    note: str = ""
    """What is uncertain about its state and why, as one clause; empty when nothing is."""


class MemberTasks(NamedTuple):
    """The target tasks of one member of a KIP-1071 group."""

    member_id: str
    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]


class StreamsTopology(NamedTuple):
    """Tasks of a Streams group; inferred from assignments and topic names unless declared or hinted."""

    tasks: tuple[TaskState, ...]
    source: str
    """``declared`` (KIP-1071), ``hint`` (set by the user) or ``inferred``."""


class StreamsGroup(NamedTuple):
    """A Kafka Streams application, classic or KIP-1071."""

    id: str
    kind: GroupKind
    state: str
    assignor: str | None
    members: tuple[Member, ...]
    processes: tuple[StreamsProcess, ...]
    topology: StreamsTopology | None
    """None while unknown."""
    hidden: bool
    epoch: int | None
    assignment_epoch: int | None
    metadata_versions: tuple[int, ...]
    """Distinct SubscriptionInfo versions in use; more than one means that a roll is in progress."""
    next_rebalance_ms: int | None
    """The application's own probing deadline, epoch milliseconds; None when none is set or it is unknown."""
    join: str | None = None
    """Identifies the last rebalance; None while members are hidden."""
    targets: tuple[MemberTasks, ...] = ()
    """KIP-1071: the target assignment, by member; empty under the classic protocol."""

    @property
    def readers(self) -> tuple[StreamsProcess, ...]:
        """Its processes, which run tasks."""
        return self.processes


class OtherGroup(NamedTuple):
    """A group that is only listed: share groups, Connect, unknown kinds, groups that may not be described."""

    id: str
    kind: GroupKind
    state: str | None
    protocol_type: str
    group_type: str | None


ReaderGroup = ConsumerGroup | StreamsGroup


def runs_plugin(group: ReaderGroup) -> bool:
    """Whether brokers assign the group by the plug-in, which looks at racks."""
    return group.kind is GroupKind.CONSUMER and group.assignor == PLUGIN_ASSIGNOR


def is_assigned_blindly(group: ReaderGroup) -> bool:
    """Whether brokers assign the group by assignors of Kafka, none of which looks at racks."""
    return group.kind in COORDINATOR_KINDS and not runs_plugin(group)


Group = ReaderGroup | OtherGroup


class LagSource(StrEnum):
    """The source of a lag; always shown with it."""

    APPLICATION = "application endpoint"
    BROKER = "task offsets on the broker"
    MODEL = "model: lag at the last join, end offsets now, learned restore rate"
    LAST_JOIN = "lag at the last join"


class Range(NamedTuple):
    """An estimate with its bounds, all in the unit of its name; the three are equal when it is a reading."""

    low: float
    likely: float
    high: float


class TaskCopy(NamedTuple):
    """One copy of a stateful task on one process, with its lag. Unknown figures are None."""

    group_id: str
    process_id: str
    task: TaskId
    role: TaskRole
    role_certain: bool
    """False where a warm-up could still be a standby."""
    end_offset_sum: int | None
    lag: Range | None
    """Records behind; negative never occurs."""
    lag_source: LagSource | None
    lag_age_ms: int | None
    """Age of the reading; 0 for one of this cycle."""
    rate_per_s: Range | None
    """Net closing rate (records restored minus records appended) per second; negative when it falls behind."""
    eta_s: Range | None
    """Seconds until lag <= acceptable.recovery.lag; None when unknown or never."""
    caught_up: bool | None
    """lag <= acceptable.recovery.lag for certain (True), not (False), or unknown (None)."""
    offset_sum: int | None = None
    """Sum of changelog offsets that the process last sent (classic: at its last join); None when it sent none."""
    samples: int = 0
    """Readings of the lag that the rate rests on; 0 for an estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The cluster at one instant. Tuples and mappings are sorted by id."""

    cluster_id: str
    controller: int | None
    brokers: tuple[BrokerState, ...]
    topics: Mapping[str, TopicState]
    groups: Mapping[str, Group]
    copies: Mapping[str, tuple[TaskCopy, ...]] = field(default_factory=dict)
    """Streams group -> copies of its stateful tasks, sorted by (task, role, process)."""
    reassignments: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    broker_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    group_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    selector_is_rack_aware: bool | None = None
    """True when every live broker has a rack-aware ``replica.selector.class`` (KIP-392); None without configs."""
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    committed_offsets: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)
    size_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Largest replica on disk; a partition that is missing here has an unknown size."""
    sizes_fresh: bool = True
    """False when the sizes are those of an earlier look."""
    bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    """Inbound rate (weights topic, or end offsets x bytes per record); missing is unknown."""
    weighed: FreshWeights = NOT_WEIGHED
    """Fresh weights."""
    weights: WeightsState | None = None
    """State of the weights; None when they are not configured."""
    rack_locators: tuple[LocatorState, ...] = ()
    """In the order of ``rack.locator.class``; empty without any."""
    rights: PrincipalRights = field(default_factory=PrincipalRights)
    vanished_topics: tuple[str, ...] = ()
    """Topics that another broker reports as gone; others that are missing may be hidden."""
    vanished_groups: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    taken_ms: int
    monotonic_ms: int

    def broker(self, broker_id: int) -> BrokerState | None:
        """The broker of that id, or None."""
        return next((broker for broker in self.brokers if broker.id == broker_id), None)


NO_CHANGELOG_SEEN = "it keeps no changelog topic: it has no state, or its stores are not logged"


def known_rack(name: str | None) -> Rack:
    """The known rack of that name; unknown for None."""
    return Rack(RackState.KNOWN, name) if name else UNKNOWN_RACK


def states_of(topics: Iterable[TopicState]) -> dict[TopicPartition, PartitionState]:
    """Partition -> its state."""
    return {state.id: state for topic in topics for state in topic.partitions}


def topics_of(group: Group) -> tuple[str, ...]:
    """The topics that decide a group's assessment: subscribed, assigned, or read by its tasks; sorted."""
    names: set[str] = set()
    match group:
        case ConsumerGroup():
            names.update(*{member.topics for member in group.members})
            names.update([topic for member in group.members for topic, _ in member.assigned or ()])
        case StreamsGroup() if group.topology is not None:
            names.update(tp.topic for task in group.topology.tasks for tp in task.sources)
        case _:
            pass
    return tuple(sorted(names))


def rack_source(rack: Rack, setting: str) -> str | None:
    """Source of a known rack; None for an unknown one."""
    if rack.remembered:
        return "an earlier look"
    if rack.state is RackState.UNKNOWN:
        return None
    return setting if rack.source in (None, LocatorKind.WIRE.value) else rack.source


def is_partial(snapshot: Snapshot) -> bool:
    """Whether a part that these brokers offer did not answer."""
    return any(gap.is_missed for gap in snapshot.gaps)
