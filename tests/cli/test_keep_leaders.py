"""``plan --keep-leaders`` and ``plan.keep_leaders``: no preferred leader changes, in every file that plan writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent.values.limits import Limits, PlanLimits
from agent.values.weights import WeightsReading
from tests.builders import Answers, an_observation
from tests.cli.conftest import Record, Run


def uneven_and_crowded() -> Answers:
    """Every partition of ``views`` is led in rack a, and both copies of ``orders`` are there."""
    answers = an_observation(a=(1, 4), b=(2,), c=(3,))
    return answers.topic("views", *[(1, 2, 3)] * 6).topic("orders", (1, 4), (4, 1))


def planned(here: Run, path: Path, *more: str) -> list[dict[str, Any]]:
    done = here("plan", "--replay", str(path), "-o", "json", *more)
    assert done.exit_code == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def first_replicas(found: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Partition -> its first replica before and after."""
    pairs = ((before, after) for one in found for before, after in zip(one["before"], one["after"], strict=True))
    return {before["key"]: (before["value"][0], after["value"][0]) for before, after in pairs if one_is_placed(before)}


def one_is_placed(row: dict[str, Any]) -> bool:
    return row["key"].startswith(("views-", "orders-"))


def test_with_keep_leaders_only_followers_move(here: Run, record: Record) -> None:
    path = record(uneven_and_crowded())
    assert {one["kind"] for one in planned(here, path)} == {"leaders", "reassign"}
    kept = planned(here, path, "--keep-leaders")
    assert [one["kind"] for one in kept] == ["reassign"]
    assert first_replicas(kept) == {"orders-0": (1, 1), "orders-1": (4, 4)}
    assert "; no preferred leader changes; " in kept[0]["sentence"]


def test_a_look_recorded_with_the_setting_is_planned_with_it(here: Run, record: Record) -> None:
    path = record(uneven_and_crowded(), Limits(plan=PlanLimits(keep_leaders=True)))
    assert [one["kind"] for one in planned(here, path)] == ["reassign"]


def test_the_files_keep_the_order_of_replicas_there_and_back(here: Run, record: Record, tmp_path: Path) -> None:
    moves, back = tmp_path / "moves.json", tmp_path / "back.json"
    path = record(uneven_and_crowded())
    planned(here, path, "--keep-leaders", "--reassignment-json", str(moves), "--rollback-json", str(back))

    def lists(file: Path) -> dict[str, list[int]]:
        return {
            f"{one['topic']}-{one['partition']}": one["replicas"] for one in json.loads(file.read_text())["partitions"]
        }

    assert lists(back) == {"orders-0": [1, 4], "orders-1": [4, 1]}
    assert {name: replicas[0] for name, replicas in lists(moves).items()} == {"orders-0": 1, "orders-1": 4}
    assert all(set(replicas) & {2, 3} for replicas in lists(moves).values())


def test_simulate_says_the_same_of_a_move(here: Run, record: Record) -> None:
    path = record(uneven_and_crowded())
    (sentence,) = [one["sentence"] for one in planned(here, path) if one["kind"] == "reassign"]
    done = here("simulate", "--replay", str(path), "-o", "json", "--add-broker", "9=a")
    assert done.exit_code == 0, done.stderr
    assert [one["sentence"] for one in json.loads(done.stdout)["proposals"] if one["kind"] == "reassign"] == [sentence]


def test_a_table_says_once_what_its_figures_rest_on(here: Run, record: Record) -> None:
    answers = uneven_and_crowded()
    answers.extra["weights"] = WeightsReading("rackwise.weights", missing="there is no such topic")
    done = here("plan", "--replay", str(record(answers)), "-o", "table")
    told = "figures: partitions are counted (no weights: there is no such topic)"
    assert done.stderr.splitlines().count(told) == 1
    assert "no weights" not in done.stdout


def test_what_goes_to_stderr_folds_at_the_width_of_the_terminal(
    here: Run, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = uneven_and_crowded()
    answers.extra["weights"] = WeightsReading(
        "rackwise.weights", missing="there is no topic rackwise.weights in this cluster"
    )
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("agent.cli.output._talks_to_a_terminal", lambda: True)
    done = here("plan", "--replay", str(record(answers)), "-o", "table")
    told = "figures: partitions are counted (no weights: there is no topic rackwise.weights in this cluster)"
    assert told in " ".join(done.stderr.splitlines())
    assert max(map(len, done.stderr.splitlines())) <= 60
