"""An agent as a process beside a cluster, and its log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from testbed.cluster import EmbeddedCluster
from tests.command import RACKWISE, ROOT, environment


class Running:
    """An agent process and its log."""

    def __init__(self, cluster: EmbeddedCluster, config: Path, log: Path) -> None:
        self.log = log
        with log.open("w") as stderr:
            self.process = subprocess.Popen(
                [*RACKWISE, "run", "-b", cluster.bootstrap_servers, "--config", str(config)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, cwd=ROOT, env=environment(),
            )  # fmt: skip

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = [line for line in self.log.read_text().splitlines() if line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(10)


def wait_until_gone(group: int, within_s: float) -> None:
    """Until no process of the group is left: Java ends by itself when its client is gone."""
    left = [one for one in psutil.process_iter() if _group(one.pid) == group]
    assert not psutil.wait_procs(left, timeout=within_s)[1]


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def wait_for(what: Callable[[], Any], within_s: float = 60) -> Any:
    until = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.2)
    return found
