"""What ``groups`` prints: one row per group, or one group with its members, tasks and topics."""

from __future__ import annotations

from typing import TypedDict

from agent.cli.documents.money import PricedDocument, RatesSource


class GroupDocument(PricedDocument):
    """One group: how local it reads, how local it could, what it costs, and how far behind it is."""

    group: str
    """The group id."""
    kind: str
    """``classic consumer``, ``classic streams``, ``consumer`` (KIP-848), ``streams`` (KIP-1071) or ``other``."""
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
    topic_list: list[GroupTopicDocument]
    """Costliest first."""
