"""Python's cyclic collector, told what kind of garbage there is here.

A cycle makes a million small values without cycles among them and frees them by reference count. With the default
threshold the collector walks all of them again and again, which is 40 % of the time of decoding 100,000 members. So the
pure stages run without it, what they leave is set aside, and all of it is walked once in half an hour: the few cycles
that there are (exceptions, closed clients) go then.
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
    """Let the collector walk after 50,000 new objects instead of 700; for a whole process, once at its start."""
    gc.set_threshold(YOUNG_OBJECTS, MIDDLE_WALKS, OLD_WALKS)


@contextmanager
def no_collection() -> Iterator[None]:
    """No walk while values are made that live on or have no cycles; afterwards they are set aside."""
    walks = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if walks:
            gc.enable()


def stop_collecting() -> None:
    """For a process that ends: Python would walk all modules and values once more before it lets them go."""
    gc.freeze()


def collect_all() -> None:
    """Walk everything, also what was set aside."""
    gc.unfreeze()
    gc.collect()
