"""Failed sign-ins: a bound per address and per name, after which failures are answered with 429 and no longer logged.

An address may fail `BURST` times, then once per `REFILL_S`. So may a name, over all addresses; but an address without a
failure of its own has its answer. No one is locked out: a token that is right is never asked for these.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

BURST = 5
REFILL_S = 10.0
_MOST = 4_096
"""Addresses, and names, that are remembered; the latest stay."""


class AttemptBudgets:
    """How many failures each key has left."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def left(self, key: str) -> float:
        """Failures that it may still have."""
        budget, at = self._left.get(key, (float(BURST), 0.0))
        return min(float(BURST), budget + (self._clock_s() - at) / REFILL_S)

    def take(self, key: str) -> None:
        """One failure more."""
        left = max(0.0, self.left(key) - 1)
        self._left.pop(key, None)
        self._left[key] = (left, self._clock_s())
        if len(self._left) > _MOST:
            self._left.popitem(last=False)

    def forget(self, key: str) -> None:
        """It has succeeded."""
        self._left.pop(key, None)


class FailedSignIns:
    """The budgets of addresses and of names; callable from any thread."""

    def __init__(self, clock_s: Callable[[], float] = monotonic) -> None:
        self._lock = threading.Lock()
        self._addresses = AttemptBudgets(clock_s)
        self._names = AttemptBudgets(clock_s)

    def wait_s(self, address: str, name: str = "") -> int:
        """Seconds until this address may try again, 0 for now."""
        with self._lock:
            own = self._addresses.left(address)
            if own < 1:
                return max(1, round((1 - own) * REFILL_S))
            named = self._names.left(name) if name and own < BURST else 1.0
            return 0 if named >= 1 else max(1, round((1 - named) * REFILL_S))

    def failed(self, address: str, name: str = "") -> None:
        """A sign-in failed."""
        with self._lock:
            self._addresses.take(address)
            if name:
                self._names.take(name)

    def succeeded(self, name: str) -> None:
        """A person signed in: the failures under that name were not a stranger's luck. The address keeps its own."""
        with self._lock:
            self._names.forget(name)
