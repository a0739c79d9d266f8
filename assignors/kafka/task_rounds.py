"""Bellman-Ford rounds of Kafka's ``Graph`` of tasks and clients, and the negative cycle that they find (KIP-925).

State of a round (see ``task_flow``): ``given[g, i]``, distance of client i of subtopology g when it gives to its tasks;
``kept[g, i]``, the same at the end of the round; ``second[i]``, that of the second stage (``balance_subtopology``).
Kafka runs as many rounds as its graph has nodes. When each distance falls by a fixed amount per period, and none that
falls more slowly was used within it, all later periods are equal and ``_skip`` leaves them out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
FAR = 1 << 60
"""No offer at all: more than any distance, and twice as much still fits 64 bits."""


class TaskOffers(NamedTuple):
    """What clients can pass to each other now; rows are the clients that have tasks, by subtopology, then client."""

    row: Ints
    """``subtopology * clients + client`` of each row."""
    start: Ints
    """The first row of each subtopology."""
    best: Ints
    """``[row, client]``: the least that giving one task costs, ``FAR`` to the client itself."""
    first: Ints
    """``[row, client]``: the first task that costs this."""
    closed: Ints | None
    """``[subtopology, client]``: 0 where the client has room for more of it at the second stage, else ``FAR``."""
    unused: Ints | None
    """0 where it has some of the subtopology, else ``FAR``."""


class RoundDistances(NamedTuple):
    """Distances at the end of a round."""

    given: Ints
    kept: Ints
    second: Ints


class BellmanFordRounds:
    """All rounds but the last, with the predecessors of their clients."""

    def __init__(self, offers: TaskOffers, shape: tuple[int, int], rounds: int) -> None:
        zero = np.zeros(shape, np.int64)
        self.offers = offers
        self.states = [RoundDistances(zero, zero, np.zeros(shape[1], np.int64))]
        """From the state after the first round, in which nothing can change, on."""
        self.recent = self.states
        """The last rounds in a row; the same list until rounds were skipped."""
        self.settled = not self._run(rounds - 1)

    def _run(self, rounds: int) -> bool:
        """False when a round changed nothing, so none will."""
        done, look = 0, 8
        while done < rounds:
            self.recent.append(_round(self.offers, self.recent[-1]))
            done += 1
            if done == look and self.recent is self.states:
                if _same(self.states[-1], self.states[-2]):
                    return False
                done += self._skip(rounds - done)
                look += max(8, look // 2)
        return not _same(self.recent[-1], self.recent[-2])

    def _skip(self, left: int) -> int:
        """Skip periods that repeat the last one; return the rounds that this saves."""
        states = self.states
        for period in _periods(states):
            fall = RoundDistances(*(now - then for now, then in zip(states[-1], states[-1 - period], strict=True)))
            if left >= period and self._repeats(period, fall):
                times = left // period
                self.recent = [
                    RoundDistances(*(value + times * step for value, step in zip(state, fall, strict=True)))
                    for state in states[-1 - period :]
                ]
                return times * period
        return 0

    def _repeats(self, period: int, fall: RoundDistances) -> bool:
        """Whether every later period repeats the last one, shifted by ``fall``.

        A comparison has the same outcome again when both sides fall alike. Where the offering side falls more slowly
        it must have been of no use; where it falls faster it would win some day, so that must not occur.
        """
        offers, states = self.offers, self.states
        if (fall.given != fall.kept).any():
            return False
        ahead = np.repeat(fall.kept, np.diff(offers.start, append=len(offers.row)), axis=0)
        behind = fall.given.ravel()[offers.row][:, None] - ahead
        if (behind[offers.best < FAR] < 0).any():
            return False
        alike = offers._replace(best=np.where(behind == 0, offers.best, FAR))
        if offers.closed is not None and offers.unused is not None:
            down, up = fall.given - fall.second, fall.second - fall.kept
            if (down[offers.closed == 0] < 0).any() or (up[offers.unused == 0] < 0).any():
                return False
            alike = alike._replace(
                closed=np.where(down == 0, offers.closed, FAR), unused=np.where(up == 0, offers.unused, FAR)
            )
        for before, after in zip(states[-1 - period : -1], states[-period:], strict=True):
            if not _same(_round(alike, before), after):
                return False
        return True

    def task_before(self, group: int, client: int) -> int | None:
        """The task from which a client of a subtopology was reached last; None: from its second stage."""
        for before, after in self._backwards():
            if after.kept[group, client] < after.given[group, client]:
                return None
            if after.given[group, client] < before.kept[group, client]:
                offers, clients = self.offers, after.given.shape[1]
                low, high = np.searchsorted(offers.row, (group * clients, (group + 1) * clients))
                reach = before.given.ravel()[offers.row[low:high]] + offers.best[low:high, client]
                return int(offers.first[low:high, client][reach == after.given[group, client]].min())
        raise AssertionError("a node that was reached has no round in which it was")

    def group_before(self, client: int) -> int:
        """The subtopology from which the second stage of a client was reached last."""
        closed = 0 if self.offers.closed is None else self.offers.closed[:, client]
        for before, after in self._backwards():
            if after.second[client] < before.second[client]:
                return int(np.argmax(after.given[:, client] + closed == after.second[client]))
        raise AssertionError("a node that was reached has no round in which it was")

    def _backwards(self) -> list[tuple[RoundDistances, RoundDistances]]:
        """Rounds, the latest first. What is not reached in the last period was reached before any was skipped."""
        pairs = list(zip(self.recent, self.recent[1:], strict=False))[::-1]
        if self.recent is not self.states:
            pairs += list(zip(self.states, self.states[1:], strict=False))[::-1]
        return pairs


def _round(offers: TaskOffers, state: RoundDistances) -> RoundDistances:
    reach = state.given.ravel()[offers.row][:, None] + offers.best
    if len(offers.start) == 1:
        given = np.minimum(state.kept, reach.min(axis=0))
    else:
        given = np.minimum(state.kept, np.minimum.reduceat(reach, offers.start, axis=0))
    if offers.closed is None or offers.unused is None:
        return RoundDistances(given, given, state.second)
    second = np.minimum(state.second, (given + offers.closed).min(axis=0))
    return RoundDistances(given, np.minimum(given, second + offers.unused), second)


def _same(one: RoundDistances, other: RoundDistances) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _periods(states: list[RoundDistances]) -> list[int]:
    """Numbers of rounds after which everything may have fallen by as much as in as many rounds before."""
    half = (len(states) - 1) // 2
    sums = [int(state.given.sum()) for state in states[-2 * half - 1 :]]
    last = len(sums) - 1
    return [
        period
        for period in range(1, half + 1)
        if sums[last] + sums[last - 2 * period] == 2 * sums[last - period]
        and _steady(states[-1], states[-1 - period], states[-1 - 2 * period])
    ]


def _steady(now: RoundDistances, then: RoundDistances, before: RoundDistances) -> bool:
    return all(np.array_equal(a + c, 2 * b) for a, b, c in zip(now, then, before, strict=True))
