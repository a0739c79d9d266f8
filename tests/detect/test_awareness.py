"""Why an assignor does not look at racks: the conditions of KIP-881 and KIP-925, read from outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.values.finding import Finding, FindingSeverity
from agent.values.finding import FindingReason as Reason
from agent.values.limits import GainLimits, Limits
from agent.values.observation import GapCause, ObservationPart
from tests.builders import (
    Answers,
    Run,
    an_observation,
    consumer,
    instance,
    reader,
    streams_member,
    subtopology,
    with_group,
)

Prepare = Callable[[Answers], object]


def a_cluster() -> Answers:
    return an_observation().topic("orders", (1, 2), (2, 3), (3, 1))


def three(*racks: str | None, **changes: object) -> list[object]:
    return [reader(f"m{n}", rack, f"orders-{n}", **changes) for n, rack in enumerate(racks)]  # type: ignore[arg-type]


def off(run: Run) -> list[Finding]:
    return run.of(Reason.RACK_AWARENESS_OFF)


@pytest.mark.parametrize(
    ("prepare", "because"),
    [
        pytest.param(lambda a: a.group("g", *three("a", "b", "c")), None, id="all conditions hold"),
        pytest.param(lambda a: a.group("g", *three("a", None, None)), None, id="one member with a rack is enough"),
        pytest.param(lambda a: a.group("g", *three(None, None)), "no member sends a rack", id="no member sends a rack"),
        pytest.param(
            lambda a: a.group("g", *three("a", "b"), assignor="roundrobin"),
            "its assignor roundrobin does not look at racks",
            id="an assignor that ignores racks",
        ),
        pytest.param(
            lambda a: a.group("g", *three(None), assignor="com.example.Mine"), None, id="an assignor of their own"
        ),
        pytest.param(
            lambda a: a.group("g", *three("x", "y")),
            "no member is in a rack that holds a replica (members in x and y, replicas in a, b and c)",
            id="members in racks without brokers",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 3), (2, 3, 1)).group("g", *three("a", "b")),
            None,
            id="all is near to all already",
        ),
        pytest.param(
            lambda a: a.selector(None).topic("orders", (1, 2, 3), (2, 3, 1)).group("g", *three("a", "b")),
            "every partition has a replica in the same racks, so all choices cost the same, "
            "although reads go to leaders",
            id="all costs are equal, but reads go to leaders",
        ),
        pytest.param(
            lambda a: a.broker(4, None).topic("orders", (4,), (4,)).group("g", *three("a", "b")),
            "no replica of orders shows a rack",
            id="no replica shows a rack",
        ),
        pytest.param(
            lambda a: a.group("g", *three("a", topics=("orders", "secret"))),
            None,
            id="a topic is hidden: it cannot be told",
        ),
        pytest.param(
            lambda a: a.group("g", *three(None), state="CompletingRebalance"), None, id="hidden in a rebalance"
        ),
        pytest.param(lambda a: a.broker(2, "a").broker(3, "a").group("g", *three(None)), None, id="one rack only"),
    ],
)
def test_consumers(prepare: Prepare, because: str | None) -> None:
    answers = a_cluster()
    prepare(answers)
    found = off(Run().look(answers.at(0)))
    assert [dict(finding.evidence)["because"] for finding in found] == ([(because,)] if because else [])
    if because:
        assert found[0].sentence == f"rack-aware assignment of group g is off, because {because}"


def an_application(a: Answers, **changes: object) -> Answers:
    first = instance(1, "a", {"0_0": "orders-0"}, **changes)  # type: ignore[arg-type]
    return a.streams("g", first, instance(2, "b", {"0_1": "orders-1"}), instance(3, "c", {"0_2": "orders-2"}))


ON = {"rack_aware_assignment_strategy": "min_traffic"}


@pytest.mark.parametrize(
    ("prepare", "limits", "because"),
    [
        pytest.param(an_application, with_group("g", **ON), (), id="all conditions hold"),
        pytest.param(
            an_application,
            Limits(),
            (
                (
                    "rack.aware.assignment.strategy is none (Kafka's default, assumed: rackwise's settings "
                    "give no other value)"
                ),
            ),
            id="the strategy is unknown",
        ),
        pytest.param(
            an_application,
            with_group("g", num_standby_replicas=1),
            ("rack.aware.assignment.strategy is none",),
            id="the strategy is none",
        ),
        pytest.param(
            lambda a: a.streams("g", instance(1, None, {"0_0": "orders-0"}), instance(2, "b", {"0_1": "orders-1"})),
            with_group("g", **ON),
            ("a member sends no rack (app-1-StreamThread-1-consumer)",),
            id="a thread without rack",
        ),
        pytest.param(
            lambda a: a.streams(
                "g", instance(1, "a", {"0_0": "orders-0"}), instance(1, "b", {"0_1": "orders-1"}, thread=2)
            ),
            with_group("g", **ON),
            ("the threads of process 00000001-0000-0000-0000-000000000000 send different racks (a and b)",),
            id="one process with two racks",
        ),
        pytest.param(
            lambda a: (
                an_application(a).without_topic("orders").gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED, "orders")
            ),
            with_group("g", **ON),
            ("orders cannot be described",),
            id="a source topic cannot be described",
        ),
        pytest.param(
            lambda a: an_application(a.broker(3, None)),
            with_group("g", **ON),
            ("broker 3, with replicas of orders, has no broker.rack",),
            id="a replica on a broker without rack",
        ),
        pytest.param(
            lambda a: an_application(a, version=10),
            with_group("g", **ON),
            ("its members' metadata has versions 10 and 11",),
            id="mixed versions",
        ),
        pytest.param(
            lambda a: an_application(a.broker(4, None).topic("g-store-changelog", (4,), (4,), (4,)), sums={"0_0": -2}),
            with_group("g", num_standby_replicas=1, **ON),
            ("broker 4, with replicas of g-store-changelog, has no broker.rack",),
            id="with standbys, a changelog replica without rack",
        ),
        pytest.param(
            lambda a: an_application(a.broker(4, None).topic("g-store-changelog", (4,), (4,), (4,)), sums={"0_0": -2}),
            with_group("g", **ON),
            (),
            id="without standbys, a changelog replica without rack does not count",
        ),
        pytest.param(
            lambda a: an_application(a.topic("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2))),
            Limits(),
            (),
            id="the strategy is none, but all is near to all already",
        ),
    ],
)
def test_streams(prepare: Prepare, limits: Limits, because: tuple[str, ...]) -> None:
    answers = a_cluster()
    prepare(answers)
    found = off(Run(limits).look(answers.at(0)))
    assert [dict(finding.evidence)["because"] for finding in found] == ([because] if because else [])


def test_an_absent_broker_switches_streams_off_although_its_rack_is_remembered() -> None:
    answers = an_application(a_cluster())
    run = Run(with_group("g", **ON)).look(answers.at(0))
    assert not off(run)
    (found,) = off(run.look(answers.without_broker(3).at(10)))
    assert found.sentence.endswith("broker 3, with replicas of orders, is absent, and clients do not know its rack")
    broker = run.snapshot.broker(3)
    assert broker is not None
    assert broker.rack.name == "c"


def test_absent_brokers_are_named_in_one_sentence_whatever_is_on_them() -> None:
    answers = an_application(a_cluster().broker(4, "a").broker(5, "b"), sums={"0_0": -2})
    answers.topic("g-store-changelog", (3,), (4,), (5,))
    run = Run(with_group("g", num_standby_replicas=1, **ON)).look(answers.at(0))
    assert not off(run)
    (found,) = off(run.look(answers.without_broker(3).without_broker(4).at(10)))
    assert dict(found.evidence)["because"] == (
        "brokers 3 and 4, with replicas of g-store-changelog, are absent, and clients do not know their racks",
    )


def test_while_brokers_do_not_answer_nobody_is_called_absent() -> None:
    answers = an_application(a_cluster())
    run = Run(with_group("g", **ON)).look(answers.at(0))
    for broker in (1, 2, 3):
        answers.without_broker(broker)
    assert not off(run.look(answers.gap(ObservationPart.BROKERS).at(10)))


@pytest.mark.parametrize(
    ("prepare", "what"),
    [
        pytest.param(
            lambda a: a.kip848("g", consumer("m1", "a", "orders-0")), "consumer groups (KIP-848)", id="a consumer group"
        ),
        pytest.param(
            lambda a: a.kip1071("g", streams_member(1, "a", active="0_0"), subtopologies=(subtopology("0", "orders"),)),
            "streams groups (KIP-1071)",
            id="a streams group",
        ),
    ],
)
def test_group_kind_ignores_racks(prepare: Prepare, what: str) -> None:
    answers = a_cluster()
    prepare(answers)
    (found,) = Run().look(answers.at(0)).of(Reason.GROUP_KIND_IGNORES_RACKS)
    assert found.sentence == f"group g is assigned by the broker, whose assignors for {what} do not look at racks"


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        pytest.param(
            lambda a: a.group("g", *three("b", "c", "a")),
            {Reason.ASSIGNMENT_WORSE_THAN_OPTIMUM: FindingSeverity.WARNING},
            id="the assignor may still mend it",
        ),
        pytest.param(
            lambda a: a.group("g", *three("c", "a", "b"), assignor="roundrobin"),
            {
                Reason.RACK_AWARENESS_OFF: FindingSeverity.WARNING,
                Reason.ASSIGNMENT_WORSE_THAN_OPTIMUM: FindingSeverity.WARNING,
                Reason.ASSIGNOR_WOULD_NOT_FIX: FindingSeverity.WARNING,
            },
            id="the assignor does not look at racks",
        ),
        pytest.param(
            lambda a: a.kip848("g", *[consumer(f"m{n}", rack, f"orders-{n}") for n, rack in enumerate("cab")]),
            {
                Reason.GROUP_KIND_IGNORES_RACKS: FindingSeverity.WARNING,
                Reason.ASSIGNMENT_WORSE_THAN_OPTIMUM: FindingSeverity.WARNING,
                Reason.ASSIGNOR_WOULD_NOT_FIX: FindingSeverity.WARNING,
            },
            id="the broker assigns",
        ),
        pytest.param(lambda a: a.group("g", *three("a", "b", "c")), {}, id="everything is near"),
        pytest.param(lambda a: a.group("g", *three(None, "b", "c")), {}, id="of what is unknown nothing is worse"),
    ],
)
def test_worse_than_the_optimum(prepare: Prepare, expected: dict[Reason, FindingSeverity]) -> None:
    answers = an_observation().topic("orders", (1,), (2,), (3,))
    prepare(answers)
    judged = (Reason.ASSIGNMENT_WORSE_THAN_OPTIMUM, Reason.ASSIGNOR_WOULD_NOT_FIX, Reason.RACK_AWARENESS_OFF,
              Reason.GROUP_KIND_IGNORES_RACKS)  # fmt: skip
    found = Run().look(answers.at(0)).detection.findings
    assert {finding.reason: finding.severity for finding in found if finding.reason in judged} == expected


def test_a_gain_below_the_threshold_is_worth_a_word_but_no_warning() -> None:
    answers = an_observation().topic("orders", (1,), (2,), (3,)).group("g", *three("b", "a", "c"))
    (found,) = (
        Run(Limits(gain=GainLimits(min_partitions=3))).look(answers.at(0)).of(Reason.ASSIGNMENT_WORSE_THAN_OPTIMUM)
    )
    assert found.severity is FindingSeverity.INFO
    assert found.sentence == "group g reads 2 partitions across racks, by Kafka's measure, and could read 0"


def test_a_gap_that_rests_on_a_rack_that_just_changed_is_held() -> None:
    answers = an_observation().topic("orders", (1,), (2,), (3,)).group("g", *three("a", "b", "c"))
    run = Run().look(answers.at(0)).look(answers.broker(1, "b").broker(2, "a").at(10))
    assert [finding.held for finding in run.of(Reason.ASSIGNMENT_WORSE_THAN_OPTIMUM)] == [True]


@pytest.mark.parametrize(
    ("state", "at", "found"),
    [
        pytest.param("PreparingRebalance", 299, False, id="not long enough"),
        pytest.param("PreparingRebalance", 300, True, id="five minutes"),
        pytest.param("CompletingRebalance", 300, True, id="in the other half of a rebalance"),
        pytest.param("Stable", 300, False, id="stable"),
        pytest.param("Empty", 300, False, id="empty"),
    ],
)
def test_stuck_in_rebalance(state: str, at: int, found: bool) -> None:
    answers = a_cluster().group("g", *three("a", "b"), state=state)
    run = Run().look(answers.at(0)).look(answers.at(at))
    assert bool(run.of(Reason.GROUP_STUCK_IN_REBALANCE)) is found
    if found:
        (finding,) = run.of(Reason.GROUP_STUCK_IN_REBALANCE)
        assert finding.sentence == f"group g was out of Stable in every look for over 5 min and is {state} now"


def test_one_stable_look_ends_the_count() -> None:
    answers = a_cluster().group("g", *three("a"), state="PreparingRebalance")
    run = Run().look(answers.at(0)).look(answers.group("g", *three("a")).at(200))
    run.look(answers.group("g", *three("a"), state="PreparingRebalance").at(210)).look(answers.at(500))
    assert not run.of(Reason.GROUP_STUCK_IN_REBALANCE)
