"""Builds the manual, the documents of docs/ as a site, into build/site.

`make docs` runs it.

Links of documents lead to files of the repository. Those outside of docs/ are copied beside the documents, below
``repository/``, so that no link of the site leads nowhere. Nothing is taken from a network, neither now nor by readers.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONFIG = Path(__file__).with_name("zensical.toml")
BUILD = ROOT / "build"
OTHERS = "repository"
"""The folder of the site for files that lie outside of docs/."""
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"^(```.*?^```[^\n]*\n)", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Build it; the exit code of the generator, which ends with an error at the first warning."""
    done = build(BUILD)
    if done.returncode == 0:
        site = BUILD / "site"
        serve = f"python3 -m http.server -d {site} --bind 127.0.0.1"
        sys.stdout.write(f"the manual is in {site}: open index.html, or serve it for its search: {serve}\n")
    else:
        sys.stderr.write(done.stdout + done.stderr)
    return done.returncode


def build(target: Path) -> subprocess.CompletedProcess[str]:
    """Stage the documents below ``target/manual`` and build ``target/site`` from them."""
    stage(target / "manual")
    shutil.rmtree(target / "site", ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    command = [str(zensical)] if zensical.exists() else [sys.executable, "-m", "zensical"]
    done = subprocess.run(
        [*command, "build", "--clean", "--strict", "-f", CONFIG.name],
        cwd=target / "manual", capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    if done.returncode == 0:
        shutil.move(target / "manual" / "site", target / "site")
    return done


def stage(folder: Path) -> None:
    """Copy the documents, with each link to a file outside of docs/ made one to a copy of it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(CONFIG, folder)
    waiting, staged = sorted(DOCS.rglob("*.md")), set[Path]()
    while waiting:
        source = waiting.pop()
        if source in staged:
            continue
        staged.add(source)
        place = folder / "docs" / place_of(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copy(source, place)
            continue
        text = source.read_text()
        place.write_text(relinked(text, source))
        waiting += [one for one in linked_files(text, source) if not one.is_relative_to(DOCS)]


def place_of(source: Path) -> Path:
    """The path of a file of the repository in the staged documents."""
    if source.is_relative_to(DOCS):
        return source.relative_to(DOCS)
    return Path(OTHERS) / source.relative_to(ROOT)


def linked_files(text: str, source: Path) -> Iterator[Path]:
    """Each file of the repository to which a document links."""
    for piece in _FENCED.split(text):
        if not piece.startswith("```"):
            for found in _LINK.finditer(piece):
                target = _file_of(found[3], source)
                if target is not None and target.is_file():
                    yield target


def relinked(text: str, source: Path) -> str:
    """The document with its links as they are in the site; a link to a folder becomes its text."""

    def link(found: re.Match[str]) -> str:
        target = _file_of(found[3], source)
        if target is None or (target.is_relative_to(DOCS) and source.is_relative_to(DOCS) and target.is_file()):
            return found[0]
        if target.is_dir():
            return found[2]
        path = os.path.relpath(place_of(target), place_of(source).parent)
        return f"{found[1]}[{found[2]}]({path}{found[4] or ''})"

    return "".join(piece if piece.startswith("```") else _LINK.sub(link, piece) for piece in _FENCED.split(text))


def _file_of(link: str, source: Path) -> Path | None:
    """The file or folder that a link names; None for an address of another kind, and for what does not exist."""
    if ":" in link:
        return None
    target = (source.parent / link).resolve()
    return target if target.exists() else None


if __name__ == "__main__":
    sys.exit(main())
