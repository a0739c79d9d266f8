"""``rackwise doctor`` on recorded looks: what one look can know, in words and as rows."""

from __future__ import annotations

import pytest

from agent.values.observation import RawListedGroup
from tests.builders import an_observation, consumer, reader
from tests.cli.conftest import Record, Run


def test_twelve_throttles_are_seen_once(here: Run, record: Record) -> None:
    answers = an_observation()
    for number in range(12):
        answers.topic(f"t{number:02}", (1, 2, 3), leader_replication_throttled_replicas="0:1")
    path = str(record(answers))
    (row,) = [
        one for one in here("doctor", "--replay", path, "-o", "json").json if one["check"].startswith("no throttles")
    ]
    assert row["state"] == "once"
    assert row["sentence"].startswith(
        "12 throttles are set and no reassignment runs (topic/t00, topic/t01, topic/t02 and 9"
    )
    assert ", seen once: a throttle that is still set after 120 s counts as left over" in row["sentence"]
    assert (
        "    once  no throttles are left over\n          12 throttles are set"
        in here("doctor", "--replay", path, "-o", "table").stdout
    )


def test_no_groups_are_nothing_to_check(here: Run, record: Record) -> None:
    rows = here("doctor", "--replay", str(record(an_observation().topic("t", (1, 2, 3)))), "-o", "json").json
    states = {row["check"]: row["state"] for row in rows}
    assert states["clients send client.rack"] == "nothing"
    assert states["losing rack a stops nothing"] == "ok"


def test_a_share_group_is_listed_as_one(here: Run, record: Record) -> None:
    answers = an_observation().topic("t", (1, 2, 3)).group("g", reader("m", "a", "t-0"))
    answers.listed["s"] = RawListedGroup("s", "share", "Stable", "share")
    rows = here("groups", "--replay", str(record(answers)), "-o", "json").json
    assert {row["group"]: row["kind"] for row in rows} == {"g": "classic consumer", "s": "share"}


def test_a_fact_is_one_line_and_a_fix_names_its_groups(
    here: Run, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", *[(1, 2)] * 6).topic("payments", *[(1,)] * 6)
    for name in ("new", "newer"):
        answers.kip848(
            name, *(consumer("m1", "b", "payments-0 payments-1 orders-0"), consumer("m2", "a", "orders-1 payments-2"))
        )
    answers.group("a;b (c; d)", reader("m", None, "orders-4 orders-5"))
    shown = here("doctor", "--replay", str(record(answers)), "-o", "table").stdout.splitlines()
    assert all(len(line) <= 80 for line in shown if not line.lstrip().startswith("> rackwise"))
    heads = [line for line in shown if not line.startswith(" " * 10)]
    states = {"ok", "nothing", "once", "unknown", "risk", "FAULT"}
    assert {line.split()[0] for line in heads if line and not line.startswith(("rates", "money"))} <= states
    assert any("a;b (c; d)" in line for line in shown), "a semicolon of a name ends no fact"
    at = next(number for number, line in enumerate(shown) if "fix for groups new and newer:" in line)
    assert shown[at + 1].strip() == "> group.protocol=classic"
    rack_a = next(number for number, line in enumerate(shown) if "losing rack a leaves 6 partitions" in line)
    assert sum("without a leader" in line for line in shown) == 1, "the risk is said once"
    assert shown[rack_a].split()[0] == "risk"


def test_at_min_isr_only_writes_that_ask_for_all_replicas_stop(here: Run, record: Record) -> None:
    answers = an_observation().topic("strict", (1, 2, 3), isr={0: (1, 2)}, min_insync_replicas="2")
    rows = here("doctor", "--replay", str(record(answers)), "-o", "json").json
    (row,) = (row for row in rows if row["check"] == "partitions have enough in-sync replicas")
    assert row["state"] == "risk"
    assert "at min ISR: with one in-sync replica less, writes with acks=all stop" in row["sentence"]


def test_brokers_that_spell_one_rack_in_two_ways_have_a_choice_and_their_clients_too(here: Run, record: Record) -> None:
    answers = an_observation(a=(1,), A=(2,), b=(3,)).topic("t", (1, 2, 3)).group("g", reader("m", "_a", "t-0"))
    rows = here("doctor", "--replay", str(record(answers)), "-o", "json").json
    (row,) = (row for row in rows if row["check"] == "racks have one spelling")
    assert row["state"] == "FAULT"
    assert row["fixes"] == [
        {"who": ["broker 1", "broker 2"], "lines": ["broker.rack=<A|a>"]},
        {"who": ["group g"], "lines": ["client.rack=<A|a>"]},
    ]
