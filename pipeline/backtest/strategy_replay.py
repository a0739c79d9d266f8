"""Replay of one strategy: its snapshot, findings, proposals, verdicts and effects, look by look.

The stages are the agent's own, called as its loop calls them; only acting is imagined (`effects`). As-recorded settings
get the recorded memory, so that the same look gives the same bytes. Every other strategy has a memory of its own: what
it found and did is chained by the agent's own `remember`; what the world showed in between, sightings of racks and
learned rates among it, is as recorded, because looks that were not written in full taught that too.

Invariant: nothing that comes after a look has any part in what is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from math import isnan
from typing import Any, NamedTuple

from agent.detect.find import detect
from agent.guard.judge import guard
from agent.journal.entries import Entry, JournalState
from agent.journal.triggers import (
    TriggerEffect,
    TriggerEntry,
    TriggerExpectation,
    TriggerJudgement,
    TriggerVerdict,
    judged,
)
from agent.memory.remember import remember
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.assessment import DetectionResult
from agent.values.finding import SubjectId
from agent.values.limits import CLUSTER_BUDGET, Limits
from agent.values.memo import Memo
from agent.values.memory import Memory, PredictionMemory
from agent.values.plan import Plan
from agent.values.proposal import Allow, Hold, HoldReason, Proposal, ProposalKind
from agent.values.snapshot import Group, Snapshot
from pipeline.backtest.effects import ActEffect, EffectEnd, SimulatedLook, effect_of, with_effects
from pipeline.backtest.look import HistoryLook, seen_under
from pipeline.backtest.strategies import AS_RECORDED, BacktestStrategy, limits_under

_STAGES = ("model", "detect", "plan", "propose", "effects", "limits")
_NO_BOUND = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayState:
    """A strategy's memory of the looks before; all times are wall clock, as two agents' monotonic ones differ."""

    first_seen: Mapping[str, int]
    gone: Mapping[str, tuple[int, int]]
    predictions: Mapping[str, PredictionMemory]
    acts: Mapping[str, int]
    journal: JournalState
    effects: tuple[ActEffect, ...] = ()


class StrategyStep(NamedTuple):
    """What a strategy made of one look."""

    shown: SimulatedLook
    detection: DetectionResult
    proposals: tuple[Proposal, ...]
    """None of a strategy that neither acts nor is what was recorded."""
    acts: tuple[ActEffect | Proposal, ...]
    """What it did: effects, and proposals whose effect looks cannot show."""
    ended: tuple[tuple[ActEffect, EffectEnd], ...]


class StrategyReplay:
    """One strategy going through history; looks come in the order in which they were taken."""

    def __init__(self, strategy: BacktestStrategy) -> None:
        self.strategy = strategy
        self._chain: ReplayState | None = None
        self._memos = {stage: Memo() for stage in _STAGES}
        self._own_decode, self._own_model = Memo(), Memo()
        self._refused: dict[SubjectId, tuple[Group | None, Limits]] = {}

    def replay_look(self, look: HistoryLook) -> StrategyStep:
        """The next look."""
        limits = self._limits(look)
        as_recorded = self.strategy.name == AS_RECORDED.name
        chain = self._chain or _begun(look)
        memory = look.memory if as_recorded else _memory(chain, look)
        history = look.snapshot if not self.strategy.reads_otherwise else self._seen(look, limits)
        shown = with_effects(history, chain.effects, self._memos["effects"])
        snapshot = shown.snapshot
        detection = detect(snapshot, memory, limits, self._memos["detect"])
        planned = _weighed(look, snapshot, detection, limits)
        plan, proposals = Plan(), tuple[Proposal, ...]()
        if as_recorded or self.strategy.acts:  # nothing comes of what is never done, so it is not worked out
            plan = make_plan(planned, detection, limits, self._memos["plan"])
            if not look.whole:  # the replicas of a topic concern readers that this part does not show
                plan = Plan(triggers=plan.triggers, predictions=plan.predictions)
            proposals = propose(planned, plan, detection, limits, self._memos["propose"])
        done: tuple[Proposal, ...] = ()
        if self.strategy.acts and proposals:
            done = self._allowed(proposals, planned, memory, limits, chain.journal)
        as_effect = partial(effect_of, history=history, limits=limits, planned=planned, detection=detection, plan=plan)
        carried_out = [(one, as_effect(one)) for one in done]
        if not as_recorded:
            after = remember(memory, snapshot, detection, plan.predictions)
            self._chain = _next(chain, look, after, shown.lasting, carried_out)
        for memo in self._memos.values():
            memo.turn()
        acts = tuple(effect or one for one, effect in carried_out)
        return StrategyStep(shown, detection, proposals, acts, shown.ended)

    def _allowed(
        self, proposals: tuple[Proposal, ...], snapshot: Snapshot, memory: Memory, limits: Limits, journal: JournalState
    ) -> tuple[Proposal, ...]:
        """The proposals that the guard allows. It judges a group that it refused again only after the group changes."""
        groups, refused = snapshot.groups.get, self._refused
        open_to = [one for one in proposals if refused.get(one.subject) != (groups(one.subject.name), limits)]
        verdicts = guard(open_to, snapshot, memory, limits, journal, snapshot.taken_ms)
        for one, verdict in zip(open_to, verdicts, strict=True):
            # Without a time this refusal rests on nothing but the group and the limits.
            if isinstance(verdict, Hold) and verdict.reason is HoldReason.GROUP_REFUSED and verdict.until_ms is None:
                refused[one.subject] = (groups(one.subject.name), limits)
        return tuple(one for one, verdict in zip(open_to, verdicts, strict=True) if isinstance(verdict, Allow))

    def _limits(self, look: HistoryLook) -> Limits:
        limits = self._memos["limits"].of(("limits",), (look.limits,), lambda: limits_under(self.strategy, look.limits))
        return (
            limits
            if look.whole
            else self._memos["limits"].of(("by group",), (limits,), lambda: without_cluster_bounds(limits))
        )

    def _seen(self, look: HistoryLook, limits: Limits) -> Snapshot:
        if look.recorded is None:
            raise ValueError(f"strategy {self.strategy.name} reads looks otherwise, so it needs whole ones")
        snapshot = seen_under(look.recorded, limits, self._own_decode, self._own_model)
        self._own_decode.turn()
        self._own_model.turn()
        return snapshot


def _begun(look: HistoryLook) -> ReplayState:
    """What was known before the first look: as recorded, but for what was done by then."""
    memory = look.memory
    return ReplayState(
        first_seen=memory.first_seen,
        gone=_moved(memory.gone, _wall_from_monotonic(look)),
        predictions=memory.predictions,
        acts={},
        journal={},
    )


def _memory(chain: ReplayState, look: HistoryLook) -> Memory:
    back = -_wall_from_monotonic(look)
    return replace(
        look.memory,
        first_seen=chain.first_seen,
        gone=_moved(chain.gone, back),
        predictions=chain.predictions,
        acts={subject: at + back for subject, at in chain.acts.items()},
        own_reassignments=frozenset(),
    )


def _next(
    chain: ReplayState,
    look: HistoryLook,
    memory: Memory,
    standing: tuple[ActEffect, ...],
    carried_out: list[tuple[Proposal, ActEffect | None]],
) -> ReplayState:
    at_ms = look.snapshot.taken_ms
    new = [effect for _, effect in carried_out if effect is not None]
    renewed = {(effect.proposal.subject, effect.given is None) for effect in new}
    kept = [old for old in standing if (old.proposal.subject, old.given is None) not in renewed]
    triggered = [one for one, _ in carried_out if one.kind is ProposalKind.TRIGGER]
    journal = chain.journal
    if triggered:
        journal = {**journal, **{entry.key: entry for entry in (_entry(one, journal, at_ms) for one in triggered)}}
    return ReplayState(
        first_seen=memory.first_seen,
        gone=_moved(memory.gone, _wall_from_monotonic(look)),
        predictions=memory.predictions,
        acts={**chain.acts, **{str(one.subject): at_ms for one in triggered}},
        journal=journal,
        effects=(*kept, *new),
    )


def _entry(proposal: Proposal, journal: JournalState, at_ms: int) -> Entry:
    """The journal's state of a trigger that was done, with the predicted result."""
    name = proposal.subject.name
    expected = TriggerExpectation(generation=None, readers=(), holds={}, moves=(), items=proposal.predicted.moves)
    trigger = TriggerEntry(
        group_id=name,
        proposal_id=proposal.id,
        reason=proposal.reason.name,
        intended_ms=at_ms,
        expected=expected,
        effect=TriggerEffect.REBALANCING,
        acted_ms=at_ms,
    )
    before = journal.get(f"trigger/{name}/{proposal.id}")
    if before is not None:
        times = (*before.value.get("earlier_ms", ()), before.value["intended_ms"])
        trigger = replace(trigger, earlier_ms=times)
    write = judged(trigger, TriggerJudgement(TriggerVerdict.AS_PREDICTED, at_ms, "as is assumed of every act"))
    return Entry(write.key, write.kind, write.value or {}, at_ms, 1, len(journal) + 1)


def without_cluster_bounds(limits: Limits) -> Limits:
    """The budgets of a cluster as a whole cannot be kept by its parts; those of each group hold."""
    sections: dict[str, Any] = {one.name: getattr(limits, one.name) for one in fields(limits)}
    lifted = {name: replace(of, **bounds) for name, of in sections.items() if (bounds := _lifted_bounds(of))}
    return replace(limits, **lifted)


def _lifted_bounds(section: Any) -> dict[str, int]:
    marked = fields(section) if is_dataclass(section) else ()
    return {one.name: _NO_BOUND for one in marked if one.metadata == CLUSTER_BUDGET}


def _weighed(look: HistoryLook, snapshot: Snapshot, detection: DetectionResult, limits: Limits) -> Snapshot:
    """A part of a look gets the rates of its groups where the limits need bytes, and a gain is possible."""
    if look.rates is None or limits.gain.min_bytes_per_s <= 0:
        return snapshot
    rates = {}
    for name, assessment in detection.assessments.items():
        known = look.rates.get(name)
        if assessment.gap <= 0 or known is None:
            continue
        topics = [snapshot.topics[topic] for topic in detection.topics[name] if topic in snapshot.topics]
        places = [state.id for topic in topics for state in topic.partitions]
        rates.update({place: rate for place, rate in zip(places, known.tolist(), strict=True) if not isnan(rate)})
    return replace(snapshot, bytes_per_s=rates)


def _wall_from_monotonic(look: HistoryLook) -> int:
    return look.snapshot.taken_ms - look.snapshot.monotonic_ms


def _moved(gone: Mapping[str, tuple[int, int]], by_ms: int) -> dict[str, tuple[int, int]]:
    return {name: (since, seen + by_ms) for name, (since, seen) in gone.items()}
