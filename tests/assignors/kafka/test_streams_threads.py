"""Tasks of a process to its threads, as the group leader of a Streams application deals them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.cases.registry import AssignorCase
from assignors.cases.streams_sticky import RUNNERS
from assignors.kafka.streams_problem import RUNNING_ACTIVE, UNKNOWN_LAG
from assignors.kafka.threads import StreamThread, ThreadProblem, ThreadResult, assign_threads
from assignors.problem import BadProblem, TaskId
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases
from tests.assignors.strategies import examples


@pytest.mark.parametrize("case", golden_cases("streams.thread_assignment"))
def test_golden(case: AssignorCase) -> None:
    assert_as_kafka(case)


def tasks(*partitions: int) -> tuple[TaskId, ...]:
    return tuple(TaskId(0, partition) for partition in partitions)


def a_process(
    *threads: StreamThread, active: tuple[TaskId, ...] = (), standby: tuple[TaskId, ...] = ()
) -> ThreadProblem:
    return ThreadProblem(
        active=active, standby=standby, threads=threads, end_offset_sums=dict.fromkeys((*active, *standby), 100)
    )


def a_thread(consumer: str, **offset_sums: int) -> StreamThread:
    return StreamThread(
        consumer=consumer, offset_sums={TaskId(0, int(name[1:])): offset for name, offset in offset_sums.items()}
    )


def test_a_thread_keeps_what_it_ran_and_the_nearest_of_what_it_has_state_of() -> None:
    problem = a_process(a_thread("a", t0=50, t1=90, t2=RUNNING_ACTIVE), a_thread("b"), active=tasks(0, 1, 2, 3))
    result = assign_threads(problem)
    assert result.threads["a"].active_stateful == tasks(1, 2)
    assert result.threads["b"].active_stateful == tasks(0, 3)


def test_unknown_state_is_nearer_than_what_ran_there_as_in_kafka() -> None:
    problem = a_process(a_thread("a", t0=RUNNING_ACTIVE, t1=UNKNOWN_LAG), a_thread("b"), active=tasks(0, 1))
    assert assign_threads(problem).threads["a"].active_stateful == tasks(1)


def test_standbys_fill_up_where_there_are_fewer_active_tasks() -> None:
    problem = a_process(a_thread("a"), a_thread("b"), active=tasks(0, 1, 2), standby=tasks(3))
    result = assign_threads(problem)
    assert [len(result.threads[name].active_stateful) for name in "ab"] == [2, 1]
    assert result.threads["b"].standby == tasks(3)


def test_the_larger_share_goes_back_to_where_the_state_is() -> None:
    problem = a_process(a_thread("a"), a_thread("b", t1=10, t2=10), active=tasks(0, 1, 2))
    assert assign_threads(problem).threads["b"].active_stateful == tasks(1, 2)


def test_a_thread_without_state_takes_the_smallest_task_even_from_where_its_state_is() -> None:
    # Kafka fills up all threads to the smaller share first and only then looks for state: task 0_1 could have stayed.
    problem = a_process(a_thread("a"), a_thread("b", t0=10, t1=10), active=tasks(0, 1, 2))
    assert assign_threads(problem).threads["a"].active_stateful == tasks(1, 2)


def test_tasks_without_end_offsets_are_stateless_and_dealt_last() -> None:
    problem = replace(
        a_process(a_thread("a", t0=5), a_thread("b"), active=tasks(0, 1)), end_offset_sums={TaskId(0, 1): 100}
    )
    result = assign_threads(problem)
    assert result.threads["a"].active_stateful == tasks(1)
    assert result.threads["b"].active_stateless == tasks(0)


def test_state_beyond_the_changelog_counts_for_nothing_and_is_warned_of() -> None:
    problem = a_process(a_thread("a", t0=500, t1=99), a_thread("b"), active=tasks(0, 1))
    result = assign_threads(problem)
    assert result.threads["a"].active_stateful == tasks(1)
    (warning,) = result.warnings
    assert warning.startswith("task 0_0 has offset sum 500 beyond its end offset sum 100")


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(a_process(active=tasks(0)), "has no consumers", id="tasks and no thread"),
        pytest.param(a_process(a_thread("a"), a_thread("a")), "consumer a is listed twice", id="a consumer twice"),
        pytest.param(
            a_process(a_thread("a"), active=tasks(0), standby=tasks(0)),
            "task 0_0 is listed twice",
            id="active and standby",
        ),
    ],
)
def test_bad_input_is_named(problem: ThreadProblem, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        assign_threads(problem)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"active": "0_1"}, "active is '0_1'", id="tasks as one text"),
        pytest.param({"standby": ["0-1"]}, r"standby\[0\] is '0-1'", id="a task written otherwise"),
        pytest.param({"consumers": [{"id": "a"}]}, r"consumers\[0\].task_offset_sums is missing", id="no offset sums"),
        pytest.param({"task_end_offset_sums": {"0_1": 2**64}}, "0_1 is 18446744073709551616", id="more than 64 bits"),
    ],
)
def test_a_malformed_case_is_refused_with_the_field(change: dict[str, Any], sentence: str) -> None:
    case = {"active": [], "standby": [], "consumers": [], "task_end_offset_sums": {}} | change
    with pytest.raises(BadProblem, match=sentence):
        RUNNERS["streams.thread_assignment"](case, "4.1.1")


# --- properties -----------------------------------------------------------------------------------------------------


@st.composite
def processes(draw: st.DrawFn) -> ThreadProblem:
    ids = [TaskId(s, p) for s in range(3) for p in range(5)]
    role = {task: draw(st.sampled_from("asn")) for task in ids}
    stateful = draw(st.sets(st.sampled_from(ids)))
    sums = st.dictionaries(st.sampled_from(ids), st.sampled_from((RUNNING_ACTIVE, UNKNOWN_LAG, 0, 40, 100, 101)))
    return ThreadProblem(
        active=tuple(task for task in ids if role[task] == "a"),
        standby=tuple(task for task in ids if role[task] == "s" and task in stateful),
        threads=tuple(
            StreamThread(consumer=f"c{number}", offset_sums=draw(sums))
            for number in draw(st.permutations(range(draw(st.integers(1, 6)))))
        ),
        end_offset_sums=dict.fromkeys(sorted(stateful), 100),
    )


def assert_dealt(problem: ThreadProblem, result: ThreadResult) -> None:
    given_active = Counter(t for one in result.threads.values() for t in (*one.active_stateful, *one.active_stateless))
    assert given_active == Counter(problem.active)
    assert Counter(t for one in result.threads.values() for t in one.standby) == Counter(problem.standby)


@examples(300)
@given(problem=processes())
def test_every_task_is_dealt_once_and_threads_are_within_one_of_each_other_at_each_stage(
    problem: ThreadProblem,
) -> None:
    result = assign_threads(problem)
    assert_dealt(problem, result)
    stages = [
        (len(each.active_stateful), len(each.standby), len(each.active_stateless)) for each in result.threads.values()
    ]
    for depth in (1, 2, 3):
        loads = [sum(stage[:depth]) for stage in stages]
        assert max(loads) - min(loads) <= 1


@examples(200)
@given(problem=processes())
def test_dealt_again_nothing_moves(problem: ThreadProblem) -> None:
    first = assign_threads(problem)
    again = replace(
        problem,
        threads=tuple(
            StreamThread(
                consumer=consumer,
                offset_sums=dict.fromkeys(each.active_stateful, RUNNING_ACTIVE) | dict.fromkeys(each.standby, 100),
            )
            for consumer, each in first.threads.items()
        ),
    )
    second = assign_threads(again)
    for consumer, each in first.threads.items():
        assert second.threads[consumer].active_stateful == each.active_stateful
        assert second.threads[consumer].standby == each.standby


@examples(100)
@given(problem=processes(), data=st.data())
def test_the_order_of_threads_does_not_count_unless_they_report_the_same_task(
    problem: ThreadProblem, data: st.DataObject
) -> None:
    seen: set[TaskId] = set()
    threads = []
    for thread in problem.threads:
        threads.append(replace(thread, offset_sums={t: o for t, o in thread.offset_sums.items() if t not in seen}))
        seen |= set(thread.offset_sums)
    apart = replace(problem, threads=tuple(threads))
    shuffled = replace(problem, threads=tuple(data.draw(st.permutations(threads))))
    assert assign_threads(apart).threads == assign_threads(shuffled).threads
