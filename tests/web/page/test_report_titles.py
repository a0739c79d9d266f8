"""The reports' view calls each table as the report itself calls it."""

from __future__ import annotations

from agent.web.page.reports import TITLES
from pipeline.report.compose import compose
from tests.pipeline.report_facts import many_facts


def test_each_table_has_the_title_of_its_section() -> None:
    report = compose(many_facts()._replace(bill=(("2025-11-21", 2.0),)))
    assert {f"{section.name}.csv": section.title for section in report.sections} == TITLES
