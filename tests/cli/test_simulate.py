"""``rackwise simulate`` from a recorded look: three columns before it happens, forms, one sentence for bad input."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
import yaml

from agent.cli.plan import assignment_words
from agent.cli.tables import _task
from agent.values.limits import GroupLimits, Limits
from agent.values.plan import merged_notes
from tests.builders import Answers, an_observation, consumer, instance, reader
from tests.cli.conftest import Record, Run


def a_cluster() -> Answers:
    """Four brokers in three racks; ``orders`` lives in a and b, ``clicks`` everywhere, and every group reads well."""
    answers = an_observation(a=(1, 4), b=(2,), c=(3,))
    answers.topic("orders", (1, 2), (1, 2), (2, 1), (2, 1))
    answers.topic("clicks", (1, 2, 3), (2, 3, 1), (3, 1, 2), topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    answers.group(
        "billing", reader("consumer-1", "a", "orders-0 orders-1"), reader("consumer-2", "b", "orders-2 orders-3")
    )
    answers.kip848("search", consumer("m1", "a", "clicks-0 clicks-1"), consumer("m2", "b", "clicks-2"))
    answers.topic("app-store-changelog", (1, 2), (2, 3), (3, 1), ends=[1_000_000] * 3, cleanup_policy="compact")
    return answers.streams(
        "app",
        instance(1, "a", {"0_0": "clicks-0", "0_1": "clicks-1"}, sums={"0_0": -2, "0_1": -2}),
        instance(2, "b", {"0_2": "clicks-2"}, sums={"0_2": -2}),
    )


@pytest.fixture
def file(record: Record) -> str:
    return str(record(a_cluster(), Limits(groups={"app": GroupLimits(known=True)})))


def simulated(here: Run, file: str, *changes: str) -> Any:
    done = here("simulate", "--replay", file, *changes, "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    return done.json


def the(document: Any, group: str) -> Any:
    return next(row for row in document["groups"] if row["group"] == group)


def test_a_member_that_leaves_leaves_its_partitions_waiting_and_both_answers_take_them_over(
    here: Run, file: str
) -> None:
    document = simulated(here, file, "--remove-member", "billing=consumer-2")
    assert document["changes"] == ["billing without consumer-2"]
    row = the(document, "billing")
    assert [one["group"] for one in document["groups"]] == ["billing"], "no other group is concerned"
    assert row["waiting"] == 2
    for column in ("now", "own_assignor", "optimum"):
        assert (row[column]["reads"], row[column]["crossing"], row[column]["moved"]) == (4, 0, 0)
    assert row["prediction"]["assignor"] == "cooperative-sticky"


def test_without_a_rack_it_is_unknown_which_of_the_members_of_unknown_rack_still_read(
    here: Run, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    answers = a_cluster().group("norack", reader("n", None, "orders-0 orders-1"))
    file = str(record(answers))
    document = simulated(here, file, "--remove-rack", "a")
    assert (the(document, "norack")["waiting"], the(document, "billing")["waiting"]) == (None, 2)
    table = here("simulate", "--replay", file, "--remove-rack", "a", "-o", "table").stdout
    (row,) = (line for line in table.splitlines() if line.startswith("norack"))
    assert "unknown" in row.split("consumer", 1)[1]
    lost = simulated(here, file, "--remove-broker", "1")
    assert the(lost, "norack")["waiting"] == 0, "its readers stay, wherever they are"


def test_a_member_in_a_far_rack_reads_across_and_is_shown_before_it_comes(here: Run, file: str) -> None:
    row = the(simulated(here, file, "--add-member", "billing=c"), "billing")
    assert (row["now"]["crossing"], row["waiting"]) == (0, 0)
    assert row["optimum"] == row["own_assignor"]
    assert (row["optimum"]["crossing"], row["optimum"]["moved"]) == (1, 1)


def test_a_member_of_a_kip_848_group_gets_its_share_without_a_look_at_racks(here: Run, file: str) -> None:
    row = the(simulated(here, file, "--add-member", "search=c"), "search")
    assert row["prediction"]["assignor"] == "uniform"
    assert row["own_assignor"]["reads"] == row["optimum"]["reads"] == 3
    assert row["optimum"]["crossing"] == 0


def test_a_rack_that_goes_shows_what_it_costs_and_what_is_found_then(here: Run, file: str) -> None:
    document = simulated(here, file, "--remove-rack", "b")
    assert {row["group"] for row in document["groups"]} == {"app", "billing", "search"}
    assert the(document, "billing")["waiting"] == 2
    racks = {row["rack"]: row for row in document["racks"]}
    assert racks["b"]["then"] is None
    assert "partitions without a leader" in racks["a"]["then"]
    assert racks["a"]["then"] != racks["a"]["now"]
    assert document["proposals"] is not None


def test_standbys_are_placed_by_both_and_counted_where_they_share_a_rack(here: Run, file: str) -> None:
    document = simulated(here, file, "--standbys", "app=1", "--add-member", "app=c")
    row = the(document, "app")
    assert (row["now"]["standbys"], row["own_assignor"]["standbys"], row["optimum"]["standbys"]) == (0, 3, 3)
    assert row["optimum"]["standbys_sharing_a_rack"] == 0
    assert row["prediction"]["settings"].endswith("num.standby.replicas 1, max.warmup.replicas 2")
    assert row["prediction"]["basis"] == "set by the user"
    assert row["warmups"]["at_once"] >= 1, "the new instance warms up before it runs a task"


def test_a_strategy_is_tried_before_it_is_set(here: Run, file: str) -> None:
    row = the(simulated(here, file, "--strategy", "app=min_traffic"), "app")
    assert "min_traffic" in row["prediction"]["settings"]
    row = the(simulated(here, file, "--strategy", "billing=range"), "billing")
    assert row["prediction"]["assignor"] == "range"
    assert row["own_assignor"]["moved"] == 0


def test_replicas_bring_reads_home(here: Run, file: str) -> None:
    far = ("--remove-replica", "orders-2=2", "--remove-replica", "orders-3=2")
    row = the(simulated(here, file, *far), "billing")
    assert (row["now"]["crossing"], row["optimum"]["crossing"], row["optimum"]["moved"]) == (0, 0, 4), (
        "they change places"
    )
    row = the(simulated(here, file, "--replication-factor", "orders=3", "--add-member", "billing=c"), "billing")
    assert (row["own_assignor"]["crossing"], row["optimum"]["crossing"]) == (0, 0)


def test_a_broker_that_goes_is_found(here: Run, file: str) -> None:
    document = simulated(here, file, "--remove-broker", "3")
    assert {"new"} <= {row["change"] for row in document["findings"]}
    assert "c" in {row["rack"] for row in document["racks"]}


def test_a_new_rack_gives_replicas_somewhere_to_go(here: Run, file: str) -> None:
    document = simulated(here, file, "--add-rack", "d=7,8", "--add-broker", "9=d")
    assert document["groups"] == [], "empty brokers change nothing for a group"
    assert {row["rack"] for row in document["racks"]} == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("form", "read"),
    [
        pytest.param("jsonl", lambda text: [row["group"] for row in json.loads(text)["groups"]], id="jsonl"),
        pytest.param("yaml", lambda text: [row["group"] for row in yaml.safe_load(text)["groups"]], id="yaml"),
        pytest.param("csv", lambda text: [row["group"] for row in csv.DictReader(io.StringIO(text))], id="csv"),
        pytest.param("table", lambda text: [text.splitlines()[1].split()[0]], id="table"),
    ],
)
def test_every_form_shows_the_group(
    here: Run, file: str, form: str, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    done = here("simulate", "--replay", file, "--add-member", "billing=c", "-o", form)
    assert (done.exit_code, read(done.stdout)) == (0, ["billing"])


def test_the_table_says_it_in_words(here: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    done = here("simulate", "--replay", file, "--add-member", "billing=c", "--standbys", "app=1", "-o", "table")
    assert "0 of 4 cross" in done.stdout
    assert "1 of 4 crosses, 1 move" in done.stdout


BAD = [
    pytest.param((), "there is nothing to simulate", id="nothing"),
    pytest.param(("--add-member", "nobody=a"), "there is no group 'nobody'", id="an unknown group"),
    pytest.param(("--add-member", "billing="), "--add-member billing= cannot be read", id="an empty rack"),
    pytest.param(("--add-member", "billing=z"), "there is no rack 'z'", id="an unknown rack"),
    pytest.param(("--remove-member", "billing"), "--remove-member billing cannot be read", id="no member"),
    pytest.param(("--remove-member", "billing=x"), "there is no 'x' in group billing", id="an unknown member"),
    pytest.param(("--remove-rack", "z"), "there is no rack 'z'", id="a rack that is not there"),
    pytest.param(("--add-rack", "d"), "--add-rack d cannot be read", id="a rack without brokers"),
    pytest.param(("--add-rack", "d=x"), "--add-rack d=x cannot be read", id="a broker that is no number"),
    pytest.param(("--add-broker", "-7=a"), "--add-broker -7=a cannot be read", id="a negative broker"),
    pytest.param(("--remove-broker", "9"), "there is no broker 9", id="an unknown broker"),
    pytest.param(("--add-replica", "orders=3"), "--add-replica orders=3 cannot be read", id="no partition"),
    pytest.param(("--add-replica", "orders-9=3"), "there is no partition orders-9", id="an unknown partition"),
    pytest.param(("--replication-factor", "orders=5"), "topic orders cannot have 5 replicas", id="RF above brokers"),
    pytest.param(("--replication-factor", "orders=-1"), "topic orders cannot have -1 replicas", id="a negative RF"),
    pytest.param(("--standbys", "app=-1"), "group app cannot have -1 standbys of a task", id="negative standbys"),
    pytest.param(("--standbys", "app=two"), "--standbys app=two cannot be read", id="standbys that are no number"),
    pytest.param(("--strategy", "app=min_cost"), "'min_cost' is no strategy of group app", id="a misspelt strategy"),
    pytest.param(
        ("--strategy", "app=none", "--strategy", "app=min_traffic"),
        "these changes contradict each other: app with none; app with min_traffic", id="two strategies",
    ),
    pytest.param(
        ("--remove-rack", "a", "--add-member", "billing=a"),
        "these changes contradict each other: no rack a; billing with one more in rack a",
        id="a member in a rack that goes",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "what"), BAD)
def test_bad_input_is_three_sentences(here: Run, file: str, changes: tuple[str, ...], what: str) -> None:
    done = here("simulate", "--replay", file, *changes)
    assert (done.exit_code, done.stdout) == (2, "")
    first, why, todo = done.stderr.splitlines()
    assert first == f"rackwise: {what}"
    assert why.startswith("  why: ")
    assert todo.startswith("  do:  ")


def test_a_read_of_which_nothing_is_known_is_unknown_and_not_one_that_stays_local(
    here: Run, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    answers = a_cluster().group("dark", reader("m1", None, "orders-0 orders-1"), reader("m2", None, "orders-2"))
    file = str(record(answers))
    table = here("simulate", "--replay", file, "--add-member", "dark", "-o", "table").stdout
    line = next(line for line in table.splitlines() if line.startswith("dark"))
    assert re.split(" {2,}", line)[2:5] == ["unknown", "4 reads unknown", "unknown"]
    assert "0 of " not in line
    assert "?" not in line
    groups = here("plan", "--groups", "--replay", file, "-o", "table").stdout
    line = next(line for line in groups.splitlines() if line.startswith("dark"))
    assert re.split(" {2,}", line)[2:5] == ["unknown", "unknown", "unknown"]


@pytest.mark.parametrize(
    ("reads", "crossing", "unknown", "words"),
    [
        (6, 0, 6, "6 reads unknown"),
        (6, 0, 2, "0 of 4 cross, 2 unknown"),
        (6, 4, 2, "4 of 4 cross, 2 unknown"),
        (6, 1, 0, "1 of 6 crosses"),
        (0, 0, 0, "0 of 0 cross"),
    ],
)
def test_reads_in_words(reads: int, crossing: int, unknown: int, words: str) -> None:
    column = {"reads": reads, "crossing": crossing, "unknown": unknown, "crossing_bytes_per_s": None,
              "usd_per_day": None, "moved": 0}  # fmt: skip
    assert assignment_words(column) == words
    assert assignment_words(None) == "unknown"


def test_notes_that_differ_only_in_their_tasks_are_told_once(here: Run, file: str) -> None:
    gone = "app=00000002-0000-0000-0000-000000000000"
    row = the(simulated(here, file, "--remove-member", gone, "--standbys", "app=1"), "app")
    assert row["note"].count("cannot be placed") == 1
    assert row["note"].endswith("(the same of 2 more tasks)")
    assert sum("cannot be placed" in note for note in row["prediction"]["notes"]) == 3
    assert merged_notes(("task 0_1 waits", "else", "task 0_2 waits")) == (
        "task 0_1 waits (the same of 1 more task)",
        "else",
    )


def test_a_rack_that_is_gone_is_not_unknown(here: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    table = here("simulate", "--replay", file, "--remove-rack", "b", "-o", "table").stdout
    racks = table[table.index("losing a rack") :]
    assert re.search(r"^b {2,}.* {2,}the rack does not exist$", racks, re.MULTILINE)
    assert "?" not in racks


def split(table: str, title: str) -> list[str]:
    """The lines of one table of the answer."""
    return table[table.index(title) :].split("\n\n", maxsplit=1)[0].splitlines()[1:]


def test_proposals_are_new_gone_or_unchanged(here: Run, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    answers = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("crowded", (1, 4), (4, 1)).topic("u", (1, 2))
    file = str(record(answers))
    document = simulated(here, file, "--remove-replica", "u-0=2")
    told = {(row["change"], row["kind"], row["subject"]) for row in document["proposals"]}
    assert ("unchanged", "reassign", "topic/crowded") in told
    table = here("simulate", "--replay", file, "--remove-replica", "u-0=2", "-o", "table").stdout
    unchanged = sum(row["change"] == "unchanged" for row in document["proposals"])
    assert f"{unchanged} proposal{'s' if unchanged > 1 else ''} unchanged by this: rackwise plan" in table
    assert "topic/crowded" not in table
    gone = simulated(here, file, "--add-replica", "crowded-0=2", "--add-replica", "crowded-1=3")
    assert ("gone", "reassign", "topic/crowded") in {
        (row["change"], row["kind"], row["subject"]) for row in gone["proposals"]
    }


def test_a_rack_whose_loss_costs_the_same_is_not_listed(here: Run, file: str) -> None:
    racks = simulated(here, file, "--add-broker", "9=a")["racks"]
    assert all(row["now"] != row["then"] for row in racks)


def test_added_replicas_have_a_cost(here: Run, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = str(record(a_cluster()))
    (row,) = simulated(here, file, "--replication-factor", "orders=3")["copies"]
    assert (row["topic"], row["replicas_added"]) == ("orders", 4)
    assert row["bytes_to_copy"] is None, "no size was seen"
    table = here("simulate", "--replay", file, "--replication-factor", "orders=3", "-o", "table").stdout
    heads, cells = split(table, "cost of the added replicas")[:2]
    assert "bytes to copy" in heads
    assert re.split(" {2,}", cells)[2] == "unknown" or "unknown" in cells
    assert simulated(here, file, "--remove-member", "billing=consumer-2")["copies"] == []


def test_a_removed_broker_has_been_absent_for_no_time(here: Run, file: str) -> None:
    findings = simulated(here, file, "--remove-rack", "a")["findings"]
    absent = [row["sentence"] for row in findings if row["subject"] in ("broker/1", "broker/4")]
    assert absent
    assert all("is removed in this simulation" in sentence for sentence in absent)
    assert not any("30 min" in row["sentence"] for row in findings)


def test_a_note_and_a_head_say_what_they_are_about(here: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    gone = "app=00000002-0000-0000-0000-000000000000"
    table = here("simulate", "--replay", file, "--remove-member", gone, "-o", "table").stdout
    assert "exact" not in [line.strip() for line in table.splitlines()]
    assert "the prediction is exact" in table
    table = here("simulate", "--replay", file, "--add-member", "search=c", "-o", "table").stdout
    assert "waiting" not in table, "there is none"
    table = here("simulate", "--replay", file, "--remove-member", "billing=consumer-2", "-o", "table").stdout
    assert "waiting: partitions without a reader until the group has rebalanced" in table


def test_a_streams_group_is_shown_in_a_table_that_fits(here: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = here("groups", "app", "--replay", file, "-o", "table").stdout
    lines = table.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("task") for line in lines) == 1, "one table, no block for each task"
    assert sum("changelog lag" in " ".join(line.split()) for line in lines) <= 1
    assert "?" not in "".join(line for line in lines if "active" in line)
    (planned,) = [row for row in here("plan", "--groups", "--replay", file, "-o", "json").json if row["group"] == "app"]
    assert re.search(rf"^assignor +{planned['assignor']}$", table, re.MULTILINE)


def test_a_role_that_is_not_known_is_written_out() -> None:
    task: Any = {
        "role": "standby",
        "role_certain": False,
        "lag_records": None,
        "rate_records_per_s": None,
        "eta_s": None,
    }
    assert _task(task)["role"] == "standby or warm-up (unknown)"
