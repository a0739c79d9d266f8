"""Settings of Python's cyclic garbage collector for the agent's cycles.

A cycle makes a million small values without reference cycles. With the default threshold the collector walks all of
them again and again: 40 % of the time of decoding 100,000 members. So the pure stages run without it, their values are
frozen, and everything is walked once in `CYCLES_BETWEEN_WALKS` cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 50_000
MIDDLE_WALKS = 20
OLD_WALKS = 100
CYCLES_BETWEEN_WALKS = 180


def collect_seldom() -> None:
    """Let the collector walk after `YOUNG_OBJECTS` new objects instead of 700; called once, at process start."""
    gc.set_threshold(YOUNG_OBJECTS, MIDDLE_WALKS, OLD_WALKS)


@contextmanager
def no_collection() -> Iterator[None]:
    """No walk inside the block; afterwards all objects are frozen (left out of later walks)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def stop_collecting() -> None:
    """For a process that ends: saves the walk of all modules and values at exit."""
    gc.freeze()


def collect_all() -> None:
    """Walk everything, frozen objects included."""
    gc.unfreeze()
    gc.collect()
