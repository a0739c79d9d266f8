"""Which mutants are run: those that change more than a sentence's text, in an order that the seed decides."""

from __future__ import annotations

import ast
import hashlib
import heapq
import textwrap
from collections.abc import Iterable
from typing import NamedTuple


class Mutant(NamedTuple):
    """One changed statement of one function."""

    name: str
    """As mutmut calls it: module, function, number."""
    change: str
    """``module.function: old -> new``, the same wherever else the module changes."""


def mutant(name: str, old: str, new: str) -> Mutant | None:
    """Return the mutant that makes ``new`` of a function ``old``; None where it behaves alike but for its texts."""
    before, after = _tree(old), _tree(new)
    if ast.dump(_Behaviour().visit(_tree(old))) == ast.dump(_Behaviour().visit(_tree(new))):
        return None
    return Mutant(name, f"{function(name)}: {_difference(ast.unparse(before), ast.unparse(after))}")


def drawn(mutants: Iterable[Mutant], seed: int, count: int) -> list[Mutant]:
    """Return ``count`` mutants; one stays in the sample of its seed while code elsewhere changes."""
    return heapq.nsmallest(count, mutants, key=lambda each: (_rank(seed, each.change), each.name))


def function(name: str) -> str:
    """Return ``module.function`` or ``module.Class.function`` of a mutant's name."""
    module, _, mangled = name.partition("__mutmut_")[0].rpartition(".")
    return f"{module}.{mangled.removeprefix('x_').removeprefix('xǁ').replace('ǁ', '.')}"


def explained(text: str) -> dict[str, str]:
    """Return change -> reason of ``survivors.txt``: the change on a line of its own, below it its reason, indented."""
    reasons: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith(" "):
            reasons[next(reversed(reasons))] += line.strip()
        elif line and not line.startswith("#"):
            reasons[line] = ""
    return reasons


def _rank(seed: int, change: str) -> bytes:
    return hashlib.sha256(f"{seed} {change}".encode()).digest()


def _tree(source: str) -> ast.Module:
    tree = ast.parse(textwrap.dedent(source))
    for each in tree.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            each.name = "function"
    return tree


def _difference(old: str, new: str) -> str:
    """Return the statements that differ, old and new; a statement is one line here."""
    before, after = old.splitlines(), new.splitlines()
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    return f"{_joined(before)} -> {_joined(after)}"


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


class _Behaviour(ast.NodeTransformer):
    """Takes out what the tests of behaviour leave to others.

    Texts of several words are guarded by the golden list of sentences. ``strict`` of zip is an assertion about the
    code itself.
    """

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("a text") if isinstance(node.value, str) and " " in node.value.strip() else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        return self.generic_visit(node)
