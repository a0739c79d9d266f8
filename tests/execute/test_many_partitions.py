"""A plan of 100,000 partitions through the live machine and the journal's own text, out of it in every way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.execute.reassign.messages import (
    AlterReassignments,
    AppendJournal,
    ClusterView,
    CommandReceived,
    PartitionView,
    PlanAccepted,
    PlanCommand,
)
from agent.execute.reassign.plan_step import _END_BYTES, RECORD_BYTES, _Record, next_batch, record_batches
from agent.execute.reassign.throttles import batch_throttles
from agent.journal import plan_entries
from agent.journal.entries import MAX_VALUE_BYTES, numbered
from agent.journal.targets import EncodedSize
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import (
    Batch,
    BatchState,
    PlanState,
    ReassignmentPlan,
    ReassignmentPolicy,
    ReassignmentTarget,
    moved_of,
)
from assignors.problem import TopicPartition
from tests.execute.many_partitions import Many

POLICY = ReassignmentPolicy(
    ExecuteLimits(
        batch_partitions=5_000,
        max_bytes_in_flight=None,
        max_moves_per_cluster=5_000,
        max_moves_per_broker=10_000,
        throttle=10_000_000,
    )
)


def targets(count: int, topics: int, name: int = 12) -> tuple[ReassignmentTarget, ...]:
    """As many targets of as many topics with names of that length; each gets one other replica."""
    return tuple(
        sorted(
            ReassignmentTarget(
                TopicPartition(f"{at % topics:0{name}d}", at // topics),
                f"id-{at % topics}",
                (at % 29 + 1, (at + 1) % 29 + 1, (at + 2) % 29 + 1),
                (at % 29 + 1, (at + 3) % 29 + 1, (at + 2) % 29 + 1),
                1_000 + at,
                1_234.5 * at,
                gain=at / 3,
            )
            for at in range(count)
        )
    )


def fits(many: Many) -> None:
    assert many.largest < MAX_VALUE_BYTES


def test_a_plan_of_5000_partitions_whose_topic_is_deleted_ends() -> None:
    every = targets(5_000, 1)
    many = Many(every, POLICY._replace(limits=replace(POLICY.limits, batch_partitions=50)))
    many.at(lambda append: any(isinstance(it, Batch) for it in append.changes), lambda: many.delete(every[0].id.topic))
    many.tell(PlanAccepted(ReassignmentPlan("p", every)))
    many.until(lambda: many.state.idle)
    assert [(it.state, it.sentence) for it in many.finished] == [
        (PlanState.DONE, "5,000 partitions not moved: the topic was deleted")
    ]
    fits(many)


@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=[pytest.mark.drill, pytest.mark.timeout(1_800)])])
def test_very_many_are_carried_out_through_a_crash_a_deleted_topic_a_rollback_and_a_cancel(count: int) -> None:
    every = targets(count, 20, name=249)
    many, plan = (
        Many(every, POLICY._replace(limits=replace(POLICY.limits, batch_partitions=count // 20))),
        ReassignmentPlan("p", every),
    )
    many.at(sends(2), many.die)
    many.at(sends(4), lambda: many.delete(every[0].id.topic))
    many.at(sends(6), lambda: many.say(CommandReceived(PlanCommand.ROLLBACK, "p", "ann", "c1")))
    many.at(took_back, many.die)
    many.at(took_back, lambda: many.say(CommandReceived(PlanCommand.CANCEL, "p", "ann", "c2")))
    many.tell(PlanAccepted(plan))
    many.until(lambda: many.state.idle)
    assert many.epoch == 3, "two agents died"
    ((state, sentence),) = [(it.state, it.sentence) for it in many.finished]
    assert state is PlanState.CANCELLED
    for part in ("moved as planned", "not moved: the topic was deleted", "moved back", "not begun"):
        assert part in sentence
    (ended,) = plan_entries.plans(many.view)
    assert ended.targets == every
    left = {id_ for id_ in moved_of(ended) or () if id_.topic not in many.gone}
    assert left == {target.id for target in every if (it := many.parts.get(target.id)) and it.replicas == target.after}
    assert count // 10 < len(left) < count * 6 // 10, "some are moved, some are back, some were never begun"
    assert not many.settings, "a throttle is left"
    assert plan_entries.throttle_debts(many.view) == ()
    fits(many)


def sends(count: int) -> Callable[[AppendJournal], bool]:
    """Whether it is the n-th append before a reassignment, counted from where it is asked first."""
    left = [count]

    def nth(append: AppendJournal) -> bool:
        left[0] -= isinstance(append.then, AlterReassignments)
        return left[0] == 0

    return nth


def took_back(append: AppendJournal) -> bool:
    return any(isinstance(it, Batch) and it.back and it.ends for it in append.changes)


# --- batches --------------------------------------------------------------------------------------------------------


def wide(at: int) -> ReassignmentTarget:
    """A name as long as may be, and fifteen replicas that are all other ones."""
    before = tuple(2_000_000_000 + 100 * at + one for one in range(15))
    return ReassignmentTarget(
        TopicPartition(f"{at:0249d}", 2**31 - 1), "A" * 22, before, tuple(it + 20 for it in before), 10**18, 1e18 / 7
    )


@pytest.mark.parametrize("of_one_topic", [False, True])
def test_no_batch_is_larger_than_its_records_whatever_the_settings_allow(of_one_topic: bool) -> None:
    every = tuple(wide(at) for at in range(6_000))
    if of_one_topic:
        every = tuple(it._replace(id=TopicPartition("t" * 249, at)) for at, it in enumerate(every))
    seen = ClusterView(
        brokers=frozenset(broker for it in every for broker in (*it.before, *it.after)),
        partitions=tuple(
            PartitionView(it.id, it.topic_id, it.before[0], it.before, frozenset(it.before), 1) for it in every
        ),
    )
    policy = ReassignmentPolicy(
        ExecuteLimits(
            batch_partitions=10**6,
            max_bytes_in_flight=None,
            max_moves_per_cluster=10**6,
            max_moves_per_broker=10**6,
            throttle=2**40,
        )
    )
    chosen = next_batch(every, seen, policy)
    assert 100 < len(chosen) < len(every)
    batch = Batch("p-1", 1, chosen, BatchState.SENT, rate_bytes_per_s=2**40, cancelling=tuple(it.id for it in chosen))
    lines = [
        line for change in (batch, *batch_throttles(batch, seen).debts) for line in plan_entries.change_writes(change)
    ]
    sizes = [len(line.data or b"") for line in numbered(lines, at_ms=2**47, epoch=2**53, first_seq=0)]
    assert max(sizes) < RECORD_BYTES + 100_000 < MAX_VALUE_BYTES


def test_a_batch_is_full_when_the_next_partition_would_make_its_record_too_large() -> None:
    record, taken = _Record(), 0
    while record.takes(target := wide(taken)):
        record.add(target)
        taken += 1
    sizes = [EncodedSize(_END_BYTES), EncodedSize(_END_BYTES)]
    for at in range(taken + 1):
        sizes[1].add(wide(at))
        if at < taken:
            sizes[0].add(wide(at))
    assert sizes[0].bytes <= RECORD_BYTES < sizes[1].bytes


def test_what_ends_without_a_move_is_cut_into_records_too() -> None:
    runs = list(record_batches(wide(at) for at in range(3_000)))
    assert [it for run in runs for it in run] == [wide(at) for at in range(3_000)]
    assert len(runs) > 3
