"""One cycle of the agent: all stages from an observation to outcomes, and the interface of an executor.

Earlier cycles are one frozen `Memory`; a memo never changes a result. The time is the observation's, so a recorded
observation gives the same cycle again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from agent.decode.members import decode_members
from agent.detect.find import detect
from agent.guard.judge import guard
from agent.journal.entries import JournalState
from agent.memory.remember import remember
from agent.model.build_snapshot import build_snapshot
from agent.plan.make import make_plan
from agent.process import CYCLES_BETWEEN_WALKS, collect_all, no_collection
from agent.propose.make import propose
from agent.values.assessment import DetectionResult
from agent.values.cycle import Cycle, FindingChanges
from agent.values.last_known import LastKnown, last_known
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.plan import Plan
from agent.values.proposal import Allow, Outcome, Proposal, Verdict
from agent.values.snapshot import Snapshot


class ProposalExecutor(Protocol):
    """The stage `act`: carries out proposals that the guard allows."""

    def carry_out(self, proposal: Proposal, fresh: Snapshot) -> Outcome:
        """Carry out the proposal, or return why not; ``fresh`` is what it was allowed by. Raises FencedOut."""


class NoopExecutor:
    """Executor of modes observe and propose: changes nothing."""

    def carry_out(self, proposal: Proposal, fresh: Snapshot) -> Outcome:
        """The outcome that nothing was done."""
        del fresh
        return Outcome(proposal.id, done=False, sentence="not done: this agent observes and proposes, it does not act")


def act(executor: ProposalExecutor, allowed: Sequence[Proposal], fresh: Snapshot) -> tuple[Outcome, ...]:
    """One outcome for each allowed proposal, in their order."""
    return tuple(executor.carry_out(proposal, fresh) for proposal in allowed)


Look = Callable[[], Observation]
Journaled = Callable[[], JournalState | None]


def run_cycle(
    stages: CycleStages,
    look: Look,
    observation: Observation,
    memory: Memory,
    *,
    number: int,
    name: str,
    planning: bool,
    journal: Journaled = lambda: None,
    known: LastKnown | None = None,
) -> Cycle:
    """The cycle of an observation. With proposals the cluster is observed again, for the guard.

    ``known``: facts that earlier looks confirmed, None for the first one. ``journal`` returns the journal's state, None
    for an agent that does not lead.
    """
    snapshot = stages.snapshot(observation, memory)
    detection = stages.detect(snapshot, memory)
    plan = stages.plan(snapshot, detection) if planning else None
    proposals = stages.propose(snapshot, plan, detection) if plan is not None else ()
    verdicts: tuple[Verdict, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    if proposals:
        fresh = stages.snapshot(stages.look(look), memory)  # again, right before touching anything
        verdicts = stages.guard(proposals, fresh, memory, journal())
        outcomes = stages.act(proposals, verdicts, fresh)  # nothing is allowed in a dry run
    cycle = Cycle(
        number=number,
        look=name,
        limits=stages.limits,
        observation=observation,
        before=memory,
        after=stages.remember(memory, snapshot, detection, plan),
        snapshot=snapshot,
        detection=detection,
        plan=plan,
        proposals=proposals,
        verdicts=verdicts,
        outcomes=outcomes,
        stages_ms={"look": observation.took_ms, **stages.turn()},
    )
    after = last_known(known, cycle)
    return replace(cycle, known=after, changes=_changes(known, cycle, after))


def _changes(known: LastKnown | None, cycle: Cycle, after: LastKnown) -> FindingChanges:
    """New and ended findings; a finding that a gap hides has not ended."""
    before = cycle.before.first_seen if known is None else known.findings
    unsure = known is None and bool(cycle.snapshot.gaps)
    return FindingChanges(
        new=tuple(finding.id for finding in cycle.detection.findings if finding.id not in before),
        ended=() if unsure else tuple(name for name in before if name not in after.findings),
    )


class CycleStages:
    """The stages with their memos, and how long each took in this cycle."""

    def __init__(self, limits: Limits, executor: ProposalExecutor | None = None) -> None:
        self.limits = limits
        self._executor = executor or NoopExecutor()
        self._memos = {stage: Memo() for stage in ("decode", "model", "detect", "plan", "propose")}
        self._took_ms: dict[str, int] = {}
        self._turns = 0

    def look(self, look: Look) -> Observation:
        """Observe the cluster again."""
        with self._timed("look_again"):
            return look()

    def snapshot(self, observation: Observation, memory: Memory) -> Snapshot:
        """The snapshot of an observation."""
        with self._timed("decode"), no_collection():
            decoded = decode_members(observation, self._memos["decode"])
        with self._timed("model"), no_collection():
            return build_snapshot(observation, decoded, memory, self.limits, self._memos["model"])

    def detect(self, snapshot: Snapshot, memory: Memory) -> DetectionResult:
        """Findings and assessments of a snapshot."""
        with self._timed("detect"), no_collection():
            return detect(snapshot, memory, self.limits, self._memos["detect"])

    def plan(self, snapshot: Snapshot, detection: DetectionResult) -> Plan:
        """The plan for the findings."""
        with self._timed("plan"), no_collection():
            return make_plan(snapshot, detection, self.limits, self._memos["plan"])

    def propose(self, snapshot: Snapshot, plan: Plan, detection: DetectionResult) -> tuple[Proposal, ...]:
        """The proposals of the plan."""
        with self._timed("propose"), no_collection():
            return propose(snapshot, plan, detection, self.limits, self._memos["propose"])

    def guard(
        self, proposals: tuple[Proposal, ...], fresh: Snapshot, memory: Memory, view: JournalState | None = None
    ) -> tuple[Verdict, ...]:
        """One verdict per proposal."""
        with self._timed("guard"):
            return guard(proposals, fresh, memory, self.limits, view)

    def act(self, proposals: Sequence[Proposal], verdicts: Sequence[Verdict], fresh: Snapshot) -> tuple[Outcome, ...]:
        """Execute the allowed proposals."""
        with self._timed("act"):
            pairs = zip(proposals, verdicts, strict=True)
            return act(self._executor, [one for one, verdict in pairs if isinstance(verdict, Allow)], fresh)

    def remember(
        self, memory: Memory, snapshot: Snapshot, detection: DetectionResult, plan: Plan | None = None
    ) -> Memory:
        """The memory for the next cycle."""
        with self._timed("remember"):
            return remember(memory, snapshot, detection, plan.predictions if plan is not None else {})

    def turn(self) -> dict[str, int]:
        """End the cycle: memos forget what no stage asked for; how long each stage took."""
        for stage, memo in self._memos.items():
            if stage in self._took_ms:  # a stage that did not run keeps what it has
                memo.turn()
        took, self._took_ms = self._took_ms, {}
        self._turns += 1
        if self._turns % CYCLES_BETWEEN_WALKS == 0:
            collect_all()
        return took

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        began = time.monotonic_ns()
        try:
            yield
        finally:
            self._took_ms[stage] = self._took_ms.get(stage, 0) + (time.monotonic_ns() - began) // 1_000_000
