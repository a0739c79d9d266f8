"""What the plug-in for brokers would bring, in every command that shows groups, and in its JSON."""

from __future__ import annotations

import csv
import io

import pytest

from agent.values.snapshot import PLUGIN_ASSIGNOR
from tests.builders import an_observation, consumer, reader
from tests.cli.conftest import Record, Run

GAIN = "with the plug-in 6 of 6 local instead of 0 of 6"
NO_RACK = "cannot help: no member sends client.rack"
RUNS = "runs the plug-in; 6 of 6 local"
PAIRS = ((1, 2), (2, 3), (3, 1)) * 2


@pytest.fixture
def file(record: Record) -> str:
    """A group that would gain, one without racks, one that runs the plug-in, one of the classic protocol."""
    answers = an_observation().topic("t", *PAIRS, topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    home = ("t-0 t-3", "t-1 t-4", "t-2 t-5")
    answers.kip848("far", *(consumer(f"f{n}", "bca"[n], of) for n, of in enumerate(("t-2 t-5", "t-0 t-3", "t-1 t-4"))))
    answers.kip848("mute", *(consumer(f"s{n}", None, of) for n, of in enumerate(home)))
    answers.kip848("near", *(consumer(f"n{n}", "abc"[n], of) for n, of in enumerate(home)), assignor=PLUGIN_ASSIGNOR)
    answers.group("old", *(reader(f"c{n}", "abc"[n], of) for n, of in enumerate(home)))
    return str(record(answers))


def folded(text: str) -> str:
    return " ".join(text.split())


EVERY_LINE = tuple(
    f"plug-in for brokers, group {group}: {sentence}"
    for group, sentence in (("far", GAIN), ("mute", NO_RACK), ("near", RUNS))
)


def test_groups_have_the_sentence_below_the_table_and_in_every_row(file: str, here: Run) -> None:
    table = folded(here("groups", "--replay", file, "-o", "table").stdout)
    assert all(line in table for line in EVERY_LINE)
    assert "group old" not in table
    rows = {row["group"]: row["plugin_gain"] for row in here("groups", "--replay", file, "-o", "json").json}
    assert rows == {"far": GAIN, "mute": NO_RACK, "near": RUNS, "old": None}
    (first, *_) = csv.DictReader(io.StringIO(here("groups", "--replay", file, "-o", "csv").stdout))
    assert "plugin_gain" in first


def test_one_group_has_it_among_its_facts(file: str, here: Run) -> None:
    assert f"plug-in for brokers {GAIN}" in folded(here("groups", "far", "--replay", file, "-o", "table").stdout)
    assert "plug-in" not in here("groups", "old", "--replay", file, "-o", "table").stdout
    assert here("groups", "far", "--replay", file, "-o", "json").json["plugin_gain"] == GAIN


def test_doctor_has_it_in_its_check_of_assignors(file: str, here: Run) -> None:
    rows = {row["check"]: row for row in here("doctor", "--replay", file, "-o", "json").json}
    check = rows["assignors cost no local reads"]
    assert set(EVERY_LINE) <= set(check["sentences"])
    assert all("plug-in" not in row["sentence"] for row in rows.values() if row is not check)
    fixes = {tuple(fix["who"]): fix["lines"] for fix in check["fixes"]}
    classic = "group.protocol=classic"
    assert fixes.pop(("group far",)) == [classic], "the one that runs it needs none"
    assert fixes == {("group mute",): [classic, "client.rack=<a|b|c>"]}
    assert all(line in folded(here("doctor", "--replay", file, "-o", "table").stdout) for line in EVERY_LINE)


def test_a_column_is_beside_those_of_the_own_assignor_and_the_optimum(
    file: str, here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    rows = {row["group"]: row for row in here("plan", "--replay", file, "--groups", "-o", "json").json}
    columns = ("now", "own", "plugin", "optimum")
    crossing = {name: [row[one] and row[one]["crossing"] for one in columns] for name, row in rows.items()}
    assert crossing == {
        "far": [6, 6, 0, 0], "mute": [None, None, None, None], "near": [0, 0, 0, 0], "old": [0, 0, None, 0],
    }  # fmt: skip
    assert rows["near"]["prediction"]["certainty"] == "exact"
    table = folded(here("plan", "--replay", file, "--groups", "-o", "table").stdout)
    assert "own plug-in optimum" in table
    assert "6 of 6 cross 6 of 6 cross 0 of 6 cross, 6 moved 0 of 6 cross, 6 moved" in table
    assert "mute uniform unknown unknown cannot help unknown" in table
    flat = {
        row["group"]: row
        for row in csv.DictReader(io.StringIO(here("plan", "--replay", file, "--groups", "-o", "csv").stdout))
    }
    assert (flat["far"]["plugin_crossing"], flat["old"]["plugin_crossing"]) == ("0", "")


def test_without_a_group_that_it_concerns_no_table_has_its_column(record: Record, here: Run) -> None:
    answers = an_observation().topic("t", (1,), (2,)).group("old", reader("c1", "b", "t-0"), reader("c2", "a", "t-1"))
    file = str(record(answers))
    for command in (("plan", "--groups"), ("groups",), ("simulate", "--remove-member", "old=c1"), ("doctor",)):
        assert "plug-in" not in here(*command, "--replay", file, "-o", "table").stdout


def test_explain_has_its_gain_and_its_cost(file: str, here: Run) -> None:
    def rules(group: str) -> dict[str, tuple[str, str]]:
        rows = here("explain", f"group/{group}", "--replay", file, "-o", "json").json
        return {row["rule"]: (row["answer"], row["sentence"]) for row in rows}

    far = rules("far")
    assert far["gain with the plug-in for brokers"] == ("fact", GAIN)
    cost = "0 reads cross racks by Kafka's rule; 6 partitions move"
    assert far["reads across racks with the plug-in for brokers"] == ("fact", cost)
    assert far["assignor looks at racks"] == ("no", "assignor uniform does not look at racks")
    near = rules("near")
    assert near["gain with the plug-in for brokers"] == ("fact", RUNS)
    assert near["assignor looks at racks"] == ("yes", "assignor rackwise looks at racks")
    assert "reads across racks with the plug-in for brokers" not in rules("mute")
    assert not any("plug-in" in rule for rule in rules("old"))


def test_simulate_has_it_against_the_own_assignor_after_the_change(
    file: str, here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = here("simulate", "--replay", file, "--add-member", "far=a", "--remove-member", "near=n0", "-o", "json")
    rows = {row["group"]: row for row in done.json["groups"]}
    own = rows["far"]["own_assignor"]
    assert rows["far"]["plugin"]["crossing"] == 0
    assert rows["far"]["plugin_gain"] == f"with the plug-in 6 of 6 local instead of {6 - own['crossing']} of 6"
    assert rows["near"]["own_assignor"] == rows["near"]["plugin"], "its own assignor is the plug-in"
    left = 6 - rows["near"]["plugin"]["crossing"]
    assert rows["near"]["plugin_gain"] == f"runs the plug-in; {left} of 6 local"
    table = folded(here("simulate", "--replay", file, "--add-member", "far=a", "-o", "table").stdout)
    assert "own assignor plug-in optimum" in table
    assert f"plug-in for brokers, group far: {rows['far']['plugin_gain']}" in table


def test_the_plug_in_can_be_simulated_as_the_assignor_of_a_kip_848_group(file: str, here: Run) -> None:
    rows = here("simulate", "--replay", file, "--strategy", f"far={PLUGIN_ASSIGNOR}", "-o", "json").json
    (group,) = rows["groups"]
    assert (group["now"]["crossing"], group["own_assignor"]["crossing"]) == (6, 0)
    gone = {finding["finding"] for finding in rows["findings"] if finding["change"] == "gone"}
    assert "group kind ignores racks" in gone
    refused = here("simulate", "--replay", file, "--strategy", f"old={PLUGIN_ASSIGNOR}")
    assert refused.exit_code == 2, "classic members assign by themselves"
