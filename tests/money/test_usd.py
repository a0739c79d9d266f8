"""Money below a cent has two digits that count, and what rounds to a cent is written as one."""

from __future__ import annotations

import pytest

from agent.values.number_format import usd


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0.0099999, "$0.01"),
        (0.00996, "$0.01"),
        (0.01, "$0.01"),
        (0.0099, "$0.0099"),
        (0.000996, "$0.0010"),
        (0.00123, "$0.0012"),
        (-0.00999, "\N{MINUS SIGN}$0.01"),
    ],
)
def test_money_around_a_cent(dollars: float, text: str) -> None:
    assert usd(dollars) == text
