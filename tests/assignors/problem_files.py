"""Read the columnar problem files with known optima: racks as bit masks, tasks sorted, sources in CSR form."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from assignors.problem import Process, Task, TaskId

FOLDER = Path(__file__).parent / "problems"


def expected_costs() -> dict[tuple[str, str], int]:
    """(problem, variant ``counts/balance/traffic_cost/non_overlap_cost``) -> optimal cost, for the files at hand."""
    table = json.loads((FOLDER / "expected.json").read_text())
    here = {path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz")}
    return {
        (name, variant): cost
        for name, row in table.items()
        for variant, cost in row.items()
        if "/" in variant and name in here
    }


def read_problem(name: str) -> tuple[tuple[Task, ...], tuple[Process, ...]]:
    data: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    sets = _RackSets(data["racks"])
    columns = data["tasks"]
    ids = [TaskId(*each) for each in zip(columns["subtopology"], columns["partition"], strict=True)]
    tasks = tuple(
        Task(id=task, stateful=bool(stateful), sources=sources, changelogs=changelogs)
        for task, stateful, sources, changelogs in zip(
            ids, columns["stateful"], sets.rows(data["sources"]), sets.rows(data["changelogs"]), strict=True
        )
    )
    clients = data["clients"]
    active: list[list[TaskId]] = [[] for _ in clients["rack"]]
    for task, owner in zip(ids, columns["owner"], strict=True):
        if owner >= 0:
            active[owner].append(task)
    processes = tuple(
        Process(id=f"p{number:05}", rack=sets.names[rack], capacity=capacity, active=tuple(mine))
        for number, (rack, capacity, mine) in enumerate(zip(clients["rack"], clients["capacity"], active, strict=True))
    )
    return tasks, processes


class _RackSets(dict[int, frozenset[str]]):
    """Bit mask -> set of rack names, each made once."""

    def __init__(self, racks: int) -> None:
        super().__init__()
        self.names = [f"r{rack:02}" for rack in range(racks)]

    def __missing__(self, mask: int) -> frozenset[str]:
        self[mask] = frozenset(name for rack, name in enumerate(self.names) if mask >> rack & 1)
        return self[mask]

    def rows(self, column: dict[str, list[int]]) -> list[tuple[frozenset[str], ...]]:
        starts = column["ptr"]
        return [tuple(self[mask] for mask in column["mask"][start:end]) for start, end in pairwise(starts)]
