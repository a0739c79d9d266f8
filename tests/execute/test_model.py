"""The executor's protocol under every interleaving, and the bugs that the checker must find."""

from __future__ import annotations

import os

import pytest

from agent.execute.reassign.messages import PlanCommand
from agent.values.kafka import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.reassignment import ReassignmentPlan, ReassignmentTarget
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition
from tests.execute import seeded_bugs as bugs
from tests.execute.abstract_cluster import Cluster, a_part
from tests.execute.explorer import Exploration, explore, wander
from tests.execute.model_system import Left, Scenario

DRILL_STATES = int(os.environ.get("RACKWISE_MODEL_STATES", "1100000"))
"""Of each of five worlds."""
QUICK_STATES = 1_500
T = ThrottleResource(topic="t")
ONE = ThrottleResource(broker=1)


def moving(
    left: Left, *, partitions: int = 1, settings: tuple[tuple[ThrottleResource, str, str], ...] = ()
) -> Scenario:
    """A plan in which a leader leaves, a cancel disturbs the order, and (the second) a preferred leader is new."""
    targets = (
        ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (3, 2)),
        ReassignmentTarget(TopicPartition("t", 1), "id", (2, 3), (1, 2)),
    )
    cluster = Cluster((a_part(1, 2), a_part(2, 3))[:partitions], frozenset({1, 2, 3}), tuple(sorted(settings)))
    return Scenario(ReassignmentPlan("p", targets[:partitions]), cluster, left)


def reordering(left: Left) -> Scenario:
    """A plan that moves no data."""
    target = ReassignmentTarget(TopicPartition("t", 0), "id", (1, 2), (2, 1))
    return Scenario(ReassignmentPlan("p", (target,)), Cluster((a_part(1, 2),), frozenset({1, 2})), left)


def two_plans(left: Left, *, overlapping: bool = False) -> Scenario:
    """A second plan, of another partition or back again of the same."""
    scenario = moving(left, partitions=2)
    first, second = scenario.plan.targets
    other = ReassignmentPlan("q", (first.back() if overlapping else second,))
    return scenario._replace(plan=ReassignmentPlan("p", (first,)), second=other)


def commands(*said: PlanCommand) -> tuple[PlanCommand, ...]:
    return tuple(sorted(said))


THEIRS = ((ONE, LEADER_RATE, "5"), (T, LEADER_REPLICAS, "0:1,9:9"), (T, FOLLOWER_REPLICAS, "*"))

QUICK = [
    pytest.param(moving(Left(), partitions=2), id="two partitions, no faults"),
    pytest.param(moving(Left(crashes=2)), id="killed twice, at any two steps"),
    pytest.param(moving(Left(losses=1, delays=1)), id="an answer lost, or a request late, or a controller busy"),
    pytest.param(moving(Left(brokers=1)), id="any broker is killed at any step"),
    pytest.param(moving(Left(foreign=1)), id="someone else moves the partition, before or in the middle"),
    pytest.param(moving(Left(deletions=1)), id="the topic is deleted, or made anew"),
    pytest.param(moving(Left(throttles=1, crashes=1)), id="someone else sets a rate in the middle, and we are killed"),
    pytest.param(moving(Left(crashes=1), settings=THEIRS), id="throttles of others are there before"),
    pytest.param(moving(Left(min_isr=1)), id="min ISR is raised in the middle"),
    pytest.param(moving(Left(commands=commands(PlanCommand.CANCEL))), id="cancelled at any step"),
    pytest.param(moving(Left(commands=commands(PlanCommand.ROLLBACK))), id="rolled back at any step"),
    pytest.param(moving(Left(commands=commands(PlanCommand.PAUSE, PlanCommand.CANCEL))), id="paused, and cancelled"),
    pytest.param(
        moving(Left(commands=commands(PlanCommand.ROLLBACK, PlanCommand.CANCEL))),
        id="rolled back and cancelled, in any order",
    ),
    pytest.param(
        moving(Left(commands=commands(PlanCommand.ROLLBACK, PlanCommand.PAUSE))),
        id="rolled back and paused, in any order",
    ),
    pytest.param(
        reordering(Left(commands=commands(*PlanCommand))), id="every command, in any order, while leaders change"
    ),
    pytest.param(moving(Left(unread=2)), id="two looks do not see something"),
    pytest.param(moving(Left(lags=1)), id="brokers tell what was before"),
    pytest.param(moving(Left(lags=1, losses=1)), id="brokers tell what was before, and an answer is lost"),
    pytest.param(
        moving(Left(foreign=1, commands=commands(PlanCommand.CANCEL))), id="someone else moves it, and it is cancelled"
    ),
    pytest.param(moving(Left(holds=2)), id="the guard holds twice, at any two steps"),
    pytest.param(moving(Left(holds=1, crashes=1)), id="the guard holds, and we are killed"),
    pytest.param(two_plans(Left()), id="two plans"),
    pytest.param(two_plans(Left(holds=1)), id="two plans, and the guard holds the first"),
    pytest.param(
        two_plans(Left(commands=commands(PlanCommand.PAUSE, PlanCommand.CANCEL))),
        id="two plans, the first paused and cancelled",
    ),
    pytest.param(
        two_plans(Left(commands=commands(PlanCommand.ROLLBACK)), overlapping=True),
        id="there and back again, rolled back",
    ),
    pytest.param(reordering(Left(crashes=1, losses=1)), id="leaders alone, killed, an answer lost"),
    pytest.param(moving(Left(again=2)), id="handed over again and again, at any two steps"),
    pytest.param(
        moving(Left(again=1, commands=commands(PlanCommand.ROLLBACK))),
        id="rolled back, and approved again, at any steps",
    ),
    pytest.param(
        reordering(Left(again=1, crashes=1, commands=commands(PlanCommand.CANCEL))), id="cancelled, again, and killed"
    ),
]


@pytest.mark.parametrize("scenario", QUICK)
def test_every_interleaving_keeps_the_invariants_and_ends(scenario):
    found = explore(scenario, most=20_000)
    assert sound(found)
    assert found.complete


def test_an_agent_that_thaws_beside_a_new_leader_does_no_harm():
    assert sound(explore(moving(Left(freezes=1)), most=9_000))


EVERYTHING = Left(
    crashes=1,
    freezes=1,
    losses=1,
    brokers=1,
    foreign=1,
    throttles=1,
    deletions=1,
    min_isr=1,
    delays=1,
    commands=commands(PlanCommand.CANCEL, PlanCommand.ROLLBACK),
    again=1,
    unread=1,
    lags=1,
    holds=1,
)
"""More faults together than a bad night has."""
TALK = Left(crashes=1, losses=1, unread=1, lags=1, holds=1, foreign=1, commands=commands(*PlanCommand, *PlanCommand))
"""Operators who change their minds, on a night that is bad enough."""

WORLDS = [
    pytest.param(moving(EVERYTHING, partitions=2), id="everything at once"),
    pytest.param(moving(EVERYTHING, partitions=2, settings=THEIRS), id="everything, beside throttles of others"),
    pytest.param(two_plans(EVERYTHING), id="everything, and two plans"),
    pytest.param(two_plans(EVERYTHING, overlapping=True), id="everything, there and back again"),
    pytest.param(moving(TALK), id="operators who change their minds"),
]


@pytest.mark.drill
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("scenario", WORLDS)
def test_a_million_states_of_each_world(scenario):
    found = explore(scenario, most=DRILL_STATES)
    assert sound(found)
    assert found.complete or found.states >= DRILL_STATES
    print(f"{found.states:,} states, {'all of them' if found.complete else 'breadth first'}")


@pytest.mark.parametrize("scenario", WORLDS)
def test_the_nearest_states_of_each_world(scenario):
    assert sound(explore(scenario, most=QUICK_STATES))


@pytest.mark.parametrize("scenario", WORLDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_nights_end_well(seed, scenario):
    assert sound(wander(scenario, seed, runs=30))


@pytest.mark.drill
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10, 20))
def test_many_random_nights_end_well(seed):
    more = EVERYTHING._replace(
        crashes=2, losses=3, brokers=2, unread=3, holds=2, commands=commands(*PlanCommand, *PlanCommand)
    )
    scenario = two_plans(more) if seed % 2 else moving(more, partitions=2, settings=THEIRS)
    assert sound(wander(scenario, seed, runs=2_000))


DEEP = [
    pytest.param(moving(Left(freezes=1, crashes=1)), id="frozen and killed"),
    pytest.param(moving(Left(freezes=1, losses=1)), id="frozen, and an answer lost"),
    pytest.param(moving(Left(brokers=1), partitions=2), id="a broker is killed while two partitions move"),
    pytest.param(moving(Left(min_isr=1, losses=1), partitions=2), id="min ISR is raised, and a controller is busy"),
    pytest.param(moving(Left(foreign=1, crashes=1)), id="someone else moves it, and we are killed"),
    pytest.param(moving(Left(deletions=1, crashes=1)), id="the topic goes, and we are killed"),
    pytest.param(moving(Left(commands=commands(PlanCommand.ROLLBACK), crashes=1)), id="rolled back and killed"),
    pytest.param(moving(Left(commands=commands(PlanCommand.CANCEL), losses=1)), id="cancelled, and an answer lost"),
    pytest.param(
        moving(Left(again=2, commands=commands(PlanCommand.ROLLBACK), crashes=1)), id="rolled back, again, and killed"
    ),
    pytest.param(moving(Left(commands=commands(*PlanCommand))), id="every command, in any order"),
    pytest.param(
        moving(Left(commands=commands(PlanCommand.ROLLBACK, PlanCommand.ROLLBACK, PlanCommand.CANCEL))),
        id="rolled back, cancelled, and again",
    ),
    pytest.param(moving(Left(unread=1, losses=1)), id="an answer is lost, and a look does not see something"),
    pytest.param(moving(Left(unread=2, crashes=1)), id="two looks do not see something, and we are killed"),
    pytest.param(two_plans(Left(crashes=1, holds=1)), id="two plans, killed, and the guard holds the first"),
    pytest.param(
        two_plans(Left(commands=commands(PlanCommand.ROLLBACK, PlanCommand.CANCEL), foreign=1)),
        id="two plans, cancelled, and others move",
    ),
]


@pytest.mark.parametrize("scenario", DEEP)
def test_the_nearest_states_of_pairs_of_faults(scenario):
    assert sound(explore(scenario, most=QUICK_STATES))


@pytest.mark.drill
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", DEEP)
def test_pairs_of_faults_are_looked_at_to_the_end(scenario):
    found = explore(scenario, most=400_000)
    assert sound(found)
    assert found.complete


BUGS = [
    pytest.param(bugs.sends_before_it_announces, moving(Left()), "was not announced"),
    pytest.param(bugs.begins_what_has_ended, moving(Left(again=1)), "ended attempt began again"),
    pytest.param(bugs.begins_two_attempts_at_once, moving(Left(again=1)), "two attempts are open"),
    pytest.param(
        bugs.cancels_without_writing_it_down, moving(Left(commands=commands(PlanCommand.CANCEL))), "unlogged cancel"
    ),
    pytest.param(bugs.throttles_without_a_debt, moving(Left()), "unlogged throttle"),
    pytest.param(bugs.waits_for_no_late_request, moving(Left(crashes=1)), "asked for twice"),
    pytest.param(bugs.trusts_a_former_leader_to_be_silent, moving(Left(crashes=1)), "asked for twice"),
    pytest.param(bugs.sends_what_has_ended_already, moving(Left(deletions=1, crashes=1)), "asks for nothing"),
    pytest.param(bugs.sends_again_without_an_answer, moving(Left(losses=1)), "asked for twice"),
    pytest.param(bugs.forgives_brokers_that_are_down, moving(Left(brokers=1)), "throttle was left"),
    pytest.param(bugs.leaves_throttles_behind, moving(Left()), "it never ends"),
    pytest.param(bugs.forgets_the_rate_before_the_new_one, moving(Left(crashes=1)), "throttle was left"),
    pytest.param(bugs.sets_rates_over_those_of_others, moving(Left(), settings=THEIRS), "someone else was changed"),
    pytest.param(bugs.takes_rates_of_others_for_its_own, moving(Left(throttles=1)), "meanwhile was taken away"),
    pytest.param(bugs.deletes_whole_lists, moving(Left(), settings=THEIRS), "someone else was changed"),
    pytest.param(
        bugs.cancels_moves_of_others,
        moving(Left(foreign=1, commands=commands(PlanCommand.CANCEL))),
        "foreign move was cancelled",
    ),
    pytest.param(bugs.moves_while_others_move, moving(Left(foreign=1)), "foreign move was replaced"),
    pytest.param(
        bugs.never_asks_for_min_isr, moving(Left(min_isr=1, brokers=1)), "while a partition was under its min"
    ),
    pytest.param(bugs.forgets_the_replicas_that_a_move_adds, moving(Left(min_isr=1)), "left a partition under its min"),
    pytest.param(bugs.knows_topics_by_name_alone, moving(Left(deletions=1)), "made anew was reassigned"),
    pytest.param(
        bugs.closes_while_a_cancelled_move_runs,
        moving(Left(losses=1, commands=commands(PlanCommand.CANCEL))),
        "its plan says that it moved",
    ),
    pytest.param(
        bugs.leaves_the_order_of_a_cancel, moving(Left(commands=commands(PlanCommand.CANCEL))), "has the replicas"
    ),
    pytest.param(bugs.takes_unread_for_set, moving(Left(unread=2, losses=1)), "while something of it was unread"),
    pytest.param(bugs.takes_an_unknown_min_isr_for_enough, moving(Left(unread=1)), "while something of it was unread"),
    pytest.param(
        bugs.takes_a_disputed_leader_for_none_to_wait_for, moving(Left(unread=1)), "while something of it was unread"
    ),
    pytest.param(bugs.takes_unread_throttles_for_gone, moving(Left(unread=1)), "throttle was left"),
    pytest.param(bugs.pays_while_a_request_may_still_arrive, moving(Left(losses=2, crashes=1)), "throttle was left"),
    pytest.param(bugs.sends_again_what_was_acknowledged, moving(Left(lags=1)), "asked for twice"),
    pytest.param(
        bugs.cancels_again_before_the_first_can_have_ended,
        moving(Left(losses=1, commands=commands(PlanCommand.CANCEL))),
        "cancel was asked for twice",
    ),
    pytest.param(bugs.sends_again_under_min_isr, moving(Left(losses=1, min_isr=1), partitions=2), "under its min ISR"),
    pytest.param(
        bugs.rolls_back_through_a_pause,
        moving(Left(commands=commands(PlanCommand.ROLLBACK, PlanCommand.PAUSE))),
        "nothing might begin",
    ),
    pytest.param(bugs.sends_what_the_guard_holds, moving(Left(holds=1)), "nothing might begin"),
    pytest.param(bugs.ends_with_its_approval_although_it_has_begun, moving(Left(holds=1)), "its plan says"),
    pytest.param(
        bugs.carries_out_plans_of_the_same_partitions_side_by_side,
        two_plans(Left(holds=1), overlapping=True),
        "has the replicas",
    ),
    pytest.param(bugs.says_that_all_has_moved, moving(Left(commands=commands(PlanCommand.CANCEL))), "its plan says"),
    pytest.param(
        bugs.cancels_whatever_moves_by_then,
        moving(Left(foreign=1, commands=commands(PlanCommand.CANCEL))),
        "move was cancelled",
    ),
    pytest.param(bugs.moves_whatever_is_there_by_then, moving(Left(foreign=1)), "foreign move was replaced"),
    pytest.param(bugs.sets_and_deletes_whatever_is_set_by_then, moving(Left(throttles=1)), "was taken away"),
]


HIDDEN = (
    bugs.takes_rates_of_others_for_its_own,
    bugs.cancels_moves_of_others,
    bugs.moves_while_others_move,
    bugs.knows_topics_by_name_alone,
    bugs.sends_again_what_was_acknowledged,
)

NAMES = [it.values[0].__name__.replace("_", " ") for it in BUGS]


@pytest.mark.parametrize(("bug", "scenario", "says"), BUGS, ids=NAMES)
def test_each_seeded_bug_is_found(bug, scenario, says, monkeypatch):
    """Of what the last look before a request would hide, the machine alone must be free."""
    bug(monkeypatch)
    if bug in HIDDEN:
        scenario = scenario._replace(shell_looks_last=False, others_wait=True)
    found = explore(scenario, most=20_000)
    assert says in found.violation


def test_a_shell_that_sends_without_a_sure_lease_is_found():
    scenario = moving(Left(freezes=1))._replace(shell_checks_lease=False)
    assert explore(scenario, most=20_000).violation == "an agent acted after its fence"


@pytest.mark.parametrize(
    ("left", "says"),
    [
        (Left(foreign=1), "foreign move was replaced"),
        (Left(foreign=1, commands=commands(PlanCommand.CANCEL)), "foreign move was"),
        (Left(throttles=1), "set meanwhile was taken away"),
        (Left(deletions=1), "throttle was left"),
    ],
    ids=["moves of others", "and cancels", "rates of others", "topics made anew"],
)
def test_a_shell_that_does_not_look_right_before_a_request_is_found(left, says):
    assert says in explore(moving(left)._replace(shell_looks_last=False), most=20_000).violation


def test_a_slow_journal_only_delays():
    assert sound(explore(moving(Left(delays=8)), most=20_000))


def sound(found: Exploration) -> bool:
    """True when nothing was broken; else it shows the way there."""
    if found.violation:
        print(found.violation, *found.trace, sep="\n")
    return not found.violation
