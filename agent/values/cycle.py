"""What came of one cycle: the value that is logged, published, counted and shown, with the sentence that says it.

Pure. A cycle is a look and what was found in it; a planning cycle goes on to proposals and verdicts.
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
from agent.values.plan import Plan
from agent.values.progress import ExecuteState
from agent.values.proposal import Proposal
from agent.values.snapshot import OtherGroup, Snapshot, TopicState
from agent.values.verdict import Allow, HoldReason, Outcome, Verdict
from agent.values.weights import FigureBasis

if TYPE_CHECKING:
    from agent.values.last_known import LastKnown

# On what a proposal's figures rest: weights of the pipeline, the agent's own rates, or counts; and why not weights.
#
# Each proposal has it in its evidence. An answer of many proposals says it once, wherever weights are asked for.

_NAMED_PROPOSALS = 5
"""Proposals that are named where the figures of an answer rest on different things."""
_NO_WEIGHT = "some of the partitions that it is about have none"


def basis_of_group(assessment: Assessment | None) -> FigureBasis:
    """On what the figures of a group rest."""
    if assessment is None:
        return FigureBasis.COUNTS
    if assessment.weighing is not None:
        return FigureBasis.WEIGHTS
    return FigureBasis.OWN_RATES if any(of.unit == "bytes_per_s" for of in assessment.current) else FigureBasis.COUNTS


def basis_of_topic(topic: TopicState, snapshot: Snapshot) -> FigureBasis:
    """On what the figures of a topic rest."""
    ids = [state.id for state in topic.partitions]
    if ids and all(partition in snapshot.weighed.bytes_per_s for partition in ids):
        return FigureBasis.WEIGHTS
    return FigureBasis.OWN_RATES if ids and all(p in snapshot.bytes_per_s for p in ids) else FigureBasis.COUNTS


def basis_evidence(basis: FigureBasis, snapshot: Snapshot) -> Evidence:
    """Rows of evidence: the basis, the age of weights, or why there are none where they were asked for."""
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
    """On what the figures of an answer rest, once for all of its proposals; None where weights are not asked for."""
    told: dict[str, list[str]] = {}
    for proposal in proposals:
        basis = _told(dict(proposal.evidence))
        if basis is not None:
            told.setdefault(basis, []).append(proposal.id)
    if len(told) < 2:
        return next((f"figures: {each}" for each in told), None)
    # The basis of most comes first; of as many, by its words.
    ordered = sorted(told.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return "; ".join(f"figures of {_named(ids)}: {each}" for each, ids in ordered)


def _named(ids: list[str]) -> str:
    if len(ids) <= _NAMED_PROPOSALS:
        return in_full(ids)
    return in_full([*ids[:_NAMED_PROPOSALS], counted(len(ids) - _NAMED_PROPOSALS, "more proposal")])


def _told(evidence: Mapping[str, object]) -> str | None:
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
    """Gaps in these parts; what vanished between two calls is none. What rights may hide of groups counts as groups."""
    wanted = frozenset(parts)
    return [
        gap
        for gap in snapshot.gaps
        if gap.cause is not GapCause.VANISHED
        and (
            gap.part in wanted
            or (
                ObservationPart.GROUPS in wanted
                and gap.part is ObservationPart.RIGHTS
                and gap.subject == ObservationPart.GROUPS.value
            )
        )
    ]


def known_part(counted: Counted, snapshot: Snapshot, *parts: ObservationPart) -> Counted | None:
    """A number of things in these parts, or the things; None where there are none, and some may be hidden."""
    return counted if counted or not gaps_of(snapshot, parts) else None


def hidden_groups(snapshot: Snapshot, limits: Limits) -> tuple[str, ...]:
    """Groups that rebalance and show no racks or assignments of their members; without those the settings exclude."""
    groups = snapshot.groups.values()
    hidden = [group.id for group in groups if not isinstance(group, OtherGroup) and group.hidden]
    return tuple([name for name in hidden if not limits.excludes_group(name)])


_NAMED = 3
MOST_TOLD = 8
"""Findings that one cycle logs each by itself."""
_ANYWAY = (HoldReason.DRY_RUN, HoldReason.OWNER_ACTS)
_DRY_RUN = "a dry run carries nothing out"
_TOLD = (FindingSeverity.CRITICAL, FindingSeverity.WARNING)


class ClusterSize(NamedTuple):
    """How much there is."""

    brokers: int
    racks: int
    topics: int
    partitions: int
    groups: int
    members: int


class FindingChanges(NamedTuple):
    """Findings that were not known at the last look, and those that are known to be gone."""

    new: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


_NO_CHANGES = FindingChanges()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One finished cycle with everything that its stages answered. ``plan`` is None when nothing was planned."""

    number: int
    look: str
    """Id of the look: the agent's instance and the number of the cycle."""
    limits: Limits
    observation: Observation
    before: Memory
    """The memory that went into it."""
    after: Memory
    snapshot: Snapshot
    detection: DetectionResult
    changes: FindingChanges = _NO_CHANGES
    plan: Plan | None = None
    proposals: tuple[Proposal, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    known: LastKnown | None = None
    """What is known after this look; None before it was compared with what was known before."""
    acting: ExecuteState | None = None
    """Mode execute as it is after it; None in the other modes."""
    stages_ms: Mapping[str, int] = field(default_factory=dict)
    """Stage -> how long it took."""

    @property
    def planned(self) -> bool:
        """Whether proposals were worked out."""
        return self.plan is not None

    @property
    def took_ms(self) -> int:
        """How long the whole cycle took, recording not included."""
        return sum(self.stages_ms.values())


def cluster_size(snapshot: Snapshot) -> ClusterSize:
    """The size of what the snapshot shows."""
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
    """(New findings that are critical or warnings, the worst first and at most `MOST_TOLD`; how many more)."""
    new = frozenset(cycle.changes.new)
    told = [one for one in cycle.detection.findings if one.id in new and one.severity in _TOLD]
    told.sort(key=lambda one: _TOLD.index(one.severity))
    return tuple(told[:MOST_TOLD]), max(0, len(told) - MOST_TOLD)


def basis(snapshot: Snapshot) -> tuple[FigureBasis, str | None]:
    """(On what optima and bytes rest, why not on weights of the pipeline where they were asked for)."""
    state = snapshot.weights
    if state is not None and state.why_not is None:
        return FigureBasis.WEIGHTS, None
    found = FigureBasis.OWN_RATES if snapshot.bytes_per_s else FigureBasis.COUNTS
    return found, None if state is None else state.why_not


def sentence(cycle: Cycle) -> str:
    """What happened, for a person who reads nothing else."""
    parts = [_seen(cluster_size(cycle.snapshot)), _found(cycle)]
    if cycle.planned:
        parts.append(_proposed(cycle))
        figures = figures_rest_on(cycle.proposals)
        parts += [figures] if figures is not None else []
    hidden = hidden_groups(cycle.snapshot, cycle.limits)
    if hidden:
        parts.append(
            f"{counted(len(hidden), 'group rebalances and shows', 'groups rebalance and show')} no racks or assignments"
        )
    if cycle.snapshot.gaps:
        parts.append(_not_seen(cycle.snapshot.gaps))
    return "; ".join(parts)


def _seen(size: ClusterSize) -> str:
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
    # Those are not logged one by one: without their number a reader of the log misses them.
    info = f", {worst[FindingSeverity.INFO]} info" if worst[FindingSeverity.INFO] else ""
    news = f" ({len(cycle.changes.new)} new{critical}{info})" if cycle.changes.new or critical else ""
    return f"{counted(len(findings), 'finding')}{news}"


def _proposed(cycle: Cycle) -> str:
    if not cycle.proposals:
        return "no proposals"
    kinds = Counter(proposal.kind.value for proposal in cycle.proposals)
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"proposed {told}: {', '.join(_acted(cycle.outcomes)) or _held(cycle)}"


def _acted(outcomes: Sequence[Outcome]) -> list[str]:
    """How much was done, and why the rest was not."""
    done = sum(outcome.done for outcome in outcomes)
    failed = [outcome.sentence for outcome in outcomes if not outcome.done]
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return [*([f"{done} done"] if done else []), *([failed[0] + more] if failed else [])]


def _held(cycle: Cycle) -> str:
    """Why nothing was done: the one reason, or that of each kind of proposal. A dry run is the reason of all kinds."""
    kinds = {proposal.id: proposal.kind.value for proposal in cycle.proposals}
    reasons: dict[str, Counter[str]] = {}
    for verdict in cycle.verdicts:
        if not isinstance(verdict, Allow):
            dry = cycle.limits.mode is not AgentMode.EXECUTE and verdict.reason in _ANYWAY
            reason = _DRY_RUN if dry else verdict.reason.value
            reasons.setdefault(kinds[verdict.proposal_id], Counter())[reason] += 1
    every = {reason for counts in reasons.values() for reason in counts}
    if len(every) <= 1:
        return next(iter(every), "allowed, not executed in this cycle")
    return ", ".join(f"{kind}: {_most_frequent(counts)}" for kind, counts in sorted(reasons.items()))


def _most_frequent(reasons: Counter[str]) -> str:
    (first, _), *others = reasons.most_common()
    return first + (f" (and {counted(len(others), 'other reason')})" if others else "")


def _not_seen(gaps: Sequence[Gap]) -> str:
    parts = Counter(gap.part.value for gap in gaps)
    return f"incomplete: {few([part for part, _ in parts.most_common()], _NAMED)}"
