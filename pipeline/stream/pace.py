"""Pace of a stream: where batches take long, they come seldom and have more records each."""

from __future__ import annotations

from collections import deque

STOP_S = 20.0
"""How long a batch is waited for when ingest is stopped; Kubernetes kills a process after 30 s."""
_COMPARED_BATCHES = 3
_LONG_BATCH_S = 30.0


class BatchPace:
    """How long a stream pauses after a batch.

    What a batch writes anew however much it reads is shared by all of its records, so fewer batches take less. The
    least of the last few counts: some have work that comes seldom, as histories, and in the first ones Java compiles.
    """

    def __init__(self, busy_share: float, longest_s: float) -> None:
        """``longest_s``: most seconds from the beginning of a batch to that of the next, where there is a pause."""
        self._share = busy_share
        self._longest_s = longest_s
        self._last_s: deque[float] = deque(maxlen=_COMPARED_BATCHES)

    def pause_s(self, took_s: float) -> float:
        """Seconds until the next batch, after one that took so long; 0.0 where a batch is short."""
        self._last_s.append(took_s)
        least_s = min(self._last_s)
        if len(self._last_s) < _COMPARED_BATCHES or least_s < _LONG_BATCH_S:
            return 0.0
        return max(0.0, min(least_s / self._share, self._longest_s) - took_s)
