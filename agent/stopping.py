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
"""What supervisors and people send to end a process."""


@contextmanager
def on_ending(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call the handler when this process is to end; what was set before is set again afterwards."""
    before = {number: signal.signal(number, handler) for number in ENDING}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


class StopSignal:
    """Not set at first, and never taken back. The methods are those of `threading.Event`."""

    __slots__ = ("_is_set", "_told")

    def __init__(self) -> None:
        self._is_set = False
        self._told: SimpleQueue[None] = SimpleQueue()  # the queue whose `put` may interrupt itself and `get`

    def set(self) -> None:
        """Tell it; callable from any thread and from a signal handler."""
        self._is_set = True
        self._told.put(None)

    def is_set(self) -> bool:
        """Whether it is to end."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is to end, for that many seconds at most; whether it is."""
        if not self._is_set:
            with suppress(Empty):
                self._told.get(timeout=timeout)
                self._told.put(None)  # for all others that wait
        return self._is_set
