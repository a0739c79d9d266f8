"""Which look the page shows while the documents of a new one are made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.values.clock import ClockReading
from agent.web.agent_view import AgentView, LoopState
from agent.web.page import look_documents
from agent.web.page.look_documents import LookDocuments, ShownLooks
from config.load import LoadedSettings
from config.settings import Settings
from tests.web.page.answers import page_client, read, words
from tests.web.page.worlds import WORLDS, cycle_of, sick, viewed


class Agent:
    """An agent whose cycles a test sets."""

    def __init__(self) -> None:
        self.state = LoopState(started=ClockReading(0, 0))
        loaded = LoadedSettings(settings=Settings.model_validate({"kafka": {"bootstrap.servers": "kafka:9092"}}))
        self.view = AgentView(state=lambda: self.state, settings=loaded, read_journal=dict, journal_name="journal")

    def looked(self, number: int, *, at_s: int = 0) -> None:
        cycle = cycle_of(sick())
        cycle = replace(cycle, number=number, snapshot=replace(cycle.snapshot, taken_ms=1_000 * at_s))
        self.state = replace(self.state, cycle=cycle, planned=cycle)


def test_the_look_before_is_shown_until_the_documents_of_the_new_one_are_made() -> None:
    agent, made = Agent(), list[int]()
    looks = ShownLooks(agent.view, (lambda documents: made.append(documents.look.cycle),), stale_ms=30_000)
    assert looks.now() == (None, None)
    agent.looked(1)
    shown, afterwards = looks.now()
    assert (shown is not None and shown.look.cycle, afterwards) == (1, None)
    agent.looked(2, at_s=10)
    shown, afterwards = looks.now()
    assert shown is not None
    assert shown.look.cycle == 1
    assert afterwards is not None
    assert looks.now()[1] is None, "one request makes them"
    afterwards()
    assert made == [2]
    shown, afterwards = looks.now()
    assert (shown is not None and shown.look.cycle, afterwards) == (2, None)


def test_an_old_look_is_not_shown_while_a_new_one_is_there() -> None:
    agent = Agent()
    looks = ShownLooks(agent.view, (), stale_ms=30_000)
    agent.looked(1)
    looks.now()
    agent.looked(2, at_s=31)
    shown, afterwards = looks.now()
    assert (shown is not None and shown.look.cycle, afterwards) == (2, None)


def test_a_preparation_that_fails_ends_no_view() -> None:
    agent = Agent()

    def fails(_documents: LookDocuments) -> None:
        raise RuntimeError("a document")

    looks = ShownLooks(agent.view, (fails,), stale_ms=30_000)
    agent.looked(1)
    looks.now()
    agent.looked(2, at_s=10)
    _, afterwards = looks.now()
    assert afterwards is not None
    with pytest.raises(RuntimeError):
        afterwards()
    shown, _ = looks.now()
    assert shown is not None
    assert shown.look.cycle == 2


def test_a_document_is_made_once_per_look() -> None:
    look = viewed(sick()).look()
    assert look is not None
    documents, made = LookDocuments(look), list[str]()
    for _ in range(3):
        assert documents.made("sizes", lambda seen: made.append("once") or len(seen.snapshot.brokers)) == 6
    assert made == ["once"]
    assert documents.made("outer", lambda _: documents.made("inner", lambda _: 7)) == 7


def test_of_very_many_groups_the_first_view_says_that_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_documents, "MOST_AT_ONCE", 3)
    client = page_client(WORLDS["sick"]())
    first = client.get("/groups")
    document = read(first.text)
    assert "The figures of 5 groups are being made." in words(document)
    assert document.find(".//meta[@http-equiv='refresh']") is not None
    assert "billing" in client.get("/groups").text
