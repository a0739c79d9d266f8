"""Findings: faults of racks, replicas and groups, each with a typed reason, a sentence, its evidence and an age.

`ENDS` has what ends each, where no setting line and no proposal of the look answers it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agent.values.kafka import CLASSIC_GROUP, GROUP_PROTOCOL


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
    """``cluster``, ``broker``, ``rack``, ``topic``, ``group`` or ``task``."""
    name: str
    """Broker id, rack, topic, group, or ``group/task/process``; the cluster id for the cluster."""

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
    task_of: str | None = None
    """Id of the group of the task that it is about; None for any other subject."""

    @property
    def group(self) -> str | None:
        """Id of the group that it is about, itself or by one of its tasks; None for any other subject."""
        return self.subject.name if self.subject.kind == "group" else self.task_of

    @property
    def id(self) -> str:
        """Stable over cycles and restarts: reason, subject and detail."""
        known: str | None = getattr(self, "_id", None)
        if known is None:
            known = f"{self.reason.name.lower()}:{self.subject}" + (f":{self.detail}" if self.detail else "")
            object.__setattr__(self, "_id", known)
        return known


ENDS: Mapping[FindingReason, str] = {
    FindingReason.BROKER_ABSENT: (
        "The broker comes back. Nothing is moved because of it before `racks.broker_absent_for`."
    ),
    FindingReason.BROKER_RACK_CHANGED: (
        "Nothing, where it was meant; after `racks.stable_for` the replicas that it holds are planned anew."
    ),
    FindingReason.BROKER_RACK_MISSING: "Set it, and restart the broker.",
    FindingReason.RACK_FLAPPING: "Find what sets it; nothing is planned from it meanwhile.",
    FindingReason.RACK_SPELLING: "One spelling for brokers and clients, or an `alias` locator.",
    FindingReason.RACK_LOCATORS_DISAGREE: "Correct the one that is wrong; the first in `rack.locator.class` wins.",
    FindingReason.SELECTOR_NOT_RACK_AWARE: "`replica.selector.class` of all brokers, and a restart of each.",
    FindingReason.REPLICA_RACKS_CHANGED: (
        "Nothing, where it was meant. Where replicas share a rack now, that is a finding of its own."
    ),
    FindingReason.REPLICAS_SHARE_RACK: (
        "Approve the `reassign` proposal, or move them by `kafka-reassign-partitions.sh`."
    ),
    FindingReason.UNDER_MIN_ISR: "Bring its replicas back in sync; rackwise moves nothing of it meanwhile.",
    FindingReason.AT_MIN_ISR: "Bring the missing replica back in sync.",
    FindingReason.FOREIGN_REASSIGNMENT: "It ends by itself; rackwise never cancels it.",
    FindingReason.THROTTLE_LEFT_BEHIND: (
        "The `kafka-configs.sh` line of the advice; throttles of rackwise itself are removed by the agent."
    ),
    FindingReason.LEADER_SKEW: "Approve the `leaders` proposal; no data moves.",
    FindingReason.MEMBER_WITHOUT_RACK: "`client.rack` of each client; a rack locator tells rackwise alone.",
    FindingReason.MEMBER_IN_NO_BROKERS_RACK: (
        "`client.rack` spelled as the brokers' `broker.rack`, or brokers in that rack."
    ),
    FindingReason.SUBSCRIPTION_TOO_OLD: (
        "A newer client; for kafka-python and aiokafka the [assignors for Python](../clients.md)."
    ),
    FindingReason.PARTITION_CLAIMED_TWICE: "The group's next rebalance; if it lasts, the clients' assignor.",
    FindingReason.ASSIGNED_WHAT_IS_NOT_THERE: "The group's next rebalance, or the missing topic.",
    FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM: (
        "A `trigger` where one rebalance brings it; else another assignor, replicas or leaders."
    ),
    FindingReason.ASSIGNOR_WOULD_NOT_FIX: "The assignor that the advice names; a rebalance alone changes nothing.",
    FindingReason.GROUP_KIND_IGNORES_RACKS: (
        f"Where the gain is worth it `{GROUP_PROTOCOL}={CLASSIC_GROUP}`, or for KIP-848 the "
        "[plug-in for brokers](../plugin.md): `rackwise groups` says what it would bring; or replicas and leaders near "
        "the members. Members in a rack without brokers need another `client.rack` first, or brokers there."
    ),
    FindingReason.PREDICTION_MISSED: "Set below `groups.<application.id>` what the application really uses.",
    FindingReason.RACK_AWARENESS_OFF: (
        "What the sentence names: `client.rack`, `broker.rack`, an assignor or a strategy."
    ),
    FindingReason.MIXED_VERSIONS: "The end of the upgrade; then it goes by itself.",
    FindingReason.GROUP_STUCK_IN_REBALANCE: (
        "The members that do not join: long polls, crashes, `max.poll.interval.ms`."
    ),
    FindingReason.GROUP_UNDECODABLE: (
        "Nothing for unknown assignors: the group is left alone. Else look at the client."
    ),
    FindingReason.STATE_UNKNOWN: (
        "`groups.<application.id>.topology.*`, or the right to describe its changelog topics."
    ),
    FindingReason.WARMUP_PROMOTABLE: (
        "A `trigger` of the agent, or the application's own `probing.rebalance.interval.ms`."
    ),
    FindingReason.WARMUP_UNSURE: "`groups.<application.id>.application.endpoints` makes lags certain.",
    FindingReason.WARMUP_NEVER: "Faster restoring on that instance, or a larger `acceptable.recovery.lag`.",
    FindingReason.STANDBY_LAG_GROWS: "The instance that runs it: disk, network, threads.",
    FindingReason.COPIES_SHARE_RACK: (
        "`rack.aware.assignment.tags` and client tags; under KIP-1071 there is no setting for it."
    ),
    FindingReason.RIGHTS_MISSING: "The [right](rights.md) that the sentence names.",
    FindingReason.PART_MISSING: "The next look, if it was a passing fault; else the broker that the sentence names.",
    FindingReason.WEIGHTS_UNUSED: "Run the pipeline, or set `weights.enabled=false`.",
}
"""As Markdown of docs/reference/findings.md."""
_MARKED = re.compile(r"`([^`]*)`|\[([^]]*)\]\([^)]*\)")


def ends_by(reason: FindingReason) -> str:
    """The same as plain text."""
    return _MARKED.sub(lambda found: found[1] or found[2], ENDS[reason])
