"""The manual: every document has its place, every link leads somewhere, and the site is built without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.catalogue import catalogue
from deploy.manual.build import CONFIG, build
from tests.cli.documents import commands
from tests.docs.reference_pages import FOLDER as REFERENCE
from tests.manual import howto_blocks
from tests.manual.links import ROOT, DocumentLink, anchors, documents, links, pictures, prose

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
SETTINGS = {entry.name for entry in catalogue()}


def named_in(nav: Any) -> Iterator[str]:
    """The documents of a navigation."""
    match nav:
        case str():
            yield nav
        case list():
            for one in nav:
                yield from named_in(one)
        case dict():
            for one in nav.values():
                yield from named_in(one)


def test_every_document_has_one_place_in_the_navigation() -> None:
    project = tomllib.loads(CONFIG.read_text())["project"]
    assert Counter(named_in(project["nav"])) == Counter(PAGES)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower(), done.stdout + done.stderr
    return folder / "site"


def test_the_site_has_a_page_for_every_document(site: Path) -> None:
    missing = [name for name in PAGES if not (site / Path(name).with_suffix(".html")).exists()]
    assert missing == []


def test_no_page_asks_another_host(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']?((?:https?:)?//[^\"' >]+)"
                       r"|<link\b(?![^>]*canonical)[^>]*\bhref=[\"']?((?:https?:)?//[^\"' >]+)")  # fmt: skip
    asked = {found for page in site.rglob("*.html") for found in loads.findall(page.read_text())}
    sheets = "\n".join(sheet.read_text() for sheet in site.rglob("*.css"))
    styles = set(re.findall(r"url\([\"']?((?:https?:)?//[^)]+)", sheets))
    assert (asked, styles) == (set(), set())


def test_no_link_of_the_site_leads_nowhere(site: Path) -> None:
    gone = {
        f"{page.relative_to(site)}: {target}"
        for page in site.rglob("*.html") if page.name != "404.html"
        for target in re.findall(r"<a\b[^>]*\bhref=[\"']?([^\"'#> ]+)", page.read_text())
        if ":" not in target and not (page.parent / target).exists()
    }  # fmt: skip
    assert gone == set()


@pytest.mark.parametrize("document", documents(), ids=lambda one: str(one.relative_to(ROOT)))
def test_every_link_and_anchor_leads_somewhere(document: Path) -> None:
    assert [str(link) for link in links(document) if not leads(link)] == []


def leads(link: DocumentLink) -> bool:
    """True for a file that exists and, with an anchor, has that heading; addresses of others are not asked."""
    if "://" in link.target or link.target.startswith("mailto:"):
        return True
    path, _, anchor = link.target.partition("#")
    file = (link.document.parent / path).resolve() if path else link.document
    if not file.exists() or not file.is_relative_to(ROOT):
        return False
    return not anchor or (file.suffix == ".md" and anchor in anchors(file))


@pytest.mark.parametrize("document", documents(), ids=lambda one: str(one.relative_to(ROOT)))
def test_every_picture_has_a_text_in_its_place(document: Path) -> None:
    assert [target for text, target in pictures(document) if len(text) < 20] == []


def test_every_picture_of_the_manual_is_used_and_has_a_title() -> None:
    used = {Path(target).name for document in documents() for _, target in pictures(document)}
    drawn = {path.name for path in (DOCS / "pictures").glob("*.svg")}
    assert drawn - used == set()
    assert [name for name in drawn if "<title" not in (DOCS / "pictures" / name).read_text()] == []


OWN = {name.split(".")[0] for name in SETTINGS} - {"kafka", "acceptable", "max", "num", "mode", "task", "cluster"}
NO_SETTINGS = re.compile(
    r"rackwise\.|.*\.(?:md|py|json|jsonl|ya?ml|toml|csv|service|secret|key|pem|properties|svg|sh|log)$"
)
DOTTED = re.compile(r"(?<![\w./<-])([a-z_]+(?:\.[a-z_<>*…]+)+)(?:=\S*)?(?![\w(])")
_CHOSEN = re.compile(r"\.?<.+?>(?=\.|$)")
OTHERS = {"spark.driver.memory", "spark.jars"}
"""Names of others that begin as a section of rackwise's settings does."""


@pytest.mark.parametrize("name", PAGES)
def test_every_setting_that_is_named_exists(name: str) -> None:
    spelled = {
        found
        for code in re.findall(r"`([^`\n]+)`", prose(DOCS / name))
        if re.fullmatch(r"[a-z_.<>*…]+(?:[=:] ?\S+)?", code)
        for found in DOTTED.findall(code)
        if found.split(".")[0] in OWN and not NO_SETTINGS.match(found) and found not in OTHERS
    }
    assert sorted(one for one in spelled if not is_setting(one)) == []


def is_setting(name: str) -> bool:
    """A setting, a section of them, or several by a star or an ellipsis; what a reader names is left out."""
    plain = _CHOSEN.sub("", name)
    shown = re.escape(plain.rstrip(".…*")).replace(r"\*", "[^.]+")
    whole = "" if name[-1] in "…*" else r"(?:$|\.)"
    return any(re.match(rf"{shown}{whole}", _CHOSEN.sub("", one)) for one in SETTINGS)


HOW_TOS = sorted(path.relative_to(DOCS).as_posix() for path in (*(DOCS / "howto").glob("*.md"), DOCS / "start.md"))


@pytest.mark.parametrize("document", HOW_TOS)
def test_the_commands_of_a_how_to_are_a_shells_and_those_of_rackwise_exist(document: str) -> None:
    names = {name for name, _ in commands()}
    bash = shutil.which("bash")
    assert bash is not None
    for block in howto_blocks.blocks(document):
        read = subprocess.run([bash, "-n"], input=block.text, text=True, capture_output=True, check=False)
        assert read.returncode == 0, f"{block.place}: {read.stderr}"
        for words in re.findall(r"(?:^|[|&;(]|\$\() *rackwise ([a-z]+(?: [a-z]+)?)", block.text, re.MULTILINE):
            assert words in names or words.split()[0] in names, f"{block.place}: {words}"
        for line in re.findall(r"(?:^|\$\() *(rackwise [^\n|&;)>]+)", block.text, re.MULTILINE):
            assert_options(line, names, block.place)


def assert_options(line: str, names: set[str], place: str) -> None:
    """Each option of a command is one that it has; the options before the command are the application's own."""
    line = re.sub(r"^rackwise --agent \S+ ", "rackwise ", line)
    two = " ".join(line.split()[1:3])
    name = two if two in names else two.split()[0]
    known = {option for one, command in commands() if one == name for of in command.params for option in of.opts}
    used = re.findall(r"(?<!\S)(-{1,2}[a-z][a-z-]*)", line)
    assert [option for option in used if option not in known] == [], f"{place}: {line}"


def test_the_readme_is_short_and_what_it_shows_is_there() -> None:
    readme = ROOT / "README.md"
    assert len(readme.read_text().splitlines()) <= 150


def test_the_reference_is_linked_from_the_manual() -> None:
    every = [link for document in documents() for link in links(document)]
    linked = {(link.document.parent / link.target.partition("#")[0]).resolve() for link in every}
    assert [path.name for path in REFERENCE.glob("*.md") if path.resolve() not in linked] == []
