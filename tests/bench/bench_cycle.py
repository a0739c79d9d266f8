"""One whole cycle, decode to propose, on the synthetic world; then a cycle in which 1 % of the groups changed.

Each size runs in a process of its own, so that resident memory is that of this size. The world (what ``observe`` would
hand over) is part of it. The brokers are synthetic: no machine runs 10,000 groups of real clients.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import psutil

from agent.collector import walk_seldom
from agent.limits import Limits
from agent.loop import Line
from agent.memory import Memory
from tests.world import a_world, next_look

SIZES = (1_000, 10_000)
GOAL_FULL_S = 5.0
GOAL_RESIDENT_MIB = 512
GOAL_NEXT_SHARE = 0.05
NEXT_LOOKS = 4


def main() -> None:
    found = [json.loads(_in_a_fresh_process(size)) for size in SIZES]
    small, large = found
    for one in found:
        print(json.dumps({"bench": "cycle", "case": f"first, {one['groups']} groups", **one["first"]}))
        print(json.dumps({"bench": "cycle", "case": f"next, 1 % of {one['groups']} groups changed", **one["next"]}))
    full, resident = large["first"]["cpu_s"], large["resident_mib"]
    share = large["next"]["cpu_s"] / full
    for case, figure, goal in (
        ("CPU of one full cycle, s", full, GOAL_FULL_S),
        ("resident, MiB", resident, GOAL_RESIDENT_MIB),
        ("CPU of the next cycle as a share of the full one", share, GOAL_NEXT_SHARE),
    ):
        print(json.dumps({"bench": "cycle", "case": case, "figure": figure, "goal": goal, "ok": figure <= goal}))
    growth = full / small["first"]["cpu_s"]
    print(json.dumps({"bench": "cycle", "case": "growth of CPU over ten times the groups", "figure": growth}))


def _in_a_fresh_process(size: int) -> str:
    run = subprocess.run([sys.executable, "-m", __spec__.name, str(size)], capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stdout.splitlines()[-1]


def one(size: int) -> None:
    walk_seldom()  # as the command does
    world = a_world(size)
    line = Line(Limits(max_proposals=size))

    def cycle(observation, memory, number):
        began = time.process_time()
        snapshot = line.snapshot(observation, memory)
        detection = line.detect(snapshot, memory)
        plan = line.plan(snapshot, detection)
        proposals = line.propose(snapshot, plan, detection)
        cpu_s = time.process_time() - began
        after = line.remember(memory, snapshot, detection)
        stages = line.turn()
        figures = {
            "cpu_s": cpu_s,
            "proposals": len(proposals),
            "findings": len(detection.findings),
            **{f"{stage}_ms": took for stage, took in stages.items()},
        }
        return figures, after

    first, memory = cycle(world, Memory(), 1)
    # Two settling looks: the memory of the first is not yet that of a running agent.
    following = []
    for number in range(NEXT_LOOKS):
        world = next_look(world, seed=number + 2)
        figures, memory = cycle(world, memory, number + 2)
        following.append(figures)
    process = psutil.Process()
    print(
        json.dumps(
            {
                "groups": size,
                "first": first,
                "next": min(following[1:], key=lambda figures: figures["cpu_s"]),
                "resident_mib": round(process.memory_info().rss / 2**20),
            }
        )
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one(int(sys.argv[1]))
    else:
        main()
