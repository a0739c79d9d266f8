"""Limits: everything the pure stages may know of the settings, cut from them once at start.

Kafka's names and Kafka's defaults where Kafka has the setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from agent.limits_execute import ExecuteLimits
from agent.values.kafka import NO_STRATEGY


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
    execute: ExecuteLimits = field(default_factory=ExecuteLimits)
    """What holds in mode ``execute`` besides."""

    def group(self, group_id: str) -> GroupLimits:
        """The settings of that group, or the defaults."""
        return self.groups.get(group_id, self.default_group)

    def excludes_topic(self, topic: str) -> bool:
        """True for a topic that the settings leave out; rackwise's own topics are left out unless asked for."""
        return self._own(topic) or _matches(topic, self.exclude_topics)

    def excludes_group(self, group_id: str) -> bool:
        """True for a group that the settings leave out; rackwise's own groups are left out like its topics."""
        return self._own(group_id) or _matches(group_id, self.exclude_groups)

    def _own(self, name: str) -> bool:
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
