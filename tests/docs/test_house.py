"""The code's structure is not worse than its bounds: a ratchet over the figures of tests/docs/house.py."""

from __future__ import annotations

import ast

import networkx as nx
import pytest

from tests.docs import house

BOUNDS = house.read_bounds()


@pytest.fixture(scope="module")
def counted() -> dict[str, float]:
    return house.figures()


def test_each_figure_has_a_bound_and_each_bound_a_figure(counted: dict[str, float]) -> None:
    assert list(BOUNDS) == list(counted)


@pytest.mark.parametrize("name", BOUNDS)
def test_no_figure_of_the_house_is_worse_than_its_bound(counted: dict[str, float], name: str) -> None:
    assert counted[name] <= BOUNDS[name]["bound"], (
        f"{name}: {counted[name]:g}, and the bound is {BOUNDS[name]['bound']:g}. `make house` shows where"
    )


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_falls_with_its_figure(counted: dict[str, float], name: str) -> None:
    bound = BOUNDS[name]
    assert counted[name] >= bound["bound"] - bound["margin"], (
        f"{name}: {counted[name]:g} is better than the bound of {bound['bound']:g}. "
        "Lower it: python -m tests.docs.house --lower"
    )


def test_lowering_never_raises_a_bound() -> None:
    bound = {"bound": 50.0, "goal": 0.0, "margin": 10.0}
    lowered = house.lower(
        dict.fromkeys(("better", "a little", "worse"), bound), {"better": 30, "a little": 41, "worse": 90}
    )
    assert [bound["bound"] for bound in lowered.values()] == [35, 50, 50]


def rooms_of(*arrows: tuple[str, str]) -> nx.DiGraph[str]:
    return nx.DiGraph(list(arrows))


def test_a_room_stands_above_all_that_it_imports() -> None:
    assert house.floors(rooms_of(("c", "b"), ("b", "a"), ("c", "a"))) == 3


def test_a_circle_is_as_high_as_it_has_rooms() -> None:
    rooms = rooms_of(("c", "b"), ("b", "a"), ("a", "b"), ("a", "ground"))
    assert house.circles(rooms) == [["a", "b"]]
    assert house.floors(rooms) == 4


@pytest.mark.parametrize(
    ("code", "number"),
    [
        pytest.param("def f(): return 1", 1, id="a straight line"),
        pytest.param("def f(a):\n if a: return 1\n elif a > 2: return 2\n return 3", 3, id="two branches"),
        pytest.param("def f(a): return a and a > 1 and a > 2", 3, id="three operands"),
        pytest.param("def f(a): return [b for b in a if b]", 3, id="a comprehension with a condition"),
        pytest.param("def f(a):\n match a:\n  case 1: return 1\n  case _: return 2", 3, id="two cases"),
        pytest.param("def f(a):\n def g():\n  if a: return 1\n return g", 1, id="a branch of an inner function"),
    ],
)
def test_complexity_is_mccabe_s(code: str, number: int) -> None:
    assert house.complexity(ast.parse(code).body[0]) == number


def test_imports_inside_functions_and_relative_ones_count() -> None:
    code = "def f():\n from agent.plan import make\n from . import record_trust\n import agent.wire.pool"
    path = house.ROOT / "agent" / "journal" / "entries.py"
    assert list(house.imported(ast.parse(code), path)) == [
        "agent.plan.make",
        "agent.journal.record_trust",
        "agent.wire.pool",
    ]


def test_a_shared_name_counts_with_each_of_its_definitions() -> None:
    assert house.shared(["Plan", "Plan", "GuardContext", "KIPBound"]) == 50
    assert house.one_word(["Plan", "Plan", "GuardContext", "KIPBound"]) == 50
