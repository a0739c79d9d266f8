"""The report of some facts: its first line, its sections in their order, its notes."""

from __future__ import annotations

from pipeline.report import notes
from pipeline.report.document import ReportDocument
from pipeline.report.facts import ReportFacts
from pipeline.report.first import first_line
from pipeline.report.sections_cost import cost_section, ledger_section, locality_section
from pipeline.report.sections_proposals import error_section, outcome_section, standing_section
from pipeline.report.sections_work import drift_section, rebalance_section, restore_section, warmup_section

_SECTIONS = (
    standing_section,
    cost_section,
    ledger_section,
    locality_section,
    warmup_section,
    restore_section,
    rebalance_section,
    drift_section,
    outcome_section,
    error_section,
)


def compose(facts: ReportFacts) -> ReportDocument:
    """Everything in its place; equal facts give an equal report."""
    return ReportDocument(
        title="What crosses racks, what it costs, and what to do",
        first=first_line(facts),
        about=notes.about(facts),
        sections=tuple(section(facts) for section in _SECTIONS),
        notes=notes.notes(facts),
    )
