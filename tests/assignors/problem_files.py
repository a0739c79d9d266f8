"""Read the columnar problem files with known optima: racks as bit masks, tasks sorted, sources in CSR form."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from pathlib import Path
from typing import Any

from assignors.problem import StreamsTask, TaskId, TaskProcess

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


def read_problem(name: str) -> tuple[tuple[StreamsTask, ...], tuple[TaskProcess, ...]]:
    data: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    sets = _RackSets(data["racks"])
    columns = data["tasks"]
    ids = [TaskId(*each) for each in zip(columns["subtopology"], columns["partition"], strict=True)]
    tasks = tuple(
        StreamsTask(id=task, stateful=bool(stateful), sources=sources, changelogs=changelogs)
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
        TaskProcess(id=f"p{number:05}", rack=sets.names[rack], capacity=capacity, active=tuple(mine))
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


def price(document: dict[str, Any], client: list[int], costs: tuple[int, int]) -> tuple[int, int, int]:
    """Cost, crossing source partitions and moved tasks of an assignment, told from a document alone, bit by bit."""
    rack, ptr, mask = document["clients"]["rack"], document["sources"]["ptr"], document["sources"]["mask"]
    cross_rack = sum(
        not mask[at] >> rack[chosen] & 1
        for chosen, (start, end) in zip(client, pairwise(ptr), strict=True)
        for at in range(start, end)
    )
    moved = sum(chosen != owner for chosen, owner in zip(client, document["tasks"]["owner"], strict=True))
    return costs[0] * cross_rack + costs[1] * moved, cross_rack, moved


def bounds_broken(document: dict[str, Any], client: list[int], counts: str, balance: str) -> list[str]:
    """Clients that have more or fewer tasks than the variant allows them, told from a document alone."""
    capacity, owner = document["clients"]["capacity"], document["tasks"]["owner"]
    tasks, before, after = len(client), Counter(owner), Counter(client)
    parts = Counter(document["tasks"]["subtopology"])
    after_parts = Counter(zip(client, document["tasks"]["subtopology"], strict=True))
    broken = []
    for number, threads in enumerate(capacity):
        share = Fraction(threads * tasks, sum(capacity))
        bounds = (before[number], before[number]) if counts == "fixed" else (floor(share), ceil(share))
        if not bounds[0] <= after[number] <= bounds[1]:
            broken.append(f"client {number} has {after[number]} tasks, allowed are {bounds}")
        for subtopology, size in parts.items() if balance == "subtopology" else ():
            part = Fraction(threads * size, sum(capacity))
            bounds = (0, ceil(before[number] * 1.0 / tasks * size)) if counts == "fixed" else (floor(part), ceil(part))
            if not bounds[0] <= after_parts[number, subtopology] <= bounds[1]:
                broken.append(f"client {number} has {after_parts[number, subtopology]} of {subtopology}: {bounds}")
    return broken
