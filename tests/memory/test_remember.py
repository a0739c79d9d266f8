"""What outlives a cycle: ages, histories, what is only not shown, and all of it across a restart."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.memory.codec import UnreadableMemoryError, memory_from_json, memory_to_json
from agent.memory.remember import MAX_PARTITIONS
from agent.memory.streams import with_reading
from agent.values.finding import FindingReason as Reason
from agent.values.memory import Memory, RackSighting, after_restart
from agent.values.observation import GapCause, GapScope, ObservationPart
from agent.values.snapshot import LagSource
from assignors.problem import TopicPartition
from tests.builders import Answers, Run, an_observation, instance, process_id, reader, with_group
from tests.histories import a_lively_cluster, application, apply

HOUR_MS = 3_600_000


def test_a_finding_keeps_its_age_while_it_lasts_and_when_it_comes_back_soon() -> None:
    answers = an_observation().topic("t", (1,)).group("g", reader("m", None, "t-0"))
    run = Run().look(answers.at(0))
    (found,) = run.of(Reason.MEMBER_WITHOUT_RACK)
    run.look(answers.group("g", reader("m", "a", "t-0")).at(10)).look(answers.at(20))
    assert found.id in run.memory.gone
    (again,) = run.look(answers.group("g", reader("m", None, "t-0")).at(300)).of(Reason.MEMBER_WITHOUT_RACK)
    assert again.since_ms == found.since_ms
    assert run.memory.gone == {}


def test_a_finding_that_comes_back_late_is_new() -> None:
    answers = an_observation().topic("t", (1,)).group("g", reader("m", None, "t-0"))
    run = Run().look(answers.at(0)).look(answers.group("g", reader("m", "a", "t-0")).at(10))
    run.look(answers.at(311))
    (again,) = run.look(answers.group("g", reader("m", None, "t-0")).at(320)).of(Reason.MEMBER_WITHOUT_RACK)
    assert again.since_ms == run.snapshot.taken_ms


@pytest.mark.parametrize(
    ("cause", "subject", "scope"),
    [
        pytest.param(GapCause.TIMED_OUT, "", GapScope.NAMED, id="topics did not answer"),
        pytest.param(GapCause.DOUBTED, "2 topics", GapScope.SEVERAL, id="the observer doubts that they are gone"),
        pytest.param(GapCause.NOT_ALLOWED, "orders", GapScope.NAMED, id="one is refused now"),
    ],
)
def test_topics_that_are_only_not_shown_stay_known_until_a_witness_says_that_they_are_gone(
    cause: GapCause, subject: str, scope: GapScope
) -> None:
    answers = an_observation().topic("orders", (1, 2)).topic("payments", (2, 3))
    run = Run().look(answers.at(0))
    answers.topics.clear()
    answers.gap(ObservationPart.TOPICS, cause, subject, scope)
    run.look(answers.at(10))
    assert set(run.memory.topics) == {"orders", "payments"}
    answers.extra["vanished_topics"] = ("orders",)
    run.look(answers.at(20))
    assert "orders" not in run.memory.topics
    assert "payments" in run.memory.topics


def test_a_topic_that_is_gone_from_a_complete_answer_is_forgotten() -> None:
    answers = an_observation().topic("orders", (1, 2))
    run = Run().look(answers.at(0)).look(answers.without_topic("orders").at(10))
    assert run.memory.topics == {}


def test_groups_that_are_only_not_shown_stay_known() -> None:
    answers = an_observation().topic("t", (1,)).group("g", reader("m", "a", "t-0"))
    run = Run().look(answers.at(0))
    run.look(answers.without_group("g").gap(ObservationPart.GROUPS).at(10))
    assert run.memory.groups == ("g",)
    answers.extra["vanished_groups"] = ("g",)
    assert run.look(answers.at(20)).memory.groups == ()


def test_while_moves_are_not_shown_those_that_ran_are_still_known() -> None:
    answers = an_observation().topic("t", (1, 2, 3)).moving("t-0", (1, 2, 3), (3,), (2,))
    run = Run().look(answers.at(0))
    answers.moves.clear()
    assert set(run.look(answers.gap(ObservationPart.REASSIGNMENTS).at(10)).memory.reassignments) == {
        TopicPartition("t", 0)
    }
    answers.gaps.clear()
    assert run.look(answers.at(20)).memory.reassignments == {}


def test_a_memory_does_not_grow_with_time() -> None:
    answers = a_lively_cluster()
    run = Run()
    sizes = []
    for turn in range(120):
        for step in (("relabel", 1, turn), ("rebalance", turn, turn), ("create", turn, turn), ("delete", turn + 1, 0)):
            apply(step, answers, 30.0 * turn)  # type: ignore[arg-type]
        run.look(application(answers, turn, 1_000 * turn).at(30.0 * turn))
        sizes.append(len(memory_to_json(run.memory)))
    assert max(sizes[90:]) <= 1.1 * max(sizes[60:90])


def test_a_rack_sighting_counts_looks_and_changes() -> None:
    answers = an_observation()
    run = Run().look(answers.at(0)).look(answers.at(10))
    assert run.memory.brokers[2] == RackSighting("b", "b", None, 50_000_000, 2, ())
    run.look(answers.broker(2, None).at(20))
    assert run.memory.brokers[2] == RackSighting(None, "b", None, 50_020_000, 1, (50_020_000,))
    run.look(answers.broker(2, "c").at(30))
    assert run.memory.brokers[2] == RackSighting("c", "c", "b", 50_030_000, 1, (50_020_000, 50_030_000))


def test_byte_rates_are_not_kept_of_a_large_cluster() -> None:
    answers = an_observation().topic("t", (1,))
    run = Run().look(answers.at(0))
    assert len(run.memory.rate_bases) == 1
    answers.ends = {TopicPartition("t", number): 1 for number in range(MAX_PARTITIONS + 1)}
    run.look(answers.at(10))
    assert run.memory.rate_bases == ()
    assert run.look(answers.at(20)).snapshot.bytes_per_s == {}


@pytest.mark.parametrize(
    ("samples", "taken_ms", "lag", "source", "kept"),
    [
        pytest.param((), 10, 5, LagSource.APPLICATION, 1, id="the first"),
        pytest.param(((10, 5),), 10, 5, LagSource.APPLICATION, 1, id="the same reading again"),
        pytest.param(((10, 5),), 9, 4, LagSource.APPLICATION, 1, id="an older one, late"),
        pytest.param(((10, 5),), 11, 5, LagSource.APPLICATION, 2, id="a new one that says the same"),
        pytest.param(((10, 5),), 11, 5, LagSource.BROKER, 1, id="the broker passes the same on again"),
        pytest.param(((10, 5),), 60_011, 5, LagSource.BROKER, 2, id="the same from the broker after a minute"),
        pytest.param(tuple((n, 5) for n in range(8)), 9, 5, LagSource.APPLICATION, 8, id="more than are kept"),
    ],
)
def test_readings_are_kept_once(
    samples: tuple[tuple[int, int], ...], taken_ms: int, lag: int, source: LagSource, kept: int
) -> None:
    assert len(with_reading(samples, taken_ms, lag, source)) == kept


# --- written and read ---------------------------------------------------------------------------------------


def a_rich_memory() -> tuple[Run, Answers]:
    """A memory with something in every field."""
    answers = a_lively_cluster()
    answers.sizes = {(1, TopicPartition("orders", 0)): 1_000_000}
    run = Run(with_group("app", num_standby_replicas=0)).look(answers.at(0))
    for turn, name in enumerate(
        ("relabel", "start moving", "throttle", "hide", "join", "restore", "create", "restore")
    ):
        apply((name, 3, 401), answers, 10.0 * turn)
        run.look(answers.at(10.0 * (turn + 1)))
    answers.topic("wider", (1, 2))
    run.look(answers.at(90.0))
    answers.topic("wider", (1, 2, 3))
    run.look(answers.at(100.0))
    run.memory = replace(
        run.memory,
        acts={"group/app": run.memory.monotonic_ms - 5},
        absent={9: run.memory.monotonic_ms - 5},
        own_reassignments=frozenset([TopicPartition("orders", 1)]),
        bytes_per_record={"orders": 101.25},
    )
    return run, answers


def test_every_field_is_written_and_read() -> None:
    run, _ = a_rich_memory()
    empty = Memory()
    fields = [name for name in Memory.__dataclass_fields__ if name not in ("topic_states", "removed", "last_live")]
    assert [name for name in fields if getattr(run.memory, name) == getattr(empty, name)] == []
    read = memory_from_json(memory_to_json(run.memory))
    assert read == run.memory
    assert read.topic_states == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="cut off"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="no version"),
        pytest.param('{"v": 2}', id="a version to come"),
        pytest.param('{"v": 1}', id="fields missing"),
        pytest.param("[" * 100_000, id="nested without end"),
        pytest.param(memory_to_json(Memory()).replace('"cycle":0', '"cycle":"x"'), id="a text for a number"),
        pytest.param(
            memory_to_json(Memory()).replace('"topics":{}', '"topics":{"t":["id",[7]]}'),
            id="an index that is not there",
        ),
    ],
)
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UnreadableMemoryError, match=r"^the remembered state .*; it is ignored$"):
        memory_from_json(text)


FIELDS = sorted(json.loads(memory_to_json(Memory())))


def nested(of: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(of) | st.dictionaries(st.sampled_from(FIELDS), of)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), nested))
def test_foreign_json_gives_a_memory_or_the_one_error(value: object) -> None:
    if isinstance(value, dict):
        value = json.loads(memory_to_json(Memory())) | value | {"v": 1}
    try:
        memory = memory_from_json(json.dumps(value))
    except UnreadableMemoryError:
        return
    assert isinstance(memory, Memory)


@pytest.mark.parametrize(
    ("passed_ms", "counted_ms"),
    [
        pytest.param(60_000, 60_000, id="a minute later"),
        pytest.param(0, 0, id="at once"),
        pytest.param(-HOUR_MS, 0, id="the wall clock went back an hour"),
    ],
)
def test_after_a_restart_durations_go_on_by_the_wall_clock(passed_ms: int, counted_ms: int) -> None:
    run, _ = a_rich_memory()
    before = run.memory
    after = after_restart(before, before.taken_ms + passed_ms, monotonic_ms=7)
    assert after.monotonic_ms == 7 - counted_ms
    assert 7 - after.brokers[4].since_ms == before.monotonic_ms - before.brokers[4].since_ms + counted_ms
    assert 7 - after.rebalancing["readers"] == before.monotonic_ms - before.rebalancing["readers"] + counted_ms
    assert 7 - after.acts["group/app"] == 5 + counted_ms
    assert after.first_seen == before.first_seen, "ages are on the wall clock anyway"


def test_a_restart_on_a_machine_with_another_clock_changes_no_finding() -> None:
    run, answers = a_rich_memory()
    second = 100.0
    later = answers.at(second)
    moved = replace(later, monotonic_ms=3_000_000)
    wall_ms = run.memory.taken_ms + (later.monotonic_ms - run.memory.monotonic_ms)
    text = memory_to_json(run.memory)
    fresh = Run(run.limits, memory=after_restart(memory_from_json(text), wall_ms, moved.monotonic_ms))
    expected = [(f.id, f.sentence, f.since_ms, f.held) for f in run.look(later).detection.findings]
    assert [(f.id, f.sentence, f.since_ms, f.held) for f in fresh.look(moved).detection.findings] == expected
    assert {reason.name for reason in (f.reason for f in fresh.detection.findings)} >= {"BROKER_RACK_CHANGED"}


def test_interrupted_after_any_look_the_next_process_goes_on_as_if_nothing_had_happened() -> None:
    """Killed after each look in turn: the memory of the last finished look is all that the next process has."""
    answers = (
        an_observation().topic("in", (1, 2), (2, 3)).topic("app-store-changelog", (1, 2), (2, 3), ends=[9_000_000] * 2)
    )
    looks = []
    for turn in range(8):
        answers.streams(
            "app",
            instance(1, "a", {"0_0": "in-0", "0_1": "in-1"}, sums={"0_0": -2, "0_1": -2}, generation=turn // 3),
            instance(
                2, "b", {}, {"0_1": "in-1"}, sums={"0_1": 100_000 * (turn // 3)}, topics=("in",), generation=turn // 3
            ),
        )
        answers.says("app", process_id(2), "0_1", "standby", 9_000_000 - 70_000 * turn, at_s=10 * turn)
        looks.append(answers.at(10 * turn))
    limits = with_group("app", num_standby_replicas=0)
    whole = Run(limits)
    wanted = [(whole.look(look).snapshot, whole.detection) for look in looks]
    for stop in range(1, len(looks)):
        first = Run(limits)
        for look in looks[:stop]:
            first.look(look)
        second = Run(limits, memory=memory_from_json(memory_to_json(first.memory)))
        for number, look in enumerate(looks[stop:], start=stop):
            second.look(look)
            assert (second.snapshot, second.detection) == wanted[number], f"killed after look {stop}, seen in {number}"
