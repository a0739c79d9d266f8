"""Improvement of standbys task by task until no single task can do better.

Each task in turn gives up its standbys and takes the best for the present loads, out of all combinations of profiles
that share least: a descent that never makes an earlier priority worse and proves nothing. Other orders are tried while
loads are uneven. Steps are bounded by count, not by time, so that the answer does not depend on the machine.
"""

from __future__ import annotations

from collections import Counter

from assignors.optimal.standby_case import StandbyCase, Standbys, off_share, quality

_MOST_WAYS = 500
"""Combinations per task; cases with more are left as they are."""
_STEPS = 400_000
"""Processes that may be looked at, about a second of work."""
_STARTS = 8

Score = tuple[int, int, int]
"""Imbalance, sum of squared loads per capacity (scaled), cost."""


def polish(case: StandbyCase, placed: Standbys, least_imbalance: int) -> Standbys:
    """Return standbys that share no more and are at least as good; ``least_imbalance`` is as even as any can be."""
    combinations = _combinations(case)
    if not combinations:
        return placed
    steps = _Steps(_STEPS)
    best = _descend(case, placed, combinations, range(len(placed)), steps)
    for start in range(1, _STARTS):
        if quality(case, best)[1] <= least_imbalance or steps.left <= 0:
            break
        first = start * len(placed) // _STARTS
        order = [*range(first, len(placed)), *range(first)]
        other = _descend(case, [()] * len(placed), combinations, order if start % 2 else order[::-1], steps)
        if all(other):
            best = min(best, other, key=lambda each: quality(case, each))
    return best


class _Steps:
    """A budget shared by all starts."""

    def __init__(self, left: int) -> None:
        self.left = left


def _combinations(case: StandbyCase) -> dict[int, tuple[tuple[int, ...], ...]]:
    """Profile of an active task -> combinations of profiles for its standbys that share least."""
    least = {}
    for active in sorted(set(case.spread.profile_of)):
        ways: set[tuple[int, ...]] = {()}
        for remaining in range(case.copies, 0, -1):
            ways = {
                tuple(sorted((*way, profile)))
                for way in ways
                for profile in case.spread.next_profiles((active, *way), remaining)
            }
            if len(ways) > _MOST_WAYS:
                return {}
        least[active] = tuple(sorted(ways))
    return least


def _descend(
    case: StandbyCase,
    start: Standbys,
    combinations: dict[int, tuple[tuple[int, ...], ...]],
    order: range | list[int],
    steps: _Steps,
) -> Standbys:
    loads = _Loads(case, steps)
    standbys = list(start)
    for each in standbys:
        loads.count.update(each)
    changed = True
    while changed and steps.left > 0:
        changed = False
        for task in order:
            if steps.left <= 0:
                break
            now = standbys[task]
            loads.count.subtract(now)
            ways = combinations[case.spread.profile_of[case.active[task]]]
            better = min(loads.taken(task, way) for way in ways)
            if len(now) == case.copies and loads.score(task, now) <= better[0]:
                better = loads.score(task, now), now
            changed |= better[1] != now
            standbys[task] = better[1]
            loads.count.update(better[1])
    return standbys


class _Loads:
    """Loads of processes while standbys are put down and taken up."""

    def __init__(self, case: StandbyCase, steps: _Steps) -> None:
        self._steps = steps
        self.count = Counter(case.load)
        self._case = case
        self._low, self._high = case.shares(case.copies)
        self._scale = [10**6 // capacity for capacity in case.capacity]
        self._members: dict[int, list[int]] = {}
        for process, profile in enumerate(case.spread.profile_of):
            self._members.setdefault(profile, []).append(process)

    def taken(self, task: int, way: tuple[int, ...]) -> tuple[Score, tuple[int, ...]]:
        """The best processes of a combination of profiles, one after the other, and what they add."""
        used = [self._case.active[task]]
        for profile in way:
            self._steps.left -= len(self._members[profile])
            free = [process for process in self._members[profile] if process not in used]
            used.append(min(free, key=lambda process: (self._more(task, process), process)))
        picks = tuple(sorted(used[1:]))
        return self.score(task, picks), picks

    def score(self, task: int, picks: tuple[int, ...]) -> Score:
        """What these standbys add; they are on different processes."""
        imbalance, squares, cost = zip(*(self._more(task, process) for process in picks), strict=True)
        return sum(imbalance), sum(squares), sum(cost)

    def _more(self, task: int, process: int) -> Score:
        load, low, high = self.count[process], self._low[process], self._high[process]
        case = self._case
        return (
            off_share(load + 1, low, high) - off_share(load, low, high),
            (2 * load + 1) * self._scale[process],
            case.price[task][case.rack[process]] + case.move * (process not in case.holders[task]),
        )
