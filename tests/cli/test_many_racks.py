"""Members may claim any number of racks; the answer stays short, and no claim hides a rack of brokers."""

from __future__ import annotations

import pytest

from tests.builders import an_observation, consumer
from tests.cli.conftest import Record, Run


@pytest.fixture
def claims(record: Record) -> str:
    answers = an_observation(x=(1,), y=(2,)).topic("t", (1, 2))
    members = (consumer(f"m{number}", f"claim-{number:04}", "t-0" if number == 0 else "") for number in range(1_000))
    return str(record(answers.kip848("g", *members)))


def test_a_thousand_racks_take_a_few_hundred_lines(here: Run, claims: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    shown = here("racks", "-o", "table", "--replay", claims)
    assert len(shown.stdout.splitlines()) < 300
    assert "and 982 more racks: --all or -o json" in shown.stdout
    whole = here("racks", "-o", "table", "--all", "--replay", claims)
    assert "more racks" not in whole.stdout
    assert "claim-0999 is known from client.rack (1)" in whole.stdout


def test_racks_of_brokers_come_before_those_that_members_claim(here: Run, claims: str) -> None:
    rows = here("racks", "-o", "json", "--replay", claims).json
    assert [row["rack"] for row in rows[:3]] == ["x", "y", "claim-0000"]
    assert len(rows) == 1_002
    table = here("racks", "-o", "table", "--replay", claims).stdout
    assert "losing x: " in table
    assert "losing y: " in table
