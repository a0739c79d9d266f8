"""Score of a strategy: cost, moves, rule violations, useless triggers, time to balance.

A look counts for the time until the next one. Where the next comes much later than looks usually do, none was taken:
that time is counted as unseen and scored for no strategy. One measure for all: recorded limits give the gap from which
an assignment counts as broken, and the price of a gigabyte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.plan.gain_thresholds import passes_thresholds, total_reads
from agent.values.assessment import DetectionResult
from agent.values.finding import FindingReason
from agent.values.limits import Limits
from agent.values.proposal import Proposal, ProposalKind
from agent.values.rates import SECONDS_PER_DAY, Flows, bytes_per_s, replication_flows, usd_per_day
from agent.values.snapshot import Snapshot
from pipeline.backtest.costs import NOTHING, CrossRackCost, price_of, racks_of, total
from pipeline.backtest.effects import ActEffect, EffectEnd
from pipeline.backtest.look import HistoryLook
from pipeline.backtest.strategy_replay import StrategyStep

BROKEN = frozenset((FindingReason.REPLICAS_SHARE_RACK, FindingReason.UNDER_MIN_ISR, FindingReason.COPIES_SHARE_RACK))
"""Findings that count as a broken rule for as long as they last."""


class RecordedCosts(NamedTuple):
    """What a look's groups cost as history shows them."""

    by_group: Mapping[str, CrossRackCost]
    total: CrossRackCost


class ScoredAct(NamedTuple):
    """Something that a strategy did, and what came of it."""

    look: str
    at_ms: int
    """Epoch milliseconds."""
    proposal: Proposal
    ended: EffectEnd
    ended_ms: int
    saved_partition_s: float
    """Reads that did not cross racks because of it, times seconds; of triggers only."""
    saved_bytes: float
    saved_usd: float
    false: bool | None
    """Of a trigger: whether it brought nothing, or was followed by the group's own rebalance within the cooldown. None
    where no look shows what came of it, and for everything else."""


class StrategyScores(NamedTuple):
    """Sums over a stretch of history."""

    looks: int = 0
    groups: int = 0
    """Groups of all looks: group snapshots."""
    seconds: float = 0.0
    """Time that looks cover."""
    unseen_s: float = 0.0
    """Time that no look covers."""
    read_partition_s: float = 0.0
    """Reads across racks, times seconds."""
    unknown_partition_s: float = 0.0
    """Reads of which it is not known whether they cross, times seconds."""
    read_bytes: float = 0.0
    """Read across racks, where rates are known."""
    read_usd: float = 0.0
    dark_group_s: float = 0.0
    """Groups whose bytes are not known in full, times seconds."""
    copied_bytes: float = 0.0
    """Copied by moves, whatever the way."""
    copied_usd: float = 0.0
    replication_bytes: float = 0.0
    """By how much moves changed what followers fetch across racks."""
    replication_usd: float = 0.0
    moves: int = 0
    """Partitions, tasks and replicas that were moved."""
    placements: int = 0
    """Reassignments and changes of leaders."""
    triggers: int = 0
    false_triggers: int = 0
    unjudged_triggers: int = 0
    violation_minutes: float = 0.0
    """Rules that were broken, times minutes."""
    balanced_s: tuple[float, ...] = ()
    """Of each group that was worse than it could be and came to be as good: how long that took."""
    unbalanced_s: tuple[float, ...] = ()
    """...and of each that was not to the end: how long it was by then."""


@dataclass(slots=True)
class _Open:
    """An act whose effect lasts."""

    look: str
    effect: ActEffect
    saved: CrossRackCost = NOTHING
    judged: bool = False


class StrategyScorer:
    """Adds up what one strategy's looks come to."""

    def __init__(self) -> None:
        self.scores = StrategyScores()
        self.acts: list[ScoredAct] = []
        self._open: dict[ActEffect, _Open] = {}
        self._since: dict[str, int] = {}
        self._recorded: set[tuple[str, int]] | None = None

    def look(self, look: HistoryLook, step: StrategyStep) -> None:
        """What a look shows at once: what ended, what was done, which groups are off balance."""
        now_ms = look.snapshot.taken_ms
        for effect, why in step.ended:
            self._close(effect, why, now_ms, look.limits)
        for act in step.acts:
            self._done(look, act)
        self._balance(step.detection, look.limits, now_ms)
        groups = len(look.snapshot.groups)
        self.scores = self.scores._replace(looks=self.scores.looks + 1, groups=self.scores.groups + groups)

    def passed(
        self,
        look: HistoryLook,
        step: StrategyStep,
        seconds: float,
        recorded: RecordedCosts,
        own: Mapping[str, CrossRackCost],
    ) -> None:
        """That much time passed until the next look; ``own`` are the costs of what is not as recorded."""
        saved = {name: recorded.by_group.get(name, NOTHING).minus(cost) for name, cost in own.items()}
        cost = recorded.total.minus(total(saved.values()))
        replication = _replication(look, step)
        for effect in step.shown.lasting:
            known = self._open.get(effect)
            if known is not None and effect.given is not None and look.snapshot.taken_ms >= effect.from_ms:
                known.saved = known.saved.plus(_times(saved.get(effect.name, NOTHING), seconds))
                known.judged = known.judged or seconds > 0
        was = self.scores
        self.scores = was._replace(
            seconds=was.seconds + seconds,
            read_partition_s=was.read_partition_s + cost.partitions * seconds,
            unknown_partition_s=was.unknown_partition_s + cost.unknown * seconds,
            read_bytes=was.read_bytes + cost.bytes * seconds,
            read_usd=was.read_usd + cost.usd * seconds,
            dark_group_s=was.dark_group_s + cost.dark * seconds,
            replication_bytes=was.replication_bytes + replication.bytes * seconds,
            replication_usd=was.replication_usd + replication.usd * seconds,
            violation_minutes=was.violation_minutes + _broken(look, step, len(self._since)) * seconds / 60,
        )

    def unseen(self, seconds: float) -> None:
        """Count seconds without a look."""
        self.scores = self.scores._replace(unseen_s=self.scores.unseen_s + seconds)

    def history(self, look: HistoryLook) -> None:
        """Count the triggers in the agent's recorded memory, for the strategy as-recorded."""
        recorded = set(look.memory.acts.items())
        if self._recorded is not None:
            new = len(recorded - self._recorded)
            self.scores = self.scores._replace(triggers=self.scores.triggers + new)
        self._recorded = (self._recorded or set()) | recorded

    def end(self, now_ms: int, limits: Limits) -> StrategyScores:
        """The sums, once no look follows."""
        for effect in list(self._open):
            self._close(effect, EffectEnd.STANDS, now_ms, limits)
        late = tuple((now_ms - since) / 1000 for _, since in sorted(self._since.items()))
        self.acts.sort(key=lambda act: (act.at_ms, act.proposal.subject, act.proposal.id))
        self.scores = self.scores._replace(unbalanced_s=late, balanced_s=tuple(sorted(self.scores.balanced_s)))
        return self.scores

    def _done(self, look: HistoryLook, act: ActEffect | Proposal) -> None:
        proposal = act.proposal if isinstance(act, ActEffect) else act
        trigger = proposal.kind is ProposalKind.TRIGGER
        was, copied = self.scores, _copied(look, proposal)
        self.scores = was._replace(
            moves=was.moves + len(proposal.moves),
            triggers=was.triggers + trigger,
            placements=was.placements + (not trigger),
            copied_bytes=was.copied_bytes + copied.bytes,
            copied_usd=was.copied_usd + copied.usd,
        )
        if isinstance(act, ActEffect):
            of_kind = (proposal.subject, act.given is None)
            for old in [one for one in self._open if (one.proposal.subject, one.given is None) == of_kind]:
                self._close(old, EffectEnd.REPLACED, look.snapshot.taken_ms, look.limits)
            self._open[act] = _Open(look.name, act)
        else:
            at_ms = look.snapshot.taken_ms
            self.acts.append(ScoredAct(look.name, at_ms, proposal, EffectEnd.STANDS, at_ms, 0.0, 0.0, 0.0, None))
            if trigger:
                self.scores = self.scores._replace(unjudged_triggers=self.scores.unjudged_triggers + 1)

    def _close(self, effect: ActEffect, why: EffectEnd, now_ms: int, limits: Limits) -> None:
        known = self._open.pop(effect, None)
        if known is None:
            return
        false = None
        if effect.given is not None:
            soon = why is EffectEnd.REBALANCED and now_ms - effect.at_ms <= limits.proposals.trigger_cooldown_ms
            if known.judged or why is EffectEnd.REBALANCED:
                false = soon or known.saved.partitions <= 0
            was = self.scores
            self.scores = was._replace(
                false_triggers=was.false_triggers + bool(false),
                unjudged_triggers=was.unjudged_triggers + (false is None),
            )
        saved = known.saved
        self.acts.append(
            ScoredAct(
                known.look, effect.at_ms, effect.proposal, why, now_ms, saved.partitions, saved.bytes, saved.usd, false
            )
        )

    def _balance(self, detection: DetectionResult, limits: Limits, now_ms: int) -> None:
        """Begin and end the times in which a group is worse than it could be by more than the recorded threshold."""
        off = {
            name
            for name, one in detection.assessments.items()
            if one.gap > 0 and passes_thresholds(one.gap, total_reads(one), limits)
        }
        closed = []
        for name in [name for name in self._since if name not in off]:
            since = self._since.pop(name)
            seen = name in detection.assessments and detection.assessments[name].why_not is None
            closed += [(now_ms - since) / 1000] if seen else []
        for name in off:
            self._since.setdefault(name, now_ms)
        if closed:
            self.scores = self.scores._replace(balanced_s=(*self.scores.balanced_s, *closed))


def _broken(look: HistoryLook, step: StrategyStep, off: int) -> int:
    """Broken rules: groups off balance and findings. A part of a look speaks of its groups alone."""
    return off + sum(
        finding.reason in BROKEN and (look.whole or finding.subject.kind == "group")
        for finding in step.detection.findings
    )


def _replication(look: HistoryLook, step: StrategyStep) -> CrossRackCost:
    """By how much moved replicas change what followers fetch across racks; nothing where a rate is not known."""
    names = sorted(name.partition("/")[2] for name in step.shown.touched if name.startswith("topic/"))
    if not names:
        return NOTHING
    before, after = (_fetched(names, of) for of in (look.snapshot, step.shown.snapshot))
    if before is None or after is None:
        return NOTHING
    usd = [(usd_per_day(flows, look.limits) or 0.0) / SECONDS_PER_DAY for flows in (before, after)]
    return CrossRackCost(bytes=(bytes_per_s(after) or 0.0) - (bytes_per_s(before) or 0.0), usd=usd[1] - usd[0])


def _fetched(names: Iterable[str], snapshot: Snapshot) -> Flows | None:
    states = [state for name in names for state in snapshot.topics[name].partitions]
    return replication_flows(states, racks_of(snapshot), snapshot.bytes_per_s)


def _copied(look: HistoryLook, proposal: Proposal) -> CrossRackCost:
    """What its moves copy: each from the leader of its partition, which is where Kafka copies from."""
    if proposal.kind is not ProposalKind.REASSIGN:
        return NOTHING
    racks = racks_of(look.snapshot)
    leader_of = {str(state.id): state.leader for state in look.snapshot.topics[proposal.subject.name].partitions}
    copied = usd = 0.0
    for move in proposal.moves:
        leader, size = leader_of.get(move.subject), move.bytes or 0
        copied += size
        if leader is not None and move.target is not None:
            price = price_of(racks.get(leader), racks.get(int(move.target)), look.limits)
            usd += size * (price or 0.0)
    return CrossRackCost(bytes=copied, usd=usd)


def _times(cost: CrossRackCost, seconds: float) -> CrossRackCost:
    return CrossRackCost(*(part * seconds for part in cost))


def summed(parts: Iterable[StrategyScores]) -> StrategyScores:
    """The scores of several stretches together."""
    rows = list(parts)
    if not rows:
        return StrategyScores()
    return StrategyScores(*(sum(column[1:], column[0]) for column in zip(*rows, strict=True)))
