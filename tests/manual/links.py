"""Links, anchors and pictures of the documents, read off their Markdown without a network."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"^```.*?^```[^\n]*$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_MARKUP = re.compile(r"`|\*\*?|\[([^]]*)\]\([^)]*\)")


class DocumentLink(NamedTuple):
    """A link or picture of a document."""

    document: Path
    picture: bool
    text: str
    target: str

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}: {self.target}"


def documents() -> list[Path]:
    """Every document that people read in the repository."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    return sorted(found)


@cache
def prose(document: Path) -> str:
    """The document without its blocks of code."""
    return _CODE.sub("", document.read_text())


def links(document: Path) -> Iterator[DocumentLink]:
    """Each link and picture outside of code."""
    for found in _LINK.finditer(_INLINE.sub(lambda code: "`" * len(code[0]), prose(document))):
        yield DocumentLink(document, bool(found[1]), found[2], found[3])


def pictures(document: Path) -> Iterator[tuple[str, str]]:
    """Alternative text and file of each picture, in Markdown and in HTML."""
    for link in links(document):
        if link.picture:
            yield link.text, link.target
    for tag in re.findall(r"<img\b[^>]*>", prose(document)):
        alt, source = re.search(r'alt="([^"]*)"', tag), re.search(r'src="([^"]*)"', tag)
        yield alt[1] if alt else "", source[1] if source else ""


@cache
def anchors(document: Path) -> frozenset[str]:
    """Anchors of headings that the manual and a forge of Git give alike."""
    headings = [_MARKUP.sub(r"\1", found).strip() for found in _HEADING.findall(prose(document))]
    return frozenset(_numbered(map(_slug_of_manual, headings))) & frozenset(
        _numbered(map(_slug_of_forge, headings), "-")
    )


def _slug_of_manual(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def _slug_of_forge(heading: str) -> str:
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower()))


def _numbered(slugs: Iterator[str], joint: str = "_") -> Iterator[str]:
    """A second heading of a name gets a number: ``_1`` in the manual, ``-1`` in a forge."""
    seen: Counter[str] = Counter()
    for slug in slugs:
        yield f"{slug}{joint}{seen[slug]}" if seen[slug] else slug
        seen[slug] += 1
