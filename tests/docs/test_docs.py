"""The documents say what the code is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.flow import FLOW, ROOT, SECTIONS, first_line, modules, with_file_map
from tests.docs.house import PRODUCT, files
from tests.docs.tables import TABLES, with_tables


def test_the_file_map_of_the_flow_is_the_present_one():
    document = FLOW.read_text()
    assert with_file_map(document) == document, "write it anew: python -m tests.docs.flow"


def test_each_module_of_the_product_is_in_the_file_map():
    text = (ROOT / "docs" / "flow.md").read_text()
    paths = (path for place in PRODUCT for path in files(place) if path.name != "__init__.py")
    assert [name for path in paths if f"`{(name := str(path.relative_to(ROOT)))}`" not in text] == []


def test_the_flow_names_the_nine_stages_in_their_order():
    named = re.findall(r"^### (\d)\. (\w+)", FLOW.read_text(), re.MULTILINE)
    assert named == [
        (str(number), stage)
        for number, stage in enumerate(
            ("observe", "decode", "model", "detect", "plan", "propose", "guard", "act", "record"), start=1
        )
    ]


@pytest.mark.parametrize(
    "module", [m for _, _, places in SECTIONS for place in places for m in modules(ROOT / place)], ids=lambda m: m.stem
)
def test_every_module_says_which_question_it_answers(module: Path):
    assert len(first_line(module)) > 15


@pytest.mark.parametrize("document", sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))), ids=lambda d: d.name)
def test_links_between_documents_lead_somewhere(document: Path):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text())
    assert [link for link in links if "://" not in link and not (document.parent / link).exists()] == []


def test_the_tables_of_the_pipeline_are_those_of_its_schemas():
    document = TABLES.read_text()
    assert with_tables(document) == document, "write it anew: python -m tests.docs.tables"


def test_no_module_is_longer_than_it_reads_well():
    long = {
        str(path.relative_to(ROOT)): lines
        for package in ("agent", "assignors", "config", "pipeline", "testbed", "tests")
        for path in (ROOT / package).rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > 450
    }
    assert long == {}
