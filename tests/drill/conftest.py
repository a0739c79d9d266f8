"""The table of all drills at the end of the run."""

from __future__ import annotations

import pytest

from tests.drill.harness import OUTCOMES, table


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if OUTCOMES:
        terminalreporter.section("drills")
        for line in table(OUTCOMES):
            terminalreporter.write_line(line)
