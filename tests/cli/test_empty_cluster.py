"""A cluster without topics has no traffic to measure: no zero is shown for it, and no remedy that would not help."""

from __future__ import annotations

import pytest

from agent.values.observation import GapCause, ObservationPart
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


def test_brokers_of_an_unknown_rack_have_null_in_the_json_of_status(here: Run, record: Record) -> None:
    status = here("status", "--replay", str(record(an_observation(_=(3,), a=(1, 4)))), "-o", "json").json
    assert {row["rack"]: row["brokers"] for row in status["brokers"]} == {None: [3], "a": [1, 4]}


def test_only_what_was_seen_to_be_empty_has_zero_traffic(here: Run, record: Record) -> None:
    empty, hidden = an_observation(), an_observation().gap(ObservationPart.TOPICS, GapCause.TIMED_OUT)
    figures = [
        here("status", "--replay", str(record(look)), "-o", "json").json["money"]["total"] for look in (empty, hidden)
    ]
    assert [one["bytes_per_s"] for one in figures] == [0.0, None]
