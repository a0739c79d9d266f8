"""How long it takes to make the snapshot, to find what is wrong and to remember it, without the assessments.

The world of `tests.synthetic_cluster`; the next look has 1 % of the groups rebalanced and every offset moved. Each size
runs in a fresh process; CPU time, with the garbage collector as the agent has it. The memory is also written and read,
as telemetry does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from agent.decode.members import decode_members
from agent.detect.assess import assess_groups
from agent.detect.find import find_all
from agent.memory.codec import memory_from_json, memory_to_json
from agent.memory.remember import remember
from agent.model.build_snapshot import build_snapshot
from agent.process import collect_seldom
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.observation import Observation
from tests.synthetic_cluster import next_look, synthetic_cluster

GROUPS = 10_000
GOALS_S = {"first look": 1.5, "next look": 0.06}

Result = TypeVar("Result")


class Timed:
    """The stages with their memos, and the CPU seconds of each."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.memos = {name: Memo() for name in ("decode", "model", "detect")}
        self.spent: dict[str, float] = {}

    def look(self, observation: Observation) -> int:
        """One look; returns the number of findings."""
        limits, memos = Limits(), self.memos
        decoded = decode_members(observation, memos["decode"])
        snapshot = self._time(
            "model_s", lambda: build_snapshot(observation, decoded, self.memory, limits, memos["model"])
        )
        assessed = self._time("assess_s", lambda: assess_groups(snapshot, limits, memos["detect"]))
        detection = self._time("detect_s", lambda: find_all(snapshot, assessed, self.memory, limits, memos["detect"]))
        self.memory = self._time("remember_s", lambda: remember(self.memory, snapshot, detection))
        for memo in memos.values():
            memo.turn()
        return len(detection.findings)

    def _time(self, name: str, work: Callable[[], Result]) -> Result:
        began = time.process_time()
        result = work()
        self.spent[name] = round(time.process_time() - began, 4)
        return result


def main() -> int:
    if len(sys.argv) == 2:
        print(json.dumps(measured(int(sys.argv[1]))))
        return 0
    small, large = in_fresh_process(GROUPS // 10), in_fresh_process(GROUPS)
    for case, goal_s in GOALS_S.items():
        cpu_s = large[case]["cpu_s"]
        growth = round(cpu_s / small[case]["cpu_s"], 2)
        line = {"bench": "model and detect", "case": case, "size": GROUPS, **large[case], "growth_cpu_s": growth}
        print(json.dumps(line | {"goal": goal_s, "ok": cpu_s <= goal_s}), flush=True)
    print(json.dumps({"bench": "memory", "case": "written and read", "size": GROUPS, **large["memory"]}))
    return 0


def in_fresh_process(groups: int) -> dict[str, dict[str, float]]:
    command = [sys.executable, "-m", "tests.bench.bench_model", str(groups)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, dict[str, float]] = json.loads(done.stdout)
    return figures


def measured(groups: int) -> dict[str, dict[str, float]]:
    collect_seldom()
    timed = Timed()
    look = synthetic_cluster(groups)
    findings = timed.look(look)
    first = figures(timed, findings)
    quiet = []
    for turn in range(3):
        look = next_look(look, seed=2 + turn)
        findings = timed.look(look)
        quiet.append(figures(timed, findings))
    began = time.process_time()
    text = memory_to_json(timed.memory)
    wrote = time.process_time()
    assert memory_from_json(text) == timed.memory
    read = time.process_time()
    return {
        "first look": first,
        "next look": sorted(quiet, key=lambda row: row["cpu_s"])[1],
        "memory": {"bytes": len(text), "write_s": round(wrote - began, 3), "read_s": round(read - wrote, 3)},
    }


def figures(timed: Timed, findings: int) -> dict[str, float]:
    cpu_s = timed.spent["model_s"] + timed.spent["detect_s"]
    return {"cpu_s": round(cpu_s, 4), **timed.spent, "findings": findings}


if __name__ == "__main__":
    sys.exit(main())
