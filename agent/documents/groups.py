"""Types of the documents of ``groups``, ``topics`` and ``top``, and the figures of traffic and price in them."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

RatesSource = Literal["command", "agent", "file", "weights", "unknown"]


class RatesDocument(TypedDict):
    """Where bytes per second come from."""

    source: RatesSource
    """``command``: two looks of this command; ``agent``: the running agent's telemetry; ``file``: the replayed file's
    agent; ``weights``: the pipeline; ``unknown``: one look, and no other source."""
    measured_over_s: float | None
    """Seconds over which they were measured; null where that is not known."""
    agent_look: str | None
    """The agent's look that they rest on; null unless the source is ``agent``."""
    agent_look_age_ms: int | None
    """How old that look is; null unless the source is ``agent``."""
    why_not: str | None
    """Why they are unknown; null where they are known."""


class PriceDocument(TypedDict):
    """What a byte that crosses racks is assumed to cost."""

    usd_per_gb: float | None
    """Price of 10^9 bytes, both directions together (``price.usd_per_gb``); null where none is set."""
    pairs_with_own_price: int
    """Pairs of racks that ``price.between`` gives another price."""


class PricedDocument(TypedDict):
    """What crosses racks, and what it costs: at least, and at most."""

    cross_rack_bytes_per_s: float | None
    """Bytes per second that cross racks: at least, where some are unknown; null: unknown."""
    usd_per_day: float | None
    """What they cost a day, in the same way; null also where no price is set."""
    at_most_cross_rack_bytes_per_s: float | None
    """Bytes per second that cross racks at most; null: no bound is known."""
    at_most_usd_per_day: float | None
    """What they cost a day at most; null also where no price is set."""


class CrossingDocument(TypedDict):
    """What crosses racks of some reads and copies."""

    bytes_per_s: float | None
    """Bytes per second that cross racks: at least, where ``unknown`` is above 0; null where none of it is known."""
    usd_per_day: float | None
    """What they cost a day, in the same way; null also where no price is set."""
    at_most_bytes_per_s: float | None
    """Bytes per second that cross racks at most; null: no bound is known."""
    at_most_usd_per_day: float | None
    """What they cost a day at most; null also where no price is set."""
    parts: int
    """Reads (one partition by one reader) and copies (one partition to one follower) that were looked at."""
    unknown: int
    """Those of which it is not known how many bytes cross; a missing answer that may hide some counts as one."""


class MoneyDocument(TypedDict):
    """Everything that crosses racks, by path. What producers send is not visible and in none of the figures."""

    rates: RatesDocument
    price: PriceDocument
    total: CrossingDocument
    replicate: CrossingDocument
    """From leaders to followers."""
    consume: CrossingDocument
    """From brokers to the members of groups, changelogs that standbys read included."""
    groups_with_hidden_reads: list[str]
    """Groups with a member whose reads are not visible now."""


class GroupDocument(PricedDocument):
    """One group: how local it reads, how local it could, what it costs, and how far behind it is."""

    group: str
    """The group id."""
    kind: str
    """A value of `GroupKind`: ``classic consumer``, ``consumer`` (KIP-848), ``streams`` (KIP-1071)..."""
    state: str | None
    """In Kafka's spelling."""
    assignor: str | None
    members: int | None
    """Null where members are not visible."""
    racks: list[str | None]
    """Racks of the members; null among them: the rack of a member is not known."""
    local_share: float | None
    """Share of its reads (0 to 1, in partitions) that stay in the reader's rack, as bytes really go."""
    unknown_share: float | None
    """Share of its reads of which that is not known."""
    best_local_share: float | None
    """``local_share`` under the best possible assignment at equal balance."""
    kafka_local_share: float | None
    """Share of its reads with any replica in the reader's rack: what Kafka's own assignors look at."""
    kafka_unknown_share: float | None
    kafka_best_local_share: float | None
    gap_partitions: int | None
    """Partitions that would be read in the own rack at best and are not, by the measure of Kafka's assignors; null
    also where none is known to gain, and that of some is unknown."""
    not_assessed: str | None
    """Why there are no shares; null where there are."""
    plugin_gain: str | None
    """KIP-848: what the plug-in for brokers would bring, as one sentence; null for groups that it does not concern."""
    reads: int | None
    """Reads now: one partition by one reader each, changelogs that standbys read included; null: not visible."""
    unknown_reads: int | None
    """Those of which it is not known how many bytes cross racks."""
    rates: RatesSource
    """Where bytes per second come from."""
    lag_records: int | None
    """End offsets minus committed offsets over the topics it reads: at least, where ``lag_unknown_partitions`` is above
    0; null: unknown."""
    lag_unknown_partitions: int | None
    """Partitions of which the lag is not known, such as one without a commit."""
    lag_worst_partition: str | None
    """The partition with the largest lag; null where no lag is known or none is above 0."""
    lag_worst_records: int | None
    max_task_lag_records: float | None
    """Kafka Streams: records by which the copy of a task that lags most is behind; null: unknown, or no such copy."""


class MemberDocument(TypedDict):
    """One member."""

    member: str
    """The member id."""
    client_id: str
    host: str
    rack: str | None
    """Null where it is not known."""
    known_from: str | None
    """Where the rack is known from; null where it is not."""
    assigned: list[str] | None
    """Partitions; null where that is not visible now."""
    defects: list[str]
    """What of its bytes could not be read."""


class RangeDocument(TypedDict):
    """An estimate with its bounds; the three are equal when it is a reading."""

    low: float
    likely: float
    high: float


class TaskCopyDocument(TypedDict):
    """One copy of a stateful task."""

    task: str
    role: str
    """``active``, ``standby`` or ``warm-up``."""
    role_certain: bool
    """False where a warm-up could still be a standby."""
    process: str
    rack: str | None
    lag_records: RangeDocument | None
    rate_records_per_s: RangeDocument | None
    """Net closing rate; negative when it falls behind."""
    eta_s: RangeDocument | None
    """Seconds until it has caught up; null: unknown, or never."""
    caught_up: bool | None
    source: str | None
    """Where the lag comes from."""
    lag_age_ms: int | None


class GroupTopicDocument(PricedDocument):
    """What the readers in one rack read of one topic."""

    topic: str
    rack: str | None
    """Null for readers whose rack is not known."""
    partitions: int
    unknown_reads: int


class GroupDetailsDocument(GroupDocument):
    """One group with everything below it."""

    member_list: list[MemberDocument]
    task_list: list[TaskCopyDocument]
    """Copies of stateful tasks; empty for other groups than Kafka Streams."""
    assigned_by: str | None
    """What assigns its partitions or tasks, as a plan names it; null where it is not known."""
    topic_list: list[GroupTopicDocument]
    """Costliest first."""


class TopicReaderDocument(PricedDocument):
    """What the readers of one group in one rack read of the topic."""

    group: str
    rack: str | None
    """Null for readers whose rack is not known."""
    partitions: int
    unknown_reads: int


class RackLeaders(TypedDict):
    """Partitions whose leaders are in one rack."""

    rack: str | None
    """Null for partitions without a leader, and for leaders of unknown rack."""
    partitions: int


class TopicDocument(PricedDocument):
    """One topic: where it is led, what is written into it, who reads it from where; copies and reads across racks."""

    topic: str
    partitions: int
    leaders: list[RackLeaders]
    """By rack."""
    in_bytes_per_s: float | None
    """Bytes per second that producers write into it: at least, where ``in_unknown_partitions`` is above 0. Where
    producers stand is not visible, so this is in none of the figures about racks."""
    in_unknown_partitions: int
    replicate_bytes_per_s: float | None
    """Bytes per second that followers copy from leaders in other racks; at least, where some are unknown."""
    replicate_usd_per_day: float | None
    at_most_replicate_bytes_per_s: float | None
    """Those bytes per second at most; null: no bound is known."""
    replicate_unknown: int
    """Copies of which it is not known how many bytes cross."""
    read_bytes_per_s: float | None
    """Bytes per second that groups read from other racks; at least, where some are unknown."""
    read_usd_per_day: float | None
    at_most_read_bytes_per_s: float | None
    """Those bytes per second at most; null: no bound is known."""
    read_unknown: int
    """Reads of which it is not known how many bytes cross."""
    rates: RatesSource
    """Where bytes per second come from."""
    readers: list[TopicReaderDocument] | None
    """Null where none was seen and some may be hidden."""
    """Costliest first."""


class PartitionReaderDocument(TypedDict):
    """Who reads a partition."""

    group: str
    rack: str | None
    """Null where it is not known."""


class PartitionDocument(TypedDict):
    """One partition of the topic."""

    partition: int
    leader: int | None
    leader_rack: str | None
    replicas: list[int]
    """In assignment order: the first is the preferred leader."""
    replica_racks: list[str | None]
    """The rack of each of them; null where it is not known."""
    in_bytes_per_s: float | None
    readers: list[PartitionReaderDocument] | None
    """In the same way."""


class ListedPartition(TypedDict):
    """One partition of any topic."""

    topic: str
    partition: int
    leader: int | None
    """Null where it has none, or it is not known."""
    replicas: list[int]
    """In assignment order: the first is the preferred leader; while a reassignment runs, old and new ones."""
    isr: list[int]


class TopicDetailsDocument(TopicDocument):
    """One topic with its partitions."""

    partition_list: list[PartitionDocument]


class TopDocument(TypedDict):
    """One look of ``top``."""

    taken_ms: int
    """Epoch milliseconds of the look."""
    cluster: str
    not_seen: int
    """Parts of the cluster that did not answer; ``status`` names them."""
    money: MoneyDocument
    groups: list[GroupDocument]
    """The dearest first; groups without members are left out."""
    topics: list[TopicDocument]
    """Costliest first."""
