"""Last confirmed counts and findings, for metrics: a part that a look did not see keeps its value and its time.

Metrics show these, so that a count never falls, and an alert never resolves, because a call failed. Nothing is planned
from them. Invariant: a value that is missing or lower than in the look before was seen so, or is known to be gone.
Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.values.cycle import Cycle
from agent.values.finding import Finding, FindingReason
from agent.values.observation import Gap, GapCause, GapScope, ObservationPart
from agent.values.snapshot import ConsumerGroup, OtherGroup, Snapshot


class GapKey(NamedTuple):
    """The part of a gap that stays the same from look to look."""

    part: ObservationPart
    subject: str
    """Of several empty: their number may change from look to look."""
    scope: GapScope
    passes: bool
    """Whether the cause passes: the call failed."""

    @property
    def hides_others(self) -> bool:
        """Whether the same gap may hide other subjects in each look: those of a silent broker, or only counted ones."""
        of_broker = self.scope is GapScope.BROKER and self.part is not ObservationPart.BROKER_CONFIGS
        return self.passes and (of_broker or self.scope is GapScope.SEVERAL)


class KnownFinding(NamedTuple):
    """A finding as it was last confirmed."""

    finding: Finding
    seen_ms: int
    """Epoch milliseconds of the last look that found it."""
    gaps: frozenset[GapKey]
    """Gaps of that look."""
    shown: frozenset[ObservationPart] = frozenset()
    """Parts of which that look had the subject's own rows; used only for gaps that were there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnown:
    """Counts and findings for metrics. A count that no look has confirmed is None. Times are epoch milliseconds."""

    brokers: Mapping[int, tuple[str, bool]] | None = None
    """Broker -> its rack ("" is unknown), and whether it is alive."""
    brokers_ms: int | None = None
    """Time of the last confirmation of all of it, as below."""
    topics: tuple[int, int] | None = None
    """Numbers of topics and partitions."""
    topics_ms: int | None = None
    groups: Mapping[str, str] | None = None
    """Group -> its kind."""
    groups_ms: int | None = None
    findings: Mapping[str, KnownFinding] = field(default_factory=dict)
    """By id."""

    @property
    def findings_ms(self) -> int | None:
        """Last time of the finding with the oldest confirmation; None without findings."""
        return min((known.seen_ms for known in self.findings.values()), default=None)

    def count_findings(self) -> Counter[tuple[str, str]]:
        """(reason, severity) -> number."""
        return Counter((one.finding.reason.value, one.finding.severity.value) for one in self.findings.values())


FAILED = frozenset(
    (GapCause.TIMED_OUT, GapCause.UNREACHABLE, GapCause.ERROR, GapCause.UNUSABLE, GapCause.DOUBTED, GapCause.TOO_LARGE)
)
"""Causes that pass: the call was made and failed."""
_LISTS = (ObservationPart.BROKERS, ObservationPart.TOPICS, ObservationPart.GROUPS)
_ABOUT_ITSELF = frozenset((FindingReason.PART_MISSING, FindingReason.RIGHTS_MISSING))
"""Findings about gaps, which a gap never hides."""
_NOT_OF_GROUPS = frozenset((ObservationPart.LOG_DIRS, ObservationPart.REASSIGNMENTS, ObservationPart.RIGHTS))
_NOT_OF_OTHERS = frozenset(
    (
        ObservationPart.GROUPS,
        ObservationPart.GROUP_CONFIGS,
        ObservationPart.COMMITTED_OFFSETS,
        ObservationPart.END_OFFSETS,
        ObservationPart.APPLICATION_LAGS,
        ObservationPart.WEIGHTS,
    )
)
_ONLY_OF: Mapping[FindingReason, frozenset[ObservationPart]] = {
    FindingReason.BROKER_ABSENT: frozenset((ObservationPart.BROKERS, ObservationPart.TOPICS)),
    FindingReason.LEADER_SKEW: frozenset(ObservationPart) - _NOT_OF_OTHERS,  # of the cluster too
}
"""Findings that rest on these parts and on no other."""
_WITHOUT_ROWS = frozenset(("cluster", "rack"))
"""Kinds of subjects without rows of their own."""


def last_known(before: LastKnown | None, cycle: Cycle) -> LastKnown:
    """The counts and findings after this cycle."""
    before = before or LastKnown()
    snapshot, now_ms = cycle.snapshot, cycle.snapshot.taken_ms
    brokers, whole_brokers = _brokers(before, snapshot)
    topics = _topics(snapshot) if is_listed(snapshot, ObservationPart.TOPICS) else None
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


def is_listed(snapshot: Snapshot, part: ObservationPart) -> bool:
    """Whether the list of brokers, topics or groups is complete, within the principal's rights."""
    return not any(gap.part is part and _cuts_the_list(gap) for gap in snapshot.gaps)


def is_failed(snapshot: Snapshot) -> bool:
    """Whether listing brokers, topics or groups failed as a whole."""
    return any(gap.part in _LISTS and not gap.subject and gap.cause in FAILED for gap in snapshot.gaps)


def _cuts_the_list(gap: Gap) -> bool:
    """A broker that did not list its groups hides them; a group that was not described is still listed."""
    return not gap.subject or gap.scope is GapScope.BROKER or gap.cause is GapCause.DOUBTED


def _brokers(before: LastKnown, snapshot: Snapshot) -> tuple[Mapping[int, tuple[str, bool]] | None, bool]:
    """Absent brokers are known from the replicas of topics: without topics those that were absent stay."""
    if not is_listed(snapshot, ObservationPart.BROKERS):
        return before.brokers, False
    now = {broker.id: (broker.rack.name or "", broker.alive) for broker in snapshot.brokers}
    if is_listed(snapshot, ObservationPart.TOPICS):
        return now, True
    previous = before.brokers or {}
    # A broker that is no longer listed may have become absent.
    return {**{broker: (rack, False) for broker, (rack, _) in previous.items()}, **now}, False


def _topics(snapshot: Snapshot) -> tuple[int, int]:
    return len(snapshot.topics), sum(len(topic.partitions) for topic in snapshot.topics.values())


def _groups(before: LastKnown, cycle: Cycle) -> tuple[Mapping[str, str] | None, bool]:
    """A group that could not be described keeps its kind; one that was not listed stays."""
    snapshot, previous = cycle.snapshot, before.groups or {}
    undescribed = _hides(snapshot, ObservationPart.GROUPS)
    now = {
        name: previous[name] if undescribed and isinstance(group, OtherGroup) and name in previous else group.kind.value
        for name, group in snapshot.groups.items()
    }
    if is_listed(snapshot, ObservationPart.GROUPS):
        return now, not undescribed
    if before.groups is None:
        return None, False
    gone = frozenset(cycle.observation.vanished_groups)
    return {**{name: kind for name, kind in previous.items() if name not in gone}, **now}, False


def _findings(before: Mapping[str, KnownFinding], cycle: Cycle) -> Mapping[str, KnownFinding]:
    snapshot, findings = cycle.snapshot, cycle.detection.findings
    gaps = _gaps(snapshot)
    if not gaps:
        return {one.id: KnownFinding(one, snapshot.taken_ms, gaps) for one in findings}
    shown = _Shown(cycle)
    now = {one.id: KnownFinding(one, snapshot.taken_ms, gaps, shown.of(one)) for one in findings}
    missed = {
        name: known
        for name, known in before.items()
        if name not in now and not _is_gone(known.finding, cycle) and _may_be_hidden(known, gaps, shown, snapshot)
    }
    return {**now, **missed}


def _gaps(snapshot: Snapshot) -> frozenset[GapKey]:
    return frozenset(
        GapKey(gap.part, "" if gap.scope is GapScope.SEVERAL else gap.subject, gap.scope, gap.cause in FAILED)
        for gap in snapshot.gaps
        if gap.cause is not GapCause.VANISHED
    )


class _Shown:
    """The parts that a look has of a subject: a lasting gap ("120 of them") may hide others in the next look."""

    def __init__(self, cycle: Cycle) -> None:
        self._seen, self._snapshot = cycle.observation, cycle.snapshot
        self._brokers = {broker.id for broker in cycle.snapshot.brokers}
        self._read: dict[str, frozenset[str]] = {}
        self._ended = {partition.topic for partition in self._seen.end_offsets}
        self._lags = {row.group_id for row in self._seen.application_lags}

    def of(self, finding: Finding) -> frozenset[ObservationPart]:
        """The parts that have rows of the finding's subject."""
        kind, name = finding.subject
        if kind == "topic":
            found = self._of_topics([name])
        elif finding.broker is not None:
            found = {
                ObservationPart.BROKERS: finding.broker in self._brokers,
                ObservationPart.BROKER_CONFIGS: finding.broker in self._seen.broker_configs,
            }
        elif finding.group is not None:
            found = self._of_group(finding.group)
        else:
            found = {}
        return frozenset(part for part, is_shown in found.items() if is_shown)

    def _of_topics(self, names: Collection[str]) -> dict[ObservationPart, bool]:
        return {
            ObservationPart.TOPICS: all(name in self._snapshot.topics for name in names),
            ObservationPart.TOPIC_CONFIGS: all(name in self._seen.topic_configs for name in names),
            ObservationPart.END_OFFSETS: all(name in self._ended for name in names),
        }

    def _of_group(self, name: str) -> dict[ObservationPart, bool]:
        group = self._snapshot.groups.get(name)
        return {
            **self._of_topics(self._topics_of(name)),
            ObservationPart.GROUPS: group is not None and not isinstance(group, OtherGroup),
            ObservationPart.COMMITTED_OFFSETS: name in self._seen.committed_offsets,
            ObservationPart.GROUP_CONFIGS: name in self._seen.group_configs,
            ObservationPart.APPLICATION_LAGS: name in self._lags,
        }

    def _topics_of(self, name: str) -> frozenset[str]:
        """Known topics that a group reads."""
        if name not in self._read:
            group = self._snapshot.groups.get(name)
            members = group.members if isinstance(group, ConsumerGroup) else ()
            held = {partition.topic for member in members for partition in member.assigned or ()}
            self._read[name] = frozenset(held | {it.topic for it in self._seen.committed_offsets.get(name, ())})
        return self._read[name]


def _is_gone(finding: Finding, cycle: Cycle) -> bool:
    """Whether its subject is known to be gone, or the finding is about gaps."""
    kind, name = finding.subject
    if finding.reason in _ABOUT_ITSELF:
        return True
    snapshot, observation = cycle.snapshot, cycle.observation
    if kind == "topic":
        return name in observation.vanished_topics or not (
            name in snapshot.topics or _hides(snapshot, ObservationPart.TOPICS)
        )
    if finding.group is not None:
        return finding.group in observation.vanished_groups or not (
            finding.group in snapshot.groups or _hides(snapshot, ObservationPart.GROUPS)
        )
    if kind == "broker":  # one that is absent is shown by its replicas
        shown = any(str(broker.id) == name for broker in snapshot.brokers)
        return not (shown or _hides(snapshot, ObservationPart.BROKERS, ObservationPart.TOPICS))
    return False


def _hides(snapshot: Snapshot, *parts: ObservationPart) -> bool:
    """Whether a gap of these parts, also one for want of a right, may hide something of their lists."""
    return any(gap.part in parts and gap.cause is not GapCause.VANISHED for gap in snapshot.gaps)


def _may_be_hidden(known: KnownFinding, gaps: frozenset[GapKey], shown: _Shown, snapshot: Snapshot) -> bool:
    """Whether a gap of this look may hide the finding: a new gap, or an old one that now hides the subject's own rows.

    A finding about the cluster or a rack has no rows of its own: it stays while a gap may hide other subjects.
    """
    finding = known.finding
    lost = known.shown - shown.of(finding)
    without_rows = finding.subject.kind in _WITHOUT_ROWS
    return any(
        gap not in known.gaps or gap.part in lost or (without_rows and gap.hides_others)
        for gap in gaps
        if _bears_on(finding, gap, snapshot)
    )


def _bears_on(finding: Finding, gap: GapKey, snapshot: Snapshot) -> bool:
    kind, name = finding.subject
    part, subject = gap.part, gap.subject
    if part is ObservationPart.LOG_DIRS or part not in _ONLY_OF.get(finding.reason, (part,)):
        return False  # no finding rests on sizes
    if kind in _WITHOUT_ROWS:
        return True
    of_group = finding.group is not None
    if part in (_NOT_OF_GROUPS if of_group else _NOT_OF_OTHERS):
        return False
    names_another = gap.scope is GapScope.NAMED and (subject in snapshot.topics or subject in snapshot.groups)
    # A group may rest on any topic that could not be described.
    return not names_another or subject in (name, finding.group) or (of_group and subject in snapshot.topics)
