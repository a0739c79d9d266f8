"""Limits: everything the pure stages may know of the settings, taken from them once at start.

Kafka's names and Kafka's defaults where Kafka has the setting. The defaults are the settings' own, so that pure code
and tests build limits without settings. None is "no bound" or "not set", never zero.
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

from agent.values.kafka import NO_STRATEGY
from agent.values.windows import Windows


class Told(StrEnum):
    """What the user says about a group; unknown leaves it to what is seen."""

    UNKNOWN = "unknown"
    YES = "yes"
    NO = "no"


class JournalKind(StrEnum):
    """Where the journal is kept."""

    KAFKA = "kafka"
    """A compacted topic with a fenced writer; several agents may stand by."""
    FILE = "file"
    """A locked file of one host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerLimits:
    """Which groups may be triggered; each group may have its own."""

    allow_eager: bool = False
    """Eager groups give up every partition in a rebalance."""
    allow_static: bool = False
    """Groups with static members (``group.instance.id``)."""
    allow_long_poll: bool = False
    """Groups that may take long to come back to a poll."""
    allow_rolling: bool = False
    """Groups whose members are being restarted one after the other."""
    allow_transactional: bool = False
    """Groups whose members write in transactions."""
    transactional: Told = Told.UNKNOWN
    """Unknown counts as yes for plain consumers and as no for Streams."""
    long_poll: Told = Told.UNKNOWN
    """Unknown is learned from earlier rebalances."""
    rolling: Told = Told.UNKNOWN
    """Decided by the members that joined and left lately."""
    long_poll_ms: int = 10_000
    """A group whose last rebalances took longer than this counts as one with long polls."""
    rolling_window_ms: int = 300_000
    """Members that came or went within this time count as a rolling restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRule:
    """Approves a proposal without a person when every bound that is set holds; at least one bound is."""

    name: str
    kinds: frozenset[str] = frozenset(("reassign", "leaders", "trigger"))
    """Values of `ProposalKind`."""
    reasons: frozenset[str] = frozenset()
    """Names of `ProposalReason` in lower case with dashes; empty: any."""
    max_bytes: int | None = None
    """Bytes copied or restored, at most; a proposal whose bytes are unknown is above every bound."""
    max_moves: int | None = None
    keep_leaders: bool = False
    """Only what changes no preferred leader."""
    min_gain_usd_per_day: float | None = None
    min_gain_bytes_per_s: float | None = None
    """Cross-rack bytes per second that it saves, at least; unknown is below every bound."""
    topics: tuple[str, ...] = ()
    """Shell-style patterns; empty: any. Asked of proposals about topics."""
    groups: tuple[str, ...] = ()
    """Shell-style patterns; empty: any. Asked of proposals about groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteLimits:
    """Budgets, paces, windows and approvals of mode ``execute``."""

    cluster_id: str | None = None
    """The only cluster that may be acted upon; None: whichever the observer looks at."""
    journal: JournalKind = JournalKind.KAFKA
    request_timeout_ms: int = 10_000
    """Hard deadline of one mutating request."""
    tick_ms: int = 1_000
    """Time between two steps of the executor while a plan is open."""
    intent_valid_ms: int = 2_000
    """How long an intent is good for at least; longer where the journal answers slowly (`messages`)."""

    # --- what may be touched
    include_topics: tuple[str, ...] = ()
    """Shell-style patterns of topics that may be acted upon; empty: all that are proposed."""
    exclude_topics: tuple[str, ...] = ()
    include_groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    windows: Windows = field(default_factory=Windows)

    # --- pace of reassignments
    max_moves_per_broker: int = 5
    """Partitions that a broker may receive or give away at once."""
    max_moves_per_cluster: int = 250
    """Partitions that move at once."""
    max_bytes_in_flight: int | None = 100_000_000_000
    """Bytes still to be copied at once; a single partition above it moves alone. None: no bound."""
    batch_partitions: int = 50
    """Partitions of one request."""
    throttle_bytes_per_s: int | None = None
    """Replication rate per broker; None: worked out from headroom."""
    throttle_floor_bytes_per_s: int = 1_000_000
    throttle_ceiling_bytes_per_s: int = 100_000_000
    throttle_headroom_share: float = 0.5
    """Part of a broker's unused network rate that moves may take."""
    broker_bytes_per_s: int = 125_000_000
    """What a broker's network carries each way, from which headroom is worked out."""
    min_isr_guard: bool = True
    """Stop and undo when a partition in the plan falls under its min ISR."""
    stuck_after_ms: int = 300_000
    """A move without progress for this long is re-paced once, then cancelled."""
    grace_after_broker_loss_ms: int = 60_000
    """How long a lost broker is waited for before its moves are cancelled."""

    # --- triggers
    trigger: TriggerLimits = field(default_factory=TriggerLimits)
    """For all groups that have none of their own."""
    group_triggers: Mapping[str, TriggerLimits] = field(default_factory=lambda: MappingProxyType({}))
    own_rebalance_wait_ms: int = 300_000
    """``metadata.max.age.ms``: how long a group's own rebalance after a rack change is waited for."""
    trigger_budget_per_group_per_hour: int = 6
    trigger_budget_per_cycle: int = 5
    trigger_budget_per_hour: int = 100
    trigger_budget_per_day: int = 500
    batch_budget_per_hour: int = 100
    """Reassignment requests per hour."""
    batch_budget_per_day: int = 200
    move_budget_bytes_per_day: int | None = None
    """Bytes whose copying may begin within a day; None: no bound."""

    # --- probing, as KIP-441 has it
    probing: bool = True
    """Whether warm-ups that have caught up may be promoted by a trigger."""
    probing_floor_ms: int = 10_000
    """Least time between two triggers for warm-ups of one group."""
    probing_backoff_factor: float = 2.0
    """By what the floor grows each time that nothing was promoted."""
    probing_backoff_max_ms: int = 300_000
    probing_near_deadline_ms: int = 15_000
    """No trigger when the application asks by itself within this time (``nextRebalanceMs``)."""
    probing_share_ms: int = 5_000
    """Warm-ups that will be caught up within this time of each other share one trigger."""
    probing_budget_per_group_per_hour: int = 60
    probing_standbys: bool = False
    """Whether a standby whose lag grows without bound may be answered by a trigger."""

    # --- what is worth it
    payback_max_days: float | None = 30.0
    """What is saved must pay for the bytes that are copied within this time; None: not asked."""
    hysteresis_share: float = 0.2
    """What was acted upon lately must gain this much more than the least gain..."""
    hysteresis_window_ms: int = 86_400_000
    """...where lately is this long."""
    move_cooldown_ms: int = 600_000
    """Least time between the end of a reassignment of a topic and the next of the same topic."""

    # --- approvals
    approve_triggers: bool = True
    """Default rule: triggers within budget need no person."""
    approval_rules: tuple[ApprovalRule, ...] = ()
    approval_valid_ms: int = 3_600_000
    """An approval expires when nothing was begun for this long."""
    second_person: bool = False
    """The person who asked for a reassignment or leader change may not be the one who approves it."""

    def for_group(self, group_id: str) -> TriggerLimits:
        """What holds for that group."""
        return self.group_triggers.get(group_id, self.trigger)


class Mode(StrEnum):
    """How far the agent may go. Only the guard asks."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyHint:
    """What the user says about a Streams application; it overrides what is inferred."""

    source_changelogs: tuple[str, ...] = ()
    """Source topics that serve as changelog (optimised KTables)."""
    stateless_subtopologies: tuple[str, ...] = ()
    no_changelog_subtopologies: tuple[str, ...] = ()
    """Subtopologies whose stores have logging switched off."""
    changelogs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Subtopology -> changelog topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Settings of one group that its bytes do not tell: of a Streams application, but for the client's name."""

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
    """Which client all members of a consumer group run; None: told by their client ids alone."""
    known: bool = False
    """True when the user set any of these for the group; False: Kafka's defaults are assumed, and it is said so."""


class LocatorKind(StrEnum):
    """How a rack locator knows (KIP-36's RackLocator)."""

    WIRE = "wire"
    """``broker.rack`` and ``client.rack``."""
    TABLE = "table"
    """A file, a command or an entry point: its answer is part of the observation."""
    REGEX = "regex"
    CIDR = "cidr"
    ALIAS = "alias"
    """Other names of racks; it translates what all others tell."""


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
    """(other name, the name that is meant)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Thresholds, prices, names and caps."""

    mode: Mode = Mode.PROPOSE
    groups: Mapping[str, GroupLimits] = field(default_factory=dict)
    """Group id -> its settings; ``default_group`` for all others."""
    default_group: GroupLimits = field(default_factory=GroupLimits)
    own_prefix: str = "rackwise"
    include_own_topics: bool = False
    exclude_topics: tuple[str, ...] = ()
    """Shell-style patterns."""
    exclude_groups: tuple[str, ...] = ()
    keep_leaders: bool = False
    """No plan changes a preferred leader; what it would have to change for is left out."""
    rack_locators: tuple[RackLocator, ...] = ()
    """In the order in which they are asked, the first that knows wins; none: ``wire`` alone."""
    rack_stable_ms: int = 60_000
    """A rack change is planned from only after the new rack held this long..."""
    rack_stable_polls: int = 3
    """...and was seen in this many polls."""
    rack_flap_changes: int = 3
    """Changes within the window that make a rack count as flapping (held down)."""
    rack_flap_window_ms: int = 1_800_000
    broker_absent_ms: int = 1_800_000
    """Nothing is moved because a broker is absent until it has been absent this long."""
    stuck_rebalance_ms: int = 300_000
    min_gain_partitions: int = 1
    """A plan that brings fewer crossing partitions than this home is "nothing worth doing"."""
    min_gain_share: float = 0.05
    """...and so is one below this share of the group's partitions."""
    min_gain_bytes_per_s: float = 0.0
    leader_skew_share: float = 0.34
    """How far the share of preferred leaders of a rack may lie from its even share."""
    usd_per_gb: float | None = 0.02
    """Price of a gigabyte (10**9 bytes) that crosses racks, both directions together; None: no money is shown."""
    prices: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(from rack, to rack) -> price per gigabyte, where it differs."""
    predict_limit: int = 200_000
    """What a group's own assignor gives is worked out up to so many partitions (or tasks) times members."""
    move_bytes_per_s: float = 50_000_000.0
    """Assumed replication rate when seconds are predicted."""
    max_proposals: int = 1_000
    """Per cycle; what is left out is counted in the cycle report."""
    max_moves_per_proposal: int = 1_000
    proposal_ttl_ms: int = 900_000
    trigger_cooldown_ms: int = 60_000
    throttle_grace_ms: int = 120_000
    """A throttle with no reassignment running counts as left behind after this long."""
    weights_max_age_ms: int = 7_200_000
    """Weights of the pipeline that are older count for nothing."""
    no_longer_shown_share: float = 0.2
    """Part of topics or groups that may vanish between two looks before the new world is doubted."""
    execute: ExecuteLimits = field(default_factory=ExecuteLimits)
    """What holds in mode ``execute`` besides."""

    def group(self, group_id: str) -> GroupLimits:
        """The settings of that group, or the defaults."""
        return self.groups.get(group_id, self.default_group)

    def excludes_topic(self, topic: str) -> bool:
        """True for a topic that the settings leave out; rackwise's own topics are left out unless asked for."""
        return self.owns(topic) or _matches(topic, self.exclude_topics)

    def excludes_group(self, group_id: str) -> bool:
        """True for a group that the settings leave out; rackwise's own groups are left out like its topics."""
        return self.owns(group_id) or _matches(group_id, self.exclude_groups)

    def owns(self, name: str) -> bool:
        """True for a topic or group of rackwise itself, unless the settings take them for any other."""
        if self.include_own_topics or not name.startswith(self.own_prefix):
            return False
        return name[len(self.own_prefix) : len(self.own_prefix) + 1] in ("", ".", "-", "_")


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return bool(patterns) and any_of(patterns).fullmatch(name) is not None


@lru_cache(maxsize=64)
def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all shell-style patterns; that of none matches nothing.

    ``translate`` writes ``*`` so that matching stays linear.
    """
    return re.compile("|".join(translate(pattern) for pattern in patterns) or r"(?!)")
