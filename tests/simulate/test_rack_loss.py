"""What losing a rack costs: tables, and the rack really removed from random snapshots, in every world that may be."""

from __future__ import annotations

from itertools import chain, combinations, product
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings

from agent.explain.doctor import CheckState, risks
from agent.simulate.rack_loss import RackLoss, loss_details, loss_label, loss_sentence, rack_losses
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.snapshot import (
    PartitionState,
    RackState,
    Snapshot,
    StreamsGroup,
    TaskCopy,
    TaskRole,
    TaskStatefulness,
)
from assignors.problem import TaskId
from tests.plan.random_clusters import random_clusters
from tests.snapshots import Builder, a_cluster, process, task, tasks

SLOW = settings(suppress_health_check=[HealthCheck.too_slow])


def loss(built: Builder, rack: str = "a", **changes: Any) -> RackLoss:
    return next(one for one in rack_losses(built.snapshot(**changes)) if one.rack == rack)


def names(partitions: Any) -> list[str]:
    return [str(partition) for partition in partitions]


PARTITIONS = [
    pytest.param(a_cluster().topic("t", (1, 2, 3), min_isr=2), [], [], [], id="three racks, min ISR 2: all goes on"),
    pytest.param(a_cluster().topic("t", (1, 2, 3), min_isr=3), [], ["t-0"], [], id="min ISR is the number of racks"),
    pytest.param(a_cluster().topic("t", (1,), (2,)), ["t-0"], [], [], id="a single replica in the rack"),
    pytest.param(
        a_cluster(a=(1, 4), b=(2,)).topic("t", (1, 4)), ["t-0"], [], [], id="both replicas share the rack"
    ),
    pytest.param(
        a_cluster().topic("t", (1, 2, 3), isr={0: (1, 2)}, min_isr=2), [], ["t-0"], [],
        id="a replica elsewhere is not in sync",
    ),
    pytest.param(
        a_cluster().topic("t", (1, 2, 3), isr={0: (1,)}, min_isr=2), ["t-0"], [], [],
        id="the only in-sync replica; under min ISR before",
    ),
    pytest.param(
        a_cluster().topic("t", (2, 1, 3), isr={0: (2,)}, min_isr=2), [], [], [],
        id="under min ISR already, and the rack had no part in it",
    ),
    pytest.param(
        a_cluster().topic("t", (1, 2), isr={0: (1,)}, leaders={0: None}), [], [], [], id="no leader already"
    ),
    pytest.param(a_cluster().topic("t", (1, 2, 3), min_isr=None), [], [], ["t-0"], id="min ISR is not known"),
    pytest.param(a_cluster().topic("t", (1, 2), min_isr=5), [], ["t-0"], [], id="min ISR above the replicas"),
    pytest.param(
        a_cluster(a=(1,), _=(2,)).topic("t", (1, 2)), [], [], ["t-0"], id="the other broker's rack is not known"
    ),
    pytest.param(
        a_cluster(a=(1,), b=(3,), _=(2,)).topic("t", (1, 2, 3), min_isr=1), [], [], [], id="one is surely elsewhere"
    ),
    pytest.param(
        a_cluster(a=(1,), b=(3,), _=(2,)).topic("t", (1, 2, 3), min_isr=2), [], [], ["t-0"],
        id="min ISR hangs on a broker whose rack is not known",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("built", "leaderless", "under", "untold"), PARTITIONS)
def test_partitions(built: Builder, leaderless: list[str], under: list[str], untold: list[str]) -> None:
    lost = loss(built)
    assert (names(lost.leaderless), names(lost.under_min_isr), names(lost.unknown_partitions)) == (
        leaderless,
        under,
        untold,
    )
    assert lost.costs_nothing == (not (leaderless or under or untold))


def copy(process_id: str, *, caught_up: bool | None, role: TaskRole = TaskRole.STANDBY) -> TaskCopy:
    return TaskCopy(
        group_id="app", process_id=process_id, task=TaskId(0, 0), role=role, role_certain=True, end_offset_sum=None,
        lag=None, lag_source=None, lag_age_ms=None, rate_per_s=None, eta_s=None, caught_up=caught_up,
    )  # fmt: skip


def application(
    *copies: TaskCopy,
    runs_in: str = "a",
    other: str = "b",
    state: TaskStatefulness = TaskStatefulness.CHANGELOG,
    **more: Any,
) -> Builder:
    """One task 0_0 on p1, and another process p2."""
    return a_cluster().topic("t", (2, 3)).streams(
        "app", process("p1", runs_in, "0_0"), process("p2", other), process("p3", "a"),
        topology=[task("0_0", "t-0", state)], copies=copies, **more,
    )  # fmt: skip


TASKS = [
    pytest.param(application(), "lost", id="no standby"),
    pytest.param(application(copy("p2", caught_up=True)), "", id="a caught-up standby elsewhere"),
    pytest.param(
        application(copy("p2", caught_up=True, role=TaskRole.WARMUP)), "", id="a warm-up elsewhere has caught up"
    ),
    pytest.param(application(copy("p2", caught_up=False)), "lost", id="the standby elsewhere is behind"),
    pytest.param(application(copy("p2", caught_up=None)), "untold", id="the lag of the standby is unknown"),
    pytest.param(application(copy("p3", caught_up=True)), "lost", id="the standby is in the same rack"),
    pytest.param(application(copy("p2", caught_up=True), other="_"), "untold", id="the standby's rack is not known"),
    pytest.param(application(runs_in="_"), "untold", id="the rack of the task itself is not known"),
    pytest.param(application(copy("p2", caught_up=True), runs_in="_"), "", id="not known, but covered either way"),
    pytest.param(application(state=TaskStatefulness.STATELESS), "", id="no state"),
    pytest.param(application(state=TaskStatefulness.NO_CHANGELOG), "lost", id="state that nothing restores"),
    pytest.param(application(state=TaskStatefulness.UNKNOWN), "untold", id="whether there is state is unknown"),
    pytest.param(application(runs_in="b"), "", id="it runs elsewhere"),
    pytest.param(application(hidden=True), "group", id="a rebalance hides the group"),
]


@pytest.mark.parametrize(("built", "answer"), TASKS)
def test_tasks(built: Builder, answer: str) -> None:
    lost = loss(built)
    said = {"lost": lost.tasks, "untold": lost.unknown_tasks, "group": lost.unknown_groups}
    assert [name for name, found in said.items() if found] == ([answer] if answer else [])


@pytest.mark.parametrize(
    ("built", "why"),
    [
        pytest.param(
            application(copy("p2", caught_up=None)),
            "it is unknown whether a standby in another rack has caught up",
            id="the lag of the standby",
        ),
        pytest.param(application(runs_in="_"), "the rack of its process is unknown", id="the rack of the task"),
        pytest.param(application(state=TaskStatefulness.UNKNOWN), "it is unknown whether it has state", id="the state"),
    ],
)
def test_a_task_of_unknown_fate_is_named_with_what_is_not_known_of_it(built: Builder, why: str) -> None:
    told = f"the effect on 1 task is unknown (app 0_0: {why})"
    assert told in loss_sentence(loss(built))


def test_what_is_of_unknown_effect_is_named_and_of_many_the_first_with_the_way_to_see_all() -> None:
    few = a_cluster(a=(1,), _=(2,)).topic("t", (1, 2), (1, 2))
    assert loss_sentence(loss(few)).startswith("the effect on 2 partitions is unknown (t-0, t-1); ")
    many = a_cluster(a=(1,), _=(2,)).topic("t", *[(1, 2)] * 5)
    told = "the effect on 5 partitions is unknown (t-0, t-1, t-2 and 2 more; all: rackwise racks -o json)"
    assert loss_sentence(loss(many)).startswith(f"{told}; ")
    assert told in loss_details(loss(many))[0]


def test_leaders_go_to_the_first_in_sync_replica_that_is_left_with_their_bytes() -> None:
    built = a_cluster().topic("t", (1, 2, 3), (1, 3, 2), (2, 1, 3), rate=10.0, size=100)
    lost = loss(built)
    assert [(s.broker, s.leaders, s.leaders_after) for s in lost.survivors] == [(2, 1, 2), (3, 0, 1)]
    assert [(s.bytes_per_s, s.bytes_per_s_after) for s in lost.survivors] == [(10.0, 20.0), (0.0, 10.0)]
    assert [(s.led_bytes, s.led_bytes_after) for s in lost.survivors] == [(100, 200), (0, 100)]
    assert loss_sentence(lost) == (
        "no partition stops and no task restores; rack b leads 2 partitions instead of 1, "
        "rack c leads 1 partition instead of 0, "
        "the busiest remaining broker takes in 20 B/s instead of 10 B/s"
    )


def test_an_unknown_rate_or_size_makes_the_load_unknown_and_never_small() -> None:
    built = a_cluster().topic("t", (1, 2), size=None).topic("u", (3, 1), rate=5.0)
    two, three = loss(built).survivors
    assert (two.bytes_per_s_after, two.led_bytes_after) == (None, None)
    assert (three.bytes_per_s, three.bytes_per_s_after, three.led_bytes_after) == (5.0, 5.0, 1000)


def test_the_doctor_calls_it_a_risk_and_names_what_it_hurts() -> None:
    built = application().topic("u", (1,)).topic("v", (2, 3), min_isr=2)
    checks = {check.key: check for check in risks(built.snapshot())}
    a = checks["losing rack a"]
    assert (a.state, a.who) == (CheckState.RISK, ("app", "u"))
    assert a.sentences == ("rack b leads 2 partitions as now, rack c leads 0 partitions as now",), (
        "its name has the rest"
    )
    assert a.name == "losing rack a leaves 1 partition without a leader: u-0; makes 1 task restore state: app 0_0"
    b = checks["losing rack b"]
    assert (b.who, b.name) == (("v",), "losing rack b leaves 1 partition under min ISR: v-0")
    unknown = risks(a_cluster(a=(1,), b=(3,), _=(2,)).topic("t", (1, 2)).snapshot())
    assert [check.state for check in unknown] == [CheckState.UNKNOWN, CheckState.NOTHING]
    fine = risks(a_cluster().topic("t", (1, 2, 3)).snapshot())
    assert {(check.state, check.name) for check in fine} == {
        (CheckState.OK, f"losing rack {rack} stops nothing") for rack in "abc"
    }


def test_the_label_of_a_risk_names_the_first_partitions_and_counts_the_rest() -> None:
    lost = loss(a_cluster().topic("payments", *[(1,)] * 6))
    assert loss_label(lost) == (
        "losing rack a leaves 6 partitions without a leader: payments-0, payments-1, payments-2 and 3 more"
    )


def test_a_rack_with_nothing_in_it_and_a_world_that_was_not_seen_are_not_called_safe() -> None:
    empty = risks(a_cluster().snapshot())
    assert {(check.state, check.name, check.sentence) for check in empty} == {
        (CheckState.NOTHING, f"losing rack {rack}", "no replica and no task was seen in it") for rack in "abc"
    }
    d = {check.key: check for check in risks(a_cluster(a=(1,), b=(2,), d=(4,)).topic("t", (1, 2)).snapshot())}
    assert [check.state for check in d.values()] == [CheckState.OK, CheckState.OK, CheckState.NOTHING]
    hidden = Gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED, "", "no topic is shown")
    (a, *_) = risks(a_cluster().snapshot(gaps=(hidden,)))
    assert (a.state, a.name) == (CheckState.UNKNOWN, "what losing rack a stops is not known")
    assert a.sentence.startswith("not all was seen (topics: not authorized)")
    (nowhere,) = risks(a_cluster(_=(1, 2)).topic("t", (1, 2)).snapshot())
    assert (nowhere.state, nowhere.sentence) == (CheckState.UNKNOWN, "no rack of a live broker is known")


@SLOW
@given(random_clusters())
def test_the_rack_removed_from_every_world_that_may_be_gives_the_same(snapshot: Snapshot) -> None:
    for lost in rack_losses(snapshot):
        certain, possible = by_removal(snapshot, lost.rack)
        event(f"cost: {bool(certain['leaderless'] or certain['under'])}, untold: {bool(lost.unknown_partitions)}")
        assert set(lost.leaderless) == certain["leaderless"]
        assert set(lost.under_min_isr) == certain["under"]
        hurt = set(lost.leaderless) | set(lost.under_min_isr) | set(lost.unknown_partitions)
        assert hurt == possible["leaderless"] | possible["under"]
        surely, perhaps = tasks_by_removal(snapshot, lost.rack)
        assert {one[:2] for one in lost.tasks} == surely
        assert {one[:2] for one in (*lost.tasks, *lost.unknown_tasks)} == perhaps


def by_removal(snapshot: Snapshot, rack: str) -> tuple[dict[str, set[Any]], dict[str, set[Any]]]:
    """Partitions that newly have no leader, or are newly under min ISR: in every world, and in at least one."""
    alive = {broker.id for broker in snapshot.brokers if broker.alive}
    gone = {broker.id for broker in snapshot.brokers if broker.alive and broker.rack.name == rack}
    unknown = [b.id for b in snapshot.brokers if b.alive and b.rack.state is not RackState.KNOWN]
    certain: dict[str, set[Any]] = {"leaderless": set(), "under": set()}
    possible: dict[str, set[Any]] = {"leaderless": set(), "under": set()}
    for topic in snapshot.topics.values():
        for state in topic.partitions:
            outcomes = [
                fate(state, alive, gone | {*more}, least)
                for more in subsets(unknown)
                for least in ([topic.min_isr] if topic.min_isr is not None else range(1, len(state.replicas) + 1))
            ]
            for kind, of in certain.items():
                if all(outcome == kind for outcome in outcomes):
                    of.add(state.id)
                if kind in outcomes:
                    possible[kind].add(state.id)
    return certain, possible


def fate(state: PartitionState, alive: set[int], gone: set[int], min_isr: int) -> str:
    least = min(min_isr, len(state.replicas))
    before = [broker for broker in state.isr if broker in alive]
    after = [broker for broker in before if broker not in gone]
    if state.leader is None or not before:
        return ""
    if not after:
        return "leaderless"
    return "under" if len(before) >= least > len(after) else ""


def tasks_by_removal(snapshot: Snapshot, rack: str) -> tuple[set[Any], set[Any]]:
    """(group, task) that must restore: in every world, and in at least one."""
    surely: set[Any] = set()
    perhaps: set[Any] = set()
    for group in snapshot.groups.values():
        if not isinstance(group, StreamsGroup) or group.topology is None:
            continue
        blank = [p.id for p in group.processes if p.rack.state is not RackState.KNOWN]
        sure = {p.id for p in group.processes if p.rack.name == rack}
        stateful = {t.id for t in group.topology.tasks if t.statefulness is not TaskStatefulness.STATELESS}
        copies = [c for c in snapshot.copies.get(group.id, ()) if c.role is not TaskRole.ACTIVE]
        open_ones = [number for number, c in enumerate(copies) if c.caught_up is None]
        outcomes = []
        for more, ready in product(subsets(blank), subsets(open_ones)):
            gone = sure | {*more}
            warm = {(c.task, c.process_id) for n, c in enumerate(copies) if c.caught_up or n in ready}
            outcomes.append({
                (group.id, active)
                for p in group.processes if p.id in gone
                for active in p.active if active in stateful
                if not any(held == active and where not in gone for held, where in warm)
            })  # fmt: skip
        surely |= set.intersection(*outcomes)
        perhaps |= set.union(*outcomes)
    return surely, perhaps


def subsets(items: Any) -> Any:
    return list(chain.from_iterable(combinations(items, size) for size in range(len(items) + 1)))


def test_a_task_that_runs_twice_in_an_odd_answer_is_judged_for_each_process() -> None:
    built = a_cluster().topic("t", (2, 3)).streams(
        "app", process("p1", "a", "0_0"), process("p2", "a", "0_0"), topology=[task("0_0", "t-0")]
    )  # fmt: skip
    assert [(one.task, one.process) for one in loss(built).tasks] == [(tasks("0_0")[0], "p1"), (tasks("0_0")[0], "p2")]
