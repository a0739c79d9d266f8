"""Processes for the next copy of a task so that its copies end up as far apart as possible (KIP-708, KIP-925).

A process has a *profile*: its values of the configured tags, or its rack without tags. An unknown value counts as
shared; a tag that no process has is left out. For one tag an unused value is always right; for several tags and several
standbys all ways are tried while they are few, then the best next step is taken, and the bound holds what it may cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from assignors.problem import TaskProcess

Profile = tuple[str | None, ...]

_MOST_WAYS = 20_000


class CopySpread:
    """Profiles of processes, numbered, and what a set of copies shares. Copies are profiles, the active's first."""

    def __init__(self, processes: list[TaskProcess], tags: tuple[str, ...]) -> None:
        """Take the processes in the order in which ``profile_of`` shall number them."""
        values = _profiles(processes, tags)
        self.profiles = sorted(set(values), key=lambda profile: [(value is not None, value or "") for value in profile])
        number = {profile: index for index, profile in enumerate(self.profiles)}
        self.profile_of = [number[profile] for profile in values]
        self._size = Counter(self.profile_of)
        self._tags = len(self.profiles[0]) if self.profiles else 0
        self._known = [len(_known(column)) for column in zip(*self.profiles, strict=True)]
        self._least = lru_cache(maxsize=None)(self._least_reachable)
        self.next_profiles = lru_cache(maxsize=None)(self._next_profiles)

    def all_apart(self, copies: int) -> bool:
        """Whether there is one tag with a value of its own for each of so many copies, wherever the first is."""
        return self._tags == 1 and self._known[0] >= copies

    def shared(self, copies: tuple[int, ...]) -> int:
        """How many copies share with another, summed over tags; the first of each value is left out."""
        columns = zip(*(self.profiles[copy] for copy in copies), strict=True)
        return sum(len(copies) - max(1, len(_known(column))) for column in columns)

    def least_shared(self, active: int, standbys: int) -> int:
        """A proven lower bound of ``shared`` for a task with its active there; exact when ways are few."""
        if self._few_ways(standbys):
            return self._least((active,), standbys)
        return sum(max(0, standbys + 1 - max(1, known)) for known in self._known)

    def _next_profiles(self, copies: tuple[int, ...], remaining: int) -> tuple[int, ...]:
        """Profiles for the next of ``remaining`` standbys from which the least sharing can still be reached."""
        look = remaining if self._few_ways(remaining) else 1
        reach = {profile: self._least(_with(copies, profile), look - 1) for profile in self._free(copies)}
        least = min(reach.values())
        return tuple(profile for profile, shared in reach.items() if shared == least)

    def _least_reachable(self, copies: tuple[int, ...], remaining: int) -> int:
        free = self._free(copies)
        if not remaining or not free:
            return self.shared(copies)
        if self._tags == 1:
            used = _known(self.profiles[copy][0] for copy in copies)
            fresh = min(remaining, self._known[0] - len(used))
            return len(copies) + remaining - max(1, len(used) + fresh)
        return min(self._least(_with(copies, profile), remaining - 1) for profile in free)

    def _free(self, copies: tuple[int, ...]) -> list[int]:
        """Profiles with a process that holds no copy yet."""
        used = Counter(copies)
        return [profile for profile in range(len(self.profiles)) if used[profile] < self._size[profile]]

    def _few_ways(self, standbys: int) -> bool:
        return self._tags <= 1 or standbys <= 1 or len(self.profiles) ** standbys <= _MOST_WAYS


def _profiles(processes: list[TaskProcess], tags: tuple[str, ...]) -> list[Profile]:
    if tags:
        rows: list[Profile] = [tuple(dict(process.tags).get(tag) for tag in tags) for process in processes]
    else:
        rows = [(process.rack,) for process in processes]
    spoken = [column for column in zip(*rows, strict=True) if _known(column)]
    return list(zip(*spoken, strict=True)) if spoken else [()] * len(rows)


def _known(values: Iterable[str | None]) -> set[str]:
    return {value for value in values if value is not None}


def _with(copies: tuple[int, ...], profile: int) -> tuple[int, ...]:
    return tuple(sorted((*copies, profile)))
