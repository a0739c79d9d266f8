"""One finished cycle as a value, with its one-sentence summary and the basis of the figures of its proposals.

Pure. A cycle is an observation and its findings; a planning cycle also has proposals and verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agent.values.assessment import Assessment, DetectionResult
from agent.values.finding import Evidence, Finding, FindingSeverity
from agent.values.limits import AgentMode, Limits
from agent.values.memory import Memory
from agent.values.number_format import counted, few, in_full, lasted
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.values.plan import ExecuteState, Plan
from agent.values.proposal import Allow, HoldReason, Outcome, Proposal, Verdict
from agent.values.snapshot import OtherGroup, Snapshot, TopicState
from agent.values.weights import FigureBasis

if TYPE_CHECKING:
    from agent.values.last_known import LastKnown

_NAMED_PROPOSALS = 5
"""Proposals that are named where the figures of an answer have different bases."""
_NO_WEIGHT = "some of the partitions that it is about have none"


def basis_of_group(assessment: Assessment | None) -> FigureBasis:
    """The basis of a group's figures: weights of the pipeline, the agent's own rates, or counts."""
    if assessment is None:
        return FigureBasis.COUNTS
    if assessment.weighing is not None:
        return FigureBasis.WEIGHTS
    return FigureBasis.OWN_RATES if any(of.unit == "bytes_per_s" for of in assessment.current) else FigureBasis.COUNTS


def basis_of_topic(topic: TopicState, snapshot: Snapshot) -> FigureBasis:
    """The basis of a topic's figures."""
    ids = [state.id for state in topic.partitions]
    if ids and all(partition in snapshot.weighed.bytes_per_s for partition in ids):
        return FigureBasis.WEIGHTS
    return FigureBasis.OWN_RATES if ids and all(p in snapshot.bytes_per_s for p in ids) else FigureBasis.COUNTS


def basis_evidence(basis: FigureBasis, snapshot: Snapshot) -> Evidence:
    """Rows of evidence: the basis, and the age of weights or, where they are configured, why there are none."""
    rows: Evidence = (("basis", basis.value),)
    state = snapshot.weights
    if state is None:
        return rows
    if basis is FigureBasis.WEIGHTS and state.to_ms is not None:
        age_ms = max(0, snapshot.taken_ms - state.to_ms)
        times = (("weights_from_ms", state.from_ms), ("weights_until_ms", state.to_ms))
        return (*rows, *times, ("weights_age_s", age_ms // 1_000))
    return (*rows, ("why_not_weights", state.why_not or _NO_WEIGHT))


def figures_rest_on(proposals: Iterable[Proposal]) -> str | None:
    """The basis of all proposals' figures as one sentence; None where weights are not configured."""
    by_basis: dict[str, list[str]] = {}
    for proposal in proposals:
        basis = _basis_sentence(dict(proposal.evidence))
        if basis is not None:
            by_basis.setdefault(basis, []).append(proposal.id)
    if len(by_basis) < 2:
        return next((f"figures: {each}" for each in by_basis), None)
    # The basis of most proposals comes first; of as many, in alphabetical order.
    ordered = sorted(by_basis.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return "; ".join(f"figures of {_named(ids)}: {each}" for each, ids in ordered)


def _named(ids: list[str]) -> str:
    if len(ids) <= _NAMED_PROPOSALS:
        return in_full(ids)
    return in_full([*ids[:_NAMED_PROPOSALS], counted(len(ids) - _NAMED_PROPOSALS, "more proposal")])


def _basis_sentence(evidence: Mapping[str, object]) -> str | None:
    age_s, why = evidence.get("weights_age_s"), evidence.get("why_not_weights")
    if isinstance(age_s, int):
        return f"weights of the pipeline, {lasted(1_000 * age_s)} old"
    if why is None:
        return None
    if evidence["basis"] == FigureBasis.OWN_RATES.value:
        return f"bytes per second are rackwise's own rates, and optima count partitions (no weights: {why})"
    return f"partitions are counted (no weights: {why})"


Counted = TypeVar("Counted")


def gaps_of(snapshot: Snapshot, parts: Iterable[ObservationPart]) -> list[Gap]:
    """Gaps of a snapshot in these parts; see `gaps_among`."""
    return gaps_among(snapshot.gaps, parts)


def gaps_among(gaps: Iterable[Gap], parts: Iterable[ObservationPart]) -> list[Gap]:
    """Gaps in these parts, those of VANISHED left out. A gap of rights about groups counts as one of groups."""
    wanted = frozenset(parts)
    about_groups = (ObservationPart.RIGHTS, "groups") if ObservationPart.GROUPS in wanted else None
    return [
        gap
        for gap in gaps
        if gap.cause is not GapCause.VANISHED and (gap.part in wanted or (gap.part, gap.subject) == about_groups)
    ]


def known_part(counted: Counted, snapshot: Snapshot, *parts: ObservationPart) -> Counted | None:
    """A count or collection of these parts' things; None where it is empty and some may be hidden by a gap."""
    return counted if counted or not gaps_of(snapshot, parts) else None


def hidden_groups(snapshot: Snapshot, limits: Limits) -> tuple[str, ...]:
    """Ids of groups that rebalance, so their members' racks and assignments are unknown; excluded groups left out."""
    groups = snapshot.groups.values()
    hidden = [group.id for group in groups if not isinstance(group, OtherGroup) and group.hidden]
    return tuple([name for name in hidden if not limits.excludes_group(name)])


_NAMED = 3
MOST_LOGGED = 8
"""Findings that one cycle logs each by itself."""
_DRY_RUN = {
    AgentMode.OBSERVE: "mode observe publishes nothing and carries nothing out",
    AgentMode.PROPOSE: "a dry run carries nothing out",
}
_LOGGED = (FindingSeverity.CRITICAL, FindingSeverity.WARNING)


class ClusterSize(NamedTuple):
    """Numbers of live brokers, their racks, topics, partitions, groups and members."""

    brokers: int
    racks: int
    topics: int
    partitions: int
    groups: int
    members: int


class FindingChanges(NamedTuple):
    """Ids of findings that are new since the last look, and of those that are known to be gone."""

    new: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


_NO_CHANGES = FindingChanges()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One finished cycle with the results of its stages. ``plan`` is None when nothing was planned."""

    number: int
    look: str
    """Id of the look: the agent's instance and the number of the cycle."""
    limits: Limits
    observation: Observation
    before: Memory
    """Memory at its start."""
    after: Memory
    snapshot: Snapshot
    detection: DetectionResult
    changes: FindingChanges = _NO_CHANGES
    plan: Plan | None = None
    proposals: tuple[Proposal, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    known: LastKnown | None = None
    """Counts and findings last confirmed; None before `last_known` has run."""
    acting: ExecuteState | None = None
    """State of mode execute after it; None in the other modes."""
    stages_ms: Mapping[str, int] = field(default_factory=dict)
    """Stage -> milliseconds."""

    @property
    def planned(self) -> bool:
        """True when proposals were made."""
        return self.plan is not None

    @property
    def took_ms(self) -> int:
        """Milliseconds of the whole cycle, without recording."""
        return sum(self.stages_ms.values())


def cluster_size(snapshot: Snapshot) -> ClusterSize:
    """The size of a snapshot."""
    groups = [group for group in snapshot.groups.values() if not isinstance(group, OtherGroup)]
    return ClusterSize(
        brokers=sum(broker.alive for broker in snapshot.brokers),
        racks=len({broker.rack.name for broker in snapshot.brokers if broker.alive} - {None}),
        topics=len(snapshot.topics),
        partitions=sum(len(topic.partitions) for topic in snapshot.topics.values()),
        groups=len(snapshot.groups),
        members=sum(len(group.members) for group in groups),
    )


def finding_news(cycle: Cycle) -> tuple[tuple[Finding, ...], int]:
    """(New findings that are critical or warnings, the worst first and at most `MOST_LOGGED`; how many more)."""
    new = frozenset(cycle.changes.new)
    found = [one for severity in _LOGGED for one in cycle.detection.findings if one.severity is severity]
    found = [one for one in found if one.id in new]
    return tuple(found[:MOST_LOGGED]), max(0, len(found) - MOST_LOGGED)


def basis(snapshot: Snapshot) -> tuple[FigureBasis, str | None]:
    """(The basis of optima and bytes; where weights of the pipeline are configured and unused, why)."""
    state = snapshot.weights
    if state is not None and state.why_not is None:
        return FigureBasis.WEIGHTS, None
    found = FigureBasis.OWN_RATES if snapshot.bytes_per_s else FigureBasis.COUNTS
    return found, None if state is None else state.why_not


def sentence(cycle: Cycle) -> str:
    """The cycle in one sentence."""
    parts = [_size_sentence(cluster_size(cycle.snapshot)), _found(cycle)]
    if cycle.planned:
        parts += filter(None, (_proposed(cycle), figures_rest_on(cycle.proposals)))
    hidden = hidden_groups(cycle.snapshot, cycle.limits)
    if hidden:
        parts.append(
            f"{counted(len(hidden), 'group rebalances and shows', 'groups rebalance and show')} no racks or assignments"
        )
    if cycle.snapshot.gaps:
        missing = Counter(gap.part.value for gap in cycle.snapshot.gaps)
        parts.append(f"incomplete: {few([part for part, _ in missing.most_common()], _NAMED)}")
    return "; ".join(parts)


def _size_sentence(size: ClusterSize) -> str:
    return (
        f"saw {counted(size.brokers, 'broker')} in {counted(size.racks, 'rack')}, "
        f"{counted(size.topics, 'topic')} and {counted(size.groups, 'group')}"
    )


def _found(cycle: Cycle) -> str:
    findings = cycle.detection.findings
    if not findings:
        in_part = cycle.snapshot.gaps or hidden_groups(cycle.snapshot, cycle.limits)
        return "no findings in what was observed" if in_part else "no findings"
    worst = Counter(finding.severity for finding in findings)
    critical = f", {worst[FindingSeverity.CRITICAL]} critical" if worst[FindingSeverity.CRITICAL] else ""
    # Findings of severity info are not logged one by one.
    info = f", {worst[FindingSeverity.INFO]} info" if worst[FindingSeverity.INFO] else ""
    details = f" ({len(cycle.changes.new)} new{critical}{info})" if cycle.changes.new or critical else ""
    return f"{counted(len(findings), 'finding')}{details}"


def _proposed(cycle: Cycle) -> str:
    if not cycle.proposals:
        return "no proposals"
    kinds = Counter(proposal.kind.value for proposal in cycle.proposals)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"proposed {counts}: {', '.join(_outcome_words(cycle.outcomes)) or _held(cycle)}"


def _outcome_words(outcomes: Sequence[Outcome]) -> list[str]:
    """The number of proposals done, and why the others were not."""
    done = sum(outcome.done for outcome in outcomes)
    failed = [outcome.sentence for outcome in outcomes if not outcome.done]
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return [*([f"{done} done"] if done else []), *([failed[0] + more] if failed else [])]


def _held(cycle: Cycle) -> str:
    """Why nothing was done: the one reason, or one for each kind. In a dry run that is the reason of all kinds."""
    kinds = {proposal.id: proposal.kind.value for proposal in cycle.proposals}
    reasons: dict[str, Counter[str]] = {}
    for verdict in cycle.verdicts:
        if not isinstance(verdict, Allow):
            either = (HoldReason.DRY_RUN, HoldReason.OWNER_ACTS)
            dry = _DRY_RUN.get(cycle.limits.mode) if verdict.reason in either else None
            reason = dry or verdict.reason.value
            reasons.setdefault(kinds[verdict.proposal_id], Counter())[reason] += 1
    every = {reason for counts in reasons.values() for reason in counts}
    if len(every) <= 1:
        return next(iter(every), "allowed, not executed in this cycle")
    return ", ".join(f"{kind}: {_most_frequent(counts)}" for kind, counts in sorted(reasons.items()))


def _most_frequent(reasons: Counter[str]) -> str:
    (first, _), *others = reasons.most_common()
    return first + (f" (and {counted(len(others), 'other reason')})" if others else "")


class AgentIdentity(NamedTuple):
    """The agent of a cycle."""

    agent: str | None = None
    host: str | None = None
    pid: int | None = None
    poll_ms: int | None = None
