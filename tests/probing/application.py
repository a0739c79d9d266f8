"""A classic Streams application in simulated time, led by Kafka's own assignor, as brokers show it.

Its processes restore their copies at a rate of their own, its leader assigns for high availability and asks for probing
rebalances, and members tell their offset sums when they join and never between. State that is given up stays on disk
and gets them at every join, as Kafka does it. Nothing here knows rackwise.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field

from assignors.kafka.high_availability import high_availability
from assignors.kafka.streams_problem import RUNNING_ACTIVE, AssignmentConfigs, StreamsClient, StreamsProblem
from assignors.problem import TaskId
from tests.builders import TAKEN_MS, Answers, an_observation, instance, process_id

STEP_S = 0.25
REBALANCE_S = 1.5
"""From the trigger until all have joined anew."""


@dataclass
class Host:
    """One process."""

    number: int
    restores_per_s: float
    """Records, all of its copies together."""
    disk: dict[TaskId, float] = field(default_factory=dict)
    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)
    """Warm-ups too."""
    running: set[TaskId] = field(default_factory=set)
    """Those active tasks that have been restored."""
    reported_offsets: dict[TaskId, int] = field(default_factory=dict)
    """Offset sums at the last join."""
    slow: dict[TaskId, float] = field(default_factory=dict)
    """Copies with a rate of their own, beside all others."""


class Application:
    """``tasks`` stateful tasks, all on the given processes and settled at second 0."""

    def __init__(
        self,
        tasks: int,
        hosts: Iterable[Host],
        *,
        ends: Iterable[int] | None = None,
        appended_per_s: float = 0.0,
        acceptable: int = 1_000,
        warmups: int = 2,
        standbys: int = 0,
        interval_s: float = 600.0,
    ) -> None:
        self.tasks = [TaskId(0, partition) for partition in range(tasks)]
        given = list(ends) if ends is not None else [100_000] * tasks
        self.ends = {task: float(end) for task, end in zip(self.tasks, given, strict=True)}
        self.appended_per_s = appended_per_s
        self.hosts = {host.number: host for host in hosts}
        self.configs = AssignmentConfigs(
            acceptable_recovery_lag=acceptable,
            max_warmup_replicas=warmups,
            num_standby_replicas=standbys,
            probing_rebalance_interval_ms=round(interval_s * 1000),
        )
        self.now_s = 0.0
        self.generation = 0
        self.deadline_s: float | None = None
        self.joining_until_s: float | None = None
        self.rebalances = 0
        self.own_rebalances = 0
        self.promotions: list[float] = []
        """When tasks went to another process."""
        self._settle()

    @property
    def balanced(self) -> bool:
        """Whether its leader wants nothing else."""
        return self.joining_until_s is None and self.deadline_s is None

    @property
    def stable(self) -> bool:
        return self.joining_until_s is None

    def come(self, host: Host) -> None:
        """One more process joins."""
        self.hosts[host.number] = host
        self.rebalance()

    def leave(self, number: int) -> None:
        """A process leaves."""
        del self.hosts[number]
        self.rebalance()

    def rebalance(self) -> None:
        """All join anew; assigned when they have."""
        if self.joining_until_s is None:
            self.joining_until_s = self.now_s + REBALANCE_S

    def advance(self, to_s: float) -> None:
        """Let time pass."""
        while self.now_s < to_s:
            step_s = min(STEP_S, to_s - self.now_s)
            self.now_s += step_s
            for task in self.tasks:
                self.ends[task] += self.appended_per_s * step_s
            for host in self.hosts.values():
                self._restore(host, step_s)
            if self.joining_until_s is not None and self.now_s >= self.joining_until_s:
                self.joining_until_s = None
                self._assign()
            elif self.stable and self.deadline_s is not None and self.now_s >= self.deadline_s:
                self.own_rebalances += 1
                self.rebalance()

    def lag(self, number: int, task: TaskId) -> int:
        return round(self.ends[task] - self.hosts[number].disk.get(task, 0.0))

    def warming(self) -> list[tuple[int, TaskId]]:
        """(process, task) of copies that have not caught up."""
        acceptable = self.configs.acceptable_recovery_lag
        return [(n, t) for n, host in self.hosts.items() for t in sorted(host.standby) if self.lag(n, t) > acceptable]

    def would_promote(self) -> bool:
        """Whether a rebalance now would give a task to another process."""
        tried = self.clone()
        tried._assign()
        return len(tried.promotions) > len(self.promotions)

    def as_shown(self, *, endpoint: bool = False) -> Answers:
        """What brokers answer now, and the application's endpoint too."""
        count = len(self.tasks)
        answers = an_observation()
        answers.topic("in", *[(1, 2)] * count)
        answers.topic("app-store-changelog", *[(1, 2)] * count, ends=[int(self.ends[task]) for task in self.tasks])
        carries = min(self.hosts)
        due_ms = None if self.deadline_s is None else TAKEN_MS + round(self.deadline_s * 1000)
        members = [
            instance(
                host.number, "a",
                {str(task): f"in-{task.partition}" for task in sorted(host.active)},
                {str(task): f"in-{task.partition}" for task in sorted(host.standby)},
                sums={str(task): reported for task, reported in sorted(host.reported_offsets.items())},
                topics=("in",), generation=self.generation - 1,
                next_rebalance_ms=due_ms if host.number == carries else None,
            )
            for host in self.hosts.values()
        ]  # fmt: skip
        answers.streams("app", *members, state="Stable" if self.stable else "PreparingRebalance")
        if endpoint:
            for number, host in self.hosts.items():
                for role, held in (("active", host.active), ("standby", host.standby)):
                    for task in sorted(held):
                        lag = max(0, self.lag(number, task)) if task not in host.running else 0
                        answers.says("app", process_id(number), str(task), role, lag, at_s=self.now_s)
        return answers

    def clone(self) -> Application:
        """The same again, to try something out."""
        return copy.deepcopy(self)

    # --- inside ---------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Assign with everything everywhere, so that nothing is left to warm up."""
        for host in self.hosts.values():
            host.disk |= dict(self.ends)
        self._assign()
        for host in self.hosts.values():
            host.disk = {task: self.ends[task] for task in (*host.active, *host.standby)}
            host.running = set(host.active)
        self._assign()
        assert self.balanced, "the scene does not begin settled"
        self.rebalances, self.promotions = 0, []

    def _restore(self, host: Host, step_s: float) -> None:
        """In turn: active tasks first, then by number. Those with a rate of their own come on beside the others."""
        for task in host.running:
            host.disk[task] = self.ends[task]
        left = host.restores_per_s * step_s
        waiting = [*sorted(host.active - host.running), *sorted(host.standby)]
        for task in waiting:
            missing = self.ends[task] - host.disk.get(task, 0.0)
            if task in host.slow:
                taken = min(missing, host.slow[task] * step_s)
            else:
                taken = min(missing, left)
                left -= taken
            host.disk[task] = host.disk.get(task, 0.0) + taken
            if task in host.active and self.ends[task] - host.disk[task] < 1:
                host.running.add(task)

    def _assign(self) -> None:
        for host in self.hosts.values():
            host.reported_offsets = {task: int(offset) for task, offset in host.disk.items()}
            host.reported_offsets |= dict.fromkeys(host.running, RUNNING_ACTIVE)
        clients = tuple(
            StreamsClient(
                id=process_id(host.number),
                capacity=1,
                prev_active=tuple(sorted(host.active)),
                prev_standby=tuple(sorted(host.standby)),
                lags={task: self._reported_lag(host, task) for task in self.tasks},
            )
            for host in self.hosts.values()
        )
        given = high_availability(
            StreamsProblem(tasks=tuple(self.tasks), stateful=tuple(self.tasks), clients=clients, configs=self.configs)
        )
        moved = False
        ran = {task: number for number, host in self.hosts.items() for task in host.active}
        for number, host in self.hosts.items():
            host.active = set(given.active[process_id(number)])
            host.standby = set(given.standby[process_id(number)])
            host.running = {
                task for task in host.active if task in host.running or self.ends[task] - host.disk.get(task, 0.0) < 1
            }
            gone = [task for task in host.active if ran.get(task, number) != number]
            moved = moved or bool(gone)
            self.promotions += [self.now_s] * len(gone)
        self.rebalances += 1
        self.generation += 2 if moved else 1  # tasks that are taken from a member are given in a second round
        interval_s = self.configs.probing_rebalance_interval_ms / 1000
        self.deadline_s = self.now_s + interval_s if given.followup_rebalance else None

    def _reported_lag(self, host: Host, task: TaskId) -> int:
        reported = host.reported_offsets.get(task, 0)
        if reported == RUNNING_ACTIVE:
            return RUNNING_ACTIVE
        return max(0, int(self.ends[task]) - reported)
