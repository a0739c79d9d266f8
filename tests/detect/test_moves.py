"""Replicas that moved or are moving: rack changes with their cause, foreign reassignments, throttles left behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.memory.codec import memory_from_json, memory_to_json
from agent.values.finding import Finding, FindingSeverity
from agent.values.finding import FindingReason as Reason
from agent.values.limits import DetectLimits, Limits
from agent.values.memory import Memory
from agent.values.observation import GapCause, ObservationPart
from assignors.problem import TopicPartition
from tests.builders import Answers, Run, an_observation

Prepare = Callable[[Answers], object]

MOVED = TopicPartition("orders", 0)


def a_cluster() -> Answers:
    return an_observation(a=(1, 4), b=(2, 5), c=(3, 6)).topic("orders", (1, 2, 3), (2, 3, 1)).topic("other", (3, 1))


def journal_says(run: Run, *own: TopicPartition) -> None:
    """Our own moves, as the next look knows them."""
    run.memory = replace(run.memory, own_reassignments=frozenset(own))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(lambda a: a, {}, id="nothing"),
        pytest.param(
            lambda a: a.broker(3, "b"),
            {"broker/3": "a broker came back in another rack"},
            id="a broker relabelled, one finding for all its partitions",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 4), (2, 3, 1)),
            {"topic/orders": "a reassignment that rackwise did not make"},
            id="reassigned to another rack between two looks",
        ),
        pytest.param(lambda a: a.topic("orders", (4, 2, 3), (2, 3, 1)), {}, id="reassigned inside a rack"),
        pytest.param(lambda a: a.topic("orders", (3, 2, 1), (2, 3, 1)), {}, id="only the order changed"),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2)),
            {"topic/orders": "partitions were added"},
            id="partitions added",
        ),
        pytest.param(
            lambda a: a.topic("blind", (1, 4)),
            {"topic/blind": "the topic was created without regard to racks"},
            id="a topic created blind",
        ),
        pytest.param(lambda a: a.topic("well", (1, 2)), {}, id="a topic created with regard to racks"),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 4), (2, 3, 1), topic_id="another"),
            {"topic/orders": "the topic was deleted and created again"},
            id="a topic recreated elsewhere",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 3), (2, 3, 1), topic_id="another"), {}, id="a topic recreated alike"
        ),
        pytest.param(lambda a: a.without_topic("orders"), {}, id="a topic deleted"),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 9), (2, 3, 1)), {}, id="reassigned to a broker of unknown rack"
        ),
        pytest.param(lambda a: a.broker(3, None), {}, id="a rack that is no longer told"),
        pytest.param(lambda a: a.without_broker(3), {}, id="a broker that went away"),
        pytest.param(lambda a: a.topic("rackwise.journal", (1, 4)), {}, id="a topic of our own created blind"),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 4), (2, 3, 1)).gap(ObservationPart.REASSIGNMENTS),
            {},
            id="moves are not shown, so it may still be under way",
        ),
    ],
)
@pytest.mark.parametrize("restarted", [False, True], ids=["in one run", "with the memory read back"])
def test_replica_racks_changed(change: Prepare, found: dict[str, str], restarted: bool) -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0))
    if restarted:
        run = Run(memory=memory_from_json(memory_to_json(run.memory)))
    change(answers)
    changed = run.look(answers.at(10)).of(Reason.REPLICA_RACKS_CHANGED)
    assert {str(finding.subject): dict(finding.evidence)["cause"] for finding in changed} == found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            lambda a: a.topic("blind", (1, 4), (4, 1)),
            "blind was created without regard to racks in 2 partitions: blind-0 is on 1 (a), 4 (a), "
            "and replicas share a rack now while another is free",
            id="created blind",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2, 3), (2, 3, 1), (1, 4, 2)),
            "1 partition was added to orders: orders-2 is on 1 (a), 4 (a), 2 (b), "
            "and replicas share a rack now while another is free",
            id="added",
        ),
    ],
)
def test_partitions_that_are_new_have_not_changed_and_what_they_lack_is_a_finding_of_its_own(
    change: Prepare, said: str
) -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0))
    change(answers)
    run.look(answers.at(10))
    (new,) = run.of(Reason.REPLICA_RACKS_CHANGED)
    assert (new.sentence, new.severity) == (said, FindingSeverity.INFO)
    (crowded,) = run.of(Reason.REPLICAS_SHARE_RACK)
    assert crowded.severity is FindingSeverity.WARNING


def test_the_first_look_finds_no_change() -> None:
    assert not Run().look(a_cluster().topic("blind", (1, 4)).at(0)).of(Reason.REPLICA_RACKS_CHANGED)


def test_a_relabelled_broker_says_how_many_partitions_it_takes_along() -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0)).look(answers.broker(3, "b").at(10))
    (found,) = run.of(Reason.REPLICA_RACKS_CHANGED)
    assert found.sentence == (
        "the replica racks of 3 partitions in 2 topics changed, orders-0 among them, "
        "because broker 3 came back in rack b instead of c"
    )
    assert found.held
    for second in (30, 50, 75):
        run.look(answers.at(second))
    assert [finding.held for finding in run.of(Reason.REPLICA_RACKS_CHANGED)] == [False]


@pytest.mark.parametrize("restarted", [False, True], ids=["in one run", "with the memory read back"])
@pytest.mark.parametrize("was_listed", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_replicas_in_the_midst_of_a_move_are_no_change_where_the_list_of_moves_is_older_or_newer(
    own: bool, was_listed: bool, restarted: bool
) -> None:
    """The brokers are asked for replicas and the controller for moves, and the move may begin or end in between."""

    def look(second: float) -> tuple[Finding, ...]:
        if restarted:
            run.memory = memory_from_json(memory_to_json(run.memory))
        return run.look(answers.at(second)).of(Reason.REPLICA_RACKS_CHANGED)

    answers = a_cluster()
    run = Run().look(answers.at(0))
    widened = (1, 2, 4, 3)
    answers.topic("orders", widened, (2, 3, 1))
    if was_listed:
        journal_says(run, *([MOVED] if own else []))
        answers.moving("orders-0", widened, (4,), (3,))
        assert not look(10)
        answers.moves.clear()
        journal_says(run)
    assert not look(20)
    if not was_listed:
        journal_says(run, *([MOVED] if own else []))
        answers.moving("orders-0", widened, (4,), (3,))
        assert not look(30)
        answers.moves.clear()
        journal_says(run)
    answers.topic("orders", (1, 2, 4), (2, 3, 1))
    assert [dict(found.evidence)["first"] for found in look(40)] == (
        [] if own else [("orders-0 went from 1 (a), 2 (b), 3 (c) to 1 (a), 2 (b), 4 (a)",)]
    )
    assert [bool(dict(found.evidence)["running since"]) for found in look(50)] == ([] if own else [True])


@pytest.mark.parametrize("restarted", [False, True], ids=["in one run", "with the memory read back"])
@pytest.mark.parametrize("seen", [(1, 2, 3), (1, 2, 4, 3)], ids=["not begun", "in its midst"])
def test_a_move_of_our_own_that_no_look_found_listed_is_no_change_of_somebody_elses(
    seen: tuple[int, ...], restarted: bool
) -> None:
    """The journal says that it was asked for at one look, and at the next one that it is through."""
    answers = a_cluster()
    run = Run().look(answers.at(0))
    journal_says(run, MOVED)
    assert not run.look(answers.topic("orders", seen, (2, 3, 1)).at(10)).of(Reason.REPLICA_RACKS_CHANGED)
    journal_says(run)
    if restarted:
        run.memory = memory_from_json(memory_to_json(run.memory))
    assert not run.look(answers.topic("orders", (1, 2, 4), (2, 3, 1)).at(20)).of(Reason.REPLICA_RACKS_CHANGED)
    assert not run.memory.reassignments
    assert run.look(answers.topic("orders", (1, 2, 3), (2, 3, 1)).at(30)).of(Reason.REPLICA_RACKS_CHANGED)


def test_a_foreign_move_that_became_our_own_is_no_change_of_somebody_elses() -> None:
    """Cancelled and asked for by us between two looks: once known as own, it stays so though the journal is through."""
    answers = a_cluster()
    run = Run().look(answers.at(0))
    answers.topic("orders", (1, 2, 4, 3), (2, 3, 1)).moving("orders-0", (1, 2, 4, 3), (4,), (3,))
    assert run.look(answers.at(10)).of(Reason.FOREIGN_REASSIGNMENT)
    journal_says(run, MOVED)
    assert not run.look(answers.at(20)).of(Reason.FOREIGN_REASSIGNMENT)
    journal_says(run)
    answers.moves.clear()
    run.look(answers.topic("orders", (1, 2, 4), (2, 3, 1)).at(30))
    assert not run.of(Reason.REPLICA_RACKS_CHANGED)


@pytest.mark.parametrize("own", [False, True])
def test_replicas_that_stay_more_than_they_were_are_a_change_one_look_later(own: bool) -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0))
    journal_says(run, *([MOVED] if own else []))
    answers.topic("orders", (1, 2, 3, 4), (2, 3, 1)).moving("orders-0", (1, 2, 3, 4), (4,), ())
    run.look(answers.at(10))
    answers.moves.clear()
    journal_says(run)
    assert not run.look(answers.at(20)).of(Reason.REPLICA_RACKS_CHANGED)
    assert len(run.look(answers.at(30)).of(Reason.REPLICA_RACKS_CHANGED)) == (0 if own else 1)
    assert run.memory.topics["orders"].replicas[0] == (1, 2, 3, 4)
    assert not run.memory.widened
    assert not run.memory.reassignments


def test_a_change_says_that_replicas_share_a_rack_only_while_they_do() -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0)).look(answers.topic("orders", (1, 2, 4), (2, 3, 1)).at(10))
    (changed,) = run.of(Reason.REPLICA_RACKS_CHANGED)
    assert "share a rack now" in changed.sentence
    assert dict(changed.evidence)["shares a rack"] is True

    run.look(answers.topic("orders", (1, 2, 4), (2, 3, 1)).moving("orders-0", (1, 2, 4, 3), (3,), (4,)).at(20))
    (mending,) = run.of(Reason.REPLICA_RACKS_CHANGED)
    assert "share a rack now" not in mending.sentence, "where the reassignment leads, they do not"

    answers.moves.clear()
    run.look(answers.topic("orders", (1, 2, 3), (2, 3, 1)).at(30))
    for mended in run.of(Reason.REPLICA_RACKS_CHANGED):
        assert "share a rack now" not in mended.sentence
        assert mended.severity is FindingSeverity.INFO
        assert dict(mended.evidence)["shares a rack"] is False


def test_a_change_of_a_topic_that_is_deleted_is_no_finding_but_a_hidden_one_may_be_there() -> None:
    answers = a_cluster()
    shown = answers.rights
    run = Run().look(answers.at(0)).look(answers.topic("blind", (1, 4)).at(10))
    answers.without_topic("blind")
    for at, hidden in ((20, None), (30, 1)):
        answers.rights = replace(shown, topics_hidden=hidden)
        run.look(answers.at(at))
        assert [str(one.subject) for one in run.of(Reason.REPLICA_RACKS_CHANGED)] == ["topic/blind"]
    answers.rights = replace(shown, topics_hidden=0)
    run.look(answers.at(40))
    assert run.of(Reason.REPLICA_RACKS_CHANGED) == []


def test_a_reassignment_is_a_change_when_it_is_through_not_while_it_runs() -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0))
    answers.topic("orders", (1, 2, 4, 3), (2, 3, 1)).moving("orders-0", (1, 2, 4, 3), (4,), (3,))
    run.look(answers.at(10))
    assert not run.of(Reason.REPLICA_RACKS_CHANGED)
    (running,) = run.of(Reason.FOREIGN_REASSIGNMENT)
    assert running.sentence == (
        "a reassignment of 1 partition of orders is running that rackwise did not start: "
        "orders-0 goes to 1 (a), 2 (b), 4 (a); rackwise leaves it alone"
    )

    answers.moves.clear()
    run.look(answers.topic("orders", (1, 2, 4), (2, 3, 1)).at(20))
    (changed,) = run.of(Reason.REPLICA_RACKS_CHANGED)
    assert changed.severity is FindingSeverity.WARNING
    assert changed.sentence == (
        "the replica racks of 1 partition of orders changed, because they were reassigned by another tool than "
        "rackwise: "
        "orders-0 went from 1 (a), 2 (b), 3 (c) to 1 (a), 2 (b), 4 (a), "
        "and replicas share a rack now while another is free"
    )
    assert dict(changed.evidence)["running since"] == running.since_ms


def test_a_cancelled_reassignment_leaves_no_change() -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0))
    answers.topic("orders", (1, 2, 4, 3), (2, 3, 1)).moving("orders-0", (1, 2, 4, 3), (4,), (3,))
    run.look(answers.at(10))
    answers.moves.clear()
    run.look(answers.topic("orders", (1, 2, 3), (2, 3, 1)).at(20))
    assert not run.of(Reason.REPLICA_RACKS_CHANGED)


def test_a_reassignment_of_our_own_is_neither_foreign_nor_a_finding_when_it_is_through() -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0))
    journal_says(run, MOVED)
    answers.topic("orders", (1, 2, 4, 3), (2, 3, 1)).moving("orders-0", (1, 2, 4, 3), (4,), (3,))
    assert not run.look(answers.at(10)).of(Reason.FOREIGN_REASSIGNMENT)
    answers.moves.clear()
    run.look(answers.topic("orders", (1, 2, 4), (2, 3, 1)).at(20))
    assert not run.of(Reason.REPLICA_RACKS_CHANGED)


def test_a_change_is_shown_for_half_an_hour_with_its_first_age() -> None:
    answers = a_cluster()
    run = Run().look(answers.at(0)).look(answers.topic("orders", (1, 2, 4), (2, 3, 1)).at(10))
    (first,) = run.of(Reason.REPLICA_RACKS_CHANGED)
    (later,) = run.look(answers.at(1_800)).of(Reason.REPLICA_RACKS_CHANGED)
    assert later.since_ms == first.since_ms
    assert not run.look(answers.at(1_820)).of(Reason.REPLICA_RACKS_CHANGED)


def test_topics_that_come_back_after_a_gap_are_not_new() -> None:
    answers = a_cluster().topic("blind", (1, 4))
    run = Run().look(answers.at(0))
    saved = dict(answers.topics)
    answers.topics.clear()
    run.look(answers.gap(ObservationPart.TOPICS).at(10))
    answers.topics.update(saved)
    answers.gaps.clear()
    assert not run.look(answers.at(20)).of(Reason.REPLICA_RACKS_CHANGED)


def test_a_topic_that_could_not_be_described_at_first_is_not_new_later() -> None:
    answers = a_cluster().gap(ObservationPart.TOPICS, GapCause.ERROR, "blind")
    run = Run().look(answers.at(0))
    answers.gaps.clear()
    assert not run.look(answers.topic("blind", (1, 4)).at(10)).of(Reason.REPLICA_RACKS_CHANGED)


@pytest.mark.parametrize(
    ("prepare", "found"),
    [
        pytest.param(
            lambda a: a.topic("orders", (1, 2), leader_replication_throttled_replicas="0:1,0:2"),
            {"topic/orders": FindingSeverity.WARNING},
            id="a topic's replicas",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2), follower_replication_throttled_replicas="*"),
            {"topic/orders": FindingSeverity.INFO},
            id="all replicas of a topic, which may be meant",
        ),
        pytest.param(
            lambda a: a.broker_configs[1].update({"leader.replication.throttled.rate": "1000000"}),
            {"broker/1": FindingSeverity.INFO},
            id="a broker's rate",
        ),
        pytest.param(
            lambda a: a.broker_configs[1].update({"leader.replication.throttled.rate": str(2**63 - 1)}),
            {},
            id="a broker's rate that is no limit",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2), leader_replication_throttled_replicas="0:1").moving(
                "orders-0", (1, 2), (2,), ()
            ),
            {},
            id="its reassignment is running",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2), leader_replication_throttled_replicas="0:1").gap(
                ObservationPart.REASSIGNMENTS
            ),
            {},
            id="moves are not shown",
        ),
        pytest.param(
            lambda a: a.topic("orders", (1, 2), leader_replication_throttled_replicas=""), {}, id="empty list"
        ),
    ],
)
def test_throttle_left_behind(prepare: Prepare, found: dict[str, FindingSeverity]) -> None:
    answers = an_observation()
    prepare(answers)
    run = Run().look(answers.at(0)).look(answers.at(119))
    assert not run.of(Reason.THROTTLE_LEFT_BEHIND)
    run.look(answers.at(120))
    assert {str(f.subject): f.severity for f in run.of(Reason.THROTTLE_LEFT_BEHIND)} == found


def test_the_grace_of_a_throttle_begins_when_its_reassignment_ends() -> None:
    answers = an_observation().topic("orders", (1, 2), leader_replication_throttled_replicas="0:1")
    run = Run(Limits(detect=DetectLimits(throttle_grace_ms=30_000))).look(
        answers.moving("orders-0", (1, 2), (2,), ()).at(0)
    )
    run.look(answers.at(100))
    answers.moves.clear()
    assert not run.look(answers.at(110)).look(answers.at(130)).of(Reason.THROTTLE_LEFT_BEHIND)
    assert run.look(answers.at(140)).of(Reason.THROTTLE_LEFT_BEHIND)


def test_a_very_long_throttle_is_cut_short_in_its_sentence() -> None:
    answers = an_observation().topic("orders", (1,), leader_replication_throttled_replicas=",".join(["0:1"] * 1000))
    run = Run(memory=Memory()).look(answers.at(0)).look(answers.at(200))
    assert len(run.of(Reason.THROTTLE_LEFT_BEHIND)[0].sentence) < 250
