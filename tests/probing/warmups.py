"""Snapshots of an application with warm-ups, and what is decided of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.execute.probing_decision import ProbingContext
from agent.execute.probing_decision import decide as decide_by
from agent.execute.probing_values import PastTrigger, ProbingDecision
from agent.values.limits import GroupLimits, Limits
from agent.values.memory import Join, Memory, StreamsMemory
from agent.values.snapshot import LagSource, Range, Snapshot, TaskCopy, TaskRole
from assignors.problem import TaskId
from tests.limits import with_limits
from tests.snapshots import NOW_MS, a_cluster, process, task

NOW = 5_000_000
"""Monotonic milliseconds of every snapshot here."""
TASKS = [TaskId(0, number) for number in range(4)]
DUE_MS = NOW_MS + 400_000
JOINED = Join("k", NOW - 201_000, NOW - 200_000, {})


def warmup(number: int, *, lag: float | None = 0, eta: float | None = None, **changes: Any) -> TaskCopy:
    """A warm-up on process ``new``: caught up without an ``eta``, else so many seconds away."""
    behind = None if lag is None else Range(lag, lag, lag)
    reached = Range(eta * 0.8, eta, eta * 1.5) if eta is not None else Range(0.0, 0.0, 0.0)
    copy = TaskCopy(
        "app", "new", TASKS[number], TaskRole.WARMUP, role_certain=True, end_offset_sum=100_000, lag=behind,
        lag_source=LagSource.APPLICATION, lag_age_ms=0, rate_per_s=None, eta_s=reached, caught_up=eta is None,
    )  # fmt: skip
    return copy._replace(**changes)


def estimated(number: int, likely: float, eta: float, **changes: Any) -> TaskCopy:
    lag = Range(0.0, likely, 90_000.0)
    reached = Range(0.0, eta, 10 * eta)
    return warmup(number, eta=eta, lag_source=LagSource.MODEL, caught_up=None)._replace(
        lag=lag, eta_s=reached, **changes
    )


def unknown(number: int) -> TaskCopy:
    return warmup(number, lag=90_000, lag_source=LagSource.LAST_JOIN)._replace(eta_s=None, caught_up=None)


def snapshot_of(*copies: TaskCopy, **changes: Any) -> Snapshot:
    of_group = {"next_rebalance_ms": DUE_MS, "join": "k", **changes}
    return (
        a_cluster()
        .topic("in", (1,), (2,), (3,), (1,))
        .streams(
            "app",
            process("old", "a", "0_0 0_1 0_2 0_3"),
            process("new", "b"),
            topology=[task(f"0_{n}", f"in-{n}") for n in range(4)],
            copies=copies,
            **of_group,
        )
        .snapshot()
    )


def decide(
    snapshot: Snapshot,
    past: Sequence[PastTrigger] = (),
    *,
    join: Join = JOINED,
    ready_ms: int | None = None,
    limits: Limits | None = None,
    **changes: Any,
) -> ProbingDecision:
    memory = Memory(cycle=5, monotonic_ms=NOW - 1_000, streams={"app": StreamsMemory(join, {}, {}, (), ready_ms)})
    limits = limits or Limits(groups={"app": GroupLimits(known=True)})
    return decide_by("app", ProbingContext(snapshot, memory, with_limits(limits, **changes)), past)


READY = snapshot_of(warmup(0))
