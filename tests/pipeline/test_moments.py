"""Dates and times of options and bills: one rule for all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.errors import BadInput, ConfigError
from pipeline.bill_lines import bill_by_day
from pipeline.commands import backtest
from pipeline.moments import moment_of
from pipeline.report.period import period_of

DAY = datetime(2026, 11, 2, tzinfo=UTC)
NONE = [
    pytest.param("2026", id="a year"),
    pytest.param("1793577600", id="epoch seconds"),
    pytest.param("20261102114", id="a date, a digit for the T and an hour"),
    pytest.param("20261302", id="a thirteenth month"),
    pytest.param("yesterday", id="a word"),
    pytest.param("0001-01-01T00:00+14:00", id="before the first year"),
    pytest.param("", id="nothing"),
]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        pytest.param("2026-11-02", DAY, id="a date"),
        pytest.param("20261102", DAY, id="a date in digits alone"),
        pytest.param("20261102T1400", DAY.replace(hour=14), id="a time in digits"),
        pytest.param(" 2026-11-02 14:00 ", DAY.replace(hour=14), id="without an offset it is UTC"),
        pytest.param("2026-11-02T14:00-02:00", DAY.replace(hour=16), id="with an offset"),
        pytest.param("1793577600001", DAY.replace(microsecond=1_000), id="epoch milliseconds"),
        pytest.param(
            "1730111000000", datetime(2024, 10, 28, 10, 23, 20, tzinfo=UTC), id="digits that read as a date too"
        ),
    ],
)
def test_a_moment_is_the_same_for_all_that_read_it(text: str, moment: datetime, tmp_path: Path) -> None:
    assert moment_of(text) == moment
    epoch_ms = round(moment.timestamp() * 1_000)
    assert (period_of(text, None).from_ms, backtest._moment(text)) == (epoch_ms, epoch_ms)
    bill = tmp_path / "bill.csv"
    bill.write_text(f"day,usd\n{text},1\n")
    assert bill_by_day(str(bill)) == {f"{moment:%Y-%m-%d}": 1.0}


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_moment_is_refused_by_all_that_read_it(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a date:"):
        period_of(text, None)
    with pytest.raises(BadInput, match="is not a date or time"):
        backtest._moment(text)
    bill = tmp_path / "bill.csv"
    bill.write_text(f"day,usd\n{text},1\n")
    with pytest.raises(ConfigError) as refused:
        bill_by_day(str(bill))
    assert "is no date or time of ISO 8601" in str(refused.value.why)
