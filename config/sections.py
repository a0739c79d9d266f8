"""One model per concern, each field with the sentence that `config show` and docs/operations.md print.

Defaults are safe: a dry run, bound to this machine, rackwise's own topics only.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from config.kinds import Bytes, Millis, Names, NoneWord, Text, TopicName, at_least, at_most

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class ClusterSettings(BaseModel):
    """Which cluster this is meant to be."""

    model_config = _STRICT

    id: Annotated[Text | None, NoneWord] = None
    """Expected cluster id; rackwise stops when the brokers tell another one."""


class PollSettings(BaseModel):
    """How often the cluster is looked at."""

    model_config = _STRICT

    interval_ms: Annotated[Millis, at_least("1s")] = Field(default=10_000, alias="interval")
    """Time between two looks. A look that is still running when the next is due is skipped, never stacked."""


class PlanSettings(BaseModel):
    """How often proposals are worked out from what was seen."""

    model_config = _STRICT

    interval_ms: Annotated[Annotated[Millis, at_least("1s")] | None, NoneWord] = Field(default=None, alias="interval")
    """Time between two plannings; one minute when no cron is given either."""
    cron: Annotated[Text | None, NoneWord] = None
    """Five cron fields in UTC instead of an interval, such as ``*/15 * * * *``; day 0 of the week is Sunday."""

    predict_limit: Annotated[int, Field(ge=0)] = 200_000
    """What a group's own assignor would give is worked out up to so many partitions (or tasks) times members."""
    keep_leaders: bool = False
    """No plan changes a preferred leader; what it would have to change for is left out."""

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str | None) -> str | None:
        if cron is not None and not re.fullmatch(r"[\dA-Za-z*/,-]+( +[\dA-Za-z*/,-]+){4}", cron.strip()):
            raise ValueError("five fields are expected, such as */15 * * * *")
        return cron


class ObserveSettings(BaseModel):
    """What is asked of the brokers, and how long they may take."""

    model_config = _STRICT

    call_timeout_ms: Annotated[Millis, at_least("100ms")] = Field(default=5_000, alias="call_timeout")
    """Hard deadline of one call, connection set-up included; what did not answer becomes a gap."""
    deadline_ms: Annotated[Millis, at_least("1s")] = Field(default=30_000, alias="deadline")
    """Hard deadline of a whole look."""
    include_topics: Names = ()
    """Shell-style patterns of topics; with none, all are seen. What is left out here is not seen at all."""
    exclude_topics: Names = ()
    """Shell-style patterns of topics that are not seen."""
    include_groups: Names = ()
    """Shell-style patterns of groups; with none, all are seen."""
    exclude_groups: Names = ()
    """Shell-style patterns of groups that are not seen."""
    refresh_sizes_ms: Millis = Field(default=30_000, alias="refresh_sizes")
    """How old the sizes of replicas on disk may get before they are asked again."""
    refresh_configs_ms: Millis = Field(default=60_000, alias="refresh_configs")
    """How old configs of topics, brokers and groups may get before they are asked again."""


class ScopeSettings(BaseModel):
    """What is left out of findings and proposals; it is still seen."""

    model_config = _STRICT

    exclude_topics: Names = ()
    """Shell-style patterns of topics."""
    exclude_groups: Names = ()
    """Shell-style patterns of groups."""
    include_own_topics: bool = False
    """Whether rackwise's own topics may appear in its proposals."""


class RackSettings(BaseModel):
    """When a changed rack is believed."""

    model_config = _STRICT

    stable_for_ms: Millis = Field(default=60_000, alias="stable_for")
    """A rack change is planned from only after the new rack held this long ..."""
    stable_polls: Annotated[int, Field(ge=1)] = 3
    """... and was seen in this many looks."""
    flap_changes: Annotated[int, Field(ge=2)] = 3
    """Changes within the window that make a rack count as flapping; it is then held down."""
    flap_window_ms: Annotated[Millis, at_least("1s")] = Field(default=1_800_000, alias="flap_window")
    """Window in which changes of a rack are counted."""


class DetectSettings(BaseModel):
    """Thresholds of findings."""

    model_config = _STRICT

    stuck_rebalance_after_ms: Annotated[Millis, at_least("1s")] = Field(default=300_000, alias="stuck_rebalance_after")
    """A group that rebalances longer than this is stuck."""
    leader_skew_share: Annotated[float, Field(ge=0, le=1)] = 0.34
    """How far a rack's share of preferred leaders may lie from its even share."""
    throttle_grace_ms: Millis = Field(default=120_000, alias="throttle_grace")
    """A throttle without a reassignment counts as left behind after this long."""
    shrink_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Part of topics or groups that may vanish between two looks before the smaller world is doubted."""


class GainSettings(BaseModel):
    """What is worth doing; anything below answers "nothing worth doing"."""

    model_config = _STRICT

    min_partitions: Annotated[int, Field(ge=0)] = 1
    """Least number of partitions that a change must bring home."""
    min_share: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Least part of a group's partitions that a change must bring home."""
    min_bytes_per_s: Annotated[float, Field(ge=0)] = 0.0
    """Least cross-rack bytes per second that a change must save."""


class PriceSettings(BaseModel):
    """What a byte that crosses racks costs."""

    model_config = _STRICT

    usd_per_gb: Annotated[Annotated[float, Field(ge=0)] | None, NoneWord] = 0.02
    """Price of a gigabyte (10**9 bytes), both directions together; none shows no money."""
    between: dict[Text, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """``from->to`` -> price per gigabyte where it differs, such as ``a->b: 0.01``."""
    table: Annotated[Text | None, NoneWord] = None
    """CSV file of dated prices for the pipeline: source_rack, target_rack, usd_per_gb, from_date (yyyy-mm-dd)."""
    producers: Annotated[Text | None, NoneWord] = None
    """CSV file that tells the pipeline where producers stand: topic (* for all others), rack, share (0 to 1)."""

    @field_validator("between")
    @classmethod
    def _two_racks(cls, prices: dict[str, float]) -> dict[str, float]:
        for pair in prices:
            source, arrow, target = pair.partition("->")
            if not arrow or not source.strip() or not target.strip():
                raise ValueError(f"{pair!r} names no pair of racks: write it as from->to")
        return prices


class WeightsSettings(BaseModel):
    """What the pipeline has learned of traffic and restores, as it comes back by its topic."""

    model_config = _STRICT

    enabled: bool = True
    """Whether the weights topic is read, where there is one; plans then go by bytes instead of partitions."""
    max_age_ms: Annotated[Millis, at_least("1m")] = Field(default=7_200_000, alias="max_age")
    """Weights whose last look is older than this count for nothing."""
    window_ms: Annotated[Millis, at_least("10m")] = Field(default=86_400_000, alias="window")
    """How far back the pipeline averages when it works weights out; a day has the whole daily rhythm in it."""


class ProposalSettings(BaseModel):
    """How much is proposed at a time, and for how long it holds."""

    model_config = _STRICT

    max_per_cycle: Annotated[int, Field(ge=1)] = 1_000
    """Most proposals of one planning; what is left out is counted."""
    max_moves: Annotated[int, Field(ge=1)] = 1_000
    """Most moves in one proposal."""
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
    """Name of the topic; the prefix and the section's name when not given."""
    publish: bool = True
    """Whether it is created and written."""
    retention_ms: Annotated[Millis, at_least("1m")] = Field(default=604_800_000, alias="retention")
    """How long records are kept."""


class StateTopicSettings(BaseModel):
    """One of the topics by which agents that act agree; they exist only in mode execute."""

    model_config = _STRICT

    name: Annotated[TopicName | None, NoneWord] = None
    """Name of the topic; the prefix and the section's name when not given."""


class WeightsTopicSettings(BaseModel):
    """The topic by which the pipeline tells agents what it has learned."""

    model_config = _STRICT

    name: Annotated[TopicName | None, NoneWord] = None
    """Name of the topic; the prefix and the section's name when not given."""


class TopicsSettings(BaseModel):
    """rackwise's own topics."""

    model_config = _STRICT

    prefix: TopicName = "rackwise"
    """With what the names of all its topics, groups and transactional ids begin: one ACL prefix."""
    replication_factor: Annotated[int, Field(ge=1, le=32_767)] = Field(default=3, alias="replication.factor")
    """Replicas of each, spread over racks; fewer where the cluster has fewer brokers."""
    min_insync_replicas: Annotated[int, Field(ge=1)] = Field(default=2, alias="min.insync.replicas")
    """In-sync replicas that must have a record; fewer where there are fewer replicas."""
    telemetry: TopicSettings = Field(default_factory=TopicSettings)
    """What was seen, one event per subject and look."""
    proposals: TopicSettings = Field(default_factory=TopicSettings)
    """What rackwise would do, and the life of each proposal."""
    journal: StateTopicSettings = Field(default_factory=StateTopicSettings)
    """What is being done and was done; mode execute only."""
    leader: StateTopicSettings = Field(default_factory=StateTopicSettings)
    """Whoever is assigned its one partition leads; it holds no records."""
    commands: StateTopicSettings = Field(default_factory=StateTopicSettings)
    """What operators ask of the agent that leads: whoever may write it may command."""
    weights: WeightsTopicSettings = Field(default_factory=WeightsTopicSettings)
    """What the pipeline has learned; it creates and writes the topic, the agent only reads it."""


class RecordSettings(BaseModel):
    """How what was seen leaves the process."""

    model_config = _STRICT

    full_every_ms: Millis = Field(default=60_000, alias="full_every")
    """Least time between two looks that are recorded in full; one with a planning always is, 0s records every one."""
    file: Annotated[Text | None, NoneWord] = None
    """File to which telemetry is also appended, one JSON line per event; it can be replayed."""
    file_max_bytes: Annotated[Bytes, Field(ge=1_000_000)] = 1_073_741_824
    """At this size the file is renamed to ``<file>.1`` and begun anew."""
    queue_events: Annotated[int, Field(ge=100)] = 200_000
    """Events that may wait for the brokers; more are dropped and counted."""
    deadline_ms: Annotated[Millis, at_least("100ms"), at_most("4s")] = Field(default=3_000, alias="deadline")
    """Longest time that writing may hold up the loop, and the end of the process."""


class HttpSettings(BaseModel):
    """Health and metrics over HTTP."""

    model_config = _STRICT

    enabled: bool = True
    """Whether /livez, /readyz and /metrics are served."""
    bind: Text = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 9464
    """Port to listen on; 0 takes a free one, which is logged."""
    allowed_hosts: Names = ()
    """Host names under which it may be asked, besides localhost and any address (against DNS rebinding)."""


class MetricsSettings(BaseModel):
    """How many series are exported."""

    model_config = _STRICT

    top_groups: Annotated[int, Field(ge=0)] = 100
    """Groups with series of their own, the largest first; the others are summed up as ``other``."""
    top_tasks: Annotated[int, Field(ge=0)] = 1_000
    """Task copies with series of their own, the ones that lag most first."""


class LogSettings(BaseModel):
    """What is logged, and how."""

    model_config = _STRICT

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level that is written."""
    format: Literal["auto", "console", "json"] = "auto"
    """``auto`` is console on a terminal and JSON elsewhere."""


class ProcessSettings(BaseModel):
    """Limits of the process itself."""

    model_config = _STRICT

    memory_ceiling_bytes: Annotated[Annotated[Bytes, Field(ge=100_000_000)] | None, NoneWord] = Field(
        default=None, alias="memory_ceiling"
    )
    """Resident memory at which the agent ends with exit code 7, to be started again; none sets no ceiling."""
    stall_after_ms: Annotated[Millis, at_least("10s")] = Field(default=120_000, alias="stall_after")
    """Without a finished look for this long the agent is no longer live."""
