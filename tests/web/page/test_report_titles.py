"""The reports' view calls each table as the report itself calls it."""

from __future__ import annotations

import ast
from pathlib import Path

from agent.web.page.reports import SUMMARY, TITLES

SECTIONS = Path("pipeline/report").glob("sections*.py")


def titles_of_report() -> dict[str, str]:
    """Title by file of each ``ReportSection`` of the pipeline, read from its source."""
    found = {}
    for path in SECTIONS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ReportSection":
                words = {word.arg: word.value for word in node.keywords}
                found[f"{ast.literal_eval(words['name'])}.csv"] = ast.literal_eval(words["title"])
    return found


def test_each_table_has_the_title_of_its_section() -> None:
    titles = titles_of_report()
    assert len(titles) >= 13, "the sections are read"
    assert {name: title for name, title in TITLES.items() if name != SUMMARY} == titles
