"""Samples and costs of a look, made once; with many groups a scrape is answered from the newest look that has them.

Samples of 10,000 groups take about a second: those of a new look are made after the answer to the first scrape since.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agent.money.costs import CrossRackCosts, costs_of
from agent.values.cycle import Cycle
from agent.values.snapshot import Snapshot

MOST_AT_ONCE = 2_000
"""Groups whose samples or documents a request makes by itself: about half a second."""
STALE_MS = 180_000
"""A scrape is not answered from a look that is older than the newest one by more: it waits."""

Sample = tuple[tuple[str, ...], float]
"""Values of the labels, and the value."""


class LookSamples(NamedTuple):
    """The samples of one cycle's look."""

    cycle: Cycle
    of: Mapping[str, Sequence[Sample]]
    """Metric name -> its samples."""


class SampledLooks:
    """The newest samples, for any thread."""

    def __init__(self, make: Callable[[Cycle], Mapping[str, Sequence[Sample]]]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._made: LookSamples | None = None

    def of(self, cycle: Cycle) -> LookSamples:
        """The samples of this cycle; those of a former one where these take long, unless that one is too old."""
        made = self._made
        return made if made is not None and _stands_for(made.cycle, cycle) else self._newest(cycle)

    def is_behind(self, cycle: Cycle) -> bool:
        """Whether the samples of this cycle are neither made nor being made."""
        return (self._made is None or self._made.cycle is not cycle) and not self._making.locked()

    def catch_up(self, cycle: Cycle) -> None:
        """Make the samples of this cycle, unless samples are being made."""
        if self._making.acquire(blocking=False):
            try:
                self._make_of(cycle)
            finally:
                self._making.release()

    def _newest(self, cycle: Cycle) -> LookSamples:
        """Wait for those of this cycle; one thread makes them for all that wait."""
        with self._making:
            return self._make_of(cycle)

    def _make_of(self, cycle: Cycle) -> LookSamples:
        made = self._made
        if made is None or made.cycle is not cycle:
            made = self._made = LookSamples(cycle, self._make(cycle))
        return made


def _stands_for(made: Cycle, newest: Cycle) -> bool:
    """Whether the samples of this cycle answer a scrape after the newest one."""
    if made is newest:
        return True
    few = len(newest.snapshot.groups) <= MOST_AT_ONCE
    return not few and newest.snapshot.taken_ms - made.snapshot.taken_ms <= STALE_MS


class _SharedCosts:
    """Costs of the last snapshots that were asked for: metrics, page and API ask for those of the same look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[tuple[Snapshot, CrossRackCosts], ...] = ()

    def of(self, snapshot: Snapshot) -> CrossRackCosts:
        with self._lock:
            for one, costs in self._last:
                if one is snapshot:
                    return costs
            costs = costs_of(snapshot)
            self._last = (*self._last[-1:], (snapshot, costs))
            return costs


look_costs = _SharedCosts().of
"""`costs_of`, worked out once by snapshot; the last two are kept."""
