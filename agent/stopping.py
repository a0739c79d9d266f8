"""Stop signals: handlers of SIGTERM and SIGINT, and an event that a signal handler may set.

Invariant: `StopSignal.set` takes no lock of Python code. `threading.Event.wait` holds one for moments, and a handler
that sets the event within them (it runs in the main thread, between any two steps) would wait for its own thread.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT)
"""Signals that end the process."""


@contextmanager
def on_ending(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Install the handler for `ENDING`; the earlier handlers are restored afterwards."""
    before = {number: signal.signal(number, handler) for number in ENDING}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class StopSignal:
    """An event that is never cleared, with the methods of `threading.Event`."""

    __slots__ = ("_is_set", "_wakeups")

    def __init__(self) -> None:
        self._is_set = False
        self._wakeups: SimpleQueue[None] = SimpleQueue()  # the queue whose `put` may interrupt itself and `get`

    def set(self) -> None:
        """Set it; callable from any thread and from a signal handler."""
        self._is_set = True
        self._wakeups.put(None)

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, at most ``timeout`` seconds; whether it is set."""
        if not self._is_set:
            with suppress(Empty):
                self._wakeups.get(timeout=timeout)
                self._wakeups.put(None)  # for all others that wait
        return self._is_set
