"""Findings: faults of racks, replicas and groups, each with a typed reason, a sentence, its evidence and an age."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class FindingReason(StrEnum):
    """The reasons of findings. Tables and metrics show the value."""

    BROKER_ABSENT = "broker absent"
    BROKER_RACK_CHANGED = "broker rack changed"
    BROKER_RACK_MISSING = "broker rack missing"
    RACK_FLAPPING = "rack flapping"
    RACK_SPELLING = "rack in two spellings"
    RACK_LOCATORS_DISAGREE = "rack locators disagree"
    SELECTOR_NOT_RACK_AWARE = "replica selector not rack-aware"
    REPLICA_RACKS_CHANGED = "replica racks changed"
    REPLICAS_SHARE_RACK = "replicas share a rack"
    UNDER_MIN_ISR = "under min ISR"
    AT_MIN_ISR = "at min ISR"
    FOREIGN_REASSIGNMENT = "reassignment that is not ours"
    THROTTLE_LEFT_BEHIND = "throttle left behind"
    LEADER_SKEW = "preferred leaders uneven over racks"
    MEMBER_WITHOUT_RACK = "member without rack"
    MEMBER_IN_NO_BROKERS_RACK = "member in a rack without brokers"
    SUBSCRIPTION_TOO_OLD = "subscription too old to carry a rack"
    PARTITION_CLAIMED_TWICE = "partition assigned to more than one member"
    ASSIGNED_WHAT_IS_NOT_THERE = "assigned partitions that do not exist"
    ASSIGNMENT_WORSE_THAN_OPTIMUM = "assignment worse than the optimum"
    ASSIGNOR_WOULD_NOT_FIX = "assignor would not fix it"
    GROUP_KIND_IGNORES_RACKS = "group kind ignores racks"
    PREDICTION_MISSED = "prediction missed"
    RACK_AWARENESS_OFF = "rack-aware assignment is off"
    MIXED_VERSIONS = "mixed versions"
    GROUP_STUCK_IN_REBALANCE = "stuck in rebalance"
    GROUP_UNDECODABLE = "group bytes undecodable"
    STATE_UNKNOWN = "task state unknown"
    WARMUP_PROMOTABLE = "warm-up promotable"
    WARMUP_UNSURE = "warm-up progress unsure"
    WARMUP_NEVER = "warm-up will not catch up"
    STANDBY_LAG_GROWS = "standby lag grows"
    COPIES_SHARE_RACK = "task copies share a rack or tag"
    RIGHTS_MISSING = "rights missing"
    PART_MISSING = "part of the cluster did not answer"
    WEIGHTS_UNUSED = "weights of the pipeline unused"


class FindingSeverity(StrEnum):
    """The urgency of a finding."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class SubjectId(NamedTuple):
    """The subject of a finding or proposal, written ``kind/name``."""

    kind: str
    """``cluster``, ``broker``, ``rack``, ``topic``, ``group``, ``member`` or ``task``."""
    name: str
    """Broker id, topic, group, ``group/member id`` or ``group/task/process``; the cluster id for the cluster."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


Evidence = tuple[tuple[str, str | int | float | bool | tuple[str | int, ...] | None], ...]
"""Named facts in their order of display."""


class _Named:
    """A slot for the cached id beside the fields."""

    __slots__ = ("_id",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(_Named):
    """One fault or notable fact."""

    reason: FindingReason
    subject: SubjectId
    sentence: str
    evidence: Evidence
    severity: FindingSeverity
    since_ms: int
    """Epoch milliseconds of the first look that found it, as far as memory reaches."""
    held: bool = False
    """True while hysteresis holds it: it is shown, but nothing is planned from it."""
    detail: str = ""
    """Tells findings of one reason and subject apart (a cause, a tag key); part of the id."""
    broker: int | None = None
    """Id of the broker that it is about; None for any other subject."""

    @property
    def id(self) -> str:
        """Stable over cycles and restarts: reason, subject and detail."""
        known: str | None = getattr(self, "_id", None)
        if known is None:
            known = f"{self.reason.name.lower()}:{self.subject}" + (f":{self.detail}" if self.detail else "")
            object.__setattr__(self, "_id", known)
        return known
