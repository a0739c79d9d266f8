"""What came of one cycle: the value that is logged, published, counted and shown, with the sentence that says it.

Pure. A cycle is a look and what was found in it; a planning cycle goes on to proposals and verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from agent.values.assessment import Detection
from agent.values.basis import figures_rest_on
from agent.values.finding import Finding, Severity
from agent.values.limits import Limits, Mode
from agent.values.memory import Memory
from agent.values.observation import Gap, Observation
from agent.values.plan import Plan
from agent.values.progress import ActingNow
from agent.values.proposal import Proposal
from agent.values.snapshot import OtherGroup, Snapshot
from agent.values.unseen import hidden_groups
from agent.values.verdict import Allow, HoldReason, Outcome, Verdict
from agent.values.weighed import Basis
from agent.values.words import counted, few

if TYPE_CHECKING:
    from agent.values.last_known import LastKnown

_NAMED = 3
MOST_TOLD = 8
"""Findings that one cycle logs each by itself."""
_ANYWAY = (HoldReason.DRY_RUN, HoldReason.OWNER_ACTS)
_DRY_RUN = "a dry run carries nothing out"
_TOLD = (Severity.CRITICAL, Severity.WARNING)


class World(NamedTuple):
    """How much there is."""

    brokers: int
    racks: int
    topics: int
    partitions: int
    groups: int
    members: int


class Changes(NamedTuple):
    """Findings that were not known at the last look, and those that are known to be gone."""

    new: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


_NO_CHANGES = Changes()


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
    detection: Detection
    changes: Changes = _NO_CHANGES
    plan: Plan | None = None
    proposals: tuple[Proposal, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    known: LastKnown | None = None
    """What is known after this look; None before it was compared with what was known before."""
    acting: ActingNow | None = None
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


def world(snapshot: Snapshot) -> World:
    """The size of what the snapshot shows."""
    groups = [group for group in snapshot.groups.values() if not isinstance(group, OtherGroup)]
    return World(
        brokers=sum(broker.alive for broker in snapshot.brokers),
        racks=len({broker.rack.name for broker in snapshot.brokers if broker.alive} - {None}),
        topics=len(snapshot.topics),
        partitions=sum(len(topic.partitions) for topic in snapshot.topics.values()),
        groups=len(snapshot.groups),
        members=sum(len(group.members) for group in groups),
    )


def news(cycle: Cycle) -> tuple[tuple[Finding, ...], int]:
    """(New findings that are critical or warnings, the worst first and at most `MOST_TOLD`; how many more)."""
    new = frozenset(cycle.changes.new)
    told = [one for one in cycle.detection.findings if one.id in new and one.severity in _TOLD]
    told.sort(key=lambda one: _TOLD.index(one.severity))
    return tuple(told[:MOST_TOLD]), max(0, len(told) - MOST_TOLD)


def basis(snapshot: Snapshot) -> tuple[Basis, str | None]:
    """(On what optima and bytes rest, why not on weights of the pipeline where they were asked for)."""
    state = snapshot.weights
    if state is not None and state.why_not is None:
        return Basis.WEIGHTS, None
    found = Basis.OWN_RATES if snapshot.bytes_per_s else Basis.COUNTS
    return found, None if state is None else state.why_not


def sentence(cycle: Cycle) -> str:
    """What happened, for a person who reads nothing else."""
    parts = [_seen(world(cycle.snapshot)), _found(cycle)]
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


def _seen(size: World) -> str:
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
    critical = f", {worst[Severity.CRITICAL]} critical" if worst[Severity.CRITICAL] else ""
    # Those are not logged one by one: without their number a reader of the log misses them.
    info = f", {worst[Severity.INFO]} info" if worst[Severity.INFO] else ""
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
            dry = cycle.limits.mode is not Mode.EXECUTE and verdict.reason in _ANYWAY
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
