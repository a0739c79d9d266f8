"""How long an intent is good for, counted from the begin of its append."""

from __future__ import annotations

import pytest

from agent.execute.reassign.messages import valid_ms


@pytest.mark.parametrize(
    ("took_ms", "good_ms"),
    [
        pytest.param(20, 2_000, id="in a quick network two seconds, however quick it is"),
        pytest.param(6_000, 18_000, id="where an append took six seconds there are twelve left"),
        pytest.param(10_000, 20_000, id="never longer than twice the request timeout"),
        pytest.param(30_000, 20_000, id="a process that was frozen while it waited for the answer is too late already"),
    ],
)
def test_an_intent_is_good_for_as_long_as_the_network_needs_and_no_longer(took_ms: int, good_ms: int) -> None:
    assert valid_ms(took_ms, least_ms=2_000, request_timeout_ms=10_000) == good_ms
