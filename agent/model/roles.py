"""Tells the warm-ups of a classic Streams application from its standbys.

Warm-ups (KIP-441) travel as standbys and look the same. What tells them apart:

- the application's own probing deadline: the leader sets one exactly when it wants to move tasks, so without a deadline
  there is no warm-up;
- the lag at the assignment: a warm-up goes where the task is *not* caught up, so a copy that was is a standby;
- ``num.standby.replicas``, where the user told it: with 0 there are no standbys at all, and a copy beyond the number of
  standbys is a warm-up;
- where the leader wants the active task: the assignor deals stateful tasks round over the processes in the order of
  their ids before it looks at lags, and warms a task up where it was dealt to. That is looked at only while every
  process has the same number of threads and no rack-aware strategy redeals.

Invariant: what rests on the deal alone is marked as not certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from agent.values.kafka import NO_STRATEGY
from agent.values.limits import GroupLimits
from agent.values.memory import CopyKey
from agent.values.snapshot import Role, StreamsGroup, StreamsProcess
from assignors.problem import TaskId

_SIGN = 1 << 63


class RoleVerdict(NamedTuple):
    """A role, and whether it could be another."""

    role: Role
    certain: bool


def tell_roles(
    group: StreamsGroup,
    stateful: Sequence[TaskId],
    caught_up: Mapping[CopyKey, bool | None],
    settings: GroupLimits,
    *,
    follow_up: bool,
) -> Mapping[CopyKey, RoleVerdict]:
    """The role of every standby copy of a classic group.

    ``stateful``: all tasks with state, in the order of their ids; ``caught_up``: of each copy whether it had caught up
    when it was assigned, None where that is unknown.
    """
    holders: dict[TaskId, list[str]] = {}
    for process in group.processes:
        for task in process.standby:
            holders.setdefault(task, []).append(process.id)
    if settings.known and settings.num_standby_replicas == 0:
        return _all(holders, RoleVerdict(Role.WARMUP, certain=True))
    if group.next_rebalance_ms is None:
        return _all(holders, RoleVerdict(Role.STANDBY, certain=not follow_up))
    dealt = _dealt(group.processes, stateful, settings)
    return {
        (process, task): _verdict((process, task), processes, caught_up, settings, dealt)
        for task, processes in holders.items()
        for process in processes
    }


def java_uuid_order(process_id: str) -> tuple[int, int] | tuple[int, int, str]:
    """Sorts process ids as Java compares UUIDs: both halves as signed numbers. Other texts come last."""
    try:
        number = UUID(process_id).int
    except ValueError:
        return _SIGN, 0, process_id
    high, low = number >> 64, number & ((1 << 64) - 1)
    return high - 2 * (high & _SIGN), low - 2 * (low & _SIGN)


def _all(holders: Mapping[TaskId, Iterable[str]], verdict: RoleVerdict) -> dict[CopyKey, RoleVerdict]:
    return {(process, task): verdict for task, processes in holders.items() for process in processes}


def _dealt(
    processes: Sequence[StreamsProcess], stateful: Sequence[TaskId], settings: GroupLimits
) -> Mapping[TaskId, str] | None:
    """Task -> the process that the assignor deals it to; None where more than the order decides."""
    capacities = {process.capacity for process in processes}
    if len(capacities) != 1 or settings.rack_aware_assignment_strategy != NO_STRATEGY:
        return None
    ids = sorted([process.id for process in processes], key=java_uuid_order)
    return {task: ids[index % len(ids)] for index, task in enumerate(stateful)}


def _verdict(
    copy: CopyKey,
    holders: Sequence[str],
    caught_up: Mapping[CopyKey, bool | None],
    settings: GroupLimits,
    dealt: Mapping[TaskId, str] | None,
) -> RoleVerdict:
    process, task = copy
    if caught_up.get(copy):
        return RoleVerdict(Role.STANDBY, certain=True)
    behind = [holder for holder in holders if caught_up.get((holder, task)) is not True]
    surplus = len(holders) - settings.num_standby_replicas if settings.known else 0
    if surplus > 0 and len(behind) == surplus:
        return RoleVerdict(Role.WARMUP, certain=True)
    wanted = dealt is None or dealt.get(task) == process
    return RoleVerdict(Role.WARMUP if wanted else Role.STANDBY, certain=False)
