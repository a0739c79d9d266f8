"""While groups rebalance their members show no racks and no assignments: no command is silent about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.loop import CycleStages, run_cycle
from agent.values.cycle import sentence
from agent.values.limits import Limits
from agent.values.memory import Memory
from tests.builders import an_observation, reader
from tests.cli.conftest import Record, Run


@pytest.fixture
def file(record: Record) -> Path:
    answers = an_observation().topic("orders", (1, 2, 3), (2, 3, 1))
    for name in ("ok", "wrong"):
        members = reader(f"{name}1", "a", "orders-0"), reader(f"{name}2", "b", "orders-1")
        answers.group(name, *members, state="PreparingRebalance")
    return record(answers)


def test_status_names_the_groups_and_finds_nothing_only_as_far_as_was_seen(file: Path, here: Run) -> None:
    shown = here("status", "--replay", str(file), "-o", "table")
    rows = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines() if line.startswith("rebalancing"))
    assert rows == {"rebalancing": "ok, wrong: no racks or assignments of members shown"}
    assert "no findings in one look, as far as was seen (groups: rebalancing)\n" in shown.stderr
    assert here("status", "--replay", str(file), "-o", "json").json["rebalancing_groups"] == ["ok", "wrong"]


def test_plan_proposes_nothing_only_as_far_as_was_seen(file: Path, here: Run) -> None:
    shown = here("plan", "--replay", str(file), "-o", "table").stderr
    assert "no proposals, as far as was seen (groups: rebalancing)\n" in shown


def test_doctor_misses_racks_and_assignments_of_members_and_not_the_members(file: Path, here: Run) -> None:
    checks = here("doctor", "--replay", str(file), "-o", "json").json
    hidden = [row for row in checks if row["state"] == "unknown" and "rebalancing" in row["sentence"]]
    assert len(hidden) >= 6
    said = "groups ok and wrong show no racks or assignments of their members: rebalancing"
    assert all(said in row["sentence"] for row in hidden)


def test_without_a_rebalance_no_word_of_it_is_said(here: Run, record: Record) -> None:
    answers = an_observation().topic("orders", (1, 2, 3)).group("ok", reader("m", "a", "orders-0"))
    file = str(record(answers))
    assert "rebalancing" not in here("status", "--replay", file, "-o", "table").stdout
    assert here("status", "--replay", file, "-o", "json").json["rebalancing_groups"] == []


def test_the_cycle_of_an_agent_says_so_too() -> None:
    answers = an_observation().topic("orders", (1, 2, 3))
    answers.group("ok", reader("m", "a", "orders-0"), state="PreparingRebalance")
    look = answers.at()
    told = sentence(
        run_cycle(CycleStages(Limits()), lambda: look, look, Memory(), number=1, name="l-1", planning=False)
    )
    assert "; no findings in what was observed; 1 group rebalances and shows no racks or assignments" in told
