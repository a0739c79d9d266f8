"""A timeout without progress: a slow machine is no failure, a standstill is one.

There is no limit to the whole wait, but one to the time without a new sign of progress. Knows no process and no Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import NamedTuple

POLL_S = 0.5


class ProgressMark(NamedTuple):
    """How far it is; another ``mark`` than before is progress."""

    mark: Hashable
    text: str
    """The same in words."""


class NoProgressError(Exception):
    """Nothing went on for too long; the text is a clause for a person."""


class StallTimeout(NamedTuple):
    """How long to wait without progress."""

    still_s: float
    pause: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def wait(self, done: Callable[[], bool], sign: Callable[[], ProgressMark], check: Callable[[], None]) -> None:
        """Return when it is done. Raises NoProgressError, and what ``check``, called before each pause, raises."""
        last, began = sign(), self.clock()
        moved = began
        while not done():
            check()
            now = sign()
            if now.mark != last.mark:
                last, moved = now, self.clock()
            elif self.clock() - moved > self.still_s:
                raise NoProgressError(_stall_clause(last, moved - began, self.clock() - began))
            self.pause(POLL_S)


def _stall_clause(last: ProgressMark, moved_s: float, waited_s: float) -> str:
    still = f"no progress for {waited_s - moved_s:.0f} s of the {waited_s:.0f} s that it was waited for"
    return f"{still}; at last progress: {last.text}" if last.text else still
