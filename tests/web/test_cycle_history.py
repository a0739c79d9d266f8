"""What an agent keeps of its cycles: a row a minute, bounded, with every event that a look saw first."""

from __future__ import annotations

from dataclasses import replace

from agent.record.librdkafka import RecordCounts
from agent.record.recorder import RecordingResult
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle, FindingChanges
from agent.values.last_known import last_known
from agent.values.observation import GapCause, ObservationPart
from agent.values.proposal import Outcome, PlacementChange, ProposalKind
from agent.web.agent_view import CycleFailure, LoopMonitor
from agent.web.cycle_history import (
    MOST_ENDED,
    MOST_EVENTS,
    MOST_ROWS,
    ROW_MS,
    CycleSummary,
    HistoryEvent,
    HistoryKind,
    failed_summary,
    summary_of,
    with_ended,
    with_summary,
)
from assignors.problem import TopicPartition
from tests.builders import Answers, an_observation, reader
from tests.web.api.agents import cycle_of
from tests.web.page.worlds import sick

AT = ClockReading(0, 0)


def cluster() -> Answers:
    answers = an_observation(a=(1,), b=(2,), c=(3,))
    answers.topic("orders", (1, 2, 3), (2, 3, 1))
    answers.group("billing", reader("m1", "a", "orders-0"), reader("m2", "b", "orders-1"))
    return answers


def kinds(row: CycleSummary) -> list[HistoryKind]:
    return [event.kind for event in row.events]


def row(at_ms: int, *events: HistoryEvent) -> CycleSummary:
    return CycleSummary(at_ms, 1, 1, 0, None, 0, 0, events)


def test_a_row_has_the_reads_and_where_they_are_local() -> None:
    first = summary_of(cycle_of(cluster().at()), None, None)
    assert (first.reads, first.findings is not None, first.cross_rack_bytes_per_s) == (2, True, None)
    assert first.events == (), "what a first look finds has not happened since"
    empty = summary_of(cycle_of(an_observation(a=(1,)).at()), None, None)
    assert (empty.reads, empty.local, empty.unknown) == (None, None, None)


def test_reads_of_members_without_a_rack_are_unknown_and_not_left_out() -> None:
    answers = cluster()
    answers.group("legacy", reader("m3", None, "orders-0 orders-1"))
    answers.group("away", reader("m4", None, "orders-0"))
    row = summary_of(cycle_of(answers.at()), None, None)
    assert (row.reads, row.unknown) == (5, 3)


def test_brokers_that_come_go_and_change_their_rack_are_events() -> None:
    before = cycle_of(cluster().at())
    moved = an_observation(a=(1,), c=(2, 3), d=(4,))
    moved.topic("orders", (1, 2, 3), (2, 3, 1))
    now = summary_of(cycle_of(moved.at(60), before.after, number=2), before, before)
    said = [event.sentence for event in now.events if event.kind is HistoryKind.RACKS]
    assert said == ["broker 2 is in rack c, and was in rack b", "broker 4 is new in rack d"]
    gone = an_observation(a=(1,), b=(2,))
    absent = summary_of(cycle_of(gone.at(60), before.after, number=2), before, before)
    assert "broker 3 of rack c is absent" in [event.sentence for event in absent.events]


def test_rebalances_and_moves_are_events_and_an_unseen_part_makes_none() -> None:
    before = cycle_of(cluster().at())
    answers = an_observation(a=(1,), b=(2,), c=(3,))
    answers.topic("orders", (1, 2, 3), (2, 3, 1))
    answers.group("billing", reader("m1", "a", "orders-0 orders-1"), reader("m2", "b", ""))
    answers.moving("orders-0", (1, 2, 3), (3,), (2,))
    now = cycle_of(answers.at(60), before.after, number=2)
    found = summary_of(now, before, before)
    assert HistoryKind.REBALANCE in kinds(found)
    assert HistoryKind.MOVE_BEGAN in kinds(found)
    ended = summary_of(cycle_of(cluster().at(120), now.after, number=3), now, now)
    assert HistoryKind.MOVE_ENDED in kinds(ended)
    blind = cluster()
    blind.gap(ObservationPart.REASSIGNMENTS, GapCause.TIMED_OUT)
    unseen = summary_of(cycle_of(blind.at(120), now.after, number=3), now, now)
    assert HistoryKind.MOVE_ENDED not in kinds(unseen)


def test_findings_that_begin_and_end_are_events_with_their_sentences() -> None:
    bad = cluster()
    bad.topic("payments", (1, 1, 1), (2, 3, 1), isr={1: (2,)}, min_insync_replicas="2")
    first = cycle_of(bad.at())
    first = replace(first, known=last_known(None, first))
    begun = [one.id for one in first.detection.findings]
    assert begun
    ended = replace(first, number=2, changes=FindingChanges(ended=tuple(begun)))
    found = summary_of(ended, first, None)
    assert kinds(found) == [HistoryKind.FINDING_ENDED] * len(begun)
    new = summary_of(replace(first, changes=FindingChanges(new=tuple(begun))), first, None)
    assert {event.sentence for event in new.events} == {one.sentence for one in first.detection.findings}


def test_cycles_of_one_minute_share_a_row_and_a_day_is_kept() -> None:
    event = HistoryEvent(1, HistoryKind.RACKS, "broker/1", "x")
    one = with_summary((), row(0, event))
    two = with_summary(one, row(ROW_MS - 1, event))
    assert len(two) == 1
    assert (two[0].at_ms, len(two[0].events)) == (ROW_MS - 1, 2)
    full = two
    for number in range(40):
        full = with_summary(full, row(ROW_MS - 1, *([event] * 3)))
        assert len(full[0].events) <= MOST_EVENTS, number
    assert full[0].more_events == 2 + 120 - MOST_EVENTS
    day = two
    for minute in range(1, MOST_ROWS + 50):
        day = with_summary(day, row(minute * ROW_MS))
    assert len(day) == MOST_ROWS
    assert day[-1].at_ms - day[0].at_ms == (MOST_ROWS - 1) * ROW_MS


def _planned(proposals: int, shift: int = 0) -> Cycle:
    made = [sick().proposals[0]._replace(id=f"p-{number + shift}") for number in range(proposals)]
    return replace(cycle_of(cluster().at()), proposals=tuple(made))


def test_a_proposal_that_is_made_no_more_is_kept_until_it_is_made_again() -> None:
    before = _planned(2)
    ended = with_ended((), _planned(1), before)
    assert [(one.proposal.id, one.why) for one in ended] == [("p-1", "replaced by p-0")]
    assert with_ended(ended, _planned(2), _planned(1)) == ()
    none = with_ended((), _planned(0), before)
    assert {one.why for one in none} == {"there is no reason for it now"}
    assert len(with_ended((), _planned(0), _planned(200))) == MOST_ENDED
    looked = replace(before, plan=None, proposals=())
    assert with_ended(ended, looked, before) == ended, "a cycle that does not plan ends nothing"


def test_a_proposal_whose_change_was_made_was_carried_out() -> None:
    moved = PlacementChange(TopicPartition("orders", 0), (3, 1, 2), (1, 2, 3))
    placed = sick().proposals[0]._replace(id="p-0", kind=ProposalKind.REASSIGN, placements=(moved,))
    asked = placed._replace(id="p-1", kind=ProposalKind.TRIGGER, placements=())
    other = placed._replace(id="p-2", placements=(moved._replace(after=(1, 2, 4)),))
    before = replace(
        _planned(0), proposals=(placed, asked, other), outcomes=(Outcome("p-1", done=True, sentence="done"),)
    )
    ended = {one.proposal.id: one for one in with_ended((), _planned(0), before)}
    assert {name: one.why for name, one in ended.items()} == {
        "p-0": "carried out: the planned replicas are in place",
        "p-1": "carried out: the rebalance was requested",
        "p-2": "there is no reason for it now",
    }
    assert ended["p-0"].racks == {1: "a", 2: "b", 3: "c"}


def test_a_planning_that_could_not_see_ends_nothing() -> None:
    blind = cluster()
    blind.gap(ObservationPart.GROUPS, GapCause.TIMED_OUT)
    failed = replace(cycle_of(blind.at()), proposals=())
    assert with_ended((), failed, _planned(2)) == ()
    assert HistoryKind.PROPOSAL_ENDED not in kinds(summary_of(failed, None, _planned(2)))


def test_the_monitor_fills_the_rows_also_with_looks_that_failed() -> None:
    monitor = LoopMonitor(AT)
    cycle = cycle_of(cluster().at())
    monitor.succeeded(cycle, RecordingResult(recorded=False, counts=RecordCounts(0, 0, 0), waiting=0, problems=()), AT)
    assert [one.reads for one in monitor.state.past] == [2]
    monitor.failed(CycleFailure(2, "no broker answered", cycle.snapshot.taken_ms + 2 * ROW_MS), AT)
    assert [one.reads for one in monitor.state.past] == [2, None]
    assert failed_summary(7, "x").events[0].kind is HistoryKind.LOOK_FAILED
