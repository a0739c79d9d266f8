"""Runs calls side by side and comes back by the deadline, whether they do or not."""

from __future__ import annotations

import queue
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TypeVar

from agent.errors import CALLS, thread
from agent.values.observation import GapCause
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

WIDTH = 32
"""Threads at most for one fan-out; a hundred brokers are asked in a few rounds."""
_GRACE_S = 0.25


def gather(
    jobs: Mapping[K, Callable[[], V]], deadline: Deadline, *, name: str, width: int = WIDTH
) -> dict[K, V | CallFailed]:
    """The result of each job, or its failure; a job still running shortly after the deadline has timed out.

    Jobs must keep the deadline themselves: a thread cannot be stopped, only left behind. Any other error than
    CallFailed is a defect and is raised here.
    """
    work: queue.SimpleQueue[tuple[K, Callable[[], V]]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[K, V | BaseException]] = queue.SimpleQueue()
    for item in jobs.items():
        work.put(item)
    for number in range(min(width, len(jobs))):
        thread(CALLS, partial(_work_off, work, done), f"{name} {number}").start()
    results: dict[K, V | CallFailed] = {}
    while len(results) < len(jobs):
        try:
            key, result = done.get(timeout=deadline.left_s + _GRACE_S)
        except queue.Empty:
            break
        if isinstance(result, BaseException) and not isinstance(result, CallFailed):
            raise result
        results[key] = result
    return {key: results.get(key, CallFailed(GapCause.TIMED_OUT, "no answer in time")) for key in jobs}


def _work_off(
    work: queue.SimpleQueue[tuple[K, Callable[[], V]]], done: queue.SimpleQueue[tuple[K, V | BaseException]]
) -> None:
    while True:
        try:
            key, job = work.get_nowait()
        except queue.Empty:
            return
        try:
            done.put((key, job()))
        except BaseException as error:  # noqa: BLE001 it is raised again in the thread that waits
            done.put((key, error))
