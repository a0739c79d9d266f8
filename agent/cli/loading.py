"""Loads modules while a look waits for brokers, in one thread besides the main one.

Two threads that load modules which import each other may wait for one another, and Python then fails one of them: so
the main thread loads nothing of the stages before this thread is done, and no other thread loads anything.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from importlib import import_module


def load_beside(module: str) -> threading.Thread:
    """Begin to load a module; an import of it, or of what it imports, joins the thread first."""
    thread = threading.Thread(target=_load, args=(module,), name="loading")
    thread.start()
    return thread


def _load(module: str) -> None:
    with suppress(Exception):  # the main thread meets it too, where it can be told
        import_module(module)
