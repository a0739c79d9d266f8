"""What API and page read of a running agent: one look, its verdicts, its journal, and documents made once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.act.journal.journal_topic import no_journal
from agent.documents.status import status_document
from agent.errors import JournalUnavailable
from agent.journal.entries import JournalState
from agent.values.plan import ExecuteState
from agent.values.proposal import Hold, HoldReason
from agent.values.rates import RateSource
from tests.cli.documents import a_cluster
from tests.web.api.agents import cycle_of, state_of, view_of

CYCLE = cycle_of(a_cluster().at())


def test_before_the_first_look_there_is_nothing() -> None:
    view = view_of(None)
    assert view.evaluation() is None
    assert dict(view.verdicts()) == {}
    with pytest.raises(LookupError):
        view.made("status", status_document)


def test_the_proposals_are_those_of_the_last_planning_with_their_verdicts() -> None:
    later = replace(CYCLE, number=2, look="look-2", proposals=(), verdicts=(), plan=None)
    view = view_of(later, state=lambda: replace(state_of(later), planned=CYCLE))
    evaluation, look = view.evaluation(), view.look()
    assert evaluation is not None
    assert look is not None
    assert evaluation.proposals == CYCLE.proposals != ()
    assert set(view.verdicts()) == {one.id for one in CYCLE.proposals}
    assert (look.look, look.planned_ms) == ("look-2", CYCLE.snapshot.taken_ms)


@pytest.mark.parametrize("leads", [None, False, True])
def test_once_the_agent_leads_the_verdicts_of_the_standby_agent_are_not_shown(*, leads: bool | None) -> None:
    """Judged at a planning before the leadership was won; the other verdicts of that planning hold on."""
    ids = [one.id for one in CYCLE.proposals]
    standby = Hold(ids[0], HoldReason.NOT_LEADING, "this agent does not lead")
    dry = [Hold(name, HoldReason.DRY_RUN, "a dry run") for name in ids[1:]]
    planned = replace(CYCLE, verdicts=(standby, *dry))
    view = view_of(planned, acting=lambda: None if leads is None else ExecuteState(leads=leads))
    assert set(view.verdicts()) == set(ids[1:] if leads else ids)
    look = view.look()
    assert look is not None
    assert view.verdicts(look) == view.verdicts()


def test_the_agent_reports_itself_and_its_rates() -> None:
    evaluation = view_of(CYCLE).evaluation()
    assert evaluation is not None
    assert evaluation.agent is not None
    assert (evaluation.agent["name"], evaluation.agent["host"], evaluation.agent["mode"]) == (
        "rw-1",
        "host-1",
        "propose",
    )
    assert evaluation.rates.measured in {RateSource.AGENT, RateSource.UNKNOWN}


def test_a_document_is_made_once_for_each_look() -> None:
    made: list[int] = []
    shown = state_of(CYCLE)
    view = view_of(None, state=lambda: shown)

    def make(_look: object) -> int:
        made.append(1)
        return len(made)

    assert [view.made("a", make), view.made("a", make), view.made("b", make)] == [1, 1, 2]
    shown = state_of(replace(CYCLE, number=2))
    assert view.made("a", make) == 3


def test_the_journal_is_read_once_a_second_at_most() -> None:
    now, reads = [0.0], []

    def read() -> JournalState:
        reads.append(now[0])
        return {}

    view = view_of(CYCLE, journal=read, clock_s=lambda: now[0])
    for at in (0.0, 0.9, 1.1, 2.0, 2.2):
        now[0] = at
        assert (view.journal().known, view.journal().why) == (True, "")
    assert reads == [0.0, 1.1, 2.2]


def test_a_journal_that_does_not_exist_is_known_to_be_empty() -> None:
    def read() -> JournalState:
        raise no_journal("journal topic rackwise.journal", "topics.prefix")

    records = view_of(CYCLE, journal=read).journal()
    assert (records.view, records.known) == ({}, True)
    assert "no agent in mode execute has run here" in records.why


def test_a_journal_that_cannot_be_read_is_unknown_and_is_asked_for_more_seldom() -> None:
    now, reads = [0.0], []

    def read() -> JournalState:
        reads.append(now[0])
        raise JournalUnavailable("the journal cannot be read", why="no answer in 3000 ms")

    view = view_of(CYCLE, journal=read, clock_s=lambda: now[0])
    for at in (0.0, 5.0, 11.0):
        now[0] = at
        assert view.journal().known is False
        assert "no answer in 3000 ms" in view.journal().why
    assert reads == [0.0, 11.0]


def test_agents_of_the_telemetry_topic_are_read_every_half_minute_at_most() -> None:
    now, reads = [0.0], []

    def read() -> str:
        reads.append(now[0])
        return "rackwise.telemetry could not be read (timed out)"

    view = view_of(CYCLE, clock_s=lambda: now[0], read_agents=read)
    for at in (0.0, 29.0, 31.0):
        now[0] = at
        agents = view.agents()
        assert agents is not None
        assert (agents["this"]["name"], agents["reported"]) == ("rw-1", None)
        assert agents["why_not"] == "rackwise.telemetry could not be read (timed out)"
    assert reads == [0.0, 31.0]
    assert view_of(None).agents() is None
