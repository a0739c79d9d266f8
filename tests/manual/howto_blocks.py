"""Which commands of a document are run, and what they must come to: marks before the blocks of code.

A mark is a comment of HTML in the line before a block of ``sh``::

    <!-- run -->                          every command of the block succeeds
    <!-- run; shows: "TEXT" -->           and its output has the text
    <!-- run; until: "TEXT" -->           the block is run again until its output has the text
    <!-- run; never: "TEXT" -->           the output does not have it
    <!-- run; exit: any -->               it may fail
    <!-- run; clone -->                   it is run at the top of the clone
    <!-- run; last -->                    run after all documents
    <!-- drill; ... -->                   the same, in the drill alone: it takes minutes
    <!-- drill; grow -->                  the application gets one more instance after it
    <!-- drill; joins -->                 a member joins the group before it (``leaves``: that one leaves)

A block without a mark is not run: it needs what the reader has, and the page says so around it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^(?:<!-- ((?:run|drill)\b[^\n]*?) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r'(shows|until|never): "([^"]+)"')


class HowToBlock(NamedTuple):
    """One block of commands with its mark."""

    document: str
    line: int
    text: str
    mark: str

    @property
    def drilled(self) -> bool:
        return self.mark.startswith("drill")

    @property
    def run(self) -> bool:
        return bool(self.mark)

    @property
    def last(self) -> bool:
        return "; last" in self.mark

    @property
    def in_clone(self) -> bool:
        return "; clone" in self.mark

    @property
    def may_fail(self) -> bool:
        return "exit: any" in self.mark

    def texts(self, word: str) -> list[str]:
        """What the output must have (``shows``), must come to have (``until``) or must not have (``never``)."""
        return [text for one, text in _WORD.findall(self.mark) if one == word]

    @property
    def place(self) -> str:
        return f"docs/{self.document}:{self.line}"


def blocks(document: str) -> list[HowToBlock]:
    """Each block of ``sh`` of a document in docs/, in order."""
    text = (DOCS / document).read_text()
    return [
        HowToBlock(document, text.count("\n", 0, found.start(3)) + 1, found[3], found[1] or "")
        for found in _BLOCK.finditer(text)
        if found[2] == "sh"
    ]


def documents() -> list[str]:
    """Every document with a block that is run, the five-minute start first."""
    found = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if any(b.run for b in _safe(path))]
    return sorted(found, key=lambda name: (name != "start.md", name))


def _safe(path: Path) -> list[HowToBlock]:
    return blocks(path.relative_to(DOCS).as_posix())
