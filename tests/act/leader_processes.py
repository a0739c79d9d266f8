"""Agents that only lead, as processes that a test may kill, freeze and thaw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from tests.observe.live import wait_for


class LeaderProcess:
    """One process of `tests.act.leader_process`."""

    def __init__(self, servers: str, prefix: str, name: str, file: Path | None = None) -> None:
        self.name = name
        arguments = [servers, prefix, name, *([str(file)] if file else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.act.leader_process", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        self.lines: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in list(self.lines) if line["event"] == name]

    @property
    def leads(self) -> bool:
        """As far as it has told."""
        states = [line["event"] for line in list(self.lines) if line["event"] in {"leading", "standby", "ended"}]
        return states[-1:] == ["leading"]

    def wait_for(self, event: str, count: int = 1, within_s: float = 40) -> dict[str, Any]:
        """The event that makes the count full."""
        wait_for(lambda: len(self.events(event)) >= count, f"{self.name} tells {event}: {self.lines[-5:]}", within_s)
        return self.events(event)[count - 1]

    def signal(self, number: signal.Signals) -> float:
        """When it was sent."""
        at = time.monotonic()
        os.kill(self.process.pid, number)
        return at

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.send_signal(signal.SIGCONT)
        self.process.wait(10)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(json.loads(line))


def the_leader(agents: list[LeaderProcess], within_s: float = 40) -> LeaderProcess:
    """The one that leads and has written."""

    def one() -> LeaderProcess | None:
        leading = [agent for agent in agents if agent.process.poll() is None and agent.leads and agent.events("wrote")]
        return leading[0] if leading else None

    found: LeaderProcess = wait_for(one, "one of the agents leads", within_s)
    return found


def members_of(servers: str, group: str) -> frozenset[str]:
    """The members of a settled group; ``joining`` is among them while it is not."""
    admin = AdminClient({"bootstrap.servers": servers})
    description = admin.describe_consumer_groups([group], request_timeout=10)[group].result()
    settled = description.state == ConsumerGroupState.STABLE
    return frozenset(member.member_id for member in description.members) | (frozenset() if settled else {"joining"})
