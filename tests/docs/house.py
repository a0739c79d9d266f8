"""The figures of the code's structure, read off the syntax trees. Print them: python -m tests.docs.house

Definitions:

- A *room* is a package or a loose module directly in agent/ (`__init__.py` is the package's own, no room).
- An *arrow* A -> B says that some file of room A imports something of room B, at any depth and in any block: imports
  inside functions and under TYPE_CHECKING count. Each pair of rooms counts once.
- A *circle* is a set of two rooms or more that reach each other along arrows.
- A room stands one *floor* above the highest room that it imports; a circle of n rooms is n floors high.
- A class *name used more than once* is counted as the share of public class definitions whose name another one bears.
- A *one-word* class name is a public class name with a single capitalized word (`Plan`, not `PlanContext`).
- A function's length is its lines from `def` to its last line; p90 is the length that 90 % of functions do not exceed.
- A function's complexity is McCabe's: one, and one for each branch, loop, handler, condition, case, and further operand
  of and/or.
- *Product lines* are the lines of all Python and Java files of the product, the test bed among them wherever it lies.

`python -m tests.docs.house --lower` lowers the bounds in house_bounds.json that the code has passed, and raises none.
Rooms, arrows, files and lines grow with what the product does: a new part of it raises their bounds by hand, and their
goals are of the agent without pages, API and notifications.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx

ROOT = Path(__file__).parents[2]
BOUNDS = Path(__file__).with_name("house_bounds.json")
PRODUCT = ("agent", "assignors", "config", "pipeline", "testbed")
PLUGINS = "jvm/src/main"
CAPITALIZED = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]+")
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.comprehension)


class Arrow(NamedTuple):
    """One import that leads from a room to another, as `A -> B: file imports module`."""

    source: str
    target: str
    file: str
    module: str


def figures() -> dict[str, float]:
    """Each figure of the house by its name; less is better in all of them."""
    names, named_in_agent = class_names(*PRODUCT), class_names("agent")
    lengths, complexities = zip(*functions(), strict=True)
    rooms = graph()
    return {
        "circles of packages in agent/": len(circles(rooms)),
        "floors of agent/": floors(rooms),
        "rooms of agent/": len(rooms),
        "arrows between rooms of agent/": rooms.number_of_edges(),
        "loose files in agent/": len(loose_files()),
        "Python files of agent/": len(files("agent")),
        "class names used more than once in agent/, % of definitions": shared(named_in_agent),
        "class names used more than once, % of definitions": shared(names),
        "one-word class names in agent/, %": one_word(named_in_agent),
        "one-word class names, %": one_word(names),
        "p90 of function lengths, lines": sorted(lengths)[len(lengths) * 9 // 10],
        "mean complexity of functions": round(sum(complexities) / len(complexities), 2),
        "product lines": sum(path.read_text().count("\n") for path in product_files()),
    }


@cache
def files(place: str) -> tuple[Path, ...]:
    """Each Python file of a folder of the repository, sorted."""
    return tuple(sorted((ROOT / place).rglob("*.py")))


def product_files() -> list[Path]:
    """Each source file of the product, Java among them."""
    places = (*PRODUCT, PLUGINS)
    return [path for place in places for path in (*files(place), *sorted((ROOT / place).rglob("*.java")))]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def loose_files() -> list[str]:
    """The modules that lie in agent/ outside of each package; `__main__` and `errors` among them."""
    return [path.name for path in files("agent") if path.parent.name == "agent" and path.name != "__init__.py"]


def graph() -> nx.DiGraph[str]:
    """The rooms of agent/ with an edge for each pair in which the first imports the second."""
    rooms: nx.DiGraph[str] = nx.DiGraph()
    rooms.add_nodes_from(room for path in files("agent") if (room := room_of_path(path)))
    rooms.add_edges_from((arrow.source, arrow.target) for arrow in arrows())
    return rooms


def arrows() -> Iterator[Arrow]:
    """Each import of agent/ from a room into another."""
    for path in files("agent"):
        source = room_of_path(path)
        for module in imported(tree_of(path), path):
            target = room_of_module(module)
            if source and target and source != target:
                yield Arrow(source, target, str(path.relative_to(ROOT)), module)


def imported(tree: ast.Module, path: Path) -> Iterator[str]:
    """The dotted names that a module imports; `a.b` for `from a import b`, whether b is a module or a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            base = ".".join([*home, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def room_of_path(path: Path) -> str | None:
    """The room a file of agent/ lies in; None for the package's own `__init__`."""
    first = path.relative_to(ROOT / "agent").parts[0]
    return None if first == "__init__.py" else first.removesuffix(".py")


def room_of_module(module: str) -> str | None:
    """The room that a dotted name leads to; None outside of agent/."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    here = ROOT / "agent" / room
    return room if package == "agent" and room and (here.is_dir() or here.with_suffix(".py").exists()) else None


def circles(rooms: nx.DiGraph[str]) -> list[list[str]]:
    """The sets of rooms that reach each other, the largest first."""
    found = [sorted(circle) for circle in nx.strongly_connected_components(rooms) if len(circle) > 1]
    return sorted(found, key=lambda circle: (-len(circle), circle))


def floors(rooms: nx.DiGraph[str]) -> int:
    """The number of rooms that stand on each other, a circle with all of its rooms."""
    condensed = nx.condensation(rooms)
    height: dict[int, int] = {}
    for circle in reversed(list(nx.topological_sort(condensed))):
        below = max((height[other] for other in condensed.successors(circle)), default=0)
        height[circle] = below + len(condensed.nodes[circle]["members"])
    return max(height.values())


def class_names(*places: str) -> list[str]:
    """The name of each public class definition, as often as it is defined."""
    trees = (tree_of(path) for place in places for path in files(place))
    found = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return [node.name for node in found if not node.name.startswith("_")]


def shared(names: list[str]) -> float:
    """The share of definitions, in %, whose name another definition bears as well."""
    times = Counter(names)
    return round(100 * sum(times[name] > 1 for name in names) / len(names), 1)


def one_word(names: list[str]) -> float:
    """The share of definitions, in %, whose name is one word."""
    return round(100 * sum(len(CAPITALIZED.findall(name)) == 1 for name in names) / len(names), 1)


def functions() -> Iterator[tuple[int, int]]:
    """Length in lines and complexity of each function and method of the product."""
    for place in PRODUCT:
        for path in files(place):
            for node in ast.walk(tree_of(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield (node.end_lineno or node.lineno) - node.lineno + 1, complexity(node)


def complexity(function: ast.AST) -> int:
    """McCabe's number of a function; functions inside it count for themselves."""
    return 1 + sum(weight(node) for node in own_nodes(function))


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield node
            yield from own_nodes(node)


def weight(node: ast.AST) -> int:
    match node:
        case ast.BoolOp():
            return len(node.values) - 1
        case ast.Match():
            return len(node.cases)
        case ast.comprehension():
            return 1 + len(node.ifs)
    return int(isinstance(node, BRANCHES))


def read_bounds() -> dict[str, dict[str, float]]:
    """Of each figure its bound, the goal, and the margin by which the code may be better before the bound must fall."""
    bounds: dict[str, dict[str, float]] = json.loads(BOUNDS.read_text())
    return bounds


def lower(bounds: dict[str, dict[str, float]], counted: dict[str, float]) -> dict[str, dict[str, float]]:
    """The bounds with those lowered that the code has passed by more than their margin, of which half stays as room."""
    return {
        name: {**bound, "bound": round(counted[name] + bound["margin"] / 2, 2)}
        if counted[name] < bound["bound"] - bound["margin"]
        else bound
        for name, bound in bounds.items()
    }


def table(bounds: dict[str, dict[str, float]], counted: dict[str, float]) -> str:
    """The figures with their bounds and goals, for a person."""
    rows = [("", "now", "bound", "goal")]
    rows += [
        (name, f"{value:,g}", f"{bounds[name]['bound']:,g}", f"{bounds[name]['goal']:,g}")
        if value < 1e6
        else (name, f"{value:,.0f}", f"{bounds[name]['bound']:,.0f}", f"{bounds[name]['goal']:,.0f}")
        for name, value in counted.items()
    ]
    return "\n".join(f"{name:<62}{now:>10}{bound:>10}{goal:>10}" for name, now, bound, goal in rows)


def main() -> None:
    counted = figures()
    bounds = read_bounds()
    if "--lower" in sys.argv:
        bounds = lower(bounds, counted)
        BOUNDS.write_text(json.dumps(bounds, indent=2) + "\n")
    print(table(bounds, counted))
    for circle in circles(graph()):
        print("\ncircle: " + ", ".join(circle))
        within = [arrow for arrow in arrows() if {arrow.source, arrow.target} <= set(circle)]
        for (source, target), times in sorted(Counter((a.source, a.target) for a in within).items()):
            print(f"  {source} -> {target}: {times}")


if __name__ == "__main__":
    main()
