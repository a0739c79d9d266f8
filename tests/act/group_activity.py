"""How steadily groups read and commit: times of reads and commits, and the longest stretch without one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from agent.wire.client import WireClient
from assignors.problem import TopicPartition

_EVERY_S = 0.04
_DEADLINE_MS = 10_000


class Window(NamedTuple):
    """A stretch of time, in epoch seconds."""

    begin_s: float
    end_s: float


class Pulse:
    """Samples committed offsets and end offsets all the time; a context manager.

    A commit is seen when the sum of a group's committed offsets has grown, work of an application when the end offsets
    of what it writes have.
    """

    def __init__(self, wire: WireClient, groups: Sequence[str], written: dict[str, Sequence[TopicPartition]]) -> None:
        self._wire = wire
        self._groups = groups
        self._written = written
        self._leaders: dict[TopicPartition, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="pulse")
        self.commits: dict[str, list[float]] = {group: [] for group in groups}
        """Group -> epoch seconds at which it was seen to have committed more."""
        self.partition_commits: dict[tuple[str, TopicPartition], list[float]] = {}
        self.work: dict[str, list[float]] = {name: [] for name in written}

    def __enter__(self) -> Self:
        names = {one.topic for partitions in self._written.values() for one in partitions}
        if names:
            topics = self._wire.describe_topics(_DEADLINE_MS, names=names).topics
            self._leaders = {
                TopicPartition(topic.name, row.partition): row.leader
                for topic in topics
                for row in topic.partitions
                if row.leader is not None
            }
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        last: dict[object, int] = {}
        while not self._ended.wait(_EVERY_S):
            committed = self._wire.fetch_committed(self._groups, _DEADLINE_MS).offsets
            now = time.time()
            for group, offsets in committed.items():
                if self._grown(last, group, sum(offsets.values())):
                    self.commits[group].append(now)
                for partition, offset in offsets.items():
                    if self._grown(last, (group, partition), offset):
                        self.partition_commits.setdefault((group, partition), []).append(now)
            if self._leaders:
                ends = self._wire.list_end_offsets(self._leaders, _DEADLINE_MS).offsets
                now = time.time()
                for name, partitions in self._written.items():
                    if self._grown(last, name + " writes", sum(ends.get(one, 0) for one in partitions)):
                        self.work[name].append(now)

    @staticmethod
    def _grown(last: dict[object, int], key: object, value: int) -> bool:
        grown = value > last.get(key, value)
        last[key] = value
        return grown


def longest_gap_s(times_s: Sequence[float], window: Window) -> float:
    """The longest stretch between two neighbours that touches the window; to its end where nothing follows."""
    longest = 0.0
    for before, after in zip(times_s, [*times_s[1:], window.end_s], strict=True):
        if after > window.begin_s and before < window.end_s:
            longest = max(longest, after - before)
    return longest


def longest_of(many: Iterable[Sequence[float]], windows: Iterable[Window]) -> float:
    """The longest gap of any member in any of the windows."""
    wanted = list(windows)
    return max((longest_gap_s(times, window) for times in many for window in wanted), default=0.0)


def outside(windows: Sequence[Window], whole: Window) -> list[Window]:
    """What lies between the windows."""
    edges = [whole.begin_s, *(edge for window in windows for edge in window), whole.end_s]
    return [Window(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if end > begin]
