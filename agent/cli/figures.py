"""The time of the figures of a proposal that is shown, as words."""

from __future__ import annotations

from datetime import UTC, datetime

from agent.values.words import lasted


def as_of(made_ms: int, now_ms: int) -> str:
    """``figures of 09:14:03Z, 7 min ago``; with the date where it is another day. Both in epoch milliseconds."""
    made, now = (datetime.fromtimestamp(ms / 1_000, UTC) for ms in (made_ms, now_ms))
    when = made.strftime("%H:%M:%SZ" if made.date() == now.date() else "%Y-%m-%d %H:%M:%SZ")
    return f"figures of {when}, {ago(made_ms, now_ms)}"


def of_this_look(taken_ms: int) -> str:
    """``figures of 09:21:40Z, this look``."""
    return f"figures of {datetime.fromtimestamp(taken_ms / 1_000, UTC):%H:%M:%SZ}, this look"


def ago(made_ms: int, now_ms: int) -> str:
    """``7 min ago``."""
    return f"{lasted(now_ms - made_ms)} ago"


def expired(expires_ms: int, now_ms: int) -> str | None:
    """``expired 7 days ago``; None while it is open: the agent publishes what it still proposes again in time."""
    return f"expired {ago(expires_ms, now_ms)}" if now_ms >= expires_ms else None
