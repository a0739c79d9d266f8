"""Python's cyclic collector, told what kind of garbage there is here.

A cycle makes a million small values without cycles among them and frees them by reference count. With the default
threshold the collector walks all of them again and again, which is 40 % of the time of decoding 100,000 members; rarer
walks find the same few cycles (exceptions, closed clients) soon enough.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 50_000
MIDDLE_WALKS = 20
OLD_WALKS = 100


def walk_seldom() -> None:
    """Let the collector walk after 50,000 new objects instead of 700; for a whole process, once at its start."""
    gc.set_threshold(YOUNG_OBJECTS, MIDDLE_WALKS, OLD_WALKS)
