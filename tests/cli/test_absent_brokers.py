"""What commands say of a broker that is absent from the look, on recorded looks."""

from __future__ import annotations

from pathlib import Path

from agent.telemetry.events import to_lines
from agent.values.limits import Limits
from tests.builders import Answers, Run, an_observation
from tests.cli.conftest import Record
from tests.cli.conftest import Run as Command
from tests.recorded_looks import observation_to_events


def crowded() -> Answers:
    return an_observation(a=(1, 4), b=(2, 5), c=(3, 6)).topic("orders", (3, 6, 1), (1, 2, 3))


def down() -> Answers:
    answers = crowded().broker(3, "c", fenced=True)
    return answers.topic("orders", (3, 6, 1), (1, 2, 3), isr={0: (6, 1), 1: (1, 2)})


def recorded(path: Path, *seconds: float) -> Path:
    """The telemetry of an agent that saw broker 3, and then looked at these seconds without it."""
    run = Run().look(crowded().at(0))
    for second in seconds[:-1]:
        run.look(down().at(second))
    events = observation_to_events(down().at(seconds[-1]), run.memory, Limits(), look="l-1")
    path.write_text("".join(f"{line}\n" for event in events for line in to_lines(event)))
    return path


def test_one_look_shows_the_proposal_with_the_words_that_an_agent_holds_it(here: Command, record: Record) -> None:
    path = str(record(down()))
    (proposal,) = here("plan", "--replay", path, "-o", "json").json
    assert proposal["sentence"].endswith("; broker 3 is absent now: an agent holds this until that has lasted 30 min")
    status = here("status", "--replay", path, "-o", "json").json
    assert status["absent_brokers"] == [3]
    (found,) = [one for one in status["findings"] if one["finding"] == "broker absent"]
    assert found["sentence"].startswith("broker 3 is fenced now, since when is unknown; it holds 2 replicas")
    assert "absent brokers" in here("status", "--replay", path, "-o", "table").stdout


def test_an_absent_broker_is_marked_where_brokers_are_listed(here: Command, record: Record) -> None:
    answers = an_observation(a=(1,), b=(2,), c=(3,)).broker(2, "b", fenced=True)
    path = str(record(answers.topic("orders", (1, 2), (3, 2), isr={0: (1,), 1: (3,)})))
    shown = here("racks", "--replay", path, "-o", "table").stdout
    assert next(line.split() for line in shown.splitlines() if line.startswith("b "))[:3] == ["b", "2", "(absent)"]
    assert "rack b has no live broker" in shown
    assert "rack a has no live broker" not in shown
    assert "2 (absent)" in here("status", "--replay", path, "-o", "table").stdout
    rows = here("racks", "--replay", path, "-o", "json").json
    assert [(row["rack"], row["brokers"], row["absent_brokers"]) for row in rows] == [
        ("a", [1], []), ("b", [2], [2]), ("c", [3], []),
    ]  # fmt: skip
    crowded_rack = here("racks", "--replay", str(record(down())), "-o", "table").stdout
    assert "3 (absent)" in crowded_rack
    assert "no live broker" not in crowded_rack, "broker 6 is there"


def test_a_cluster_with_all_its_brokers_has_no_line_for_absent_ones(here: Command, record: Record) -> None:
    path = str(record(crowded()))
    assert here("status", "--replay", path, "-o", "json").json["absent_brokers"] == []
    assert "absent" not in here("status", "--replay", path, "-o", "table").stdout


def test_a_recorded_look_of_an_agent_holds_what_the_agent_held(here: Command, tmp_path: Path) -> None:
    path = str(recorded(tmp_path / "held.jsonl", 10, 22))
    done = here("plan", "--replay", path, "-o", "table")
    assert here("plan", "--replay", path, "-o", "json").json == []
    assert "broker 3 has been fenced for 12 s" in done.stderr
    assert "nothing is moved because of it until it has been absent for 30 min" in done.stderr.replace("\n", " ")
    (row,) = [
        one for one in here("doctor", "--replay", path, "-o", "json").json
        if one["check"] == "brokers with replicas are live"
    ]  # fmt: skip
    assert (row["state"], row["who"]) == ("once", ["broker 3"])
    rows = here("explain", "--replay", path, "broker/3", "-o", "json").json
    assert any(one["sentence"].startswith("broker 3 has been fenced for 12 s") for one in rows)


def test_a_recorded_look_after_the_wait_proposes_and_says_for_how_long(here: Command, tmp_path: Path) -> None:
    path = str(recorded(tmp_path / "long.jsonl", 10, 1_870))
    (proposal,) = here("plan", "--replay", path, "-o", "json").json
    assert proposal["sentence"].endswith("; broker 3 has been absent for 31 min")
