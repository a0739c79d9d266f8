"""Settings of the agent, one model per section, each field with the sentence that documents print.

Defaults are safe: a dry run, bound to this machine, rackwise's own topics only.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from config.value_kinds import (
    Bytes,
    Millis,
    Names,
    NoneWord,
    Text,
    TopicName,
    WrittenNone,
    at_least,
    at_most,
)

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ClusterSettings(BaseModel):
    """The cluster that is expected."""

    model_config = _STRICT

    id: Annotated[Text | None, NoneWord] = None
    """Expected cluster id; rackwise stops when the brokers report another one."""


class PollSettings(BaseModel):
    """How often rackwise looks at the cluster."""

    model_config = _STRICT

    interval_ms: Annotated[Millis, at_least("1s")] = Field(default=10_000, alias="interval")
    """Time between two looks. When a look takes longer, the next one is skipped, not queued."""


class PlanSettings(BaseModel):
    """How often proposals are made."""

    model_config = _STRICT

    interval_ms: Annotated[Annotated[Millis, at_least("1s")] | None, NoneWord] = Field(default=None, alias="interval")
    """Time between two plannings; one minute when plan.cron is not set either."""
    cron: Annotated[Text | None, NoneWord] = None
    """Five cron fields in UTC instead of an interval, such as ``*/15 * * * *``; day 0 of the week is Sunday."""

    predict_limit: Annotated[int, Field(ge=0)] = 200_000
    """A group's own assignor is predicted up to this size: partitions (or tasks) times members."""
    keep_leaders: bool = False
    """No plan changes a preferred leader; changes that need another preferred leader are left out."""

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str | None) -> str | None:
        if cron is not None and not re.fullmatch(r"[\dA-Za-z*/,-]+( +[\dA-Za-z*/,-]+){4}", cron.strip()):
            raise ValueError("five fields are expected, such as */15 * * * *")
        return cron


class ObserveSettings(BaseModel):
    """What rackwise requests from the brokers, and its deadlines."""

    model_config = _STRICT

    call_timeout_ms: Annotated[Millis, at_least("100ms")] = Field(default=5_000, alias="call_timeout")
    """Hard deadline of one request, connection set-up included; a part without an answer is reported as a gap."""
    deadline_ms: Annotated[Millis, at_least("1s")] = Field(default=30_000, alias="deadline")
    """Hard deadline of a whole look."""
    include_topics: Names = ()
    """Shell-style patterns of topics to observe; empty: all. A topic left out here is in no finding, figure or
    record.
    """
    exclude_topics: Names = ()
    """Shell-style patterns of topics not to observe."""
    include_groups: Names = ()
    """Shell-style patterns of groups to observe; empty: all."""
    exclude_groups: Names = ()
    """Shell-style patterns of groups not to observe."""
    refresh_sizes_ms: Millis = Field(default=30_000, alias="refresh_sizes")
    """Longest time that sizes of replicas (DescribeLogDirs) are reused before they are requested again."""
    refresh_configs_ms: Millis = Field(default=60_000, alias="refresh_configs")
    """Longest time that configs of topics, brokers and groups are reused before they are requested again."""


class ScopeSettings(BaseModel):
    """What has no findings and no proposals; it is still observed."""

    model_config = _STRICT

    exclude_topics: Names = ()
    """Shell-style patterns of topics."""
    exclude_groups: Names = ()
    """Shell-style patterns of groups."""
    include_own_topics: bool = False
    """Whether rackwise's own topics may appear in its proposals."""


class RackSettings(BaseModel):
    """When a changed rack counts as changed, and an absent broker as gone."""

    model_config = _STRICT

    stable_for_ms: Millis = Field(default=60_000, alias="stable_for")
    """A rack change leads to proposals only after the new rack has been seen for this long ..."""
    stable_polls: Annotated[int, Field(ge=1)] = 3
    """... and in this many looks."""
    flap_changes: Annotated[int, Field(ge=2, le=16)] = 3
    """Changes within flap_window that make a rack count as flapping; then it leads to no proposals."""
    flap_window_ms: Annotated[Millis, at_least("1s")] = Field(default=1_800_000, alias="flap_window")
    """Window in which changes of a rack are counted."""
    broker_absent_for_ms: Millis = Field(default=1_800_000, alias="broker_absent_for")
    """An absent broker leads to no moves of replicas or leaders until it has been absent for this long: it may be
    restarting.
    """


class DetectSettings(BaseModel):
    """Thresholds of findings."""

    model_config = _STRICT

    stuck_rebalance_after_ms: Annotated[Millis, at_least("1s")] = Field(default=300_000, alias="stuck_rebalance_after")
    """A group that rebalances for longer than this is reported as stuck."""
    leader_skew_share: Annotated[float, Field(ge=0, le=1)] = 0.34
    """How far a rack's share of preferred leaders may differ from an even share."""
    throttle_grace_ms: Millis = Field(default=120_000, alias="throttle_grace")
    """A throttle without a running reassignment is reported as left behind after this long."""
    shrink_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Part of topics or groups that may disappear between two looks; above it, the answer is doubted and reported
    as a gap.
    """


class GainSettings(BaseModel):
    """The least gain that is worth a proposal."""

    model_config = _STRICT

    min_partitions: Annotated[int, Field(ge=0)] = 1
    """Least number of partitions that a change must make rack-local."""
    min_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Least part of a group's partitions that a change must make rack-local."""
    min_bytes_per_s: Annotated[float, Field(ge=0)] = 0.0
    """Least cross-rack bytes per second that a change must save."""


class PriceSettings(BaseModel):
    """Price of bytes that cross racks."""

    model_config = _STRICT

    usd_per_gb: Annotated[Annotated[float, Field(ge=0)] | None, WrittenNone] = 0.02
    """Price in USD of a gigabyte (10**9 bytes) across racks, both directions together; none: no money is shown."""
    between: dict[Text, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """``from->to`` -> price per gigabyte where it differs, such as ``a->b: 0.01``."""
    table: Annotated[Text | None, NoneWord] = None
    """CSV file of dated prices for the pipeline: source_rack, target_rack, usd_per_gb, from_date (yyyy-mm-dd)."""
    producers: Annotated[Text | None, NoneWord] = None
    """CSV file of producers' racks for the pipeline: topic (* for all others), rack, share (0 to 1)."""

    @field_validator("between")
    @classmethod
    def _two_racks(cls, prices: dict[str, float]) -> dict[str, float]:
        for pair in prices:
            source, arrow, target = pair.partition("->")
            if not arrow or not source.strip() or not target.strip():
                raise ValueError(f"{pair!r} is not a pair of racks: write it as from->to")
        return prices


class WeightsSettings(BaseModel):
    """Traffic and restore rates measured by the pipeline and published to its topic."""

    model_config = _STRICT

    enabled: bool = True
    """Whether the weights topic is read where it exists; plans then count bytes instead of partitions."""
    max_age_ms: Annotated[Millis, at_least("1m")] = Field(default=7_200_000, alias="max_age")
    """Weights whose last look is older than this are not used."""
    window_ms: Annotated[Millis, at_least("10m")] = Field(default=86_400_000, alias="window")
    """Period over which the pipeline averages weights; a day covers the whole daily rhythm."""


class ProposalSettings(BaseModel):
    """How many proposals are made at a time, and how long they are valid."""

    model_config = _STRICT

    max_per_cycle: Annotated[int, Field(ge=1)] = 1_000
    """Most proposals of one planning; the rest is counted, not published."""
    max_moves: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Most moves in one proposal; fewer where its record would be too large for the proposals topic."""
    ttl_ms: Annotated[Millis, at_least("1m")] = Field(default=900_000, alias="ttl")
    """A proposal expires after this long unless it is made again."""
    trigger_cooldown_ms: Millis = Field(default=60_000, alias="trigger_cooldown")
    """Least time between two triggers of one group."""
    move_bytes_per_s: Annotated[Bytes, Field(ge=1)] = 50_000_000
    """Replication rate that is assumed when seconds are predicted."""


class TopicSettings(BaseModel):
    """One of rackwise's own topics."""

    model_config = _STRICT

    name: Annotated[TopicName | None, NoneWord] = None
    """Name of the topic; default: the prefix and the section's name."""
    publish: bool = True
    """Whether the topic is created and written."""
    retention_ms: Annotated[Millis, at_least("1m")] = Field(default=604_800_000, alias="retention")
    """How long records are kept."""


class StateTopicSettings(BaseModel):
    """One of the topics that agents in mode execute share."""

    model_config = _STRICT

    name: Annotated[TopicName | None, NoneWord] = None
    """Name of the topic; default: the prefix and the section's name."""


class WeightsTopicSettings(BaseModel):
    """The topic of weights, from the pipeline to the agents."""

    model_config = _STRICT

    name: Annotated[TopicName | None, NoneWord] = None
    """Name of the topic; default: the prefix and the section's name."""


class TopicsSettings(BaseModel):
    """rackwise's own topics."""

    model_config = _STRICT

    prefix: TopicName = "rackwise"
    """Prefix of the names of all its topics, groups and transactional ids, so that one ACL prefix covers them."""
    replication_factor: Annotated[int, Field(ge=1, le=32_767)] = Field(default=3, alias="replication.factor")
    """Replication factor of each topic, spread over racks; lower where the cluster has fewer brokers."""
    min_insync_replicas: Annotated[int, Field(ge=1)] = Field(default=2, alias="min.insync.replicas")
    """min.insync.replicas of each topic; lower where there are fewer replicas."""
    telemetry: TopicSettings = Field(default_factory=TopicSettings)
    """Telemetry, one event per subject and look."""
    proposals: TopicSettings = Field(default_factory=TopicSettings)
    """Proposals and each change of their state."""
    journal: StateTopicSettings = Field(default_factory=StateTopicSettings)
    """Journal of changes, begun and done; mode execute only."""
    leader: StateTopicSettings = Field(default_factory=StateTopicSettings)
    """Leader election: the agent that is assigned its one partition leads; it holds no records."""
    commands: StateTopicSettings = Field(default_factory=StateTopicSettings)
    """Commands of operators to the leading agent: a principal that may write this topic may command."""
    weights: WeightsTopicSettings = Field(default_factory=WeightsTopicSettings)
    """Weights, created and written by the pipeline, only read by the agent."""


class RecordSettings(BaseModel):
    """How telemetry is written."""

    model_config = _STRICT

    every_ms: Millis = Field(default=60_000, alias="every")
    """Least time between two recorded looks; a look with a planning is always recorded, 0s: every look."""
    full_every_ms: Millis = Field(default=1_200_000, alias="full_every")
    """Least time between two recorded looks that are written in full; those in between are written by changes."""
    file: Annotated[Text | None, NoneWord] = None
    """File to which telemetry is also appended, one JSON line per event; ``--replay`` reads it."""
    file_max_bytes: Annotated[Bytes, Field(ge=1_000_000)] = 1_073_741_824
    """At this size the file is renamed to ``<file>.1`` and a new one is begun."""
    queue_events: Annotated[int, Field(ge=100)] = 200_000
    """Events that may wait for the brokers; further ones are dropped and counted."""
    deadline_ms: Annotated[Millis, at_least("100ms"), at_most("4s")] = Field(default=3_000, alias="deadline")
    """Longest time that writing may delay the loop, and the end of the process."""


class MetricsSettings(BaseModel):
    """How many series /metrics exports."""

    model_config = _STRICT

    top_groups: Annotated[int, Field(ge=0)] = 100
    """Groups with series of their own, the largest first; the others are summed up as ``other``."""
    top_tasks: Annotated[int, Field(ge=0)] = 1_000
    """Task copies with series of their own, those with the highest lag first."""
    consumer_lag: Literal["none", "group", "topic", "partition"] = "none"
    """How finely consumer lag is exported under the names of kafka-lag-exporter; ``none``: not at all."""
    top_lags: Annotated[int, Field(ge=0)] = 500
    """Groups, topics of groups, and partitions of groups with such series, each those with the highest lag first."""


class LogSettings(BaseModel):
    """What is logged, and how."""

    model_config = _STRICT

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is written."""
    format: Literal["auto", "console", "json"] = "auto"
    """``auto`` is console on a terminal and JSON elsewhere."""


class ProcessSettings(BaseModel):
    """Limits of the process itself."""

    model_config = _STRICT

    memory_ceiling_bytes: Annotated[Literal["auto"] | Annotated[Bytes, Field(ge=100_000_000)] | None, WrittenNone] = (
        Field(default="auto", alias="memory_ceiling")
    )
    """Resident memory at which the agent ends with exit code 7, for its supervisor to restart it; ``auto`` is 90 % of
    the container's limit, or half of the machine's memory; none: no ceiling."""
    stall_after_ms: Annotated[Millis, at_least("10s")] = Field(default=120_000, alias="stall_after")
    """Without a finished look for this long, /livez fails."""
