"""What must hold after a drill, whatever the harm was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.journal import plan_entries
from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.reassignment import Batch, BatchState, PartitionEndReason, PlanState, ReassignmentPlan
from agent.values.throttles import ThrottleResource
from agent.wire.changes import DescribedThrottles
from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from tests.act.reassignments import DEADLINE_MS, placement, throttles
from tests.drill.harness import drilled
from tests.drill.moves import Row, Run, journal_topics, mend, running
from tests.drill.reassignment_proxy import Started, WatchingProxy


class Witness:
    """Looks up which throttles are set whenever a request to move is about to be passed on."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._found: list[tuple[Sequence[Started], DescribedThrottles]] = []
        run.proxy.before_alter = self._look

    def check(self) -> None:
        """Nothing was asked to move without a throttle on every broker that sends or receives it, and in both lists."""
        assert self._found, "nothing was asked to move"
        for rows, read in self._found:
            assert read.gaps == (), "the throttles could be read"
            for row in rows:
                if row.id in self._run.before and row.target == self._run.after[row.id]:
                    missing = sorted(self._missing(row, read))
                    assert not missing, f"{row.id} was asked to move unthrottled: {missing}"

    def _look(self, rows: Sequence[Started]) -> None:
        topics = {row.id.topic for row in rows} & {self._run.a, self._run.b}
        brokers = [broker.id for broker in self._run.cluster.brokers]
        self._found.append((rows, self._run.hand.describe_throttles(topics, brokers, DEADLINE_MS)))

    def _missing(self, row: Started, read: DescribedThrottles) -> Iterable[str]:
        before, number = self._run.before[row.id], row.id.partition
        rates = [(LEADER_RATE, broker) for broker in before] + [(FOLLOWER_RATE, self._run.target)]
        entries = [(LEADER_REPLICAS, broker) for broker in before] + [(FOLLOWER_REPLICAS, self._run.target)]
        for key, broker in rates:
            throttle = read.settings[ThrottleResource(broker=broker), key]
            if throttle.own is None and throttle.default is None:
                yield f"{key} of {broker}"
        for key, broker in entries:
            own = read.settings[ThrottleResource(topic=row.id.topic), key].own or ""
            if f"{number}:{broker}" not in own.split(","):
                yield f"{number}:{broker} in {key}"


def survives(row: Row, seed: int, arena: EmbeddedCluster, directory: Path) -> None:
    """Do the harm of one row, wait until it is over, and check."""
    proxy = arena.proxy
    assert isinstance(proxy, WatchingProxy)
    with (
        drilled(row.name, seed) as clocks,
        running(arena, proxy, clocks, directory, fault=row.name, seed=seed, policy=row.policy) as run,
    ):
        if row.kafka:
            with journal_topics(run):
                survived(row, run)
        else:
            survived(row, run)


def survived(row: Row, run: Run) -> None:
    """The same for a run that is set up."""
    witness = Witness(run) if row.throttled else None
    row.harm(run)
    run.wait_over()
    check(run)
    if witness is not None:
        witness.check()


def check(run: Run) -> None:
    """What must hold afterwards, whatever the harm was."""
    run.process.terminate()
    mend(run.cluster, run.proxy)
    kept = {partition for partition in run.before if partition.topic not in run.lost_topics}
    view = run.view()
    plan = _check_plans(run, plan_entries.plans(view))
    batches = plan_entries.batches(view)
    _check_placement(run, plan, plan_entries.batches(view, plan.proposal_id), kept)
    assert plan_entries.throttle_debts(view) == ()
    set_now = throttles(run.hand, *{partition.topic for partition in kept}, f"{run.name}-foreign")
    wanted = {setting: value for setting, value in run.foreign.items() if setting[0].name not in run.lost_topics}
    assert set_now == wanted, "our throttles are gone, those of others unchanged"
    _check_requests(run, (*(one for former in run.former for one in plan_entries.batches(former)), *batches), kept)
    run.traffic.__exit__(None, None, None)
    acked, lost = run.traffic.lost(sorted(kept))
    assert lost == 0, f"{lost} of {acked} acknowledged records are lost"
    assert acked > 0
    run.clocks.notes.append(f"{plan.state}, {acked} records")


def _check_plans(run: Run, found: tuple[ReassignmentPlan, ...]) -> ReassignmentPlan:
    """The plan that is drilled; each ended as it may, and there are no others."""
    plans = {plan.proposal_id: plan for plan in found}
    ends = {run.plan.proposal_id: run.ends, **run.more}
    assert set(plans) <= set(ends), f"unknown plans: {sorted(plans)}"
    for name, plan in plans.items():
        assert plan.state in ends[name], f"{name} {plan.state}: {plan.sentence}"
    return plans[run.plan.proposal_id]


def _check_placement(run: Run, plan: ReassignmentPlan, batches: tuple[Batch, ...], kept: set[TopicPartition]) -> None:
    moving = [row for row in run.hand.list_reassignments(DEADLINE_MS) if row.id.topic.startswith(run.name)]
    assert moving == []
    now = placement(run.hand, *{partition.topic for partition in kept})
    ends = {end.id: end.end for batch in batches for end in batch.ends}
    for partition in kept:
        assert now[partition] in (run.before[partition], run.after[partition]), partition
        if run.wanted is not None:
            assert now[partition] == run.wanted.get(partition, now[partition]), partition
            continue
        if plan.state is PlanState.DONE and ends.get(partition) not in (
            PartitionEndReason.SKIPPED,
            PartitionEndReason.REFUSED,
            PartitionEndReason.NOT_BEGUN,
        ):
            assert now[partition] == run.after[partition], partition
        if plan.state is PlanState.ROLLED_BACK:
            assert now[partition] == run.before[partition], partition


def _check_requests(run: Run, batches: tuple[Batch, ...], kept: set[TopicPartition]) -> None:
    """What passed the proxy is what the journal says: nothing unlogged, doubled or lost.

    A cancelled partition may be asked back into its former order, as Kafka leaves it in another one.
    """
    begun: Counter[tuple[TopicPartition, tuple[int, ...]]] = Counter()
    for row in run.begun():
        if row.target is None:
            assert any(row.id in batch.cancelling for batch in batches), f"unlogged cancel of {row.id}"
        else:
            begun[row.id, row.target] += 1
    for (partition, target), times in begun.items():
        logged = sum(
            batch.sendings
            for batch in batches
            for one in batch.targets
            if one.id == partition and batch.state is not BatchState.INTENT
            if target == one.after or (target == one.before and one.id in batch.cancelling)
        )
        assert times <= logged, f"{partition} to {target}: {times} requests, {logged} logged"
        assert times <= run.turns or run.resent, f"{partition} to {target} was asked for {times} times"
    for batch in batches:
        targets = {one.id: one.after for one in batch.targets}
        done = {end.id for end in batch.ends if end.end is PartitionEndReason.DONE and not batch.back} & kept
        for partition in done:
            there = not batch.sendings and targets[partition] == run.before[partition]
            assert begun[partition, targets[partition]] or there, f"{partition} is done, but was never asked for"
