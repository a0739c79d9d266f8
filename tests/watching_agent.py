"""An agent's eye on a real cluster: cycle after cycle with what it remembers, and nothing published."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from agent.daemon.limits_from_settings import to_limits, to_scope
from agent.loop import CycleStages, run_cycle
from agent.observe.context import ObserverClients, ObserverState
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.cycle import Cycle
from agent.values.finding import Finding, FindingReason
from agent.values.memory import Memory
from agent.values.observation import Observation
from config.load import load_settings
from config.settings import Settings

PAUSE_S = 1.0
"""Between two looks: the poll interval of these tests."""


class WatchingAgent:
    """Looks at a cluster; a context manager."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._scope, self._recall = to_scope(self.settings), ObserverState()
        self._line = CycleStages(to_limits(self.settings))
        self._clients = ObserverClients.open(self.settings.kafka)
        self._number = 0
        self.memory = Memory()

    def look(self, *, planning: bool = False) -> Cycle:
        """One more cycle."""
        self._number += 1
        cycle = run_cycle(
            self._line,
            self._observe,
            self._observe(),
            self.memory,
            number=self._number,
            name=f"eye-{self._number}",
            planning=planning,
        )
        self.memory = cycle.after
        return cycle

    def until(
        self, true: Callable[[Cycle], object], what: str, *, within_s: float = 30.0, planning: bool = False
    ) -> Cycle:
        """The first cycle of which it is true; fails with what is found instead."""
        deadline = time.monotonic() + within_s
        while not true(cycle := self.look(planning=planning)):
            assert time.monotonic() < deadline, f"waited {within_s} s in vain for {what}:\n{cycle_text(cycle)}"
            time.sleep(PAUSE_S)
        return cycle

    def _observe(self) -> Observation:
        return observe(self._clients, system_clock, self._scope, self._recall)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._clients.close()


def settings_for(bootstrap_servers: str, **more: object) -> Settings:
    """Settings for looking at that cluster, whatever the environment says."""
    return load_settings(flags={"kafka.bootstrap.servers": bootstrap_servers, **more}, environ={}).settings


def findings_of(cycle: Cycle, reason: FindingReason, subject: str | None = None) -> tuple[Finding, ...]:
    """The cycle's findings of that reason, about that subject (``kind/name``) when one is given."""
    return tuple(
        finding
        for finding in cycle.detection.findings
        if finding.reason is reason and subject in (None, str(finding.subject))
    )


def cycle_text(cycle: Cycle) -> str:
    """What a cycle shows, for a test that fails."""
    lines = [f"{finding.id}: {finding.sentence}" for finding in cycle.detection.findings]
    lines += [f"{proposal.kind} {proposal.subject}: {proposal.sentence}" for proposal in cycle.proposals]
    lines += [f"gap {gap}" for gap in cycle.snapshot.gaps]
    return "\n".join(lines) or "nothing was found"
