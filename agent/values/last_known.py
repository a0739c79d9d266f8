"""Which counts and findings did the looks last confirm? What a look did not see is kept as it was, with its time.

Metrics show it, so that a count never falls, and an alert never resolves, because a question failed. Pure; nothing is
planned from it.

Invariant: what is left out or lower here than in the look before is known to be gone, or was seen as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.values.cycle import Cycle
from agent.values.finding import Finding, FindingReason
from agent.values.observation import Gap, GapCause, Part
from agent.values.snapshot import OtherGroup, Snapshot


class KnownFinding(NamedTuple):
    """A finding as it was last confirmed."""

    finding: Finding
    seen_ms: int
    """Epoch milliseconds of the last look that found it."""
    gaps: frozenset[tuple[Part, str]]
    """What that look did not see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnown:
    """What metrics count. A count that no look has confirmed yet is None. Times are epoch milliseconds."""

    brokers: Mapping[int, tuple[str, bool]] | None = None
    """Broker -> its rack ("" is unknown), and whether it is alive."""
    brokers_ms: int | None = None
    """When all of it was last confirmed, as below."""
    topics: tuple[int, int] | None = None
    """How many topics and partitions."""
    topics_ms: int | None = None
    groups: Mapping[str, str] | None = None
    """Group -> its kind."""
    groups_ms: int | None = None
    findings: Mapping[str, KnownFinding] = field(default_factory=dict)
    """By id."""

    @property
    def findings_ms(self) -> int | None:
        """When the finding that was not confirmed for longest was last seen; None where there is none."""
        return min((known.seen_ms for known in self.findings.values()), default=None)

    def count_findings(self) -> Counter[tuple[str, str]]:
        """(reason, severity) -> how many."""
        return Counter((one.finding.reason.value, one.finding.severity.value) for one in self.findings.values())


FAILED = frozenset(
    (
        GapCause.TIMED_OUT,
        GapCause.UNREACHABLE,
        GapCause.ERROR,
        GapCause.UNUSABLE,
        GapCause.DOUBTED,
        GapCause.TOO_LARGE,
    )
)
"""Causes that pass: the question was asked and not answered well."""
_LISTS = (Part.BROKERS, Part.TOPICS, Part.GROUPS)
_ABOUT_ITSELF = frozenset((FindingReason.PART_MISSING, FindingReason.RIGHTS_MISSING))
"""Made of the gaps, so that a gap never hides them."""
_OF_GROUPS = frozenset(("group", "member", "task"))
_NOT_OF_GROUPS = frozenset((Part.LOG_DIRS, Part.REASSIGNMENTS, Part.RIGHTS))
_NOT_OF_OTHERS = frozenset(
    (Part.GROUPS, Part.GROUP_CONFIGS, Part.COMMITTED_OFFSETS, Part.END_OFFSETS, Part.APPLICATION_LAGS, Part.WEIGHTS)
)
_ONLY_OF: Mapping[FindingReason, frozenset[Part]] = {
    FindingReason.BROKER_ABSENT: frozenset((Part.BROKERS, Part.TOPICS))
}
"""Findings that rest on these parts and on no other."""
_COUNTED = re.compile(r"\d+ (of them|topics|groups)")


def last_known(before: LastKnown | None, cycle: Cycle) -> LastKnown:
    """What is known after this look."""
    before = before or LastKnown()
    snapshot, now_ms = cycle.snapshot, cycle.snapshot.taken_ms
    brokers, whole_brokers = _brokers(before, snapshot)
    topics = _topics(snapshot) if is_listed(snapshot, Part.TOPICS) else None
    groups, whole_groups = _groups(before, cycle)
    return LastKnown(
        brokers=brokers,
        brokers_ms=now_ms if whole_brokers else before.brokers_ms,
        topics=topics or before.topics,
        topics_ms=now_ms if topics is not None else before.topics_ms,
        groups=groups,
        groups_ms=now_ms if whole_groups else before.groups_ms,
        findings=_findings(before.findings, cycle),
    )


def is_listed(snapshot: Snapshot, part: Part) -> bool:
    """Whether the list of brokers, topics or groups is whole, as far as rights let it be seen."""
    return not any(gap.part is part and _cuts_the_list(gap) for gap in snapshot.gaps)


def is_failed(snapshot: Snapshot) -> bool:
    """Whether the list of brokers, topics or groups as a whole was asked for and not answered."""
    return any(gap.part in _LISTS and not gap.subject and gap.cause in FAILED for gap in snapshot.gaps)


def _cuts_the_list(gap: Gap) -> bool:
    """A broker that did not list its groups hides them; a group that was not described is listed all the same."""
    return not gap.subject or gap.subject.startswith("broker ") or gap.cause is GapCause.DOUBTED


def _brokers(before: LastKnown, snapshot: Snapshot) -> tuple[Mapping[int, tuple[str, bool]] | None, bool]:
    """Absent brokers are known from the replicas of topics: without topics those that were absent still are."""
    if not is_listed(snapshot, Part.BROKERS):
        return before.brokers, False
    now = {broker.id: (broker.rack.name or "", broker.alive) for broker in snapshot.brokers}
    if is_listed(snapshot, Part.TOPICS):
        return now, True
    was = before.brokers or {}
    # One that is not told of any more may have gone absent; unless it was known, nothing says so.
    return {**{broker: (rack, False) for broker, (rack, _) in was.items()}, **now}, False


def _topics(snapshot: Snapshot) -> tuple[int, int]:
    return len(snapshot.topics), sum(len(topic.partitions) for topic in snapshot.topics.values())


def _groups(before: LastKnown, cycle: Cycle) -> tuple[Mapping[str, str] | None, bool]:
    """A group that could not be described keeps the kind that it had; one that was not listed is still there."""
    snapshot, was = cycle.snapshot, before.groups or {}
    undescribed = any(gap.part is Part.GROUPS and gap.cause is not GapCause.VANISHED for gap in snapshot.gaps)
    now = {
        name: was[name] if undescribed and isinstance(group, OtherGroup) and name in was else group.kind.value
        for name, group in snapshot.groups.items()
    }
    if is_listed(snapshot, Part.GROUPS):
        return now, not undescribed
    if before.groups is None:
        return None, False
    gone = frozenset(cycle.observation.vanished_groups)
    return {**{name: kind for name, kind in was.items() if name not in gone}, **now}, False


def _findings(before: Mapping[str, KnownFinding], cycle: Cycle) -> Mapping[str, KnownFinding]:
    snapshot = cycle.snapshot
    gaps = _gaps(snapshot)
    now = {one.id: KnownFinding(one, snapshot.taken_ms, gaps) for one in cycle.detection.findings}
    if not gaps:
        return now
    missed = {
        name: known
        for name, known in before.items()
        if name not in now and not _is_gone(known.finding, cycle) and _may_be_hidden(known, gaps, snapshot)
    }
    return {**now, **missed}


def _gaps(snapshot: Snapshot) -> frozenset[tuple[Part, str]]:
    """How many of a kind are missing may change from look to look; it stays the same gap."""
    return frozenset(
        (gap.part, _COUNTED.sub(r"some \1", gap.subject)) for gap in snapshot.gaps if gap.cause is not GapCause.VANISHED
    )


def _is_gone(finding: Finding, cycle: Cycle) -> bool:
    """Whether what it is about is known not to be there any more, or it is made of gaps."""
    kind, name = finding.subject
    if finding.reason in _ABOUT_ITSELF:
        return True
    if kind == "topic":
        shown = name in cycle.snapshot.topics
        return name in cycle.observation.vanished_topics or (not shown and not _hides(cycle.snapshot, Part.TOPICS))
    if kind in _OF_GROUPS:
        group = name if kind == "group" else name.split("/", 1)[0]
        shown = group in cycle.snapshot.groups
        return group in cycle.observation.vanished_groups or (not shown and not _hides(cycle.snapshot, Part.GROUPS))
    if kind == "broker":  # one that is absent is shown by its replicas
        shown = any(str(broker.id) == name for broker in cycle.snapshot.brokers)
        return not (shown or _hides(cycle.snapshot, Part.BROKERS) or _hides(cycle.snapshot, Part.TOPICS))
    return False


def _hides(snapshot: Snapshot, part: Part) -> bool:
    """Whether something of that list may be there and not shown: also for want of a right."""
    return any(gap.part is part and gap.cause is not GapCause.VANISHED for gap in snapshot.gaps)


def _may_be_hidden(known: KnownFinding, gaps: frozenset[tuple[Part, str]], snapshot: Snapshot) -> bool:
    """Whether this look lacks something that the look which found it had, and that it may rest on."""
    return any(_bears_on(known.finding, part, subject, snapshot) for part, subject in gaps - known.gaps)


def _bears_on(finding: Finding, part: Part, subject: str, snapshot: Snapshot) -> bool:
    kind, name = finding.subject
    if part is Part.LOG_DIRS or part not in _ONLY_OF.get(finding.reason, (part,)):
        return False  # none rests on sizes
    if kind in ("cluster", "rack"):
        return True
    if part in (_NOT_OF_GROUPS if kind in _OF_GROUPS else _NOT_OF_OTHERS):
        return False
    names_another = subject in snapshot.topics or subject in snapshot.groups
    # A group may rest on any topic that could not be described.
    return not names_another or subject == name or (kind in _OF_GROUPS and subject in snapshot.topics)
