"""The identity of a started process, and its end.

Invariant: a process is known by its pid together with its start time, so a pid that was given to another process is
never signalled.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

_TICK_S = 0.02
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process of this machine that cannot be mistaken for a later one."""

    pid: int
    create_time: float
    """Seconds as the kernel counts them: since boot where there is a /proc, else since the epoch."""

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """The id of a process that runs now. Raises psutil.NoSuchProcess when it does not."""
        return cls(pid, start_time(pid))

    def process(self) -> psutil.Process | None:
        """The process while it runs; None once it has ended or its pid is another's."""
        try:
            process = psutil.Process(self.pid)
            if abs(start_time(self.pid) - self.create_time) > _TICK_S or process.status() == psutil.STATUS_ZOMBIE:
                return None
        except psutil.NoSuchProcess:
            return None
        return process

    @property
    def alive(self) -> bool:
        """True while the process runs or is frozen."""
        return self.process() is not None

    @property
    def memory_mib(self) -> int:
        """Resident memory in MiB; 0 once it has ended."""
        process = self.process()
        try:
            return process.memory_info().rss >> 20 if process else 0
        except psutil.NoSuchProcess:
            return 0

    def send(self, number: signal.Signals) -> bool:
        """Signal it; False when it has ended."""
        process = self.process()
        if process is None:
            return False
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            return False
        return True

    @property
    def stopped(self) -> bool:
        """True once SIGSTOP has reached it: every one of its threads, where the system shows them."""
        process = self.process()
        tasks = _PROC / str(self.pid) / "task"
        try:
            if process is None or not tasks.is_dir():
                return process is not None and process.status() == psutil.STATUS_STOPPED
            return all(_state(task / "stat") == "T" for task in tasks.iterdir())
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):  # a thread that ends meanwhile
            return False


def _state(stat: Path) -> str:
    # The second field is the command's name in brackets, and may hold anything.
    return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]


def start_time(pid: int) -> float:
    """Time of its start, in seconds. Raises psutil.NoSuchProcess when it does not run.

    On Linux by the kernel's own count of ticks, which stays true when the clock is set; psutil adds the time of day at
    which the machine was started, and that moves with the clock.
    """
    if not (_PROC / "self" / "stat").exists():
        return psutil.Process(pid).create_time()
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise psutil.NoSuchProcess(pid) from error
    # The second field is the command's name in brackets, and may hold anything; the 22nd is the start.
    return int(text.rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def wait_gone(processes: Iterable[ProcessId], timeout_s: float) -> tuple[ProcessId, ...]:
    """Those that still run when the time is over, or at once an empty tuple."""
    until = time.monotonic() + timeout_s
    left = tuple(one for one in processes if one.alive)
    while left and time.monotonic() < until:
        time.sleep(0.02)
        left = tuple(one for one in left if one.alive)
    return left


def kill_all(processes: Iterable[ProcessId], timeout_s: float = 10.0) -> tuple[ProcessId, ...]:
    """SIGKILL, frozen ones too, and wait; those that would not go."""
    targets = tuple(processes)
    for one in targets:
        one.send(signal.SIGKILL)
    return wait_gone(targets, timeout_s)
