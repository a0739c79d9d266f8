"""Questions to an agent: one at a time, of bounded size, kept for some minutes, and never waited for without end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from agent.simulate.evaluation import StageEvaluation
from agent.simulate.what_if import AddBroker, RemoveRack, SimulatedChange
from agent.web import what_if_answers
from agent.web.what_if_answers import MOST_CHANGES, WhatIfAnswer, WhatIfAnswers
from tests.web.page.worlds import many, sick

QUESTION = (RemoveRack("eu-1c"),)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A simulation that does not end until the event is set."""
    go_on = threading.Event()

    def waiting(_look: StageEvaluation, _changes: tuple[SimulatedChange, ...]) -> WhatIfAnswer:
        assert go_on.wait(20)
        return WhatIfAnswer({"groups": []})

    monkeypatch.setattr(what_if_answers, "answered", waiting)
    yield go_on
    go_on.set()


def test_an_answer_is_that_of_simulate_and_is_kept() -> None:
    now = [0.0]
    answers = WhatIfAnswers(lambda: now[0], waits_s=20)
    first = answers.ask(sick(), QUESTION)
    assert first.document["simulation"]["changes"] == ["no rack eu-1c"]
    assert answers.ask(sick(), QUESTION) is first
    now[0] = what_if_answers.KEPT_S
    assert answers.ask(sick(), QUESTION) is not first


def test_one_question_at_a_time_and_the_second_is_told(held: threading.Event) -> None:
    answers = WhatIfAnswers(waits_s=0.01)
    assert answers.ask(sick(), QUESTION).is_pending
    assert "Another question is being answered" in answers.ask(sick(), (RemoveRack("eu-1a"),)).refused
    assert answers.ask(sick(), QUESTION).is_pending, "the same question is not asked twice"
    held.set()
    later = WhatIfAnswers(waits_s=20)
    assert later.ask(sick(), (RemoveRack("eu-1a"),)).document == {"groups": []}


def test_an_answer_that_takes_too_long_is_waited_for_no_more(held: threading.Event) -> None:
    now = [0.0]
    answers = WhatIfAnswers(lambda: now[0], waits_s=0.01, deadline_s=5)
    assert answers.ask(sick(), QUESTION).is_pending
    now[0] = 6.0
    assert "takes longer than 5 s" in answers.ask(sick(), QUESTION).refused
    assert not held.is_set()


def test_what_is_too_large_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = WhatIfAnswers()
    changes = tuple(AddBroker(100 + number, "eu-1a") for number in range(MOST_CHANGES + 1))
    assert "at most 20 at once" in answers.ask(sick(), changes).refused
    monkeypatch.setattr(what_if_answers, "MOST_READS", 100)
    refused = answers.ask(many(100), QUESTION)
    assert "questions are answered here up to 100" in refused.refused
    assert refused.remedy


def test_a_defect_is_an_answer_and_the_next_question_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_look: StageEvaluation, _changes: tuple[SimulatedChange, ...]) -> WhatIfAnswer:
        raise ZeroDivisionError

    answers = WhatIfAnswers(waits_s=20)
    with monkeypatch.context() as patched:
        patched.setattr(what_if_answers, "answered", broken)
        assert answers.ask(sick(), QUESTION).refused
    assert answers.ask(sick(), (RemoveRack("eu-1a"),)).document is not None
    assert answers.ask(sick(), (RemoveRack("none"),)).refused
