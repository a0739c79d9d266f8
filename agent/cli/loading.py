"""Loads modules and asks for telemetry while a look waits for brokers, in threads besides the main one.

Two threads that load modules which import each other may wait for one another, and Python then fails one of them: so
the main thread loads nothing of the stages before the thread that loads is done, and no other thread loads anything.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


def load_beside(module: str) -> threading.Thread:
    """Begin to load a module; an import of it, or of what it imports, joins the thread first."""
    thread = threading.Thread(target=_load, args=(module,), name="loading")
    thread.start()
    return thread


def _load(module: str) -> None:
    with suppress(Exception):  # the main thread meets it too, where it can be told
        import_module(module)


class AskedBeside(Generic[T]):
    """What a thread asks for from now on; one that still waits does not keep the command from ending."""

    def __init__(self, module: str, ask: Callable[[], T], otherwise: T) -> None:
        import_module(module)  # all that ``ask`` needs: the thread is to load nothing
        self._ask, self._found = ask, otherwise
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=module, daemon=True)
        self._thread.start()

    def answer(self, wait_s: float) -> T:
        """The answer, at most so long after it was asked for; ``otherwise`` where there is none by then."""
        self._thread.join(max(0.0, self._began + wait_s - time.monotonic()))
        return self._found

    def _run(self) -> None:
        self._found = self._ask()
