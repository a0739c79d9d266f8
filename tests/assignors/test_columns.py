"""Problems in columns: read or refused by column, and solved as the same problem made of objects is."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import TaskProblem, optimal_tasks
from assignors.optimal.columns import ColumnResult, column_model, optimal_columns, read_columns
from assignors.problem import BadProblem, StreamsTask, TaskId, TaskProcess
from tests.assignors.problem_files import bounds_broken, price
from tests.assignors.strategies import examples

SMALL: dict[str, Any] = {
    "racks": 3,
    "clients": {"rack": [0, 1], "capacity": [1, 2]},
    "tasks": {"subtopology": [0, 0, 1], "partition": [0, 1, 0], "stateful": [1, 0, True], "owner": [0, 1, 1]},
    "sources": {"ptr": [0, 1, 1, 3], "mask": [3, 6, 1]},
    "changelogs": {"ptr": [0, 1, 1, 2], "mask": [1, 2]},
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The small problem with another value somewhere; ``...`` takes the column away."""
    document = deepcopy(SMALL)
    *parts, name = path.split(".")
    inside = document
    for part in parts:
        inside = inside[part]
    if value is ...:
        del inside[name]
    else:
        inside[name] = value
    return document


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        pytest.param([], "the problem is not a JSON object", id="no object"),
        pytest.param(changed("racks", ...), "racks is missing", id="no racks"),
        pytest.param(changed("racks", True), "racks is True", id="racks true"),
        pytest.param(changed("racks", -1), "racks is -1", id="racks negative"),
        pytest.param(changed("clients", ...), "clients is missing; it is an object of columns", id="no clients"),
        pytest.param(changed("clients.capacity", ...), r"clients\.capacity is missing; it is a list", id="no column"),
        pytest.param(changed("tasks.owner", ...), r"tasks\.owner is missing", id="no owners"),
        pytest.param(changed("sources.mask", ...), r"sources\.mask is missing", id="no masks"),
        pytest.param(changed("changelogs", ...), "changelogs is missing", id="no changelogs"),
        pytest.param(
            changed("clients.capacity", [1]), r"clients\.capacity has 1 entries, but clients\.rack has 2", id="unequal"
        ),
        pytest.param(
            changed("tasks.stateful", [1, 1]),
            r"tasks\.stateful has 2 entries, but tasks\.subtopology has 3",
            id="unequal tasks",
        ),
        pytest.param(
            changed("sources.ptr", [0, 1, 3]), r"sources\.ptr has 3 entries; it has one more than there are tasks",
            id="too few pointers",
        ),
        pytest.param(changed("sources.ptr", [1, 1, 1, 3]), r"sources\.ptr must begin with 0", id="pointers from 1"),
        pytest.param(changed("sources.ptr", [0, 2, 1, 3]), r"sources\.ptr must .* never fall", id="pointers fall"),
        pytest.param(
            changed("sources.ptr", [0, 1, 1, 4]), r"sources\.mask has 3 entries, but .*ptr ends with 4", id="cut"
        ),
        pytest.param(
            changed("clients.rack", [0, 3]), r"clients\.rack\[1\] is 3; it is a whole number from 0 to 2",
            id="a rack out of range",
        ),
        pytest.param(changed("clients.rack", [-1, 0]), r"clients\.rack\[0\] is -1", id="a negative rack"),
        pytest.param(
            changed("sources.mask", [3, 8, 1]), r"sources\.mask\[1\] is 8; it is a whole number from 0 to 7",
            id="a mask with a rack out of range",
        ),
        pytest.param(changed("clients.capacity", [1, 0]), r"clients\.capacity\[1\] is 0", id="no capacity"),
        pytest.param(changed("tasks.owner", [0, 2, 1]), r"tasks\.owner\[1\] is 2; .* from -1 to 1", id="an odd owner"),
        pytest.param(changed("tasks.owner", [0, 0.5, 1]), r"tasks\.owner\[1\] is 0\.5", id="half a client"),
        pytest.param(changed("tasks.owner", [0, "1", 1]), r"tasks\.owner\[1\] is '1'", id="a number as text"),
        pytest.param(changed("tasks.owner", [0, None, 1]), r"tasks\.owner\[1\] is missing", id="a null"),
        pytest.param(changed("tasks.owner", [0, [1], 1]), r"tasks\.owner\[1\] is \[1\]", id="a list in a list"),
        pytest.param(changed("tasks.owner", [[0], [1], [1]]), r"tasks\.owner\[0\] is \[0\]", id="a table"),
        pytest.param(changed("tasks.owner", [True] * 3), r"tasks\.owner\[0\] is True", id="truths for numbers"),
        pytest.param(changed("tasks.owner", [0, 2**70, 1]), r"tasks\.owner\[1\] is 1180591620717411303424", id="big"),
        pytest.param(changed("tasks.owner", [0, 2**999, 1]), r"tasks\.owner\[1\] is a huge number", id="huge"),
        pytest.param(changed("tasks.stateful", [1, 2, 0]), r"tasks\.stateful\[1\] is 2", id="more than true"),
        pytest.param(changed("tasks.partition", [1, 1, 0]), r"tasks\.partition has task 0_1 twice", id="a task twice"),
        pytest.param(
            changed("clients", {"rack": [], "capacity": []}) | {"tasks": SMALL["tasks"] | {"owner": [-1] * 3}},
            r"clients\.rack is empty, but there are tasks", id="tasks without a client",
        ),
        pytest.param(changed("racks", 70) | {"sources": {"ptr": [0, 1, 1, 1], "mask": [1 << 70]}},
                     r"sources\.mask\[0\] is 1180591620717411303424; it is a mask of 70 racks", id="a mask too wide"),
        pytest.param(changed("racks", 70) | {"sources": {"ptr": [0, 1, 1, 1], "mask": [False]}},
                     r"sources\.mask\[0\] is False", id="a wide mask that is none"),
    ],
)  # fmt: skip
def test_bad_columns_are_named(document: Any, sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        read_columns(document)


@pytest.mark.parametrize(
    ("owner", "costs", "sentence"),
    [
        pytest.param([0, -1, 1], (10, 1), r"tasks\.owner\[1\] is -1; fixed counts need an owner", id="no owner"),
        pytest.param([0, 1, 1], (-1, 1), "the traffic cost is -1", id="a negative cost"),
        pytest.param([0, 1, 1], (10, 2**31), "the non-overlap cost is 2147483648", id="a cost beyond 32 bits"),
    ],
)
def test_what_cannot_be_solved_is_named(owner: list[int], costs: tuple[int, int], sentence: str) -> None:
    model = column_model(read_columns(changed("tasks.owner", owner)))
    with pytest.raises(BadProblem, match=sentence):
        optimal_columns(model, "fixed", "none", *costs)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"clients": {"rack": [], "capacity": []}}, id="no clients and no tasks"),
        pytest.param({"clients": {"rack": [1], "capacity": [1]}}, id="nothing to do"),
        pytest.param({"clients": {"rack": [99], "capacity": [1]}, "racks": 100}, id="nothing to do in many racks"),
    ],
)
def test_no_tasks_cost_nothing(document: dict[str, Any]) -> None:
    empty = {"ptr": [0], "mask": []}
    tasks: dict[str, list[int]] = {"subtopology": [], "partition": [], "stateful": [], "owner": []}
    columns = read_columns({"racks": 2, "tasks": tasks, "sources": empty, "changelogs": empty} | document)
    best = optimal_columns(column_model(columns), "free", "subtopology", 10, 1)
    assert (best.client.tolist(), best.cost, best.lower_bound, best.optimal) == ([], 0, 0, True)


# --- against the same problem as objects --------------------------------------------------------------------------


@st.composite
def documents(draw: st.DrawFn, *, owned: bool, racks: int, sources: int) -> dict[str, Any]:
    used = draw(st.lists(st.integers(0, racks - 1), min_size=1, max_size=4, unique=True))
    clients = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    ids = [(3 * subtopology, partition) for subtopology, size in enumerate(sizes) for partition in range(size)]
    mask = st.sets(st.sampled_from([*used, racks - 1])).map(lambda bits: sum(1 << bit for bit in bits))
    rows = [draw(st.lists(mask, min_size=0, max_size=sources)) for _ in ids]
    ptr = [0]
    for row in rows:
        ptr.append(ptr[-1] + len(row))
    return {
        "racks": racks,
        "clients": {
            "rack": [draw(st.sampled_from(used)) for _ in range(clients)],
            "capacity": [draw(st.integers(1, 3)) for _ in range(clients)],
        },
        "tasks": {
            "subtopology": [subtopology for subtopology, _ in ids],
            "partition": [partition for _, partition in ids],
            "stateful": [draw(st.booleans()) for _ in ids],
            "owner": [draw(st.integers(0 if owned else -1, clients - 1)) for _ in ids],
        },
        "sources": {"ptr": ptr, "mask": [mask for row in rows for mask in row]},
        "changelogs": {"ptr": [0] * (len(ids) + 1), "mask": []},
    }


def as_objects(document: dict[str, Any], **options: Any) -> TaskProblem:
    columns, sources = document["tasks"], document["sources"]
    ids = [TaskId(*each) for each in zip(columns["subtopology"], columns["partition"], strict=True)]
    tasks = tuple(
        StreamsTask(
            id=task,
            stateful=True,
            sources=tuple(
                frozenset(str(rack) for rack in range(document["racks"]) if mask >> rack & 1)
                for mask in sources["mask"][start:end]
            ),
        )
        for task, (start, end) in zip(ids, pairwise(sources["ptr"]), strict=True)
    )
    clients = document["clients"]
    processes = tuple(
        TaskProcess(
            id=f"{number}",
            rack=str(rack),
            capacity=capacity,
            active=tuple(task for task, owner in zip(ids, columns["owner"], strict=True) if owner == number),
        )
        for number, (rack, capacity) in enumerate(zip(clients["rack"], clients["capacity"], strict=True))
    )
    return TaskProblem(tasks=tasks, processes=processes, **options)


def solve(document: dict[str, Any], counts: Any, balance: Any, costs: tuple[int, int]) -> ColumnResult:
    return optimal_columns(column_model(read_columns(document)), counts, balance, *costs)


@given(
    data=st.data(),
    bounds=st.sampled_from([(counts, balance) for counts in ("fixed", "free") for balance in ("none", "subtopology")]),
    racks=st.sampled_from((1, 3, 62, 63, 200)),
    sources=st.sampled_from((1, 3, 20)),
    costs=st.tuples(st.sampled_from((0, 1, 10)), st.sampled_from((0, 1, 10))),
)
@examples(300)
def test_columns_and_objects_cost_the_same(
    data: st.DataObject, bounds: tuple[str, str], racks: int, sources: int, costs: tuple[int, int]
) -> None:
    counts, balance = bounds
    document = data.draw(documents(owned=counts == "fixed", racks=racks, sources=sources))
    best = solve(document, counts, balance, costs)
    expected = optimal_tasks(
        as_objects(document, counts=counts, balance=balance, traffic_cost=costs[0], non_overlap_cost=costs[1])
    )
    assert (best.cost, best.lower_bound, best.optimal) == (expected.cost, expected.lower_bound, expected.optimal)
    assert price(document, best.client.tolist(), costs) == (best.cost, best.cross_rack, best.moved)
    assert bounds_broken(document, best.client.tolist(), counts, balance) == []
    assert solve(document, counts, balance, costs).client.tolist() == best.client.tolist()


def test_a_task_of_many_sources_is_told_apart_by_all_of_them() -> None:
    document = deepcopy(SMALL)
    document["sources"] = {"ptr": [0, 20, 20, 41], "mask": [1] * 19 + [2] + [2] * 20 + [1]}
    best = solve(document, "free", "none", (10, 1))
    assert price(document, best.client.tolist(), (10, 1)) == (best.cost, best.cross_rack, best.moved)
    assert best.client.tolist() == [0, 1, 1]
    assert best.cost == 10 + 10
