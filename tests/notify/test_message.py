"""A message: worst first, bounded, with its link, and harmless whatever topics and groups are called."""

from __future__ import annotations

import pytest

from agent.notify.notification import (
    MOST_LINES,
    EventNotification,
    NotificationEvent,
    NotifyMessage,
    NotifyTarget,
    composed,
)
from agent.values.finding import FindingSeverity, SubjectId
from tests.foreign_texts import POISONS

CRITICAL, WARNING, INFO = FindingSeverity.CRITICAL, FindingSeverity.WARNING, FindingSeverity.INFO


def event(sentence: str, severity: FindingSeverity | None = WARNING, **others: object) -> EventNotification:
    made = EventNotification(NotificationEvent.FINDING, sentence, sentence, severity)
    return made._replace(**others)


def message(*events: EventNotification, left_out: int = 0, most_chars: int = 30_000) -> NotifyMessage:
    return composed(events, cluster="c1", page="https://page.example.org", left_out=left_out, most_chars=most_chars)


def test_the_worst_is_first_and_what_ended_is_last() -> None:
    written = message(event("b"), event("c", over=True), event("a", CRITICAL))
    assert written.title == "rackwise on c1: 1 critical finding, 1 warning, 1 ended"
    assert written.body.splitlines() == ["critical: a", "warning: b", "ended: c", "https://page.example.org/findings"]
    assert written.severity is CRITICAL


def test_a_title_names_what_its_events_are() -> None:
    waiting = event("p", event=NotificationEvent.PROPOSAL)
    lost = event("r", CRITICAL, event=NotificationEvent.RACK)
    title = message(waiting, waiting, event("w"), event("w2"), event("?", None), lost).title
    assert title == "rackwise on c1: 2 warnings, 1 finding, 1 rack lost, 2 proposals waiting"


def test_one_event_is_in_the_title() -> None:
    assert message(event("rack b is lost")).title == "rackwise on c1: rack b is lost"
    assert message(event("rack b is lost", over=True)).severity is None


def test_events_from_before_the_first_look_are_one_line() -> None:
    old = [event(f"old {number}", early=True) for number in range(50)]
    written = message(*old, event("worst", CRITICAL, early=True), event("gone", None, early=True, over=True))
    assert written.body.splitlines()[0] == (
        "older than the agent's first look: 51 present and 1 ended; the first: critical: worst"
    )
    assert len(written.body.splitlines()) == 2


def test_a_message_is_bounded_in_lines_and_in_length() -> None:
    many = [event(f"{number} " + "word " * 200) for number in range(500)]
    written = message(*many)
    assert len(written.body) < 4_500
    assert written.body.splitlines()[-1] == "https://page.example.org/findings"
    few = [event(str(number)) for number in range(500)]
    lines = message(*few, left_out=3).body.splitlines()
    assert len(lines) == MOST_LINES + 3
    assert lines[-3:] == [
        "and 480 more lines: rackwise status", "3 earlier notifications could not be delivered",
        "https://page.example.org/findings",
    ]  # fmt: skip
    assert len(message(*few, most_chars=300).body) <= 300
    assert message(*few).notifications == 500


HOSTILE = [
    "@everyone", "<!channel>", "<@U012AB3CD>", "[click](https://evil.example)", "![x](http://evil.example/y.png)",
    "<script>alert(1)</script>", "<a href='http://evil.example'>x</a>", "https://evil.example/x", "x\nForged: line",
    "x\r\nBcc: all@example.org", "\x1b[31m", "\u202etxt", "x" * 10_000, "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("name", [*HOSTILE, *POISONS.values()])
def test_foreign_text_makes_no_mention_link_tag_or_line(name: str) -> None:
    written = composed([event(f"group/{name}: it is stuck")], cluster=name, page=None, left_out=0, most_chars=30_000)
    for text in (written.title, written.body):
        assert not set("<>@[]\r\x1b\u202e") & set(text)
        assert "://" not in text
        assert len(text.splitlines()) == 1
        assert len(text) < 400
        text.encode()


EVERY = frozenset(NotificationEvent)


def target(**others: object) -> NotifyTarget:
    values: dict[str, object] = {
        "name": "ops", "events": EVERY, "severities": frozenset((WARNING, CRITICAL)), **others,
    }  # fmt: skip
    return NotifyTarget(**values)  # type: ignore[arg-type] # a builder's keywords


TOPIC, GROUP = SubjectId("topic", "orders"), SubjectId("group", "billing")
BROKER = SubjectId("broker", "3")


@pytest.mark.parametrize(
    ("of", "one", "gets"),
    [
        (target(), event("x"), True),
        (target(), event("x", INFO), False),
        (target(), event("x", None, over=True), True),
        (target(events=frozenset({NotificationEvent.RACK})), event("x"), False),
        (target(), event("x", INFO, event=NotificationEvent.PLAN_DONE), True),
        (target(topics=("ord*",)), event("x", about=TOPIC), True),
        (target(topics=("pay*",)), event("x", about=TOPIC), False),
        (target(topics=("ord*",)), event("x", about=GROUP), False),
        (target(groups=("bill*",)), event("x", about=GROUP), True),
        (target(groups=("bill*",)), event("x", about=BROKER), False),
        (target(groups=("bill*",)), event("x", CRITICAL, event=NotificationEvent.RACK), True),
    ],
)
def test_a_target_gets_its_events_severities_topics_and_groups(
    of: NotifyTarget, one: EventNotification, gets: bool
) -> None:
    assert of.gets(one) is gets
