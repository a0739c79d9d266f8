"""``plan --groups``: every group now, by its own assignor and at the optimum."""

from __future__ import annotations

from typing import Any

import pytest

from agent.cli import tables
from tests.builders import Answers, reader
from tests.cli.conftest import Record, Run


@pytest.fixture
def file(record: Record) -> str:
    """A group that its own assignor brings home, one its assignor would drive away, one of another assignor."""
    answers = Answers()
    for number, rack in enumerate("abc", 1):
        answers.broker(number, rack)
    answers.topic("orders", (1,), (2,), (3,))
    answers.group("astray", *(reader(f"m{n}", rack, f"orders-{n}") for n, rack in enumerate("cab")))
    answers.group("dealt", *(reader(f"m{n}", "abc"[-n], f"orders-{-n % 3}") for n in range(3)), assignor="roundrobin")
    answers.group("own", *(reader(f"m{n}", rack, f"orders-{n}") for n, rack in enumerate("cab")), assignor="mine")
    return str(record(answers))


def test_every_group_has_a_row_with_three_columns(file: str, here: Run) -> None:
    done = here("plan", "--replay", file, "--groups", "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    rows = {row["group"]: row for row in done.json}
    crossing = {
        name: [row[column] and row[column]["crossing"] for column in ("now", "own", "optimum")]
        for name, row in rows.items()
    }
    assert crossing == {"astray": [3, 0, 0], "dealt": [0, 2, 0], "own": [3, None, 0]}
    assert "Worth a rebalance by the thresholds" in rows["astray"]["worth"]
    assert rows["dealt"]["worth"] == "Not worth a rebalance: with its own assignor 2 more reads cross than now."
    assert rows["own"]["prediction"]["why_not"] == "rackwise does not have its assignor"


def test_a_table_shows_the_groups_below_the_proposals_and_json_only_when_asked(file: str, here: Run) -> None:
    table = here("plan", "--replay", file, "-o", "table")
    assert table.exit_code == 0
    assert "Rebalance astray once" in " ".join(table.stdout.split())
    assert "optimum" in table.stdout
    kinds = {row["kind"] for row in here("plan", "--replay", file, "-o", "json").json}
    assert kinds
    assert kinds <= {"trigger", "advise"}


def test_tasks_have_a_lag_with_units_and_what_is_the_same_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """An active task that runs has nothing to restore: its figure is a lag."""
    lag = {"low": 1409.0, "likely": 1409.0, "high": 1409.0}
    row: Any = {
        "role": "active", "role_certain": True, "lag_records": lag, "rate_records_per_s": None, "eta_s": lag,
        "task": "0_1", "source": "x",
    }  # fmt: skip
    cells = tables._task(row)
    assert (cells["changelog lag"], cells["records/s"], cells["time left"]) == ("1,409", None, "1,409 s")
    tables._below_in_table([cells] * 3, ("task", "records/s", "source"), every=False)
    assert capsys.readouterr().out.splitlines()[-1] == "of all 3: records/s: unknown; source: x"
