"""Faults of time, of operators who change their minds, of two plans, and of what plans were accepted under."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from agent.journal import plan_entries
from agent.values.observation import RawReassignment
from agent.values.reassignment import PlanState, ReassignmentPlan, ReassignmentTarget
from testbed.cluster import EmbeddedCluster
from tests.act.reassignments import DEADLINE_MS
from tests.drill.drill_checks import survives
from tests.drill.harness import SEEDS
from tests.drill.moves import SLOWLY, Harm, Row, Run, partitions
from tests.drill.reassignment_proxy import Started

pytestmark = pytest.mark.drill

HOUR_MS = 3_600_000
TEN_YEARS_MS = 3_652 * 24 * HOUR_MS
STILL_S = 4.0


def plan_in(run: Run, name: str) -> ReassignmentPlan | None:
    return plan_entries.plan_of(run.view(), name)


def state_of(run: Run, name: str) -> PlanState | None:
    plan = plan_in(run, name)
    return None if plan is None else plan.state


def begun_to(run: Run, where: str) -> list[Started]:
    placement = run.after if where == "after" else run.before
    return [row for row in run.begun() if row.target == placement[row.id]]


def commanded(run: Run, word: str, name: str | None = None) -> str:
    answer = run.process.command(f"{word} {name or run.plan.proposal_id}")
    assert answer.startswith("done"), answer
    return answer


def put(file: Path, text: str) -> None:
    """In one piece, for a reader at the same time too."""
    file.with_suffix(".new").write_text(text)
    file.with_suffix(".new").replace(file)


def nothing_begins(run: Run, *, for_s: float = STILL_S) -> None:
    """From now on, for so long, no request to move passes; what is cancelled may be put back in order."""
    since_s = time.monotonic()
    time.sleep(for_s)
    assert [row for row in run.begun(since_s) if row.target is not None] == []


# --- operators who change their minds ------------------------------------------------------------------------


def rolling_back(run: Run) -> None:
    """Until at least one batch was through, or two by seed, and a partition of it is on its way back."""
    run.process.start()
    run.wait_until(
        lambda: len({row.at_s for row in begun_to(run, "after")}) >= 2 + run.seed % 2, "it has come to its next batch"
    )
    run.wait_moving()
    commanded(run, "rollback")
    run.wait_until(lambda: any(run.source in row.adding for row in moving(run)), "something moves back")


def moving(run: Run) -> list[RawReassignment]:
    return [row for row in run.hand.list_reassignments(DEADLINE_MS) if row.id in run.before]


def rollback_cancelled(run: Run) -> None:
    """What was moved back stays so; all of it, where it was through before it could be cancelled."""
    run.ends, run.turns = (PlanState.CANCELLED, PlanState.ROLLED_BACK), 2
    rolling_back(run)
    answer = run.process.command(f"cancel {run.plan.proposal_id}")
    assert answer.startswith("done") or "rolled back" in answer, answer
    run.clocks.harm_over()


def rollback_after_rollback(run: Run) -> None:
    """Cancelled while it goes back, and then back all the same: by the plan itself, or by one of its own."""
    name = run.plan.proposal_id
    run.wanted, run.turns = run.before, 3
    run.ends = (PlanState.ROLLED_BACK, PlanState.CANCELLED)
    run.more = {f"{name}-back": (PlanState.DONE,)}
    rolling_back(run)
    run.process.command(f"pause {name}")
    time.sleep(run.rng.uniform(0, 2))
    run.process.command(f"resume {name}")
    run.process.command(f"cancel {name}")
    if run.seed % 2 == 0:
        run.wait_until(run.process.idle, "it is cancelled")
    commanded(run, "rollback")
    run.clocks.harm_over()


# --- clocks --------------------------------------------------------------------------------------------------


def clock_jumps(by_ms: int) -> Harm:
    """In mid-plan; by seed also with a death right then, and back again a moment later."""

    def harm(run: Run) -> None:
        clock = run.directory / "clock"
        put(clock, "0")
        run.process.set(clock=str(clock), limits={"batches_per_hour": 4})
        run.give(run.plan._replace(begin_by_ms=int(time.time() * 1000) + HOUR_MS))
        run.process.start()
        run.wait_moving()
        put(clock, str(by_ms))
        if run.seed % 2 == 0:
            run.process.signal(signal.SIGKILL)
            run.process.wait_dead()
            run.process.start()
            run.process.wait_for_word("looked")
        if run.seed >= 3:
            time.sleep(run.rng.uniform(1, 4))
            put(clock, "0")
        run.clocks.harm_over()

    return harm


# --- two plans -----------------------------------------------------------------------------------------------


def same_partitions(run: Run) -> None:
    """The second takes back what the first does, and has its turn when the first has ended, however that was."""
    second = ReassignmentPlan(
        f"{run.plan.proposal_id}-second",
        tuple(map(ReassignmentTarget.back, run.plan.targets)),
        approved_by="a test",
        order=1,
    )
    run.give(run.plan, second)
    run.more, run.wanted = {second.proposal_id: (PlanState.DONE,)}, run.before
    run.process.start()
    run.wait_moving()
    if run.seed % 2 == 0:
        run.ends = (PlanState.CANCELLED,)
        commanded(run, "cancel")
    run.clocks.harm_over()
    run.wait_until(lambda: plan_in(run, run.plan.proposal_id) is not None and _ended(run, run.plan), "the first ended")
    ended_at = time.monotonic()
    run.wait_over()
    assert all(row.at_s < ended_at for row in begun_to(run, "after")), "the first asks for nothing once it has ended"
    assert state_of(run, second.proposal_id) is PlanState.DONE


def other_partitions(run: Run) -> None:
    """While the first is paused the second has its turn; then the first goes on, or is cancelled."""
    of_a, of_b = ([target for target in run.plan.targets if target.id.topic == topic] for topic in (run.a, run.b))
    first = run.plan._replace(targets=tuple(of_a))
    second = run.plan._replace(proposal_id=f"{run.plan.proposal_id}-second", targets=tuple(of_b))
    run.give(first, second)
    run.more = {second.proposal_id: (PlanState.DONE,)}
    run.wanted = {partition: run.after[partition] for partition in partitions(run.b, run)}
    run.process.start()
    run.wait_moving()
    commanded(run, "pause")
    run.wait_until(lambda: _ended(run, second), "the second has its turn while the first is paused")
    assert state_of(run, first.proposal_id) is PlanState.OPEN
    nothing_begins(run)
    if run.seed % 2:
        run.wanted = run.after
        commanded(run, "resume")
    else:
        run.ends = (PlanState.CANCELLED,)
        commanded(run, "cancel")
    run.clocks.harm_over()


def _ended(run: Run, plan: ReassignmentPlan) -> bool:
    found = plan_in(run, plan.proposal_id)
    return found is not None and found.ended


# --- what it was accepted under ------------------------------------------------------------------------------


def target_in_another_rack(run: Run) -> None:
    """It holds before the next batch, until the broker is where it was when the plan was accepted."""
    run.resent = True
    brokers = run.hand.describe_brokers(DEADLINE_MS).brokers
    run.process.set(limits={})
    run.give(run.plan._replace(racks=tuple((broker.id, broker.rack or "") for broker in brokers)))
    broker = run.cluster.broker(run.target)
    rack = broker.rack
    run.process.start()
    run.wait_moving()
    try:
        broker.restart(rack="elsewhere")
        run.process.wait_logged("is in rack elsewhere")
        nothing_begins(run)
        assert not _ended(run, run.plan)
    finally:
        broker.restart(rack=rack)
    run.clocks.harm_over()


def topics_excluded(run: Run) -> None:
    """The settings say so since a restart, until they do not any more."""
    run.process.set(limits={})
    run.process.start()
    run.wait_moving()
    run.process.terminate()
    run.process.set(limits={"exclude_topics": [run.rng.choice((run.a, run.b, f"{run.name}-*"))]})
    run.process.start()
    run.process.wait_logged("is excluded (execute.exclude_topics)")
    nothing_begins(run)
    assert not _ended(run, run.plan)
    run.process.terminate()
    run.process.set(limits={})
    run.clocks.harm_over()
    run.process.start()
    run.process.wait_for_word("looked")
    run.clocks.goes_on()


ONE_BY_ONE = {**SLOWLY, "batch_partitions": 1}
"""Batches are left when the second or third one moves, however busy the machine is."""
FAULTS = [
    Row("rollback cancelled on its way", rollback_cancelled, ONE_BY_ONE),
    Row("rollback, paused, cancelled, asked for again", rollback_after_rollback, ONE_BY_ONE),
    Row("clock jumps ten years ahead", clock_jumps(TEN_YEARS_MS), SLOWLY),
    Row("clock jumps an hour back", clock_jumps(-HOUR_MS), SLOWLY),
    Row("two plans on the same partitions", same_partitions, SLOWLY),
    Row("two plans, the first one paused", other_partitions, SLOWLY),
    Row("target broker back in another rack", target_in_another_rack, SLOWLY),
    Row("topics excluded in mid-plan", topics_excluded, SLOWLY),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", FAULTS, ids=[row.name for row in FAULTS])
def test_a_plan_survives(row: Row, seed: int, arena: EmbeddedCluster, tmp_path: Path) -> None:
    survives(row, seed, arena, tmp_path)
