"""What the command says before any Spark is started."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.errors import BadInput
from pipeline.backtest import plot
from pipeline.backtest.plot import draw
from pipeline.backtest.ranking import markdown, ranked
from pipeline.backtest.score import StrategyScores
from pipeline.backtest.strategies import BUILT_IN
from pipeline.cli import spark_app
from pipeline.commands import backtest
from pipeline.jobs.backtest import BacktestSummary


def run(*arguments: str) -> str:
    result = CliRunner().invoke(spark_app, ["backtest", *arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_list_names_every_strategy() -> None:
    assert [line.partition(":")[0] for line in run("--list").splitlines()] == [one.name for one in BUILT_IN]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(("--strategies", "patiet"), "Did you mean patient?", id="a strategy that is not there"),
        pytest.param(("--from", "yesterday"), "is not a date or time", id="a moment that is none"),
        pytest.param(("--change", "x"), "NAME:LIMIT=VALUE", id="a change of nothing"),
        pytest.param(("--described", "/nowhere.yaml"), "cannot be read", id="a file that is not there"),
    ],
)
def test_mistakes_are_told_at_once(arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        run(*arguments)


def test_a_word_that_is_no_fidelity_is_told_with_those_that_are() -> None:
    result = CliRunner().invoke(spark_app, ["backtest", "--by", "week"])
    assert result.exit_code == 2
    assert "'week' is not one of 'looks', 'groups'" in result.output


def unit(strategy: str, stretch: int, bucket: int, **scores: float) -> dict[str, object]:
    given = StrategyScores(looks=10, groups=5, seconds=600.0, **scores)._asdict()
    named = {"snapshots": given.pop("groups"), **given}
    return {"strategy": strategy, "cluster": "c", "stretch_ms": stretch, "bucket": bucket, **named}


def test_parts_of_one_stretch_share_its_time_and_costs_add_up() -> None:
    units = [
        unit(name, stretch, bucket, read_bytes=1e9 * cost, read_usd=cost, read_partition_s=600.0, triggers=1)
        for name, cost in (("dear", 4.0), ("cheap", 1.0), ("no-action", 8.0))
        for stretch in (0, 1)
        for bucket in (0, 1)
    ]
    rows = ranked(units)
    assert [(row.rank, row.strategy) for row in rows] == [(1, "cheap"), (2, "dear"), (3, "no-action")]
    cheap = rows[0]
    assert (cheap.scores.seconds, cheap.scores.looks, cheap.scores.groups) == (1200.0, 20, 20)
    assert cheap.usd_per_day == pytest.approx(4.0 / 1200 * 86_400)
    assert cheap.saved_usd_per_day == pytest.approx(28.0 / 1200 * 86_400)
    assert cheap.crossing == 2.0


def test_without_bytes_reads_across_racks_decide_and_no_money_is_told() -> None:
    rows = ranked([unit("a", 0, 0, read_partition_s=9.0), unit("b", 0, 0, read_partition_s=3.0, dark_group_s=60.0)])
    assert [row.strategy for row in rows] == ["b", "a"]
    text = markdown(rows, {})
    assert "| 1 | b | unknown | unknown |" in text
    assert "their cost is not included" in text


def test_without_a_price_nothing_costs_zero_dollars_and_reads_decide() -> None:
    units = [
        unit("near", 0, 0, read_bytes=2e9, read_partition_s=3.0),
        unit("far", 0, 0, read_bytes=1e9, read_partition_s=9.0),
        unit("local", 0, 0),
    ]
    rows = ranked(units)
    assert [(row.strategy, row.usd_per_day) for row in rows] == [("local", 0.0), ("near", None), ("far", None)]
    assert "| 2 | near | unknown | unknown | 2.00 |" in markdown(rows, {})


def done() -> BacktestSummary:
    return BacktestSummary(rows=({**unit("a", 0, 0, read_partition_s=9.0), "fresh": 1},))


def test_a_folder_that_cannot_be_written_to_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(BadInput, match=r"the ranking cannot be written to .*file: .*exists"):
        backtest._tell(done(), {}, tmp_path / "file", "table")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_ranking_takes_the_place_of_an_earlier_one_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"ranking.md", "ranking.json", "ranking.svg"}
    for name in names:
        (tmp_path / name).write_text("earlier")

    def full(_: object, path: Path) -> None:
        path.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(plot, "draw", full)
        with pytest.raises(BadInput, match="No space left on device"):
            backtest._tell(done(), {}, tmp_path, "table")
    assert {(tmp_path / name).read_text() for name in names} == {"earlier"}
    backtest._tell(done(), {}, tmp_path, "table")
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "earlier" not in {(tmp_path / name).read_text() for name in names}


def test_the_picture_is_drawn_the_same_again(tmp_path: Path) -> None:
    rows = ranked([unit("a", 0, 0, read_partition_s=9.0), unit("b", 0, 0, false_triggers=2)])
    for name in ("one.svg", "two.svg", "three.png"):
        draw(rows, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "three.png").read_bytes().startswith(b"\x89PNG")
