"""How long a person waits for the command line, ``--help`` and ``status``, and what a look costs at the demo's cluster.

The demo's four brokers and all its groups and applications run on the same cores while ``status`` is asked. Wall time
is the best of several, because the rest of the machine is in all others; the median and the CPU time of a run are
beside it.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.observe.context import ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from testbed.demo.workload.scenes import DEMO_RACKS, demo_plan
from tests.command import environment
from tests.observe.live import clients_of

RACKWISE = str(Path(sys.executable).with_name("rackwise"))
TIMES = 12


def main() -> int:
    talk = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731 talk goes to one place
    print(json.dumps(measured("rackwise --help", ["--help"], 0.25)), flush=True)
    with (
        EmbeddedCluster.start(ClusterSpec(racks=DEMO_RACKS), on_progress=talk) as cluster,
        ClusterWorkload.start(cluster.bootstrap_servers, plan=demo_plan, on_progress=talk) as work,
    ):
        work.wait_settled()
        asked = ["status", "--bootstrap-servers", cluster.bootstrap_servers]
        print(json.dumps(measured("rackwise status, the demo's cluster", asked, 1.0)), flush=True)
        for line in looks(cluster.bootstrap_servers):
            print(json.dumps(line), flush=True)
    return 0


def looks(bootstrap_servers: str) -> Iterator[dict[str, object]]:
    """CPU of an agent's first look, which learns the brokers' API versions, and of the best of the next ones."""
    recall = ObserverState()
    with clients_of(bootstrap_servers) as clients:
        spent = []
        for _ in range(TIMES):
            began = time.process_time()
            observe(clients, system_clock, ObserveScope(), recall)
            spent.append(time.process_time() - began)
    for case, cpu_s, goal_s in (("first look", spent[0], 0.3), ("next look", min(spent[1:]), 0.05)):
        yield {
            "bench": "command_line",
            "case": f"{case}, the demo's cluster",
            "cpu_s": round(cpu_s, 3),
            "goal": goal_s,
            "ok": cpu_s <= goal_s,
        }


def measured(case: str, arguments: Sequence[str], goal_s: float) -> dict[str, object]:
    """One line of the table."""
    once(arguments)  # the first one reads files that later ones find in memory
    before = spent_s()
    walls = [once(arguments) for _ in range(TIMES)]
    return {
        "bench": "command_line",
        "case": case,
        "wall_s": round(min(walls), 3),
        "median_s": round(statistics.median(walls), 3),
        "cpu_s": round((spent_s() - before) / TIMES, 3),
        "goal": goal_s,
        "ok": min(walls) <= goal_s,
    }


def once(arguments: Sequence[str]) -> float:
    """Seconds until the answer is there."""
    began = time.monotonic()
    subprocess.run([RACKWISE, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment())
    return time.monotonic() - began


def spent_s() -> float:
    """CPU seconds of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
