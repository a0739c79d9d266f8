"""The pipeline's part of the demo, as far as no cluster is needed: whose folder it takes, and what it leaves."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from agent.demo.needs import Unmet
from agent.demo.screen import Screen
from agent.demo.spark import SparkSide, Where, check_spark


def side(report: Path) -> SparkSide:
    where = Where("127.0.0.1:1", report.parent / "logs", report)
    return SparkSide(where, Screen(io.StringIO()), lambda: None)


def tables_of_an_earlier_demo(report: Path) -> Path:
    folder = report / "tables" / "bronze" / "telemetry"
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_rackwise.json").write_text("{}")
    return report / "tables"


def test_it_takes_a_folder_that_is_new_or_empty_or_holds_tables_of_rackwise(tmp_path: Path) -> None:
    (tmp_path / "empty" / "tables").mkdir(parents=True)
    tables_of_an_earlier_demo(tmp_path / "earlier")
    for name in ("none", "empty", "earlier"):
        assert str(tmp_path / name) in check_spark(tmp_path / name)


def test_it_leaves_a_folder_alone_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "thesis.md").write_text("years of work")
    with pytest.raises(Unmet, match="are no tables of rackwise") as refused:
        check_spark(tmp_path)
    assert "--report" in refused.value.todo
    assert (tmp_path / "tables" / "thesis.md").exists()


def test_it_says_where_report_and_tables_are_and_one_that_never_began_takes_nothing_away(tmp_path: Path) -> None:
    tables = tables_of_an_earlier_demo(tmp_path / "report")
    told = "\n".join(side(tmp_path / "report").summary())
    assert str(tmp_path / "report" / "report.html") in told
    assert f"{tables}  (1 in bronze; docs/tables.md" in told
    side(tmp_path / "report").close()
    assert tables.exists()
