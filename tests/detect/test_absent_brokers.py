"""Absent brokers: what is found, for how long, and that nothing is moved because of an absence until it has lasted."""

from __future__ import annotations

import copy

import pytest

from agent.explain.explain import explain
from agent.memory.codec import memory_from_json, memory_to_json
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.finding import FindingReason as Reason
from agent.values.finding import FindingSeverity, SubjectId
from agent.values.limits import Limits, RackLimits
from agent.values.memory import after_restart
from agent.values.number_format import lasted
from agent.values.observation import ObservationPart
from agent.values.plan import Plan, Unplanned
from agent.values.proposal import Proposal, ProposalReason
from tests.builders import Answers, Run, an_observation, reader

WAIT_S = 1_800


def without(answers: Answers, *brokers: int) -> Answers:
    """The same answers while those brokers are down: they leave every ISR, and the first replica in sync leads."""
    left = copy.deepcopy(answers)
    for broker in brokers:
        left.without_broker(broker)
        left.broker_configs.pop(broker, None)
    for name, topic in left.topics.items():
        partitions = []
        for one in topic.partitions:
            isr = tuple(b for b in one.isr if b not in brokers)
            offline = tuple(b for b in one.replicas if b in brokers)
            leader = next((b for b in one.replicas if b in isr), None)
            partitions.append(one._replace(isr=isr, leader=leader, offline=offline))
        left.topics[name] = topic._replace(partitions=tuple(partitions))
    return left


def planned(run: Run) -> tuple[Plan, tuple[Proposal, ...]]:
    plan = make_plan(run.snapshot, run.detection, run.limits, None)
    return plan, propose(run.snapshot, plan, run.detection, run.limits, None)


def moves(run: Run) -> list[Proposal]:
    """Proposals about replicas, leaders and rebalances."""
    return [proposal for proposal in planned(run)[1] if proposal.kind != "advise"]


def crowded() -> Answers:
    """Two partitions have two replicas in rack c, one of them on their preferred leader, broker 3."""
    lists = (3, 6, 1), (3, 6, 2), (1, 2, 3), (2, 3, 1), (3, 1, 2)
    return an_observation(a=(1, 4), b=(2, 5), c=(3, 6)).topic("orders", *lists)


def led_from_afar() -> Answers:
    """Every reader reads from the leader; broker 3 leads half of what is read in another rack."""
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", *[(3, 1, 2)] * 3, *[(1, 2, 3)] * 3)
    readers = [reader(f"m{number}", "abcabc"[number], f"orders-{number}") for number in range(6)]
    return answers.selector(None).group("g", *readers, assignor="range")


def far_apart() -> Answers:
    """Each member reads in the other one's rack."""
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 3), (2, 3), (1, 3), (2, 3))
    members = reader("m-a", "a", "orders-1 orders-3"), reader("m-b", "b", "orders-0 orders-2")
    return answers.group("g", *members)


# --- the finding ------------------------------------------------------------------------------------------------


def test_a_broker_that_restarts_is_absent_since_the_look_that_missed_it_and_is_back_without_a_word() -> None:
    answers = crowded()
    down = without(answers, 3)
    run = Run().look(answers.at(0))
    assert not run.of(Reason.BROKER_ABSENT)

    (found,) = run.look(down.at(10)).of(Reason.BROKER_ABSENT)
    assert found.sentence == (
        "broker 3 has been absent since this look; it holds 5 replicas and is the preferred leader of 3 partitions, "
        "which other replicas lead now; nothing is moved because of it until it has been absent for 30 min"
    )
    assert (str(found.subject), found.severity, found.held) == ("broker/3", FindingSeverity.WARNING, True)
    (found,) = run.look(down.at(22)).of(Reason.BROKER_ABSENT)
    assert found.sentence.startswith("broker 3 has been absent for 12 s; it holds 5 replicas")
    assert dict(found.evidence)["absent_s"] == 12
    run.look(answers.at(40))
    assert not run.of(Reason.BROKER_ABSENT)
    assert not run.memory.absent
    (again,) = run.look(down.at(50)).look(down.at(53)).of(Reason.BROKER_ABSENT)
    assert again.sentence.startswith("broker 3 has been absent for 3 s"), "each absence counts from its own beginning"


def test_one_look_says_that_it_is_one_look() -> None:
    (found,) = Run().look(without(crowded(), 3).at(0)).of(Reason.BROKER_ABSENT)
    assert found.sentence == (
        "broker 3 is absent now, since when is unknown; it holds 5 replicas and is the preferred leader of 3 "
        "partitions, which other replicas lead now; its rack was never seen; one look cannot tell a restart from a "
        "loss, and an agent moves nothing because of it until it has been absent for 30 min"
    )
    assert not found.held
    assert dict(found.evidence)["absent_s"] is None


def test_a_broker_that_was_absent_before_the_first_look_has_been_so_for_at_least_as_long() -> None:
    down = without(crowded(), 3)
    (found,) = Run().look(down.at(0)).look(down.at(12)).of(Reason.BROKER_ABSENT)
    assert found.sentence.startswith("broker 3 has been absent for at least 12 s")
    assert found.held


def test_a_fenced_broker_is_named_as_fenced() -> None:
    answers = crowded()
    run = Run().look(answers.at(0))
    down = without(answers, 3).broker(3, "c", fenced=True)
    (found,) = run.look(down.at(10)).look(down.at(22)).of(Reason.BROKER_ABSENT)
    assert found.sentence.startswith("broker 3 has been fenced for 12 s; it holds 5 replicas")
    assert found.held


def test_what_has_no_leader_is_not_said_to_be_led() -> None:
    answers = an_observation().topic("single", (3,), (3,)).topic("pair", (3, 1))
    (found,) = Run().look(without(answers, 3).at(0)).of(Reason.BROKER_ABSENT)
    assert "is the preferred leader of 3 partitions, of which 2 partitions have no leader" in found.sentence


def test_the_last_live_broker_of_a_rack_takes_the_rack_along() -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3, 6)).topic("orders", (1, 2, 3), (1, 2, 6))
    run = Run().look(answers.at(0)).look(without(answers, 3).at(10))
    (one,) = run.of(Reason.BROKER_ABSENT)
    assert "no live broker of rack c is left" not in one.sentence
    both = run.look(without(answers, 3, 6).at(20)).of(Reason.BROKER_ABSENT)
    assert [str(found.subject) for found in both] == ["broker/3", "broker/6"]
    assert all("; no live broker of rack c is left;" in found.sentence for found in both)


def test_a_broker_without_replicas_is_told_of_as_long_as_it_may_be_restarting() -> None:
    answers = an_observation(a=(1,), b=(2, 4)).topic("orders", (1, 2))
    down = without(answers, 4)
    run = Run().look(answers.at(0)).look(down.at(10)).look(down.at(22))
    (found,) = run.of(Reason.BROKER_ABSENT)
    assert found.sentence == "broker 4 has been absent for 12 s; it holds no replica"
    assert (found.severity, found.held) == (FindingSeverity.INFO, False)
    assert not run.look(down.at(10 + WAIT_S)).of(Reason.BROKER_ABSENT)
    assert not run.look(down.at(20 + WAIT_S)).of(Reason.BROKER_ABSENT)


def test_a_new_broker_that_is_still_fenced_holds_no_replica() -> None:
    answers = an_observation().topic("orders", (1, 2, 3))
    run = Run().look(answers.at(0)).look(answers.broker(7, "a", fenced=True).at(10))
    (found,) = run.of(Reason.BROKER_ABSENT)
    assert found.sentence == "broker 7 has been fenced since this look; it holds no replica"


def test_while_brokers_do_not_answer_none_is_absent_and_an_absence_goes_on() -> None:
    answers = crowded()
    down = without(answers, 3)
    run = Run().look(answers.at(0)).look(down.at(10))
    silent = copy.deepcopy(down)
    for broker in (1, 2, 4, 5, 6):
        silent.without_broker(broker)
    run.look(silent.gap(ObservationPart.BROKERS).at(20))
    assert not run.of(Reason.BROKER_ABSENT)
    (found,) = run.look(down.at(30)).of(Reason.BROKER_ABSENT)
    assert found.sentence.startswith("broker 3 has been absent for 20 s")


def test_an_absence_outlives_the_agents_process() -> None:
    down = without(crowded(), 3)
    run = Run().look(crowded().at(0)).look(down.at(10)).look(down.at(22))
    since_ms = run.snapshot.monotonic_ms - 12_000
    read = memory_from_json(memory_to_json(run.memory))
    assert read == run.memory
    assert read.absent == {3: since_ms}
    elsewhere = after_restart(read, run.snapshot.taken_ms + 3_600_000, 50_000)
    assert elsewhere.absent == {3: 50_000 - 12_000}, "it may have been there while no agent looked"
    older = memory_to_json(run.memory).replace(f'"absent":{{"3":{since_ms}}},', "")
    assert memory_from_json(older).absent == {}


@pytest.mark.parametrize(
    ("ms", "words"),
    [(-1, "0 s"), (12_999, "12 s"), (119_999, "119 s"), (120_000, "2 min"), (1_860_000, "31 min"), (7_200_000, "2 h"),
     (9_000_000, "2 h 30 min"), (172_799_999, "47 h 59 min"), (172_800_000, "2 days"), (200_000_000, "2 days 7 h"),
     (1.79e12, "20,717 days 14 h")],
)  # fmt: skip
def test_how_long_it_lasted_is_rounded_down(ms: float, words: str) -> None:
    assert lasted(ms) == words


# --- nothing is advised about an absent broker ------------------------------------------------------------------


def test_no_rack_is_asked_of_a_broker_that_is_absent() -> None:
    run = Run().look(without(crowded(), 3).at(0))
    assert not run.of(Reason.BROKER_RACK_MISSING)
    assert not [one for one in planned(run)[1] if one.reason is ProposalReason.SET_BROKER_RACK]


def test_a_broker_that_came_back_without_a_rack_is_named_with_the_rack_that_it_had() -> None:
    answers = crowded()
    run = Run().look(answers.at(0)).look(without(answers, 3).at(10)).look(answers.broker(3, None).at(20))
    (found,) = run.of(Reason.BROKER_RACK_MISSING)
    assert found.sentence == (
        "broker 3 has no broker.rack now and was in rack c before: "
        "set broker.rack=c again and restart it, or another rack if it was moved"
    )


def test_a_group_whose_rack_is_down_hears_that_a_broker_is_absent() -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 3), (2, 3))
    answers.group("g", reader("m", "c", "orders-0 orders-1"))
    run = Run().look(answers.at(0))
    assert not run.of(Reason.RACK_AWARENESS_OFF)
    (off,) = run.look(without(answers, 3).at(10)).of(Reason.RACK_AWARENESS_OFF)
    assert off.sentence.endswith("(members in c, replicas in a and b, while broker 3 is absent)")


# --- nothing is moved because of it -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        pytest.param(crowded(), ProposalReason.MEND_RACK_SPREAD, id="replicas that share a rack"),
        pytest.param(led_from_afar(), ProposalReason.LEADERS_TO_READERS, id="leaders far from their readers"),
        pytest.param(far_apart(), ProposalReason.REBALANCE_IMPROVES, id="a group that would be assigned otherwise"),
    ],
)
def test_nothing_moves_because_of_an_absence_until_it_has_lasted(answers: Answers, reason: ProposalReason) -> None:
    down = without(answers, 3)
    run = Run().look(answers.at(0)).look(down.at(10))
    for second in (20, 60, 600, 9 + WAIT_S):
        run.look(down.at(second))
        plan, proposals = planned(run)
        assert reason not in {one.reason for one in proposals}, f"after {second} s"
        assert not moves(run)
        assert Unplanned.HELD in {why for _, why in plan.unplanned}

    run.look(down.at(70 + WAIT_S))
    (proposal,) = [one for one in planned(run)[1] if one.reason is reason]
    assert proposal.sentence.endswith("; broker 3 has been absent for 31 min")
    assert dict(proposal.evidence)["absent_brokers"] == (3,)


def test_the_wait_is_a_setting() -> None:
    answers = crowded()
    down = without(answers, 3)
    run = (
        Run(Limits(racks=RackLimits(broker_absent_for_ms=60_000)))
        .look(answers.at(0))
        .look(down.at(10))
        .look(down.at(69))
    )
    assert not moves(run)
    assert moves(run.look(down.at(70)))
    at_once = Run(Limits(racks=RackLimits(broker_absent_for_ms=0))).look(answers.at(0)).look(down.at(10))
    assert moves(at_once)
    assert not at_once.of(Reason.BROKER_ABSENT)[0].held


def test_what_no_absent_broker_has_to_do_with_is_proposed_as_ever() -> None:
    answers = crowded().topic("others", (1, 4, 2), (2, 5, 1))
    run = Run().look(answers.at(0)).look(without(answers, 3).at(10))
    (proposal,) = moves(run)
    assert str(proposal.subject) == "topic/others"
    assert "absent" not in proposal.sentence
    assert not {broker for row in proposal.after for broker in row.value} & {3}, "an absent broker takes no replica"


def test_one_look_proposes_with_the_words_that_it_is_one() -> None:
    down = without(crowded(), 3).broker(3, "c", fenced=True)
    (proposal,) = moves(Run().look(down.at(0)))
    assert proposal.sentence.endswith("; broker 3 is absent now: an agent holds this until that has lasted 30 min")


def test_no_leader_follows_its_readers_from_a_broker_of_unknown_rack() -> None:
    """The readers of orders may well be near to the absent leader."""
    run = Run().look(without(led_from_afar(), 3).at(0))
    plan, proposals = planned(run)
    moved = [row for one in proposals for row in one.before if one.reason is ProposalReason.LEADERS_TO_READERS]
    assert all(row.value[0] != 3 for row in moved)
    assert (SubjectId("topic", "orders"), Unplanned.UNKNOWN_RACK) in plan.unplanned


def test_a_leader_elsewhere_while_its_preferred_broker_is_absent_is_no_fault() -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (3, 1, 2), (1, 2, 3), (2, 3, 1), (3, 2, 1))
    down = without(answers, 3)
    run = Run().look(answers.at(0)).look(down.at(10))
    assert {found.reason for found in run.detection.findings} == {Reason.BROKER_ABSENT}
    run.look(down.at(20 + WAIT_S))
    assert {found.reason for found in run.detection.findings} == {Reason.BROKER_ABSENT}
    assert not moves(run)


def test_what_an_absence_costs_now_is_found_all_the_same() -> None:
    answers = an_observation().topic("orders", (1, 2, 3), min_insync_replicas="2").topic("alone", (3,))
    run = Run().look(answers.at(0)).look(without(answers, 3).at(10))
    assert [str(found.subject) for found in run.of(Reason.AT_MIN_ISR)] == ["topic/orders"]
    assert [str(found.subject) for found in run.of(Reason.UNDER_MIN_ISR)] == ["topic/alone"]
    assert not any(found.held for found in (*run.of(Reason.AT_MIN_ISR), *run.of(Reason.UNDER_MIN_ISR)))


# --- explained --------------------------------------------------------------------------------------------------


def explained(subject: str, run: Run) -> dict[tuple[str, str], tuple[str, str]]:
    plan, proposals = planned(run)
    rows = explain(subject, run.snapshot, run.detection, plan, proposals, run.limits)
    return {(row.about, row.rule): (row.answer.value, row.sentence) for row in rows}


def test_explain_says_what_waits_for_an_absent_broker_and_until_when() -> None:
    answers = crowded()
    run = Run().look(answers.at(0)).look(without(answers, 3).at(10)).look(without(answers, 3).at(22))
    rows = explained("topic/orders/0", run)
    answer, sentence = rows["orders-0", "broker is there"]
    assert (answer, sentence.split(";")[0]) == ("wait", "broker 3 has been absent for 12 s")
    assert rows["orders-0 on broker 3", "alive"] == ("no", sentence)
    assert ("orders-0", "all racks stable") not in rows, "its rack did not change"
    (found,) = run.of(Reason.REPLICAS_SHARE_RACK)
    assert found.sentence.endswith("; broker 3 is absent, so nothing is planned from this yet")
    assert explained("topic/orders", run)["topic/orders", "replicas share a rack"] == (
        "wait", f"{found.sentence}; held until broker 3 is back, or has been absent for long enough"
    )  # fmt: skip
    assert explained("broker/3", run)["broker/3", "broker absent"] == ("wait", sentence)


def test_a_changed_rack_is_not_called_absent() -> None:
    answers = crowded()
    run = Run().look(answers.at(0)).look(answers.broker(3, "b").at(10))
    rows = explained("topic/orders/0", run)
    assert rows["orders-0", "all racks stable"][0] == "wait"
    assert not any("absent" in sentence for _, sentence in rows.values())


def test_the_rack_of_an_absent_broker_is_the_last_one_or_was_never_seen() -> None:
    answers = crowded()
    seen = explained("broker/3", Run().look(answers.at(0)).look(without(answers, 3).at(10)))
    assert seen["broker/3", "rack known"] == ("yes", "rack c, from an earlier look")
    never = explained("broker/3", Run().look(without(answers, 3).at(0)))
    assert never["broker/3", "rack known"] == ("unknown", "the broker is absent, and its rack was never seen")
