"""For how long may the request of an intent be begun, counted from when its append was begun? Pure.

An append that came through proves that its writer was the newest at some moment after it was begun; so that is where
the time is counted from, and a process that was frozen while it waited for the answer finds that its time is over.
Every request takes as long as the network takes: where an append took long, so does the last look before the request.

Bounded, because a former leader's request may take effect so much later. The lease bounds it more tightly: an
agent that is not sure to lead begins nothing, however young the intent is.
"""

from __future__ import annotations

_TIMES = 3
"""An append is two or three requests one after the other; a last look, or a line to a coordinator, is as many."""


def valid_ms(took_ms: float, *, least_ms: int, request_timeout_ms: int) -> float:
    """Milliseconds from the begin of an append that took so long; over already where it took longer than it may."""
    return min(max(least_ms, _TIMES * took_ms), 2 * request_timeout_ms)
