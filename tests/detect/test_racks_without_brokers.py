"""Members in a rack that no broker has: found with the rack that is probably meant, and never called the best."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.detect.members import likely_rack
from agent.explain.explain import explain
from agent.simulate.evaluation import evaluate
from agent.values.assessment import LocalityMeasure
from agent.values.finding import FindingReason as Reason
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.plan import RuleAnswer
from agent.values.proposal import ProposalReason
from tests.builders import Answers, Run, an_observation, instance, reader

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


@pytest.mark.parametrize(
    ("told", "racks", "meant"),
    [
        pytest.param("A", ("a", "b", "c"), "a", id="another case"),
        pytest.param(" us-east-1a ", ZONES, "us-east-1a", id="spaces around it"),
        pytest.param("us_east_1b", ZONES, "us-east-1b", id="another separator"),
        pytest.param("us-esat-1c", ZONES, "us-east-1c", id="two letters swapped"),
        pytest.param("us-eas-1c", ZONES, "us-east-1c", id="a letter left out"),
        pytest.param("use1-az1", ZONES, None, id="a zone id cannot be told from names"),
        pytest.param("us-east-1d", ZONES, None, id="another zone is no slip"),
        pytest.param("us-east-1d", ("us-east-1a",), None, id="another zone is no slip, even of the only one"),
        pytest.param("us-east-2a", ZONES, None, id="another region is no slip"),
        pytest.param("room-12-a", ("room-13-a", "room-14-b"), None, id="another number is no slip"),
        pytest.param("d", ("a", "b", "c"), None, id="one letter is no slip for another"),
        pytest.param("a", ("A", "-a-"), None, id="two racks are spelled like it"),
        pytest.param("", ("a",), None, id="nothing"),
        pytest.param("--", ("a",), None, id="nothing but separators"),
        pytest.param("x" * 5_000, ("x" * 5_000 + "y",), None, id="names that go on for pages"),
    ],
)
def test_the_rack_that_is_probably_meant(told: str, racks: tuple[str, ...], meant: str | None) -> None:
    assert likely_rack(told, racks) == meant


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=4))
def test_what_is_guessed_is_a_rack_of_the_brokers_and_whatever_is_sent_is_taken(told: str, racks: list[str]) -> None:
    assert likely_rack(told, racks) in {None, *racks}


def zones(*racks: str | None, assignor: str = "cooperative-sticky") -> Answers:
    """Three zones by name, one partition in each, and members that say they are in these racks."""
    answers = an_observation(**{zone: (n,) for n, zone in enumerate(ZONES, 1)}).topic("orders", (1,), (2,), (3,))
    members = (reader(f"m{n}", rack, f"orders-{n}") for n, rack in enumerate(racks))
    return answers.group("g", *members, assignor=assignor)


def test_a_zone_id_is_found_with_the_racks_that_there_are() -> None:
    run = Run().look(zones("use1-az1", "us-east-1b", "us-east-1c").at())
    (finding,) = run.of(Reason.MEMBER_IN_NO_BROKERS_RACK)
    assert finding.sentence == (
        "group g has 1 of 3 members in a rack that no broker has (client-m0): use1-az1; brokers are in us-east-1a, "
        "us-east-1b and us-east-1c, so all that this member reads crosses racks: set client.rack"
    )
    assert dict(finding.evidence)["racks"] == ("use1-az1",)
    assert dict(finding.evidence)["meant"] == ()


def test_a_slip_is_found_with_the_rack_that_is_meant_and_advised() -> None:
    seen = evaluate(zones("us-esat-1a", "us-east-1b", "us-east-1c").at(), Memory(), Limits())
    (finding,) = [one for one in seen.detection.findings if one.reason is Reason.MEMBER_IN_NO_BROKERS_RACK]
    assert "us-esat-1a (probably meant: us-east-1a)" in finding.sentence
    assert dict(finding.evidence)["meant"] == ("us-esat-1a: us-east-1a",)
    (proposal,) = [one for one in seen.proposals if one.reason is ProposalReason.SET_CLIENT_RACK]
    assert (proposal.line, proposal.findings) == ("client.rack=us-east-1a", (finding.id,))


@pytest.mark.parametrize("told", ["use1-az1", "US-EAST-1A", "us-east-1d"])
def test_what_it_reads_crosses_for_certain_by_both_measures(told: str) -> None:
    run = Run().look(zones(told, "us-east-1b", "us-east-1c").at())
    current = {of.measure: of for of in run.detection.assessments["g"].current}
    for measure in (LocalityMeasure.KAFKA, LocalityMeasure.READ_LOCAL):
        assert (current[measure].local, current[measure].total, current[measure].unknown) == (2, 3, 0)
    assert run.detection.assessments["g"].away == 1


def test_a_group_of_such_members_is_never_called_the_best_without_that_word() -> None:
    seen = evaluate(zones("use1-az1", "use1-az2", "use1-az3").at(), Memory(), Limits())
    assert seen.plan is not None
    rows = explain("group/g", seen.snapshot, seen.detection, seen.plan, seen.proposals, seen.limits)
    (best,) = [row for row in rows if row.rule == "at its optimum"]
    assert best.sentence.endswith("; 3 readers in no broker's rack read all across racks")
    (worth,) = [row for row in rows if row.rule == "worth a rebalance for reads across racks"]
    assert worth.sentence == (
        "No further read can be made local by Kafka's rule: it is at its optimum; 3 readers in no broker's rack read "
        "all across racks."
    )


def test_where_racks_are_unknown_the_optimum_is_one_of_what_is_known() -> None:
    answers = zones("us-east-1a", "us-east-1b", None)
    seen = evaluate(answers.at(), Memory(), Limits())
    assert seen.plan is not None
    rows = explain("group/g", seen.snapshot, seen.detection, seen.plan, seen.proposals, seen.limits)
    (best,) = [row for row in rows if row.rule == "at its optimum"]
    assert best.answer is RuleAnswer.UNKNOWN
    (worth,) = [row for row in rows if row.rule == "worth a rebalance for reads across racks"]
    assert worth.sentence == (
        "No further known read can be made local by Kafka's rule; not judged: 1 read of unknown locality."
    )


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(zones("us-east-1a", "us-east-1b", None), id="a member without a rack is another finding"),
        pytest.param(
            an_observation(_=(1,)).topic("orders", (1,)).group("g", reader("m", "a", "orders-0")),
            id="no broker tells a rack",
        ),
    ],
)
def test_a_member_is_not_away_where_no_rack_is_compared(answers: Answers) -> None:
    assert Run().look(answers.at()).of(Reason.MEMBER_IN_NO_BROKERS_RACK) == []


def test_one_rack_of_brokers_is_enough_to_be_away_from() -> None:
    answers = an_observation(a=(1, 2)).topic("orders", (1, 2)).group("g", reader("m", "A", "orders-0"))
    (finding,) = Run().look(answers.at()).of(Reason.MEMBER_IN_NO_BROKERS_RACK)
    assert "A (probably meant: a)" in finding.sentence


def test_a_streams_application_in_another_rack_is_found_too() -> None:
    answers = an_observation().topic("orders", (1,)).streams("app", instance(1, "zone-1", {"0_0": "orders-0"}))
    run = Run().look(answers.at())
    assert len(run.of(Reason.MEMBER_IN_NO_BROKERS_RACK)) == 1
    assert run.detection.assessments["app"].away == 1


def test_ten_thousand_racks_of_one_group_are_one_finding_with_three_names() -> None:
    answers = an_observation().topic("orders", (1,))
    answers.group("g", *(reader(f"m{n:05}", f"zone-{n:05}", "orders-0" if n == 0 else "") for n in range(10_000)))
    (finding,) = Run().look(answers.at()).of(Reason.MEMBER_IN_NO_BROKERS_RACK)
    assert len(finding.sentence) < 400
    assert "and 9,997 more" in finding.sentence
