"""Public functions whose docstring is missing, or leaves out an error that the function itself raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs import house
from tests.docs.flow import ROOT

_Function = ast.FunctionDef | ast.AsyncFunctionDef
CONTROL = {"Exit", "Abort", "StopIteration", "NotImplementedError", "AssertionError"}
"""Raised to end a command or by a defect of the caller: no error that a caller handles."""


class Undocumented(NamedTuple):
    """A public function and what its docstring lacks."""

    place: str
    lacks: str


def undocumented() -> Iterator[Undocumented]:
    """Every such function of the product, in the order of files and lines."""
    for place in house.PRODUCT:
        for path in house.files(place):
            yield from undocumented_in(path.relative_to(ROOT), house.tree_of(path))


def undocumented_in(path: Path, tree: ast.Module) -> Iterator[Undocumented]:
    """Every such function of one module."""
    for function in _public(tree):
        if _is_command(function):  # its docstring is its help, and exit codes are below all help
            continue
        text = ast.get_docstring(function)
        place = f"{path}:{function.lineno} {function.name}"
        errors = sorted(set(_raised(function)) - CONTROL)
        if text is None:
            yield Undocumented(place, "a docstring")
        elif errors and "raise" not in text.lower():
            yield Undocumented(place, f"Raises {', '.join(errors)}")


def _public(node: ast.Module | ast.ClassDef) -> Iterator[_Function]:
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from _public(child)
        elif isinstance(child, _Function) and not child.name.startswith("_"):
            yield child


def _is_command(function: _Function) -> bool:
    """Whether typer runs it: by a decorator, or by options of its own."""
    decorators = {ast.unparse(one).rpartition(".")[2].partition("(")[0] for one in function.decorator_list}
    return bool(decorators & {"command", "callback", "expanded"}) or "typer." in ast.unparse(function.args)


def _raised(function: _Function) -> Iterator[str]:
    """Names of the exceptions that its own statements raise and no `except` of its own catches."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, (_Function, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Try):
            todo += [*(node.handlers), *node.orelse, *node.finalbody]
            if not node.handlers:
                todo += node.body
            continue
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = raised.attr if isinstance(raised, ast.Attribute) else getattr(raised, "id", "")
            if name[:1].isupper():
                yield name
        todo += ast.iter_child_nodes(node)
