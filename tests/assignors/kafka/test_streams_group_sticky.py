"""KIP-1071's sticky assignor, in both forms that brokers have: up to 4.1, and from 4.2 on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from assignors.cases.registry import AssignorCase
from assignors.cases.streams_sticky import RUNNERS
from assignors.kafka.exceptions import KafkaRefusal
from assignors.kafka.streams_group_problem import (
    ConfiguredSubtopology,
    StreamsGroupProblem,
    StreamsGroupResult,
    StreamsMember,
    SubtopologyPartitions,
)
from assignors.kafka.streams_group_sticky import streams_group_sticky
from assignors.kafka.streams_group_sticky_41 import streams_group_sticky_41
from assignors.problem import BadProblem, TaskId
from tests.assignors.kafka.golden import assert_as_kafka, golden, golden_cases
from tests.assignors.strategies import examples

Assignor = Callable[[StreamsGroupProblem], StreamsGroupResult]
BOTH = pytest.mark.parametrize(
    "assign",
    [pytest.param(streams_group_sticky_41, id="up to 4.1"), pytest.param(streams_group_sticky, id="from 4.2")],
)


@pytest.mark.parametrize("case", golden_cases("group.streams_sticky", "4.3.1/group.streams_sticky"))
def test_golden(case: AssignorCase) -> None:
    assert_as_kafka(case)


def test_the_version_decides_which_of_the_two_answers() -> None:
    differing = [
        case.id
        for case in golden("group.streams_sticky")
        if RUNNERS[case.assignor](case.input, "4.1.1") != RUNNERS[case.assignor](case.input, "4.2.0")
    ]
    assert differing
    assert all(
        RUNNERS[case.assignor](case.input, "4.2.0") == RUNNERS[case.assignor](case.input, "4.3.1")
        for case in golden("group.streams_sticky")
    )


# --- small groups by hand -------------------------------------------------------------------------------------------


def a_group(
    *members: StreamsMember, partitions: int = 4, standbys: int = 0, stateful: bool = True
) -> StreamsGroupProblem:
    return StreamsGroupProblem(
        subtopologies=(ConfiguredSubtopology(id="0", partitions=partitions, stateful=stateful),),
        members=members,
        num_standby_replicas=standbys,
    )


def a_member(id_: str, process: str = "", active: Iterable[int] = (), standby: Iterable[int] = ()) -> StreamsMember:
    return StreamsMember(
        id=id_,
        process_id=process or f"process of {id_}",
        active={"0": tuple(active)} if active else {},
        standby={"0": tuple(standby)} if standby else {},
    )


@BOTH
def test_a_member_that_joins_takes_only_what_the_others_have_too_much(assign: Assignor) -> None:
    result = assign(a_group(a_member("a", active=(0, 1, 2, 3)), a_member("b")))
    assert [len(result.active[name]) for name in "ab"] == [2, 2]
    assert set(result.active["a"]) == {TaskId("0", 0), TaskId("0", 1)}


@BOTH
def test_the_work_of_a_lost_member_goes_to_where_its_standbys_are(assign: Assignor) -> None:
    result = assign(
        a_group(a_member("a", active=(0, 1), standby=(3,)), a_member("b", active=(2,)), standbys=1),
    )
    assert set(result.active["a"]) == {TaskId("0", 0), TaskId("0", 1)}
    assert set(result.active["b"]) == {TaskId("0", 2), TaskId("0", 3)}


def test_from_4_2_subtopologies_are_dealt_one_after_the_other() -> None:
    problem = StreamsGroupProblem(
        subtopologies=(
            ConfiguredSubtopology(id="1", partitions=2, stateful=False),
            ConfiguredSubtopology(id="0", partitions=2, stateful=False),
        ),
        members=(a_member("a"), a_member("b")),
    )
    result = streams_group_sticky(problem)
    for name in "ab":
        assert [task.subtopology for task in result.active[name]] == ["0", "1"]


@BOTH
def test_more_standbys_than_processes_are_a_warning_and_as_many_standbys_as_there_can_be(assign: Assignor) -> None:
    result = assign(a_group(a_member("a"), a_member("b"), a_member("c", "process of b"), partitions=1, standbys=3))
    assert sum(map(len, result.standby.values())) == 1
    assert result.warnings == (
        "unable to assign 2 of 3 standby tasks for task 0_0: every process has a copy of it; add application instances",
    )


def test_from_4_2_a_better_holder_is_missed_when_the_first_one_has_a_copy() -> None:
    # Kafka looks at the first candidate's process last of all: with a copy there, none is found. The task then goes
    # to the least loaded process, here p, instead of back to r.
    problem = StreamsGroupProblem(
        subtopologies=(
            ConfiguredSubtopology(id="0", partitions=1, stateful=True),
            ConfiguredSubtopology(id="1", partitions=3, stateful=False),
        ),
        members=(
            StreamsMember(id="q1", process_id="q", active={"0": (0,), "1": (0, 1)}, standby={}),
            StreamsMember(id="q2", process_id="q", active={}, standby={"0": (0,)}),
            StreamsMember(id="r", process_id="r", active={"1": (2,)}, standby={"0": (0,)}),
            StreamsMember(id="p", process_id="p", active={}, standby={}),
        ),
        num_standby_replicas=1,
    )
    assert streams_group_sticky(problem).standby["p"] == (TaskId("0", 0),)


@BOTH
@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(a_group(a_member("a"), a_member("a")), "member a is listed twice", id="a member id twice"),
        pytest.param(
            replace(
                a_group(a_member("a")), subtopologies=(ConfiguredSubtopology(id="0", partitions=1, stateful=True),) * 2
            ),
            "subtopology 0 is listed twice",
            id="a subtopology twice",
        ),
        pytest.param(a_group(a_member("a"), partitions=-1), "has -1 partitions", id="fewer than no partitions"),
        pytest.param(a_group(a_member("a"), standbys=-1), "num_standby_replicas is -1", id="fewer than no standbys"),
    ],
)
def test_bad_input_is_named(assign: Assignor, problem: StreamsGroupProblem, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        assign(problem)


@BOTH
def test_tasks_without_a_member_are_refused_as_kafka_does(assign: Assignor) -> None:
    with pytest.raises(KafkaRefusal, match="No member available") as refusal:
        assign(a_group())
    assert refusal.value.kafka_name == "TaskAssignorException"
    assert assign(a_group(partitions=0)).active == {}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param({"members": None}, "members is missing", id="no members"),
        pytest.param({"num_standby_replicas": True}, "num_standby_replicas is true", id="a truth value for a number"),
        pytest.param(
            {"subtopologies": [{"id": "0", "partitions": 1, "stateful": 1}]}, "stateful is 1", id="a number for a truth"
        ),
        pytest.param(
            {"subtopologies": [{"id": "0", "partitions": 2**31 - 1, "stateful": True}]},
            "must lie between",
            id="more partitions than fit in memory",
        ),
        pytest.param(
            {"members": [{"id": "a", "process_id": "p", "active": {"0": ["x"]}, "standby": {}}]},
            r"members\[0\].active.0 is 'x'",
            id="a partition in words",
        ),
    ],
)  # fmt: skip
def test_a_malformed_case_is_refused_with_the_field(change: dict[str, Any], sentence: str) -> None:
    case = {"subtopologies": [], "members": [], "num_standby_replicas": 0} | change
    with pytest.raises(BadProblem, match=sentence):
        RUNNERS["group.streams_sticky"](case, "4.3.1")


# --- properties -----------------------------------------------------------------------------------------------------


@st.composite
def groups(draw: st.DrawFn) -> StreamsGroupProblem:
    """Groups with any history: claims of tasks that are gone, contested ones, copies side by side."""
    subtopologies = tuple(
        ConfiguredSubtopology(id=f"{number}", partitions=draw(st.integers(0, 5)), stateful=draw(st.booleans()))
        for number in range(draw(st.integers(1, 3)))
    )
    claims = st.dictionaries(
        st.sampled_from([*(each.id for each in subtopologies), "gone"]),
        st.sets(st.integers(0, 6), max_size=5).map(lambda numbers: tuple(sorted(numbers))),
        max_size=3,
    )
    members = tuple(
        StreamsMember(
            id=f"m{number}", process_id=f"p{draw(st.integers(0, 3))}", active=draw(claims), standby=draw(claims)
        )
        for number in range(draw(st.integers(1, 7)))
    )
    return StreamsGroupProblem(
        subtopologies=subtopologies, members=members, num_standby_replicas=draw(st.integers(0, 3))
    )


@BOTH
@examples(200)
@given(problem=groups())
def test_every_answer_is_valid_and_nobody_has_more_than_the_share(
    assign: Assignor, problem: StreamsGroupProblem
) -> None:
    result = assign(problem)
    assert_valid(problem, result)
    total = sum(each.partitions for each in problem.subtopologies)
    share = -(-total // len(problem.members))
    assert max(map(len, result.active.values())) <= share
    assert result == assign(problem), "equal input gives equal output"


@BOTH
@examples(200)
@given(problem=groups())
def test_what_fits_in_the_smallest_share_stays(assign: Assignor, problem: StreamsGroupProblem) -> None:
    before = rightful_owners(problem)
    result = assign(problem)
    total = sum(each.partitions for each in problem.subtopologies)
    lowest = total // len(problem.members)
    for member in problem.members:
        mine = {task for task, owner in before.items() if owner == member.id}
        if len(mine) <= lowest:
            assert mine <= set(result.active[member.id])


@BOTH
@examples(60)
@given(
    subtopologies=st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=3),
    standbys=st.integers(0, 2),
    events=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=8),
)
def test_active_tasks_settle_over_joins_and_leaves(
    assign: Assignor,
    subtopologies: list[tuple[int, bool]],
    standbys: int,
    events: list[tuple[int, int]],
) -> None:
    problem = StreamsGroupProblem(
        subtopologies=tuple(
            ConfiguredSubtopology(id=f"{number}", partitions=partitions, stateful=stateful)
            for number, (partitions, stateful) in enumerate(subtopologies)
        ),
        members=(),
        num_standby_replicas=standbys,
    )
    for step, (kind, number) in enumerate(events):
        members = list(problem.members)
        if kind < 2 and len(members) > 1:
            note(f"{members.pop(number % len(members)).id} leaves")
        else:
            members.append(a_member(f"m{step}", f"p{number % 4}"))
            note(f"m{step} joins p{number % 4}")
        problem = replace(problem, members=tuple(members))
        for _ in range(10):
            result = assign(problem)
            assert_valid(problem, result)
            settled = {m.id: active_of(m.active) for m in problem.members} == {
                name: set(tasks) for name, tasks in result.active.items()
            }
            problem = next_round(problem, result)
            if settled:
                break
        else:
            pytest.fail(f"active tasks still move after ten rounds of {problem}")


def test_from_4_2_standbys_may_alternate_between_two_answers_for_ever() -> None:
    # Found by random joins and leaves, and so with the broker's own class: the second answer gives back what the first
    # one moved. A broker computes an assignment only when the group changes, so that it does not spin.
    problem = alternating_group()
    first = streams_group_sticky(problem)
    second = streams_group_sticky(next_round(problem, first))
    third = streams_group_sticky(next_round(problem, second))
    assert first.active == second.active == third.active
    assert first.standby == third.standby
    assert first.standby != second.standby


def assert_valid(problem: StreamsGroupProblem, result: StreamsGroupResult) -> None:
    tasks = {TaskId(each.id, p): each.stateful for each in problem.subtopologies for p in range(each.partitions)}
    processes = {member.process_id for member in problem.members}
    assert list(result.active) == list(result.standby) == [member.id for member in problem.members]
    assert Counter(task for mine in result.active.values() for task in mine) == Counter(tasks.keys())
    standbys = Counter(task for mine in result.standby.values() for task in mine)
    for task, stateful in tasks.items():
        wanted = min(problem.num_standby_replicas, len(processes) - 1) if stateful else 0
        assert standbys[task] == wanted, f"{task} has {standbys[task]} standbys"
    assert set(standbys) <= set(tasks)
    for process in processes:
        copies = Counter(
            task
            for member in problem.members
            if member.process_id == process
            for task in (*result.active[member.id], *result.standby[member.id])
        )
        assert all(count == 1 for count in copies.values()), f"{process} has a task twice: {copies}"


def next_round(problem: StreamsGroupProblem, result: StreamsGroupResult) -> StreamsGroupProblem:
    return replace(
        problem,
        members=tuple(
            replace(member, active=partitions(result.active[member.id]), standby=partitions(result.standby[member.id]))
            for member in problem.members
        ),
    )


def partitions(tasks: Iterable[TaskId]) -> dict[str, tuple[int, ...]]:
    numbers: dict[str, tuple[int, ...]] = {}
    for task in tasks:
        numbers[str(task.subtopology)] = (*numbers.get(str(task.subtopology), ()), task.partition)
    return numbers


def active_of(claims: SubtopologyPartitions) -> set[TaskId]:
    return {TaskId(subtopology, number) for subtopology, numbers in claims.items() for number in numbers}


def rightful_owners(problem: StreamsGroupProblem) -> dict[TaskId, str]:
    """Of several that claim a task the last one counts, as in Kafka."""
    tasks = {TaskId(each.id, p) for each in problem.subtopologies for p in range(each.partitions)}
    return {task: member.id for member in problem.members for task in active_of(member.active) & tasks}


def alternating_group() -> StreamsGroupProblem:
    held: list[tuple[str, str, dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]] = [
        ("m0", "p0", {"0": (0,)}, {"1": (0,)}),
        ("m1", "p1", {"0": (1,)}, {"0": (0,)}),
        ("m2", "p2", {}, {"0": (1,)}),
        ("m3", "p3", {}, {"1": (0,)}),
        ("m4", "p2", {}, {"0": (0,)}),
        ("m5", "p3", {}, {"0": (1,)}),
        ("m6", "p2", {"1": (0,)}, {}),
        ("m7", "p2", {}, {}),
    ]
    return StreamsGroupProblem(
        subtopologies=(
            ConfiguredSubtopology(id="0", partitions=2, stateful=True),
            ConfiguredSubtopology(id="1", partitions=1, stateful=True),
        ),
        members=tuple(
            StreamsMember(id=id_, process_id=process, active=active, standby=standby)
            for id_, process, active, standby in held
        ),
        num_standby_replicas=2,
    )
