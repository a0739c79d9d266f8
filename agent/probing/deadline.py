"""Tells when the application will rebalance by itself. A trigger shortly before would only be one rebalance more.

Its leader tells a time on its own wall clock, and ours may jump or differ. The monotonic clock bounds it: the deadline
was set at the last join, one interval ahead. What lies outside of these bounds is not believed.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.values.limits import GroupLimits
from agent.values.memory import Join

DISAGREE_MS = 30_000
"""Clocks that differ by more than this are not believed."""


class Deadline(NamedTuple):
    """When the application's own probing rebalance is due, in milliseconds from now; negative when it is overdue."""

    left_ms: int
    told: bool
    """False where the join and the interval stand in for what the leader told."""


def deadline(
    next_rebalance_ms: int | None, taken_ms: int, now_ms: int, join: Join | None, settings: GroupLimits
) -> Deadline | None:
    """The deadline as far as it can be told; None where it cannot.

    ``taken_ms`` is the wall clock at the look, ``now_ms`` the monotonic clock. The interval bounds what was told only
    where the user set it: an interval that is only assumed proves nothing.
    """
    if next_rebalance_ms is None:
        return None
    left_ms = next_rebalance_ms - taken_ms
    if not settings.known or join is None:
        return Deadline(left_ms, told=True)
    latest_ms = join.seen_ms + settings.probing_rebalance_interval_ms - now_ms
    earliest_ms = None if join.after_ms is None else join.after_ms + settings.probing_rebalance_interval_ms - now_ms
    if left_ms > latest_ms + DISAGREE_MS or (earliest_ms is not None and left_ms < earliest_ms - DISAGREE_MS):
        return None if earliest_ms is None else Deadline(earliest_ms, told=False)
    return Deadline(left_ms, told=True)
