"""A cluster without topics has no traffic to measure: no zero is shown for it, and no remedy that would not help."""

from __future__ import annotations

import pytest

from tests.builders import an_observation
from tests.cli.conftest import Record, Run


@pytest.mark.parametrize("command", ["status", "racks"])
def test_nothing_is_measured_where_no_topic_is(here: Run, record: Record, command: str) -> None:
    shown = here(command, "--replay", str(record(an_observation())), "-o", "table").stdout
    assert "rates: nothing to measure, as no topic was seen" in shown
    for untrue in ("0 B/s", "$0.00", "--for", "0 -> 0"):
        assert untrue not in shown, untrue


def test_rows_of_status_have_their_units(here: Run, record: Record) -> None:
    shown = here("status", "--replay", str(record(an_observation())), "-o", "table").stdout
    rows = dict(line.split(maxsplit=1) for line in shown.splitlines() if line.startswith("took"))
    assert rows["took"].endswith(" ms")
    assert "parts not seen" in shown
