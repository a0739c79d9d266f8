"""Which partitions a task reads and restores from: inferred from members' bytes, declared by the group, or hinted."""

from __future__ import annotations

import pytest

from agent.decode.decode_context import DecodeContext
from agent.decode.values import Assignment
from agent.model.topology import TAKEN_FOR_CHANGELOG
from agent.values.limits import Limits, TopologyHint
from agent.values.observation import GapCause, ObservationPart
from agent.values.snapshot import NO_CHANGELOG_SEEN, StreamsGroup, StreamsTopology, TaskStatefulness
from tests.builders import Answers, Run, an_observation, instance, process_id, streams_member, subtopology, with_group
from tests.decode.assignments import decode_assignment, encode_assignment

STATE, SOURCE, UNKNOWN = TaskStatefulness.CHANGELOG, TaskStatefulness.SOURCE_CHANGELOG, TaskStatefulness.UNKNOWN


def a_cluster(*topics: str) -> Answers:
    """Topics of two partitions each; ``name:3`` has three."""
    answers = an_observation()
    for topic in topics:
        name, _, partitions = topic.partition(":")
        answers.topic(name, *[(1, 2, 3)] * int(partitions or 2))
    return answers


def topology_of(answers: Answers, limits: Limits | None = None) -> StreamsTopology:
    group = Run(limits).look(answers.at(0)).snapshot.groups["app"]
    assert isinstance(group, StreamsGroup)
    assert group.topology is not None
    return group.topology


def summary(topology: StreamsTopology) -> dict[str, tuple[TaskStatefulness, tuple[str, ...]]]:
    """Subtopology -> (statefulness, changelog topics)."""
    return {
        str(task.id.subtopology): (task.statefulness, tuple(tp.topic for tp in task.changelogs))
        for task in topology.tasks
    }


ONE = {"0_0": "in-0", "0_1": "in-1"}
TWO = ONE | {"1_0": "app-store-repartition-0", "1_1": "app-store-repartition-1"}
TWO_PLAIN = ONE | {"1_0": "more-0", "1_1": "more-1"}


@pytest.mark.parametrize(
    ("topics", "active", "sums", "owned", "expected"),
    [
        pytest.param(
            ["in", "app-store-changelog"],
            ONE,
            {"0_0": -2},
            "",
            {"0": (STATE, ("app-store-changelog",))},
            id="one and one",
        ),
        pytest.param(
            ["in", "app-store-changelog"],
            ONE,
            {},
            "",
            {"0": (STATE, ("app-store-changelog",))},
            id="before any member sent sums",
        ),
        pytest.param(
            ["in", "app-a-changelog", "app-b-changelog"],
            ONE,
            {"0_0": 5},
            "",
            {"0": (STATE, ("app-a-changelog", "app-b-changelog"))},
            id="two stores",
        ),
        pytest.param(
            ["in", "app-store-repartition", "app-store-changelog"],
            TWO,
            {},
            "",
            {"0": (UNKNOWN, ()), "1": (STATE, ("app-store-changelog",))},
            id="told apart by the repartition topic's name",
        ),
        pytest.param(
            ["in", "more", "app-store-changelog"],
            TWO_PLAIN,
            {"1_0": -2},
            "in-0 in-1 more-0",
            {"0": (UNKNOWN, ()), "1": (STATE, ("app-store-changelog",))},
            id="told apart by offset sums, of which the other had none",
        ),
        pytest.param(
            ["in", "more", "app-store-changelog"],
            TWO_PLAIN,
            {"1_0": -2},
            "",
            {"0": (UNKNOWN, ()), "1": (UNKNOWN, ())},
            id="the other may have been new, so either could own it",
        ),
        pytest.param(
            ["in", "more:3", "app-store-changelog:3"],
            ONE | {"1_2": "more-2"},
            {},
            "",
            {"0": (UNKNOWN, ()), "1": (STATE, ("app-store-changelog",))},
            id="told apart by the number of partitions",
        ),
        pytest.param(["in"], ONE, {}, "", {"0": (UNKNOWN, ())}, id="no changelog: no state, or not logged"),
        pytest.param(
            ["in"], ONE, {"0_0": -2}, "", {"0": (SOURCE, ("in",))}, id="state without changelog topic: the source"
        ),
        pytest.param(
            ["in", "table"],
            {"0_0": "in-0 table-0", "0_1": "in-1 table-1"},
            {"0_0": -2},
            "",
            {"0": (UNKNOWN, ())},
            id="state without changelog topic, and two sources",
        ),
        pytest.param(
            ["in", "app-eu-store-changelog"],
            ONE,
            {"0_0": -2},
            "",
            {"0": (STATE, ("app-eu-store-changelog",))},
            id="a changelog that no other group's name explains",
        ),
        pytest.param(
            ["in", "other-store-changelog"], ONE, {}, "", {"0": (UNKNOWN, ())}, id="another application's changelog"
        ),
    ],
)
def test_inferred(
    topics: list[str],
    active: dict[str, str],
    sums: dict[str, int],
    owned: str,
    expected: dict[str, tuple[TaskStatefulness, tuple[str, ...]]],
) -> None:
    answers = a_cluster(*topics).streams("app", instance(1, "a", active, sums=sums, owned=owned))
    topology = topology_of(answers)
    assert summary(topology) == expected
    assert topology.source == "inferred"


def test_a_changelog_belongs_to_the_application_with_the_longest_fitting_name() -> None:
    answers = a_cluster("in", "app-eu-store-changelog").streams("app", instance(1, "a", ONE, sums={"0_0": -2}))
    answers.streams("app-eu", instance(2, "a", ONE, sums={"0_0": -2}))
    assert summary(topology_of(answers)) == {"0": (SOURCE, ("in",))}


def test_standby_tasks_prove_state_and_bring_their_sources() -> None:
    answers = a_cluster("in", "app-store-changelog").streams(
        "app", instance(1, "a", {"0_0": "in-0"}, {"0_1": "in-1"}), instance(2, "b", {"0_1": "in-1"}, {"0_0": "in-0"})
    )
    tasks = topology_of(answers).tasks
    assert [
        (str(task.id), [str(tp) for tp in task.sources], [str(tp) for tp in task.changelogs]) for task in tasks
    ] == [
        ("0_0", ["in-0"], ["app-store-changelog-0"]),
        ("0_1", ["in-1"], ["app-store-changelog-1"]),
    ]


def test_tasks_that_nobody_shows_follow_from_the_partitions_of_the_sources() -> None:
    answers = a_cluster("in:4", "app-store-changelog:4").streams("app", instance(1, "a", {"0_1": "in-1"}))
    assert [str(task.id) for task in topology_of(answers).tasks] == ["0_0", "0_1", "0_2", "0_3"]


def test_a_shorter_source_topic_is_not_read_by_the_later_tasks() -> None:
    answers = a_cluster("in:3", "rare:1").streams("app", instance(1, "a", {"0_0": "in-0 rare-0", "0_1": "in-1"}))
    assert [[str(tp) for tp in task.sources] for task in topology_of(answers).tasks] == [
        ["in-0", "rare-0"],
        ["in-1"],
        ["in-2"],
    ]


def test_what_is_not_certain_is_noted() -> None:
    answers = a_cluster("in").streams("app", instance(1, "a", ONE, sums={"0_0": -2}))
    assert topology_of(answers).tasks[0].note == TAKEN_FOR_CHANGELOG
    answers = a_cluster("in").streams("app", instance(1, "a", ONE))
    assert topology_of(answers).tasks[0].note == NO_CHANGELOG_SEEN


def test_while_topics_are_not_all_shown_no_source_is_taken_for_a_changelog() -> None:
    answers = a_cluster("in").streams("app", instance(1, "a", ONE, sums={"0_0": -2}))
    answers.gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED, "app-store-changelog")
    assert summary(topology_of(answers)) == {"0": (UNKNOWN, ())}


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        pytest.param(
            TopologyHint(stateless_subtopologies=("0",)), (TaskStatefulness.STATELESS, ()), id="it has no state at all"
        ),
        pytest.param(
            TopologyHint(no_changelog_subtopologies=("0",)),
            (TaskStatefulness.NO_CHANGELOG, ()),
            id="its stores are not logged",
        ),
        pytest.param(TopologyHint(source_changelogs=("in",)), (SOURCE, ("in",)), id="its source is its changelog"),
        pytest.param(
            TopologyHint(changelogs={"0": ("custom",)}), (STATE, ("custom",)), id="its changelog has another name"
        ),
    ],
)
def test_a_hint_goes_before_everything(hint: TopologyHint, expected: tuple[TaskStatefulness, tuple[str, ...]]) -> None:
    answers = a_cluster("in", "custom").streams("app", instance(1, "a", ONE))
    topology = topology_of(answers, with_group("app", topology=hint))
    assert summary(topology) == {"0": expected}
    assert topology.source == "hint"
    assert {task.note for task in topology.tasks} == {""}


def test_a_hint_may_add_the_source_to_a_changelog_that_was_found() -> None:
    answers = a_cluster("in", "app-store-changelog").streams("app", instance(1, "a", ONE, sums={"0_0": -2}))
    hint = TopologyHint(source_changelogs=("in",))
    assert summary(topology_of(answers, with_group("app", topology=hint))) == {
        "0": (STATE, ("app-store-changelog", "in"))
    }


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        pytest.param(
            subtopology("0", "in", "app-store-changelog"), (STATE, ("app-store-changelog",)), id="a changelog"
        ),
        pytest.param(subtopology("0", "in", "in"), (SOURCE, ("in",)), id="the source topic"),
        pytest.param(subtopology("0", "in", ""), (UNKNOWN, ()), id="none: no state, or not logged"),
        pytest.param(
            subtopology("0", "", "app-store-changelog", repartition="in"),
            (STATE, ("app-store-changelog",)),
            id="behind a repartition topic",
        ),
    ],
)
def test_declared(declared: object, expected: tuple[TaskStatefulness, tuple[str, ...]]) -> None:
    member = streams_member(1, "a", active="0_0 0_1")
    answers = a_cluster("in", "app-store-changelog").kip1071("app", member, subtopologies=(declared,))  # type: ignore[arg-type]
    topology = topology_of(answers)
    assert summary(topology) == {"0": expected}
    assert (topology.source, len(topology.tasks)) == ("declared", 2)


def test_a_group_that_declared_nothing_yet_has_no_topology() -> None:
    answers = a_cluster("in").kip1071("app", streams_member(1, "a"), subtopologies=None, state="NotReady")
    group = Run().look(answers.at(0)).snapshot.groups["app"]
    assert isinstance(group, StreamsGroup)
    assert group.topology is None
    assert group.members[0].assigned is None


def test_threads_of_one_process_are_one_process_with_their_number_as_capacity() -> None:
    answers = a_cluster("in", "app-store-changelog").streams(
        "app",
        instance(1, "a", {"0_0": "in-0"}, tags=(("zone", "z1"),)),
        instance(1, "a", {"0_1": "in-1"}, thread=2, tags=(("zone", "z1"), ("cluster", "k"))),
    )
    group = Run().look(answers.at(0)).snapshot.groups["app"]
    assert isinstance(group, StreamsGroup)
    (process,) = group.processes
    assert (process.id, process.capacity, process.rack.name) == (process_id(1), 2, "a")
    assert process.tags == (("zone", "z1"),), "only what all threads agree on"
    assert [str(task) for task in process.active] == ["0_0", "0_1"]
    assert process.client_ids == ("app-1-StreamThread-1-consumer", "app-1-StreamThread-2-consumer")


def test_a_member_that_lists_other_tasks_than_partitions_is_named_and_tells_of_no_task() -> None:
    broken = instance(1, "a", {"0_0": "in-0"})[0]
    other = instance(2, "b", {"0_0": "in-0", "0_1": "in-1"})[0]
    answers = a_cluster("in").streams(
        "app", (broken._replace(assignment=_spliced(broken.assignment, other.assignment)),)
    )
    group = Run().look(answers.at(0)).snapshot.groups["app"]
    assert isinstance(group, StreamsGroup)
    assert [(d.what, d.reason) for d in group.members[0].defects] == [
        ("assignment user data", "tasks and partitions do not match")
    ]
    assert group.topology is None


def _spliced(assignment: bytes, other: bytes) -> bytes:
    """The partitions of one assignment with the user data of another."""
    mine, theirs = decode_assignment(assignment, DecodeContext()), decode_assignment(other, DecodeContext())
    assert isinstance(mine, Assignment)
    assert isinstance(theirs, Assignment)
    return encode_assignment(mine._replace(user_data=theirs.user_data))
