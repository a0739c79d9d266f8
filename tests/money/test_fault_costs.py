"""What a fault of doctor costs a day, worked out by hand: one MB/s across racks is $1.728 a day."""

from __future__ import annotations

from agent.explain.doctor import CheckState, DoctorCheck, diagnose
from agent.explain.doctor_fixes import ASSIGNORS_CHECK, CLIENT_RACK_CHECK, NO_COST, SELECTOR, FaultCost, fault_cost
from agent.money.costs import costs_of
from agent.simulate.evaluation import StageEvaluation, first_memory, second_look
from agent.values.limits import Limits
from agent.values.plan import Plan
from tests.builders import Answers, an_observation, reader
from tests.snapshots import tp

A_DAY = 1.728


def seen(answers: Answers) -> StageEvaluation:
    """Two looks, ten seconds apart, between which every partition took in 1 MB/s."""
    _sized(answers)
    memory = first_memory(answers.at(0), Limits())
    for partition in answers.ends:
        answers.ends[partition] += 10_000
    _sized(answers)
    return second_look(answers.at(10), memory, Limits())


def _sized(answers: Answers) -> None:
    rows = [(topic.name, row) for topic in answers.topics.values() for row in topic.partitions]
    answers.sizes = {
        (broker, tp(f"{name}-{row.partition}")): answers.ends[tp(f"{name}-{row.partition}")] * 1_000
        for name, row in rows
        for broker in row.replicas
    }


def checks(look: StageEvaluation) -> tuple[DoctorCheck, ...]:
    return diagnose(look.snapshot, look.detection, look.plan or Plan(), look.limits, look.before)


def cost(answers: Answers, name: str) -> FaultCost:
    look = seen(answers)
    check = next(one for one in checks(look) if one.name == name)
    assert check.state is CheckState.FAULT
    return fault_cost(check.name, check.who, costs_of(look.snapshot), look)


def test_without_a_selector_reads_past_the_replica_next_door_are_what_it_costs() -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1, 2), (1,)).selector(None)
    answers.group("shop", reader("m", "b", "orders-0 orders-1"))
    assert cost(answers, SELECTOR) == FaultCost(1_000_000.0, A_DAY)  # nothing is next door of orders-1


def test_an_assignor_that_ignores_racks_costs_what_the_best_assignment_would_save() -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1,), (2,))
    members = reader("m", "b", "orders-0"), reader("n", "a", "orders-1")
    answers.group("shop", *members, assignor="roundrobin")
    assert cost(answers, ASSIGNORS_CHECK) == FaultCost(2_000_000.0, 2 * A_DAY)


def test_members_without_a_rack_cost_at_most_all_that_they_read() -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1,), (2,))
    answers.group("shop", reader("m", None, "orders-0"), reader("n", "b", "orders-1"))
    assert cost(answers, CLIENT_RACK_CHECK) == FaultCost(at_most_usd_per_day=A_DAY)


def test_without_rates_no_fault_has_a_figure() -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1, 2)).selector(None)
    answers.group("shop", reader("m", "b", "orders-0"))
    look = second_look(answers.at(0), first_memory(answers.at(0), Limits()), Limits())
    assert fault_cost(SELECTOR, (), costs_of(look.snapshot), look) == FaultCost(None, None)


def test_a_check_that_sends_no_byte_anywhere_costs_nothing() -> None:
    look = seen(an_observation(a=(1,)).topic("orders", (1,)))
    assert fault_cost("rights suffice", (), costs_of(look.snapshot), look) is NO_COST


def test_the_names_are_those_of_checks() -> None:
    look = seen(an_observation(a=(1,)).topic("orders", (1,)))
    names = {check.name for check in checks(look)}
    assert {SELECTOR, ASSIGNORS_CHECK, CLIENT_RACK_CHECK} <= names
