"""Replay of history under several strategies at once; their common part is computed once.

Looks come in the order in which they were taken; each is passed to every strategy, and scored when the next one shows
how long it lasted. No strategy sees a look before its time: it gets one look and has only what it kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.propose.codec import proposal_to_bytes
from agent.telemetry.topic_records import slot
from pipeline.backtest.costs import NOTHING, CostModel, total
from pipeline.backtest.look import HistoryLook, UnusableLook
from pipeline.backtest.score import RecordedCosts, ScoredAct, StrategyScorer, StrategyScores
from pipeline.backtest.strategies import AS_RECORDED, BacktestStrategy
from pipeline.backtest.strategy_replay import StrategyReplay, StrategyStep

LONGEST_MS = 900_000
"""Longest time between two looks, in ms, that the first one covers."""


class PublishedDocument(NamedTuple):
    """A proposal as the live agent would have published it."""

    look: str
    at_ms: int
    slot: str
    id: str
    document: bytes


class StrategyResult(NamedTuple):
    """What came of one strategy over a stretch."""

    strategy: str
    scores: StrategyScores
    acts: tuple[ScoredAct, ...]
    published: tuple[PublishedDocument, ...]
    """Proposals of as-recorded looks; empty for other strategies."""
    fresh: int
    """Group snapshots whose arrangement was not that of the look before: all others were worked out once."""
    unusable: tuple[UnusableLook, ...]


def replay(
    looks: Iterable[HistoryLook | UnusableLook], strategies: Sequence[BacktestStrategy], *, longest_ms: int = LONGEST_MS
) -> tuple[StrategyResult, ...]:
    """One result per strategy, in their order."""
    runs = [_Run(strategy) for strategy in strategies]
    recorded, unusable = CostModel(), list[UnusableLook]()
    before: HistoryLook | None = None
    costs = RecordedCosts({}, NOTHING)
    for look in looks:
        if isinstance(look, UnusableLook):
            unusable.append(look)
            continue
        if before is not None:
            late_ms = look.snapshot.taken_ms - before.snapshot.taken_ms
            for run in runs:
                run.passed(before, late_ms, costs, longest_ms)
        for run in runs:
            run.look(look)
        by_group = recorded.by_group(look, look.snapshot, look.snapshot.groups)
        costs = RecordedCosts(by_group, total(by_group.values()))
        recorded.turn()
        before = look
    return tuple(run.result(before, recorded.fresh, tuple(unusable)) for run in runs)


class _Run:
    """One strategy with its score."""

    def __init__(self, strategy: BacktestStrategy) -> None:
        self._strategy = strategy
        self._replay, self._score, self._costs = StrategyReplay(strategy), StrategyScorer(), CostModel()
        self._step: StrategyStep | None = None
        self._sent: list[PublishedDocument] = []

    def look(self, look: HistoryLook) -> None:
        """Live it."""
        step = self._replay.replay_look(look)
        self._score.look(look, step)
        self._step = step
        if self._strategy.name == AS_RECORDED.name:
            self._score.history(look)
            if look.whole:
                at_ms = look.snapshot.taken_ms
                self._sent += [
                    PublishedDocument(look.name, at_ms, slot(one), one.id, proposal_to_bytes(one))
                    for one in step.proposals
                ]

    def passed(self, look: HistoryLook, late_ms: int, recorded: RecordedCosts, longest_ms: int) -> None:
        """Score the last look for the time that it covers."""
        if self._step is None:
            return
        if late_ms > longest_ms or late_ms < 0:
            self._score.unseen(max(0, late_ms) / 1000)
            return
        own = self._costs.by_group(look, self._step.shown.snapshot, self._not_as_recorded(look, self._step))
        self._costs.turn()
        self._score.passed(look, self._step, late_ms / 1000, recorded, own)

    def result(self, last: HistoryLook | None, fresh: int, unusable: tuple[UnusableLook, ...]) -> StrategyResult:
        """The sums."""
        scores = StrategyScores() if last is None else self._score.end(last.snapshot.taken_ms, last.limits)
        return StrategyResult(self._strategy.name, scores, tuple(self._score.acts), tuple(self._sent), fresh, unusable)

    def _not_as_recorded(self, look: HistoryLook, step: StrategyStep) -> list[str]:
        """Groups that cost something else than recorded: they, or a topic that they read, were changed."""
        if self._strategy.reads_otherwise:
            return list(look.snapshot.groups)
        touched = step.shown.touched
        if not touched:
            return []
        topics = {name.partition("/")[2] for name in touched if name.startswith("topic/")}
        readers = step.detection.topics if topics else {}
        groups = {name.partition("/")[2] for name in touched if name.startswith("group/")}
        return sorted(groups | {group for group, read in readers.items() if topics.intersection(read)})
