"""The border of the command line: marks, caps, forms; and no other file of the project writes to a stream."""

from __future__ import annotations

import ast
import csv
import io
import json
from typing import Any

import pytest
import yaml

from agent.cli.output import (
    MOST_ROWS,
    CellMark,
    OutputFormat,
    cell,
    emit,
    emit_line,
    emit_one,
    emit_text,
    say,
)
from agent.cli.table_layout import text_width
from tests.command import ROOT
from tests.foreign_texts import LONG, POISONS, formulas, spelled

EVERY = [pytest.param(text, id=name) for name, text in POISONS.items()]
COLUMNS = ("id", "names", "sentence")


def rows_of(text: str) -> list[dict[str, Any]]:
    return [{"id": text, "names": [text, {text: text}], "sentence": f"it is {text}."}, {"id": "b", "names": []}]


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("form", OutputFormat)
def test_poison_is_harmless_in_every_form(capsys: pytest.CaptureFixture[str], form: OutputFormat, text: str) -> None:
    emit(rows_of(text), COLUMNS, form, title=text)
    emit_one({"id": text, text: [text]}, form)
    emit_text(text, indent=4)
    told = capsys.readouterr()
    say(text)
    emit_line(text)
    lines = capsys.readouterr()
    lossless = form in {OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.YAML}
    for written in (*told, *lines):
        assert [one for one in spelled(written) if not (lossless and one.startswith("marks"))] == []
    if form is OutputFormat.TABLE:
        assert max(map(text_width, told.out.splitlines())) <= 160
        assert [len(written.splitlines()) for written in lines] == [1, 1]


@pytest.mark.parametrize("text", EVERY)
def test_poison_makes_no_more_lines_of_a_table_than_other_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("COLUMNS", "100000")
    emit(rows_of(text), COLUMNS, OutputFormat.TABLE)
    emit_one({"id": text}, OutputFormat.TABLE)
    assert len(capsys.readouterr().out.split("\n")) == 6


@pytest.mark.parametrize("text", EVERY)
def test_json_jsonl_and_yaml_lose_nothing(capsys: pytest.CaptureFixture[str], text: str) -> None:
    rows = rows_of(text)
    emit(rows, COLUMNS, OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == rows
    emit(rows, COLUMNS, OutputFormat.JSONL)
    assert [json.loads(line) for line in capsys.readouterr().out.split("\n")[:-1]] == rows
    emit(rows, COLUMNS, OutputFormat.YAML)
    assert yaml.safe_load(capsys.readouterr().out) == rows


@pytest.mark.parametrize("text", EVERY)
def test_csv_is_one_line_per_record_whole_and_without_a_formula(capsys: pytest.CaptureFixture[str], text: str) -> None:
    emit(rows_of(text), COLUMNS, OutputFormat.CSV)
    written = capsys.readouterr().out
    assert len(written.split("\n")) == 4
    records = list(csv.reader(io.StringIO(written)))
    assert [len(record) for record in records] == [3, 3, 3]
    assert formulas([field for record in records for field in record]) == []
    if text == LONG:
        assert records[1][0] == LONG


def test_unknown_none_and_not_applicable_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    row: dict[str, Any] = {
        "unknown": None, "none": CellMark.NONE, "not_applicable": CellMark.NOT_APPLICABLE, "empty": [], "zero": 0,
    }  # fmt: skip
    assert [cell(value) for value in row.values()] == ["?", "-", "", "-", "0"]
    emit([row], tuple(row), OutputFormat.CSV)
    assert capsys.readouterr().out.splitlines()[1] == ",,,,0"
    emit_one(row, OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == {**dict.fromkeys(tuple(row)[:3]), "empty": [], "zero": 0}
    emit_one(row, OutputFormat.YAML)
    assert yaml.safe_load(capsys.readouterr().out)["not_applicable"] is None


def test_a_command_says_what_null_means_in_a_column_and_a_field_that_is_not_there_does_not_apply(
    capsys: pytest.CaptureFixture[str],
) -> None:
    columns, none = ("id", "leader", "rate", "lag"), {"leader": CellMark.NONE}
    emit(
        [{"id": "a", "leader": None, "rate": 7, "lag": None}, {"id": "b", "leader": "x"}],
        columns,
        OutputFormat.CSV,
        absent=none,
    )
    assert capsys.readouterr().out.splitlines()[1:] == ["a,,7,", "b,x,,"]
    emit_one({"id": "a", "leader": None, "lag": None}, OutputFormat.CSV, columns, absent=none)
    assert capsys.readouterr().out.splitlines()[1:] == ["id,a", "leader,", "rate,", "lag,"]
    emit_one({"leader": None}, OutputFormat.JSON, absent=none)
    assert json.loads(capsys.readouterr().out) == {"leader": None}


@pytest.mark.parametrize(
    ("value", "shown", "machine"),
    [
        pytest.param(True, "yes", "yes", id="a truth"),
        pytest.param(1234.5, "1,234.5", "1234.5", id="a number with a fraction"),
        pytest.param(-2.0, "-2", "-2.0", id="a number without one"),
        pytest.param(float("nan"), "nan", "nan", id="what is no number"),
        pytest.param(0.02, "0.02", "0.02", id="a price below one"),
        pytest.param({"a": 1, "b": [2, 3]}, "a: 1; b: 2, 3", "a: 1; b: 2, 3", id="a mapping"),
        pytest.param(tuple(range(12)), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
                     "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11", id="a long list"),
    ],
)  # fmt: skip
def test_a_cell_reads(capsys: pytest.CaptureFixture[str], value: object, shown: str, machine: str) -> None:
    assert cell(value) == shown
    emit([{"a": value}], ("a",), OutputFormat.CSV)
    assert list(csv.reader(io.StringIO(capsys.readouterr().out)))[1] == [machine]


def test_a_long_table_is_cut_and_says_how_to_see_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": f"p-{number}"} for number in range(24_963)]
    emit(rows, ("id",), OutputFormat.TABLE)
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 1 + MOST_ROWS
    assert told.err == "… 24,763 more: --all or -o json\n"
    emit(rows, ("id",), OutputFormat.TABLE, every=True)
    told = capsys.readouterr()
    assert (len(told.out.splitlines()), told.err) == (24_964, "")


@pytest.mark.parametrize("form", [OutputFormat.JSON, OutputFormat.JSONL, OutputFormat.YAML, OutputFormat.CSV])
def test_no_other_form_is_ever_cut(capsys: pytest.CaptureFixture[str], form: OutputFormat) -> None:
    emit([{"id": f"p-{number}", "all": list(range(50))} for number in range(MOST_ROWS + 9)], ("id", "all"), form)
    told = capsys.readouterr()
    assert all(f"p-{number}" in told.out for number in range(MOST_ROWS + 9))
    assert told.out.count("49") >= MOST_ROWS + 9
    assert told.err == ""


def test_all_shows_long_lists_whole(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": "g", "assigned": [f"orders-{number}" for number in range(24_963)]}]
    emit(rows, ("id", "assigned"), OutputFormat.TABLE)
    assert "orders-9 and 24,953 more" in capsys.readouterr().out
    emit(rows, ("id", "assigned"), OutputFormat.TABLE, every=True)
    assert "orders-24962" in capsys.readouterr().out


def test_a_table_is_as_wide_as_columns_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"id": "a", "sentence": "word " * 60}
    for told, width in (("80", 80), ("120", 120), (None, 160)):
        monkeypatch.delenv("COLUMNS", raising=False) if told is None else monkeypatch.setenv("COLUMNS", told)
        emit([row], ("id", "sentence"), OutputFormat.TABLE)
        assert width - 5 < max(map(len, capsys.readouterr().out.splitlines())) <= width


WRITERS = {
    "agent/cli/output.py": "the border of the command line",
    "agent/cli/command_exit.py": "errors, harmless by `error_lines`, and the help",
    "agent/cli/top.py": "the codes that steer a live page; names in it have gone through the border",
    "testbed/demo/console.py": "the border of the demo",
    "testbed/demo/workload/__main__.py": "a tool of the developers; it tells of what it made itself",
    "pipeline/options.py": "the border of the pipeline's commands",
    "pipeline/submit.py": "errors, harmless by `error_lines`",
    "pipeline/spark_java.py": "Java's own stderr, harmless line by line",
}


def test_nothing_but_the_borders_writes_to_a_stream() -> None:
    found = {
        str(path.relative_to(ROOT))
        for package in ("agent", "assignors", "config", "pipeline", "testbed")
        for path in (ROOT / package).rglob("*.py")
        if any(map(_writes, ast.walk(ast.parse(path.read_text()))))
    }
    assert found == set(WRITERS)


def _writes(node: ast.AST) -> bool:
    """A call of ``print``, of ``echo``, of a console, or of stdout or stderr themselves."""
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    last = called.rpartition(".")[2]
    return last in {"print", "echo", "secho", "Console"} or called.startswith(("sys.stdout.write", "sys.stderr.write"))
