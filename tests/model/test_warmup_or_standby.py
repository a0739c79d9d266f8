"""Warm-ups told from standbys: by the probing deadline, the lag at the assignment, the settings, and the deal."""

from __future__ import annotations

import pytest

from agent.model.lags import java_uuid_order
from agent.values.limits import GroupLimits, Limits
from agent.values.snapshot import TaskRole
from tests.builders import TAKEN_MS, Answers, Run, an_observation, instance, process_id, with_group

PROBING = TAKEN_MS + 600_000
END = 1_000_000
CAUGHT_UP = END - 1
WARMUP, STANDBY = TaskRole.WARMUP, TaskRole.STANDBY


def a_cluster(partitions: int = 4) -> Answers:
    answers = an_observation().topic("in", *[(1, 2)] * partitions)
    return answers.topic("app-store-changelog", *[(1, 2)] * partitions, ends=[END] * partitions)


def roles(run: Run) -> dict[str, tuple[TaskRole, bool]]:
    """``task process`` of every standby copy -> (role, certain)."""
    return {
        f"{copy.task} {int(copy.process_id[:8], 16)}": (copy.role, copy.role_certain)
        for copy in run.snapshot.copies["app"]
        if copy.role is not TaskRole.ACTIVE
    }


def two_looks(answers: Answers, limits: Limits | None) -> Run:
    """A look before the group was there, so that the ends at its join are known, and one after."""
    groups, listed = dict(answers.groups), dict(answers.listed)
    answers.groups.clear()
    answers.listed.clear()
    run = Run(limits).look(answers.at(0))
    answers.groups.update(groups)
    answers.listed.update(listed)
    return run.look(answers.at(10))


ALL = {f"0_{n}": f"in-{n}" for n in range(4)}
RUNNING = dict.fromkeys(ALL, -2)


def scaled_out(second: dict[str, int | None], *, probing: int | None = PROBING, threads: int = 1) -> Answers:
    """Instance 1 runs all four tasks; instance 2 holds copies (task -> the sum that it told, None for none)."""
    others = [instance(2, "b", {}, {}, topics=("in",), thread=2 + n) for n in range(threads - 1)]
    return a_cluster().streams(
        "app",
        instance(1, "a", ALL, sums=RUNNING, next_rebalance_ms=probing),
        instance(
            2,
            "b",
            {},
            {task: ALL[task] for task in second},
            sums={task: told for task, told in second.items() if told is not None},
            topics=("in",),
        ),
        *others,
    )


@pytest.mark.parametrize(
    ("answers", "limits", "expected"),
    [
        pytest.param(
            scaled_out({"0_1": None}, probing=None),
            None,
            {"0_1 2": (STANDBY, True)},
            id="no probing deadline: nothing is being moved, whatever the lag",
        ),
        pytest.param(
            scaled_out({"0_1": None}),
            with_group("app", num_standby_replicas=0),
            {"0_1 2": (WARMUP, True)},
            id="no standbys are asked for, so every copy is a warm-up",
        ),
        pytest.param(
            scaled_out({"0_1": CAUGHT_UP}),
            None,
            {"0_1 2": (STANDBY, True)},
            id="it had caught up when it was assigned, so it is no warm-up",
        ),
        pytest.param(
            scaled_out({"0_1": -2}),
            None,
            {"0_1 2": (STANDBY, True)},
            id="it ran the task as active before",
        ),
        pytest.param(
            scaled_out({"0_0": None, "0_1": None, "0_2": None, "0_3": None}),
            None,
            {"0_0 2": (STANDBY, False), "0_1 2": (WARMUP, False), "0_2 2": (STANDBY, False), "0_3 2": (WARMUP, False)},
            id="new copies of all tasks: warm-ups are those that are dealt to the new instance",
        ),
        pytest.param(
            scaled_out({"0_0": None, "0_1": None}, threads=2),
            None,
            {"0_0 2": (WARMUP, False), "0_1 2": (WARMUP, False)},
            id="with more threads on one instance the deal says nothing",
        ),
        pytest.param(
            scaled_out({"0_0": None, "0_1": None}),
            with_group(
                "app", num_standby_replicas=1, max_warmup_replicas=2, rack_aware_assignment_strategy="min_traffic"
            ),
            {"0_0 2": (WARMUP, False), "0_1 2": (WARMUP, False)},
            id="a rack-aware strategy redeals",
        ),
        pytest.param(
            scaled_out({"0_1": -3}),
            None,
            {"0_1 2": (WARMUP, False)},
            id="its lag is unknown and it is dealt there",
        ),
    ],
)
def test_told_apart(answers: Answers, limits: Limits | None, expected: dict[str, tuple[TaskRole, bool]]) -> None:
    assert roles(two_looks(answers, limits)) == expected


def test_a_copy_beyond_the_number_of_standbys_is_a_warm_up_for_certain() -> None:
    answers = a_cluster().streams(
        "app",
        instance(1, "a", ALL, sums=RUNNING, next_rebalance_ms=PROBING),
        instance(2, "b", {}, ALL, sums=dict.fromkeys(ALL, CAUGHT_UP), topics=("in",)),
        instance(3, "c", {}, {"0_2": "in-2"}, topics=("in",)),
    )
    run = two_looks(answers, with_group("app", num_standby_replicas=1))
    assert roles(run) == {
        "0_0 2": (STANDBY, True), "0_1 2": (STANDBY, True), "0_2 2": (STANDBY, True), "0_2 3": (WARMUP, True),
        "0_3 2": (STANDBY, True),
    }  # fmt: skip


def test_while_revoked_tasks_wait_for_a_follow_up_nothing_is_certain() -> None:
    answers = scaled_out({"0_1": CAUGHT_UP}, probing=0)
    assert roles(two_looks(answers, None)) == {"0_1 2": (STANDBY, False)}


def test_a_role_does_not_change_between_two_joins_however_its_lag_does() -> None:
    answers = scaled_out({"0_1": None, "0_2": CAUGHT_UP})
    run = two_looks(answers, None)
    before = roles(run)
    for second, lag in ((20, 500_000), (30, 100), (40, 0)):
        answers.says("app", process_id(2), "0_1", "standby", lag, at_s=second)
        run.look(answers.says("app", process_id(2), "0_2", "standby", lag, at_s=second).at(second))
        assert roles(run) == before == {"0_1 2": (WARMUP, False), "0_2 2": (STANDBY, True)}


def test_acceptable_lag_decides_what_had_caught_up() -> None:
    answers = scaled_out({"0_1": END - 500})
    limits = Limits(groups={"app": GroupLimits(acceptable_recovery_lag=100)})
    assert roles(two_looks(answers, limits)) == {"0_1 2": (WARMUP, False)}


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(
            ["80000000-0000-0000-0000-000000000000", "ffffffff-0000-0000-0000-000000000000",
             "00000000-0000-0000-8000-000000000000", "00000000-0000-0000-0000-000000000001",
             "7fffffff-0000-0000-0000-000000000000"],
            id="both halves are signed numbers",
        ),
        pytest.param(["00000000-0000-0000-0000-000000000001", "not a uuid", "nothing"], id="other texts come last"),
    ],
)  # fmt: skip
def test_process_ids_sort_as_java_sorts_uuids(ids: list[str]) -> None:
    shuffled = [*ids[1::2], *ids[::2]]
    assert sorted(shuffled, key=java_uuid_order) == ids
