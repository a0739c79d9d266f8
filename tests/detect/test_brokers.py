"""Brokers and their racks: what is found when a rack changes, is missing, flaps, or is written in two ways."""

from __future__ import annotations

import pytest

from agent.values.finding import FindingReason as Reason
from agent.values.finding import FindingSeverity
from agent.values.limits import Limits, RackLimits
from agent.values.observation import GapCause, ObservationPart
from tests.builders import Answers, Run, an_observation, reader


def test_a_broker_that_came_back_in_another_rack_is_found_at_the_next_look_and_held() -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3,))
    run = Run().look(answers.at(0))
    assert run.of(Reason.BROKER_RACK_CHANGED) == []

    (found,) = run.look(answers.broker(2, "c").at(10)).of(Reason.BROKER_RACK_CHANGED)
    assert str(found.subject) == "broker/2"
    assert found.sentence == (
        "broker 2 is in rack c now and was in rack b before; "
        "nothing is planned from it until it has been stable for 60 s and 3 looks"
    )
    assert found.held
    assert dict(found.evidence)["rack before"] == "b"


@pytest.mark.parametrize(
    ("seconds", "held"),
    [
        pytest.param([20, 30, 69], True, id="long enough in looks, a second short in time"),
        pytest.param([20, 70], False, id="a minute and three looks"),
        pytest.param([70], True, id="long enough in time, two looks only"),
        pytest.param([20, 30, 40, 50, 60, 70, 600], False, id="for ten minutes"),
    ],
)
def test_a_new_rack_is_held_until_it_has_held_still(seconds: list[int], held: bool) -> None:
    answers = an_observation()
    run = Run().look(answers.at(0)).look(answers.broker(2, "c").at(10))
    for second in seconds:
        run.look(answers.at(second))
    (found,) = run.of(Reason.BROKER_RACK_CHANGED)
    assert found.held is held
    assert found.since_ms == run.memory.first_seen[found.id]


def test_a_change_is_forgotten_after_the_window() -> None:
    answers = an_observation()
    run = Run().look(answers.at(0)).look(answers.broker(2, "c").at(10))
    assert run.look(answers.at(1_809)).of(Reason.BROKER_RACK_CHANGED)
    assert not run.look(answers.at(1_811)).of(Reason.BROKER_RACK_CHANGED)


def test_a_rack_that_changes_three_times_in_half_an_hour_flaps_and_stays_held_however_still_it_holds() -> None:
    answers = an_observation()
    run = Run().look(answers.at(0))
    for second, rack in ((100, "c"), (200, "b"), (300, "c")):
        run.look(answers.broker(2, rack).at(second))
    for second in (310, 320, 400, 1_000):
        run.look(answers.at(second))
    (flapping,) = run.of(Reason.RACK_FLAPPING)
    assert flapping.held
    assert flapping.sentence.startswith("the rack of broker 2 keeps changing, 3 times within 30 min")
    assert all(found.held for found in run.of(Reason.BROKER_RACK_CHANGED))
    run.look(answers.at(2_200))
    assert not run.of(Reason.RACK_FLAPPING)


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        pytest.param(
            lambda answers: answers.broker(2, None),
            "broker 2 has no broker.rack, while others are in a and c: set broker.rack and restart it",
            id="one broker of three",
        ),
        pytest.param(
            lambda answers: answers.broker(1, "").broker(2, "").broker(3, ""),
            "broker 2 has no broker.rack, and no other broker has one: set broker.rack",
            id="all brokers, with an empty text as rack",
        ),
    ],
)
def test_a_missing_rack_is_found(prepare: object, sentence: str) -> None:
    answers = an_observation()
    prepare(answers)  # type: ignore[operator]
    found = Run().look(answers.at(0)).of(Reason.BROKER_RACK_MISSING)
    assert sentence in [finding.sentence for finding in found]


def test_an_absent_broker_keeps_its_last_rack_and_is_no_finding() -> None:
    answers = an_observation().topic("orders", (1, 2, 3))
    run = Run().look(answers.at(0)).look(answers.without_broker(2).at(10))
    assert not run.of(Reason.BROKER_RACK_MISSING)
    assert not run.of(Reason.BROKER_RACK_CHANGED)
    broker = run.snapshot.broker(2)
    assert broker is not None
    assert (broker.rack.name, broker.rack.remembered, broker.alive) == ("b", True, False)


def test_a_broker_that_loses_its_rack_has_a_missing_rack_not_a_changed_one() -> None:
    answers = an_observation()
    run = Run().look(answers.at(0)).look(answers.broker(2, None).at(10))
    assert [str(f.subject) for f in run.of(Reason.BROKER_RACK_MISSING)] == ["broker/2"]
    assert dict(run.of(Reason.BROKER_RACK_MISSING)[0].evidence)["last known rack"] == "b"
    assert not run.of(Reason.BROKER_RACK_CHANGED)
    assert not run.look(answers.broker(2, "b").at(20)).of(Reason.BROKER_RACK_CHANGED)


def test_while_brokers_do_not_answer_no_rack_is_missing_and_one_finding_says_why() -> None:
    answers = an_observation().topic("orders", (1, 2, 3))
    run = Run().look(answers.at(0))
    for broker in (1, 2, 3):
        answers.without_broker(broker)
    run.look(answers.gap(ObservationPart.BROKERS).at(10))
    assert [f.reason for f in run.detection.findings if f.severity is FindingSeverity.CRITICAL] == [Reason.PART_MISSING]
    assert not run.of(Reason.BROKER_RACK_MISSING)


def test_a_cluster_that_answers_with_no_brokers_yet_is_doubted_not_believed() -> None:
    answers = an_observation()
    for broker in (1, 2, 3):
        answers.without_broker(broker)
    run = Run().look(answers.at(0))
    (found,) = run.of(Reason.PART_MISSING)
    assert "lists no broker" in found.sentence
    assert [(gap.part, gap.cause) for gap in run.snapshot.gaps] == [(ObservationPart.BROKERS, GapCause.DOUBTED)]


@pytest.mark.parametrize(
    ("prepare", "spellings"),
    [
        pytest.param(lambda a: a.broker(4, "A"), ("A", "a"), id="two brokers, other case"),
        pytest.param(
            lambda a: a.broker(1, "eu_west-1a").broker(4, "eu-west-1a"),
            ("eu-west-1a", "eu_west-1a"),
            id="two brokers, other separator",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2)).group("g", reader("m", "b ", "orders-0")),
            ("b", "b "),
            id="a client's space",
        ),
    ],
)
def test_one_rack_in_two_spellings_is_found(prepare: object, spellings: tuple[str, ...]) -> None:
    answers = an_observation()
    prepare(answers)  # type: ignore[operator]
    (found,) = Run().look(answers.at(0)).of(Reason.RACK_SPELLING)
    assert dict(found.evidence)["spellings"] == spellings
    assert "Kafka compares racks letter by letter" in found.sentence


@pytest.mark.parametrize(
    "racks",
    [
        ("zone1", "zone2", "zone11"),
        ("1-11", "11-1", "111"),
        ("+", "-", "*"),
        ("กา", "กี", "กุ"),
    ],
    ids=["numbers", "rooms and rows", "signs alone", "vowels that are marks"],
)
def test_racks_that_only_look_alike_are_not_one_rack(racks: tuple[str, ...]) -> None:
    answers = an_observation(**{rack: (number,) for number, rack in enumerate(racks, 1)})
    assert not Run().look(answers.at(0)).of(Reason.RACK_SPELLING)


@pytest.mark.parametrize(
    ("prepare", "found"),
    [
        pytest.param(lambda a: a, False, id="every broker has Kafka's rack-aware selector"),
        pytest.param(lambda a: a.selector(None), True, id="no broker has one"),
        pytest.param(lambda a: a.broker_configs.update({3: {}}), True, id="one broker lacks it"),
        pytest.param(
            lambda a: a.selector("com.example.Nearest"), False, id="a selector of their own: it cannot be told"
        ),
        pytest.param(lambda a: a.broker_configs.clear(), False, id="the configs did not answer"),
        pytest.param(
            lambda a: a.selector(None).broker(1, "a").broker(2, "a").broker(3, "a"),
            False,
            id="one rack: nothing is far",
        ),
    ],
)
def test_a_selector_that_ignores_racks_is_found(prepare: object, found: bool) -> None:
    answers = an_observation()
    prepare(answers)  # type: ignore[operator]
    findings = Run().look(answers.at(0)).of(Reason.SELECTOR_NOT_RACK_AWARE)
    assert bool(findings) is found
    if found:
        assert (
            "set replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
            in findings[0].sentence
        )


def test_shorter_waits_are_settings() -> None:
    answers: Answers = an_observation()
    run = (
        Run(Limits(racks=RackLimits(stable_for_ms=5_000, stable_polls=2)))
        .look(answers.at(0))
        .look(answers.broker(2, "c").at(10))
    )
    assert run.of(Reason.BROKER_RACK_CHANGED)[0].held
    assert not run.look(answers.at(16)).of(Reason.BROKER_RACK_CHANGED)[0].held
