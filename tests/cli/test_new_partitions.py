"""``plan --new-topic`` and ``plan --add-partitions`` from a recorded look: forms, files, sentences for bad input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.foreign_text import shortened
from tests.builders import Answers
from tests.cli.conftest import Record, Run


@pytest.fixture
def file(record: Record) -> str:
    """Six brokers in three racks; the lower ones hold everything."""
    answers = Answers()
    for number, rack in enumerate("abcabc", 1):
        answers.broker(number, rack)
    return str(record(answers.topic("orders", (1, 2, 3), (2, 3, 1)).topic("x.y", (1,))))


NEW = ("--new-topic", "payments", "--partitions", "3", "--replication-factor", "3")


def test_both_placements_come_with_every_form_that_kafkas_tools_take(file: str, here: Run, tmp_path: Path) -> None:
    target = tmp_path / "moves.json"
    done = here("plan", "--replay", file, *NEW, "-o", "json", "--reassignment-json", str(target))
    assert (done.exit_code, done.stderr) == (0, "")
    ours, best = done.json
    assert [ours["placement"], best["placement"]] == ["kafka", "optimum"]
    assert "only the distribution is Kafka's" in ours["sentence"]
    assert best["spread"]["cluster_replicas"] == {"least": 2, "most": 4}
    assert best["spread"]["topic_leaders"] == {"least": 0, "most": 1}
    assert best["command"] == (
        "kafka-topics.sh --bootstrap-server kafka-1:9092 --create --topic payments "
        f"--replica-assignment {best['replica_assignment']}"
    )
    assert json.loads(target.read_text()) == best["reassignment"]
    assert [row["partition"] for row in best["reassignment"]["partitions"]] == [0, 1, 2]
    again = here(
        "plan", "--replay", file, *NEW, "-o", "json", "--placement", "kafka", "--reassignment-json", str(target)
    )
    assert again.json == done.json, "the same seed, the same answer"
    assert json.loads(target.read_text()) == ours["reassignment"]


def test_added_partitions_are_numbered_on_and_the_command_names_those_that_are_there(file: str, here: Run) -> None:
    _, best = here("plan", "--replay", file, "--add-partitions", "orders=4", "-o", "json").json
    assert (best["partitions"], best["new_partitions"]) == (4, 2)
    assert [row["partition"] for row in best["reassignment"]["partitions"]] == [2, 3]
    assert best["replica_assignment"].startswith("1:2:3,2:3:1,")
    assert best["command"].startswith(
        "kafka-topics.sh --bootstrap-server kafka-1:9092 --alter --partitions 4 --topic orders "
        "--replica-assignment 1:2:3,"
    )
    assert {b for row in best["reassignment"]["partitions"] for b in row["replicas"]} == {4, 5, 6}


@pytest.mark.parametrize(
    ("form", "read"),
    [
        pytest.param("jsonl", lambda text: [json.loads(line)["placement"] for line in text.splitlines()], id="jsonl"),
        pytest.param("yaml", lambda text: [row["placement"] for row in yaml.safe_load(text)], id="yaml"),
        pytest.param("csv", lambda text: [row["placement"] for row in csv.DictReader(io.StringIO(text))], id="csv"),
        pytest.param("table", lambda text: [w for w in text.split() if w in ("kafka", "optimum")], id="table"),
    ],
)
def test_every_form_has_both(file: str, here: Run, form: str, read: Any) -> None:
    done = here("plan", "--replay", file, *NEW, "-o", form)
    assert (done.exit_code, read(done.stdout)) == (0, ["kafka", "optimum"])


BAD = [
    pytest.param(
        (*NEW, "--add-partitions", "orders=4"), "--new-topic and --add-partitions contradict each other",
        id="new and not new",
    ),
    pytest.param(("--new-topic", "n", "--partitions", "3"), "--new-topic n is incomplete", id="no factor"),
    pytest.param(("--partitions", "3"), "--partitions and --replication-factor need --new-topic", id="no topic"),
    pytest.param(("--add-partitions", "orders"), "--add-partitions orders cannot be read", id="no number"),
    pytest.param(("--add-partitions", "orders=many"), "--add-partitions orders=many cannot be read", id="a word"),
    pytest.param(
        ("--add-partitions", f"orders={'9' * 5000}"), f"--add-partitions orders={'9' * 5000} cannot be read",
        id="a number that nothing has",
    ),
    pytest.param(
        (*NEW, "--reassignment-json", "/"), "/ cannot be written", id="a file that cannot be written"
    ),
    pytest.param(("--add-partitions", "orders=--2"), "--add-partitions orders=--2 cannot be read", id="two signs"),
    pytest.param(("--add-partitions", "orders=2"), "topic orders has 2 partitions already", id="no more than now"),
    pytest.param(("--add-partitions", "orders=-2"), "topic orders has 2 partitions already", id="a negative number"),
    pytest.param(("--add-partitions", "nobody=2"), "there is no topic 'nobody'", id="an unknown topic"),
    pytest.param(("--new-topic", "orders", *NEW[2:]), "topic orders is there already", id="an old topic"),
    pytest.param(
        ("--new-topic", "n", "--partitions", "1", "--replication-factor", "7"),
        "7 replicas of a partition cannot be placed", id="more replicas than brokers",
    ),
    pytest.param((*NEW, "--rollback-json", "back.json"), "new partitions have no rollback", id="a rollback"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "what"), BAD)
def test_bad_input_is_three_sentences(file: str, here: Run, options: tuple[str, ...], what: str) -> None:
    done = here("plan", "--replay", file, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    first, *more = done.stderr.splitlines()
    assert first == f"rackwise: {shortened(what)}"
    why, todo = more
    assert why.startswith("  why: ")
    assert todo.startswith("  do:  ")


def test_a_file_that_holds_no_look_is_bad_input(tmp_path: Path, here: Run) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    done = here("plan", "--replay", str(empty), *NEW)
    assert (done.exit_code, done.stderr.splitlines()[0]) == (2, f"rackwise: {empty} holds no complete look")


def test_the_nearest_topic_is_named_where_there_is_no_such_topic(file: str, here: Run) -> None:
    done = here("plan", "--replay", file, "--add-partitions", "order=4")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"  do:  Did you mean orders? List all topics: rackwise topics --replay {file}\n" in done.stderr
