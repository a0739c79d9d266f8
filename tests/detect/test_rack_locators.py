"""Racks that only locators know: what is found, what is measured, and what is never claimed of Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from agent.documents import views
from agent.explain.doctor import CheckState, DoctorCheck, diagnose
from agent.explain.explain import explain
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.simulate.evaluation import StageEvaluation
from agent.values.assessment import LocalityMeasure, NotAssessed
from agent.values.finding import FindingReason as Reason
from agent.values.limits import Limits, LocatorKind, RackLocator
from agent.values.observation import GapCause, ObservationPart
from agent.values.plan import Plan
from tests.builders import SELECTOR, TABLE, WIRE, Answers, Run, an_observation, consumer, instance, located, reader

ALIAS = RackLocator(name="alias", kind=LocatorKind.ALIAS, aliases=(("az1", "a"), ("az2", "b"), ("az3", "c")))
CIDR = RackLocator(name="cidr", kind=LocatorKind.CIDR, networks=(("10.0.0.0/24", "a"), ("10.1.0.0/24", "b")))
BROKERS = ("broker.1=a", "broker.2=b", "broker.3=c")


def looked(answers: Answers, *order: RackLocator, tables: tuple[Any, ...] = (), looks: int = 1) -> Run:
    answers.extra["rack_tables"] = tables
    run = Run(Limits(rack_locators=order))
    for number in range(looks):
        run.look(answers.at(10 * number))
    return run


def sentences(run: Run, reason: Reason) -> list[str]:
    return [finding.sentence for finding in run.of(reason)]


def share(run: Run, group: str, measure: LocalityMeasure, *, best: bool = False) -> tuple[float, float, float]:
    """(local, unknown, total) in partitions."""
    assessment = run.detection.assessments[group]
    assert assessment.why_not is None
    rows = assessment.optimal if best else assessment.current
    found = next(row for row in rows if row.measure is measure and row.unit == "partitions")
    return found.local, found.unknown, found.total


# --- brokers ----------------------------------------------------------------------------------------------------------


def test_a_broker_that_only_a_locator_knows_is_still_told_to_set_its_rack() -> None:
    run = looked(an_observation(a=(1,), b=(2,), _=(3,)), WIRE, TABLE, tables=(located("file", *BROKERS),))
    assert sentences(run, Reason.BROKER_RACK_MISSING) == [
        (
            "broker 3 has no broker.rack, so Kafka treats it as a broker without a rack, while file knows "
            "rack c: set broker.rack=c and restart it"
        )
    ]


@pytest.mark.parametrize(
    ("silent", "line", "who"),
    [
        pytest.param((3,), "broker.rack=c", ("broker 3 (c)",), id="one of which the rack is known"),
        pytest.param((2, 3), "broker.rack=<a|b|c>", ("broker 2 (b)", "broker 3 (c)"), id="two in different racks"),
        pytest.param((3, 4), "broker.rack=<a|b|c>", ("broker 3 (c)", "broker 4"), id="one of unknown rack"),
    ],
)
def test_the_advice_names_the_racks_that_locators_know(
    silent: tuple[int, ...], line: str, who: tuple[str, ...]
) -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3,), _=silent)
    run = looked(answers, WIRE, TABLE, tables=(located("file", *BROKERS),))
    plan = make_plan(run.snapshot, run.detection, run.limits, None)
    (advice,) = [one for one in plan.advice if one.setting == "broker.rack"]
    assert (advice.line, advice.who) == (line, who)


def test_replicas_are_judged_by_the_racks_that_locators_know() -> None:
    answers = an_observation(_=(1, 2, 3)).topic("orders", (1, 2)).topic("crowded", (1, 2))
    table = located("file", "broker.1=a", "broker.2=a", "broker.3=b")
    run = looked(answers, WIRE, TABLE, tables=(table,))
    assert {finding.subject.name for finding in run.of(Reason.REPLICAS_SHARE_RACK)} == {"orders", "crowded"}
    plan = make_plan(run.snapshot, run.detection, run.limits, None)
    assert {placement.topic for placement in plan.placements} == {"orders", "crowded"}
    assert propose(run.snapshot, plan, run.detection, run.limits, None)
    assert not looked(answers, WIRE).of(Reason.REPLICAS_SHARE_RACK)


@pytest.mark.parametrize(
    ("order", "told", "tables", "expected"),
    [
        pytest.param((WIRE, TABLE), "a", ("broker.1=a",), [], id="they agree"),
        pytest.param(
            (WIRE, TABLE),
            "b",
            ("broker.1=a",),
            ["broker 1 has 2 racks by its locators: broker.rack says b and is used, file says a"],
            id="a table differs from the wire",
        ),
        pytest.param(
            (TABLE, WIRE),
            "b",
            ("broker.1=a",),
            ["broker 1 has 2 racks by its locators: file knows rack a and is used, broker.rack says b"],
            id="the wire differs from a table that is asked first",
        ),
        pytest.param(
            (WIRE, TABLE, ALIAS),
            "az1",
            ("broker.1=b",),
            ["broker 1 has 2 racks by its locators: broker.rack says az1, which is a and is used, file says b"],
            id="an alias does not make them agree",
        ),
        pytest.param(
            (TABLE,),
            None,
            ("broker.1=a", "broker.1=b"),
            ["broker 1 has 2 racks by its locators: file says a and b, so none of them is used"],
            id="a table contradicts itself",
        ),
    ],
)
def test_locators_that_disagree_about_a_broker_are_found(
    order: tuple[RackLocator, ...], told: str | None, tables: tuple[str, ...], expected: list[str]
) -> None:
    run = looked(an_observation(x=(2,)).broker(1, told), *order, tables=(located("file", *tables),))
    assert sentences(run, Reason.RACK_LOCATORS_DISAGREE) == expected


def test_what_is_told_and_not_believed_is_not_called_silence() -> None:
    run = looked(an_observation(a=(1,), b=(2,)), TABLE, tables=(located("file", "broker.2=b"),))
    (sentence,) = sentences(run, Reason.BROKER_RACK_MISSING)
    assert sentence == (
        "broker 1 has broker.rack=a, which is not used, as rack.locator.class leaves out wire, and no locator knows "
        "another"
    )


def test_clients_and_brokers_that_name_one_rack_differently_are_told_so() -> None:
    answers = an_observation().topic("orders", (1, 2), (2, 3)).group("g", reader("m", "az1", "orders-0"))
    (sentence,) = sentences(looked(answers, WIRE, ALIAS), Reason.RACK_SPELLING)
    assert sentence == (
        "one rack seems to be written in 2 ways: 'a' (brokers) and 'az1' (clients); Kafka compares racks letter by "
        "letter, so Kafka takes these for different racks"
    )
    assert not looked(answers, WIRE).of(Reason.RACK_SPELLING)


# --- members ----------------------------------------------------------------------------------------------------------


def members(*racks: str | None) -> Answers:
    """One member per rack and partition; member n sits in 10.0.0.0/24 or 10.1.0.0/24 by turns."""
    answers = an_observation().topic("orders", *[(1, 2), (2, 3), (3, 1), (1, 2)][: len(racks)])
    rows = [reader(f"m{n}", rack, f"orders-{n}", client_host=f"/10.{n % 2}.0.{n}") for n, rack in enumerate(racks)]
    return answers.group("g", *rows)


def test_members_that_only_a_locator_knows_are_still_told_to_send_their_rack() -> None:
    run = looked(members(None, None, "c"), WIRE, CIDR)
    (sentence,) = sentences(run, Reason.MEMBER_WITHOUT_RACK)
    assert sentence == (
        "group g has 2 of 3 members that send no rack (client-m0 and client-m1), and locators know the racks of 2 of "
        "them, but Kafka does not: set client.rack"
    )


def test_members_of_whom_locators_disagree_are_found_once_per_group() -> None:
    run = looked(members("a", "a", "b"), WIRE, CIDR)
    (finding,) = run.of(Reason.RACK_LOCATORS_DISAGREE)
    assert finding.sentence == (
        "group g has 2 of 3 members to whom locators give more than one rack: for client client-m1 client.rack says a "
        "and is used, cidr says b"
    )
    assert dict(finding.evidence)["others"] == ("cidr: a", "cidr: b")


def test_an_assignor_that_is_told_no_rack_is_not_taken_for_rack_aware() -> None:
    run = looked(members(None, None, None), WIRE, CIDR)
    assert any("no member sends a rack" in text for text in sentences(run, Reason.RACK_AWARENESS_OFF))


def test_brokers_that_tell_no_rack_switch_awareness_off_whatever_locators_know() -> None:
    answers = members("a", "b", "c")
    for broker in (1, 2, 3):
        answers.broker(broker, None)
    run = looked(answers, WIRE, TABLE, tables=(located("file", *BROKERS),))
    assert any("no replica of orders shows a rack" in text for text in sentences(run, Reason.RACK_AWARENESS_OFF))


@pytest.mark.parametrize(
    ("answers", "order", "kafka", "read"),
    [
        pytest.param(members("a", "b", "c"), (WIRE,), (3, 0, 3), (3, 0, 3), id="all tell: every replica near is read"),
        pytest.param(
            members(None, None, None), (WIRE, CIDR), (3, 0, 3), (2, 0, 3),
            id="no locator: the leader is read, however near a replica is",
        ),
        pytest.param(
            members("b", None), (WIRE, CIDR), (2, 0, 2), (1, 1, 2),
            id="one tells: for the group it cannot be told who reads from where",
        ),
        pytest.param(
            members("az2", "az3", "az1"), (WIRE, ALIAS), (3, 0, 3), (0, 0, 3),
            id="clients tell another name than brokers: the leader is read",
        ),
    ],
)  # fmt: skip
def test_reads_are_near_only_for_those_whose_rack_brokers_hear(
    answers: Answers, order: tuple[RackLocator, ...], kafka: tuple[int, ...], read: tuple[int, ...]
) -> None:
    run = looked(answers.selector(SELECTOR), *order)
    assert share(run, "g", LocalityMeasure.KAFKA) == kafka
    assert share(run, "g", LocalityMeasure.READ_LOCAL) == read


def test_clients_and_brokers_that_tell_the_same_other_name_hear_each_other() -> None:
    answers = members("az2", "az3", "az1")
    for broker in (1, 2, 3):
        answers.broker(broker, f"az{broker}")
    run = looked(answers.selector(SELECTOR), WIRE, ALIAS)
    assert share(run, "g", LocalityMeasure.READ_LOCAL) == (3, 0, 3)


def test_a_selector_of_brokers_that_tell_no_rack_serves_nobody_nearer() -> None:
    answers = members("b", "c", "a")
    for broker in (1, 2, 3):
        answers.broker(broker, None)
    run = looked(answers.selector(SELECTOR), WIRE, TABLE, tables=(located("file", *BROKERS),))
    assert share(run, "g", LocalityMeasure.KAFKA) == (3, 0, 3)
    assert share(run, "g", LocalityMeasure.READ_LOCAL) == (0, 0, 3)


def test_no_rebalance_is_proposed_on_racks_that_the_assignor_is_not_told() -> None:
    def crossing(rack: str | None) -> Answers:
        answers = an_observation().topic("orders", *[(1,), (2,)] * 4)
        one = reader("m0", "a", " ".join(f"orders-{n}" for n in (1, 3, 5, 7)), client_host="/10.0.0.1")
        other = reader("m1", rack, " ".join(f"orders-{n}" for n in (0, 2, 4, 6)), client_host="/10.1.0.1")
        return answers.group("g", one, other)

    told = looked(crossing("b"), WIRE, CIDR)
    assert [trigger.group_id for trigger in make_plan(told.snapshot, told.detection, told.limits, None).triggers] == [
        "g"
    ]
    silent = looked(crossing(None), WIRE, CIDR)
    assert silent.detection.assessments["g"].gap == 8
    assert make_plan(silent.snapshot, silent.detection, silent.limits, None).triggers == ()


def test_threads_that_are_located_apart_are_not_said_to_send_different_racks() -> None:
    answers = an_observation().topic("orders", (1, 2), (2, 3))
    answers.streams("app", instance(1, None, {"0_0": "orders-0"}), instance(1, None, {"0_1": "orders-1"}, thread=2))
    rows = (f"client.id.app-1-StreamThread-{thread}-consumer={rack}" for thread, rack in ((1, "a"), (2, "b")))
    run = looked(answers, WIRE, TABLE, tables=(located("file", *rows),))
    assert run.detection.assessments["app"].why_not is NotAssessed.NO_RACKS
    assert run.of(Reason.RACK_LOCATORS_DISAGREE)
    assert not any("send different racks" in finding.sentence for finding in run.detection.findings)


def test_members_that_brokers_assign_are_found_silent_too() -> None:
    answers = an_observation().topic("orders", (1, 2)).kip848("new", consumer("m", None, "orders-0"))
    run = looked(answers, WIRE, CIDR)
    assert len(run.of(Reason.MEMBER_WITHOUT_RACK)) == 1
    assert dict(run.of(Reason.GROUP_KIND_IGNORES_RACKS)[0].evidence)["members with a rack"] == 0


# --- locators that fail -----------------------------------------------------------------------------------------------


def test_a_locator_that_fails_is_a_finding_and_its_last_answer_stands_in() -> None:
    answers = an_observation(_=(1, 2, 3)).gap(ObservationPart.RACK_LOCATORS, GapCause.UNREACHABLE, "file")
    run = looked(answers, WIRE, TABLE, tables=(located("file", *BROKERS, age_ms=40_000),))
    assert [broker.rack.name for broker in run.snapshot.brokers] == ["a", "b", "c"]
    (sentence,) = sentences(run, Reason.PART_MISSING)
    assert sentence == (
        "rack locators of file: could not be reached, so racks that only they know are their last answers, or "
        "unknown (the call for rack locators gave nothing)"
    )


def test_a_locator_that_fails_makes_no_rack_change_and_no_flapping() -> None:
    answers, run = an_observation(_=(1, 2, 3)), Run(Limits(rack_locators=(WIRE, TABLE)))
    answers.extra["rack_tables"] = (located("file", *BROKERS),)
    run.look(answers.at(0))
    answers.gap(ObservationPart.RACK_LOCATORS, GapCause.TIMED_OUT, "file")
    answers.extra["rack_tables"] = ()  # as after a restart: nothing stands in
    for number in range(1, 6):
        run.look(answers.at(10 * number))
    assert [(broker.rack.name, broker.rack.remembered) for broker in run.snapshot.brokers] == [
        ("a", True), ("b", True), ("c", True),
    ]  # fmt: skip
    assert not run.of(Reason.BROKER_RACK_CHANGED)
    assert not run.of(Reason.RACK_FLAPPING)


# --- what people see --------------------------------------------------------------------------------------------------


def a_mixed_world() -> Run:
    answers = members("a", None, "b").broker(2, None).gap(ObservationPart.RACK_LOCATORS, GapCause.TIMED_OUT, "file")
    table = located("file", "broker.2=b", "broker.1=z", age_ms=40_000)
    return looked(answers, WIRE, TABLE, CIDR, tables=(table,))


def test_racks_are_shown_with_what_knows_them() -> None:
    world = a_mixed_world()
    look = StageEvaluation(world.limits, world.memory, world.snapshot, world.detection, None, ())
    rows = {row["rack"]: row["known_from"] for row in views.racks(look)}
    assert rows == {
        "a": {"broker.rack": 1, "client.rack": 1},
        "b": {"cidr": 1, "client.rack": 1, "file": 1},
        "c": {"broker.rack": 1},
    }


def about_racks(run: Run) -> DoctorCheck:
    checks = diagnose(run.snapshot, run.detection, Plan())
    return next(check for check in checks if check.key == "racks are known")


def test_doctor_says_from_where_racks_are_known() -> None:
    run = a_mixed_world()
    check = about_racks(run)
    assert (check.name, check.state, check.always_shown) == ("racks are known", CheckState.FAULT, True)
    assert check.sentence.split("; ")[2:] == [
        "brokers: 2 by broker.rack, 1 by file",
        "members: 1 by cidr, 2 by client.rack",
        "file answered 40 s ago",
    ]
    quiet = looked(members("a", "b", "c"))
    fine = about_racks(quiet)
    assert (fine.state, fine.sentence) == (CheckState.OK, "brokers: 3 by broker.rack; members: 3 by client.rack")
    unknown = looked(
        members("a", None, "c").gap(ObservationPart.RACK_LOCATORS, GapCause.TIMED_OUT, "file"), WIRE, TABLE
    )
    blind = about_racks(unknown)
    assert blind.state is CheckState.UNKNOWN
    assert blind.sentence.endswith("members: 2 by client.rack, 1 unknown; file never answered")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param(
            "broker/1",
            [
                ("rack known", "yes", "rack a, from broker.rack"),
                ("locator file agrees", "no", "it gives z, but another locator comes first"),
                ("Kafka knows its rack", "yes", "broker.rack is a"),
            ],
            id="a broker about which a table says otherwise",
        ),
        pytest.param(
            "broker/2",
            [
                ("rack known", "yes", "rack b, from file, answered 40 s ago"),
                (
                    "Kafka knows its rack",
                    "no",
                    "it has no broker.rack, so Kafka places and assigns as for a broker without a rack",
                ),
            ],
            id="a broker that only a table knows",
        ),
        pytest.param("broker/9", [], id="no broker"),
        pytest.param(
            "group/g",
            [
                (
                    "racks known",
                    "yes",
                    "2 of 3 members send their rack, and locators know 1 more, which Kafka's assignors do not",
                ),
                ("rack known", "yes", "rack b, from cidr"),
                ("rack known", "yes", "rack b, from client.rack"),
                ("locator cidr agrees", "no", "it gives a, but another locator comes first"),
            ],
            id="a group",
        ),
    ],
)
def test_explain_says_from_where_a_rack_is_known(subject: str, expected: list[tuple[str, str, str]]) -> None:
    run = a_mixed_world()
    rows = explain(subject, run.snapshot, run.detection, Plan(), (), run.limits)
    wanted = ("rack known", "racks known", "Kafka knows its rack")
    told = [row for row in rows if row.rule in wanted or row.rule.startswith("locator ")]
    assert [(row.rule, row.answer.value, row.sentence) for row in told] == expected
