"""By whose word a topic that is no longer listed is gone: never by that of the broker that left it out."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agent.observe.cluster_details import NameVisibility, ask_about_topics
from agent.values.observation import RawTopic
from agent.wire.client import WireClient
from agent.wire.cluster_calls import TopicsAnswer

GONE = RawTopic("t", None, False, (), "UNKNOWN_TOPIC_OR_PARTITION")


class Wire:
    """Brokers that do not know a topic; each broker that is asked is written down."""

    def __init__(self, brokers: tuple[int, ...], answers: int | None) -> None:
        self.broker_ids = brokers
        self._answers = answers
        self.asked: list[int | None] = []

    def describe_topics(self, _deadline_ms: int, *, names: Any, avoid: int | None = None) -> TopicsAnswer:
        self.asked.append(avoid)
        return TopicsAnswer(tuple(GONE._replace(name=name) for name in names), {}, self._answers)


@pytest.mark.parametrize(
    ("brokers", "listed_by", "answers", "gone"),
    [
        pytest.param((1, 2), 1, 2, True, id="another broker says so too"),
        pytest.param((1, 2), 1, 1, False, id="the same broker says it again"),
        pytest.param((1, 2), None, 2, False, id="it is not known which broker left it out"),
        pytest.param((1, 2, 3), None, None, False, id="neither is known"),
        pytest.param((1,), 1, 1, True, id="there is one broker"),
        pytest.param((1,), None, None, True, id="there is one broker, behind a bootstrap address"),
    ],
)
def test_a_topic_is_gone_by_the_word_of_a_second_broker(
    brokers: tuple[int, ...], listed_by: int | None, answers: int | None, *, gone: bool
) -> None:
    wire = Wire(brokers, answers)
    words = ask_about_topics(cast("WireClient", cast("Any", wire)), ["t"], 1_000, answered_by=listed_by)
    assert words == ({"t": NameVisibility.GONE} if gone else {})
    assert all(avoid == (listed_by if len(brokers) > 1 else None) for avoid in wire.asked)
