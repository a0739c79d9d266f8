"""What holds for every history: unknown and flapping racks, memos, restarts, and equal answers to equal looks."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.memory.codec import memory_from_json, memory_to_json
from agent.values.finding import FindingReason as Reason
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from tests.builders import Run, an_observation, with_group
from tests.histories import Step, a_lively_cluster, apply, histories

History = list[tuple[list[Step], int]]


def observations(history: History) -> list[Observation]:
    answers, second = a_lively_cluster(), 0.0
    looks = [answers.at(second)]
    for steps, wait in history:
        second += wait
        for step in steps:
            apply(step, answers, second)
        looks.append(answers.at(second))
    return looks


@given(histories)
def test_a_memo_never_changes_a_result(history: History) -> None:
    with_memos, without = Run(), Run(memos=False)
    for observation in observations(history):
        with_memos.look(observation)
        without.look(deepcopy(observation))
        assert with_memos.snapshot == without.snapshot
        assert with_memos.detection == without.detection
        assert with_memos.memory == without.memory


@given(histories)
def test_a_memory_survives_being_written_and_read_and_the_next_look_is_the_same(history: History) -> None:
    limits = with_group("app", num_standby_replicas=0)
    run = Run(limits)
    *before, last = observations(history)
    for observation in before:
        run.look(observation)
        written = memory_to_json(run.memory)
        assert memory_from_json(written) == run.memory
        assert memory_to_json(memory_from_json(written)) == written
    restarted = Run(limits, memory=memory_from_json(memory_to_json(run.memory)))
    run.look(last)
    restarted.look(last)
    assert restarted.snapshot == run.snapshot
    assert restarted.detection == run.detection


@given(histories)
def test_equal_observations_give_equal_snapshots_and_a_quiet_look_the_same_objects(history: History) -> None:
    run = Run()
    for observation in observations(history):
        run.look(observation)
    before = run.snapshot
    run.look(deepcopy(observation))
    assert run.snapshot.topics is before.topics
    assert run.snapshot.groups is before.groups
    assert run.snapshot.brokers == before.brokers


@given(histories)
def test_findings_are_unique_ordered_dated_and_readable(history: History) -> None:
    run = Run()
    for observation in observations(history):
        run.look(observation)
        ids = [finding.id for finding in run.detection.findings]
        assert len(ids) == len(set(ids))
        order = {"critical": 0, "warning": 1, "info": 2}
        keys = [(order[finding.severity], finding.id) for finding in run.detection.findings]
        assert keys == sorted(keys)
        for finding in run.detection.findings:
            assert finding.since_ms <= observation.taken_ms
            assert 20 < len(finding.sentence) < 600
            assert "  " not in finding.sentence
            assert "None" not in finding.sentence


@given(st.lists(st.integers(1, 59), min_size=1, max_size=25), st.integers(1, 40))
def test_however_often_a_rack_flaps_it_is_planned_from_at_most_once(holds_s: list[int], poll_s: int) -> None:
    """A rack that never holds still for a minute, then rests: what rests on it becomes free to plan from once."""
    answers = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("orders", (1, 2, 3), (2, 3, 1))
    run = Run().look(answers.at(0))
    onsets: Counter[Reason] = Counter()
    free_before: set[Reason] = set()
    times = [(turn, at) for turn, hold_s in enumerate(holds_s) for at in range(0, hold_s, poll_s)]
    rests = [(len(holds_s), at) for at in range(0, 4_000, 60)]
    begins = [1 + sum(holds_s[:turn]) for turn in range(len(holds_s) + 1)]
    for turn, at in (*times, *rests):
        answers.broker(2, "bc"[turn % 2])
        run.look(answers.at(begins[turn] + at))
        free = {f.reason for f in run.detection.findings if str(f.subject) == "broker/2" and not f.held}
        onsets.update(free - free_before)
        free_before = free
    assert not onsets or max(onsets.values()) == 1


@given(
    st.lists(st.sampled_from(("a", "b", "c", None)), min_size=6, max_size=6),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=6),
)
def test_what_is_said_of_replicas_holds_for_every_rack_that_an_unknown_broker_may_be_in(
    racks: list[str | None], placed: list[tuple[int, int, int]]
) -> None:
    """An unknown rack is never taken for equal or different: a complaint must be true whatever it turns out to be."""
    replicas = [tuple(dict.fromkeys(of)) for of in placed]

    def complaints(of: list[str | None]) -> int:
        answers = an_observation(a=()).topic("orders", *replicas)
        for number, rack in enumerate(of):
            answers.broker(number + 1, rack)
        found = Run(Limits()).look(answers.at(0)).of(Reason.REPLICAS_SHARE_RACK)
        return sum(int(str(dict(finding.evidence)["partitions"])) for finding in found)

    unknown = [number for number, rack in enumerate(racks) if rack is None][:3]
    known = complaints(racks)
    for choice in range(3 ** len(unknown)):
        guess = [rack if rack is not None else "a" for rack in racks]
        for position, number in enumerate(unknown):
            guess[number] = "abc"[choice // 3**position % 3]
        assert known <= complaints(guess)


@pytest.mark.parametrize("lost_after", range(1, 5))
def test_an_agent_that_lost_its_memory_finds_the_same_faults_but_no_changes(lost_after: int) -> None:
    history: History = [
        ([("lose replicas", 0, 0)], 10),
        ([("rebalance", 1, 2)], 10),
        ([("throttle", 1, 0)], 10),
        ([], 10),
    ]
    looks = observations(history)
    run = Run()
    for observation in looks:
        run.look(observation)
    fresh = Run(memory=Memory())
    for observation in looks[lost_after:]:
        fresh.look(observation)
    changes = {Reason.REPLICA_RACKS_CHANGED, Reason.BROKER_RACK_CHANGED, Reason.RACK_FLAPPING}
    # Warm-ups are given time from the rebalance on, or from when the agent came: a newcomer is as patient as the first.
    changes.add(Reason.WARMUP_UNSURE)
    assert [(f.id, f.sentence) for f in fresh.detection.findings if f.reason not in changes] == [
        (f.id, f.sentence) for f in run.detection.findings if f.reason not in changes
    ]
    news = changes - {Reason.WARMUP_UNSURE}
    assert [f.id for f in fresh.detection.findings if f.reason in news] == []


def test_the_order_in_which_answers_came_does_not_matter() -> None:
    look = a_lively_cluster().at(0)
    turned = replace(
        look,
        brokers=look.brokers[::-1],
        topics=look.topics[::-1],
        groups=look.groups[::-1],
        listed_groups=look.listed_groups[::-1],
    )
    assert Run().look(look).snapshot == Run().look(turned).snapshot
