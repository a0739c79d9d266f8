"""Dates and times as people and exports write them: ISO 8601, or epoch milliseconds. Without an offset they are UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE_DIGITS, _EPOCH_MS_DIGITS = 8, 13


def moment_of(text: str) -> datetime:
    """The moment, in UTC. Raises ValueError for what is none.

    Digits alone are a date if there are 8 of them (20261102), and epoch milliseconds if there are 13; no other number
    is a moment. Python's own parser takes any character for the T: 13 digits would be a date, a separator and a time.
    """
    text = text.strip()
    if text.isdecimal() and len(text) != _DATE_DIGITS:
        if len(text) != _EPOCH_MS_DIGITS:
            raise ValueError(
                f"{len(text)} digits are neither a date, which has 8, nor epoch milliseconds, which have 13"
            )
        return _EPOCH + timedelta(milliseconds=int(text))
    moment = datetime.fromisoformat(text)
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("it is outside the years 1 to 9999") from None


def epoch_ms_of(text: str) -> int:
    """The moment as epoch milliseconds. Raises ValueError for what is none."""
    return (moment_of(text) - _EPOCH) // timedelta(milliseconds=1)
