"""CPU and memory of a process and of all that it started: for benches of commands that are Python and Java."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import psutil

_EVERY_S = 0.25


class ProcessFamily:
    """A process and its children. As a context it looks at both figures four times a second."""

    def __init__(self, pid: int | None = None, leave_out: Callable[[psutil.Process], bool] = lambda _: False) -> None:
        """``pid`` None: this process. ``leave_out`` tells children that are none of it."""
        self._pid = pid
        self._leave_out = leave_out
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._cpu_s: dict[tuple[int, float], float] = {}
        """Of each process that was seen, by its pid and start: what it took itself, when it was last seen."""
        self.peak_bytes = 0.0
        self.peak_shares: list[tuple[str, float]] = []
        """Program and bytes of each process at that moment."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self._thread.join()

    def cpu_s(self) -> float:
        """CPU seconds so far, of children that have ended as well, as far as they were seen.

        What parents say of children that have ended is left out: Spark's daemon of Python workers takes it with it.
        """
        self.total(self._noted)
        return sum(list(self._cpu_s.values()))  # the thread may add one meanwhile

    def total(self, figure: Callable[[psutil.Process], float]) -> float:
        """The sum of a figure over all that are there."""
        found = 0.0
        with suppress(psutil.NoSuchProcess):
            head = psutil.Process(self._pid)
            for one in (head, *head.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    found += 0.0 if one is not head and self._leave_out(one) else figure(one)
        return found

    def _noted(self, process: psutil.Process) -> float:
        key, own_s = (process.pid, process.create_time()), sum(process.cpu_times()[:2])
        self._cpu_s[key] = max(own_s, self._cpu_s.get(key, 0.0))
        return own_s

    def _watch(self) -> None:
        while not self._end.wait(_EVERY_S):
            shares: list[tuple[str, float]] = []
            total = self.total(partial(_resident, shares))
            if total > self.peak_bytes:
                self.peak_bytes, self.peak_shares = total, shares
            self.cpu_s()


def _resident(shares: list[tuple[str, float]], process: psutil.Process) -> float:
    """Bytes; none of what Java forks, which shares all of Java's pages until it runs something else."""
    parent, program = process.parent(), process.exe()  # its name is that of the thread that forked it
    is_forked = program.endswith("/java") and parent is not None and parent.exe() == program
    if is_forked:
        return 0.0
    shares.append((Path(program).name, process.memory_info().rss))
    return shares[-1][1]
