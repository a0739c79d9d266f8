"""Limits: the settings that pure stages read, without `config`; which topics and groups they leave out.

Each class is a section of `config`, each field the setting of that name there, with its type, default and meaning
(docs/operations.md). None is "no bound" or "not set", never zero. A field that is no setting, or has another form, has
a docstring here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from agent.values.clock import TimeWindowSet
from agent.values.kafka import NO_STRATEGY

CLUSTER_BUDGET = MappingProxyType({"budget of": "cluster"})
"""Metadata of a limit that counts over all groups of a cluster: no part of a cluster can keep it alone."""


class TriState(StrEnum):
    """A setting about a group; unknown leaves it to what its members show."""

    UNKNOWN = "unknown"
    YES = "yes"
    NO = "no"


class AgentMode(StrEnum):
    """Mode of the agent: observe, propose or execute; only the guard reads it."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLimits:
    """The expected cluster."""

    id: str | None = None
    """The only cluster that may be acted upon; None: the observed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsLimits:
    """rackwise's own topics."""

    prefix: str = "rackwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """How proposals are made."""

    predict_limit: int = 200_000
    keep_leaders: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLimits:
    """Topics and groups without findings and proposals; they are still observed."""

    exclude_topics: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    include_own_topics: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLimits:
    """When a changed rack counts as changed, and an absent broker as gone."""

    stable_for_ms: int = 60_000
    stable_polls: int = 3
    flap_changes: int = 3
    flap_window_ms: int = 1_800_000
    broker_absent_for_ms: int = 1_800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectLimits:
    """Thresholds of findings."""

    stuck_rebalance_after_ms: int = 300_000
    leader_skew_share: float = 0.34
    throttle_grace_ms: int = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GainLimits:
    """The least gain that is worth a proposal."""

    min_partitions: int = 1
    min_share: float = 0.05
    min_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceLimits:
    """Price of bytes that cross racks."""

    usd_per_gb: float | None = 0.02
    between: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(from rack, to rack) -> price per gigabyte, where it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsLimits:
    """Traffic and restore rates measured by the pipeline."""

    max_age_ms: int = 7_200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalLimits:
    """How many proposals are made at a time, and how long they are valid."""

    max_per_cycle: int = field(default=1_000, metadata=CLUSTER_BUDGET)
    max_moves: int = 1_000
    ttl_ms: int = 900_000
    trigger_cooldown_ms: int = 60_000
    move_bytes_per_s: float = 50_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteLimits:
    """Topics and groups that mode ``execute`` may change, and its rates and budgets."""

    request_timeout_ms: int = 10_000
    tick_ms: int = 1_000
    intent_valid_ms: int = 2_000
    """No setting: least validity of an intent; longer where the journal answers slowly (`messages`)."""
    include_topics: tuple[str, ...] = ()
    exclude_topics: tuple[str, ...] = ()
    include_groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    max_moves_per_broker: int = 5
    max_moves_per_cluster: int = 250
    max_bytes_in_flight: int | None = 100_000_000_000
    batch_partitions: int = 50
    throttle: int | None = None
    """Bytes per second and broker; None: ``auto``."""
    throttle_floor: int = 1_000_000
    throttle_ceiling: int = 100_000_000
    throttle_headroom_share: float = 0.5
    broker_bandwidth: int = 125_000_000
    """Bytes per second each way."""
    min_isr_guard: bool = True
    stuck_after_ms: int = 300_000
    grace_after_broker_loss_ms: int = 60_000
    batches_per_hour: int = 100
    batches_per_day: int = 200
    bytes_per_day: int | None = None
    payback_days: float | None = 30.0
    hysteresis_share: float = 0.2
    hysteresis_window_ms: int = 86_400_000
    cooldown_ms: int = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTriggerLimits:
    """Which groups may be triggered; each group may have its own."""

    allow_eager: bool = False
    allow_static: bool = False
    allow_long_poll: bool = False
    allow_rolling: bool = False
    allow_transactional: bool = False
    transactional: TriState = TriState.UNKNOWN
    long_poll: TriState = TriState.UNKNOWN
    rolling: TriState = TriState.UNKNOWN
    long_poll_ms: int = 10_000
    rolling_window_ms: int = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerLimits(GroupTriggerLimits):
    """When a rebalance is triggered: of every group that has no exceptions of its own."""

    own_rebalance_wait_ms: int = 300_000
    budget_per_group_per_hour: int = 6
    budget_per_cycle: int = field(default=5, metadata=CLUSTER_BUDGET)
    budget_per_hour: int = field(default=100, metadata=CLUSTER_BUDGET)
    budget_per_day: int = field(default=500, metadata=CLUSTER_BUDGET)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbingLimits:
    """Promoting warm-ups as soon as they have caught up (KIP-441)."""

    enabled: bool = True
    floor_ms: int = 10_000
    backoff_factor: float = 2.0
    backoff_max_ms: int = 300_000
    near_deadline_ms: int = 15_000
    """No trigger when the application asks by itself within this time (``nextRebalanceMs``)."""
    share_ms: int = 5_000
    budget_per_group_per_hour: int = 60
    standbys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """Approves a proposal without a person when every bound that is set holds; at least one bound is."""

    name: str
    """The key of the rule among the settings."""
    kinds: frozenset[str] = frozenset(("reassign", "leaders", "trigger"))
    """Values of `ProposalKind`."""
    reasons: frozenset[str] = frozenset()
    """Names of `ProposalReason` in lower case with dashes; empty: any."""
    max_bytes: int | None = None
    max_moves: int | None = None
    keep_leaders: bool = False
    min_gain_usd_per_day: float | None = None
    min_gain_bytes_per_s: float | None = None
    topics: tuple[str, ...] = ()
    """For proposals about topics."""
    groups: tuple[str, ...] = ()
    """For proposals about groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveLimits:
    """Which proposals are approved by rule, and which need a person."""

    triggers: bool = True
    rules: tuple[ApprovalRule, ...] = ()
    """By name."""
    valid_ms: int = 3_600_000
    second_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyHint:
    """The configured topology of a Streams application; it overrides the inferred one."""

    source_changelogs: tuple[str, ...] = ()
    """Source topics that serve as changelog (optimised KTables)."""
    stateless_subtopologies: tuple[str, ...] = ()
    no_changelog_subtopologies: tuple[str, ...] = ()
    """Subtopologies whose stores have logging switched off."""
    changelogs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Subtopology -> changelog topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Settings of one group that its members do not send: of a Streams application, but for the client's name."""

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_strategy: str = NO_STRATEGY
    rack_aware_assignment_traffic_cost: int | None = None
    rack_aware_assignment_non_overlap_cost: int | None = None
    rack_aware_assignment_tags: tuple[str, ...] = ()
    task_assignor_class: str | None = None
    """``task.assignor.class``; None: Kafka's default, which assigns for high availability."""
    topology: TopologyHint = field(default_factory=TopologyHint)
    client_software_name: str | None = None
    """Client that all members of a consumer group run; None: inferred from their client ids."""
    known: bool = False
    """True when any of these is configured for the group; False: Kafka's defaults are assumed."""


class LocatorKind(StrEnum):
    """The source of a rack locator's racks (KIP-36's RackLocator)."""

    WIRE = "wire"
    """``broker.rack`` and ``client.rack``."""
    TABLE = "table"
    """A file, a command or an entry point: its answer is part of the observation."""
    REGEX = "regex"
    CIDR = "cidr"
    ALIAS = "alias"
    """Other names of racks; it translates the racks of all other locators."""


class RackPattern(NamedTuple):
    """Names that match are in that rack."""

    of: str
    """``client.id``, ``group.instance.id`` or ``host``."""
    pattern: str
    """In the syntax of Rust's regex crate: no look-around and no back-references, so that no name takes long."""
    rack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLocator:
    """One locator of ``rack.locator.class`` with its rules."""

    name: str
    kind: LocatorKind
    patterns: tuple[RackPattern, ...] = ()
    networks: tuple[tuple[str, str], ...] = ()
    """(network, rack); two that overlap have the same rack."""
    aliases: tuple[tuple[str, str], ...] = ()
    """(other name, canonical name)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Thresholds, prices, names and caps, in the settings' sections."""

    mode: AgentMode = AgentMode.PROPOSE
    groups: Mapping[str, GroupLimits] = field(default_factory=dict)
    """Group id -> its settings; unset ones are those of ``default_group``."""
    default_group: GroupLimits = field(default_factory=GroupLimits)
    """For all other groups: the Streams settings at the top of a file."""
    cluster: ClusterLimits = field(default_factory=ClusterLimits)
    plan: PlanLimits = field(default_factory=PlanLimits)
    scope: ScopeLimits = field(default_factory=ScopeLimits)
    racks: RackLimits = field(default_factory=RackLimits)
    rack_locators: tuple[RackLocator, ...] = ()
    """In order, the first that knows a rack wins; none: ``wire`` alone (``rack.locator``)."""
    detect: DetectLimits = field(default_factory=DetectLimits)
    gain: GainLimits = field(default_factory=GainLimits)
    price: PriceLimits = field(default_factory=PriceLimits)
    weights: WeightsLimits = field(default_factory=WeightsLimits)
    proposals: ProposalLimits = field(default_factory=ProposalLimits)
    execute: ExecuteLimits = field(default_factory=ExecuteLimits)
    trigger: TriggerLimits = field(default_factory=TriggerLimits)
    group_triggers: Mapping[str, GroupTriggerLimits] = field(default_factory=lambda: MappingProxyType({}))
    """Group id -> its own trigger settings (``groups.<id>.trigger``); unset ones are those of ``trigger``."""
    probing: ProbingLimits = field(default_factory=ProbingLimits)
    approve: ApproveLimits = field(default_factory=ApproveLimits)
    windows: TimeWindowSet = field(default_factory=TimeWindowSet)
    topics: TopicsLimits = field(default_factory=TopicsLimits)

    def group(self, group_id: str) -> GroupLimits:
        """The settings of that group, or the defaults."""
        return self.groups.get(group_id, self.default_group)

    def trigger_of(self, group_id: str) -> GroupTriggerLimits:
        """The trigger settings of that group, or those of all."""
        return self.group_triggers.get(group_id, self.trigger)

    def excludes_topic(self, topic: str) -> bool:
        """True for a topic that the settings exclude; its own topics are excluded unless included."""
        return self.owns(topic) or _matches(topic, self.scope.exclude_topics)

    def excludes_group(self, group_id: str) -> bool:
        """True for a group that the settings exclude; rackwise's own groups are excluded like its topics."""
        return self.owns(group_id) or _matches(group_id, self.scope.exclude_groups)

    def owns(self, name: str) -> bool:
        """True for a topic or group of rackwise itself, unless ``scope.include_own_topics`` is set."""
        prefix = self.topics.prefix
        if self.scope.include_own_topics or not name.startswith(prefix):
            return False
        return name[len(prefix) : len(prefix) + 1] in ("", ".", "-", "_")


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return bool(patterns) and any_of(patterns).fullmatch(name) is not None


@lru_cache(maxsize=64)
def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all shell-style patterns, matched in linear time; that of none matches nothing."""
    return re.compile("|".join(translate(pattern) for pattern in patterns) or r"(?!)")
