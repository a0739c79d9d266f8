"""What the generators of docs/reference share; `tests.docs.reference` writes all of its pages."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; bars within cells are escaped."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)])


def member_docs(module: Path, name: str) -> Mapping[str, str]:
    """Member of an enum -> the docstring below it, for those that have one."""
    tree = ast.parse(module.read_text())
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    docs: dict[str, str] = {}
    for node, after in zip(found.body, [*found.body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            docs[node.targets[0].id] = str(text).replace("``", "`")
    return docs


def write(name: str, text: str) -> None:
    """Write a page of docs/reference."""
    (FOLDER / name).write_text(text)
