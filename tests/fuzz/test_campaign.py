"""The first inputs of every target of the campaign, and that the campaign sees what it is made to see."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.campaign import Round, main, read_record, run_round, table
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import Target, targets

MADE = 400


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_every_input_is_read_or_refused_in_the_reader_s_own_way(target: Target) -> None:
    told, findings = run_round(target, 0, MADE)
    assert [finding.what for finding in findings if not finding.what.startswith("slow")] == []
    assert told.inputs == MADE * len(target.readers)
    assert 0 < told.read < told.inputs, "inputs are neither all whole nor all broken"


def broken(data: bytes) -> bool:
    if b"\xff" in data:
        raise ZeroDivisionError("seen")
    return True


def slow(data: bytes) -> bool:
    until = time.process_time() + (0.06 if data.startswith(b"slow") else 0)
    while time.process_time() < until:
        pass
    return True


def test_an_exception_that_is_not_the_reader_s_own_is_found_with_its_input() -> None:
    target = Target("broken", lambda r: r.choice([b"a", b"\xff"]), (broken,))
    told, findings = run_round(target, 7, 200)
    assert told.crashes == len(findings) > 50
    assert {(finding.what, finding.data) for finding in findings} == {("ZeroDivisionError: seen", b"\xff")}
    assert told.read == 200 - told.crashes


def test_an_input_that_takes_over_fifty_milliseconds_is_found() -> None:
    target = Target("slow", lambda r: r.choice([b"a"] * 30 + [b"slow"]), (slow,))
    told, findings = run_round(target, 1, 100)
    assert told.slow == len(findings) > 0
    assert {finding.data for finding in findings} == {b"slow"}
    assert told.worst_ms >= 60


def test_the_same_seed_makes_the_same_inputs() -> None:
    seeds = (b"one seed", b"another")
    made = [[mutated(Random(seed), seeds) for _ in range(20)] for seed in ("a", "a", "b")]
    assert made[0] == made[1] != made[2]


def test_a_campaign_goes_on_after_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.fuzz.campaign.ROUND", 50)
    monkeypatch.setattr("tests.fuzz.campaign.run_round.__defaults__", (50,))
    record = tmp_path / "deep" / "campaign.jsonl"
    assert main(["--record", str(record), "--inputs", "100", "--only", "placements"]) == 0
    assert [one.seed for one in read_record(record)] == [0, 1]
    with record.open("a") as file:
        file.write('{"target": "placements", "se')  # a crash in the middle of a line
    assert len(read_record(record)) == 2
    assert main(["--record", str(record), "--inputs", "150", "--only", "placements"]) == 0
    assert [one.seed for one in read_record(record)] == [0, 1, 2]
    assert "| placements | 0 to 2 | 150 |" in capsys.readouterr().out


def test_findings_end_a_campaign_with_an_error_and_stand_in_its_table() -> None:
    rounds = [Round("a", 0, 100, 50, 0, 0, 0.0, 1.0), Round("a", 1, 100, 50, 2, 1, 70.5, 1.0)]
    assert table(rounds).splitlines()[2] == "| a | 0 to 1 | 200 | 100 | 2 | 1 | 70.5 | 2 |"
