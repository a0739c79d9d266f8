"""One whole cycle, decode to propose, on the synthetic world; then a cycle in which 1 % of the groups changed.

As many of those that changed are improvable as of all groups, so that the world stays what it is from look to look;
the figure with all of them improvable stands beside it.

The large world is also looked at with weights of all its partitions: first, next, and when all of them have changed.

Each size runs in a process of its own, so that resident memory is that of this size. The world (what ``observe`` would
hand over) is part of it. The brokers are synthetic: no machine runs 10,000 groups of real clients.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import replace

import psutil

from agent.loop import CycleStages
from agent.process import collect_seldom
from agent.values.limits import Limits, ProposalLimits
from agent.values.memory import Memory
from agent.values.observation import Observation, RawTopic
from agent.values.weights import TopicRates, WeightsReading
from tests.synthetic_cluster import next_look, synthetic_cluster

SIZES = (1_000, 10_000)
GOAL_FULL_S = 5.0
GOAL_RESIDENT_MIB = 512
GOAL_NEXT_SHARE = 0.05
NEXT_LOOKS = 4
IMPROVABLE = 0.3
"""Of the groups that changed; as `a_world` has it of all."""


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
    worse = json.loads(_in_a_fresh_process(SIZES[-1], "worse"))
    case, figure = "next, 1 % of the groups changed, each became improvable", worse["next"]["cpu_s"]
    print(json.dumps({"bench": "cycle", "case": case, **worse["next"], "share": figure / worse["first"]["cpu_s"]}))
    weighed = json.loads(_in_a_fresh_process(SIZES[-1], "weighed"))
    for case in ("first", "next", "new weights"):
        print(
            json.dumps({"bench": "cycle", "case": f"{case}, {weighed['groups']} groups with weights", **weighed[case]})
        )
    figure = weighed["first"]["cpu_s"] / full
    print(json.dumps({"bench": "cycle", "case": "a full cycle with weights over one without", "figure": figure}))
    growth = full / small["first"]["cpu_s"]
    print(json.dumps({"bench": "cycle", "case": "growth of CPU over ten times the groups", "figure": growth}))


def _in_a_fresh_process(size: int, *how: str) -> str:
    command = [sys.executable, "-m", __spec__.name, str(size), *how]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stdout.splitlines()[-1]


def one(size: int, *, weighed: bool = False, improvable: float = IMPROVABLE) -> None:
    collect_seldom()  # as the command does
    world = synthetic_cluster(size)
    weights = _weights(world) if weighed else None
    world = replace(world, weights=weights)
    line = CycleStages(Limits(proposals=ProposalLimits(max_per_cycle=size)))

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
        look = next_look(world, improvable=improvable, seed=number + 2)
        world = replace(look, weights=weights, taken_ms=world.taken_ms)
        figures, memory = cycle(world, memory, number + 2)
        following.append(figures)
    renewed = {}
    if weighed:
        renewed, _ = cycle(replace(world, weights=_weights(world, seed=2)), memory, NEXT_LOOKS + 2)
    process = psutil.Process()
    print(
        json.dumps(
            {
                "groups": size,
                "first": first,
                "next": min(following[1:], key=lambda figures: figures["cpu_s"]),
                "new weights": renewed,
                "resident_mib": round(process.memory_info().rss / 2**20),
            }
        )
    )


def _weights(world: Observation, seed: int = 1) -> WeightsReading:
    """A rate for every partition, as unequal as traffic is, with the four digits that the pipeline writes."""
    rng = random.Random(seed)

    def rates(topic: RawTopic) -> TopicRates:
        numbers = tuple(row.partition for row in topic.partitions)
        drawn = tuple(float(f"{rng.lognormvariate(9, 2):.4g}") for _ in numbers)
        return TopicRates(topic.name, world.taken_ms - 86_400_000, world.taken_ms - 60_000, numbers, drawn)

    return WeightsReading("rackwise.weights", tuple(map(rates, world.topics)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one(int(sys.argv[1]), weighed="weighed" in sys.argv, improvable=1.0 if "worse" in sys.argv else IMPROVABLE)
    else:
        main()
