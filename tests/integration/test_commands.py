"""Every command against the demo's scene, as a process of its own: answers, forms and exit codes."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from typing import Any

import pytest
import yaml

from agent.values.cycle import Cycle
from testbed.cluster import ConnectionFault, ConnectionFaultKind, EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from testbed.demo.workload.plan import WorkloadFaultKind as Seeded
from tests.command import Done, rackwise
from tests.integration.test_first_look import GROUPS, crossings, held_by_rack, replica_racks


@pytest.fixture
def at(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> tuple[str, ...]:
    """The options that name the scene's cluster."""
    return ("-b", demo_cluster.bootstrap_servers)


def answered(done: Done) -> Any:
    """Its JSON; a command that answers in full is silent on stderr."""
    assert (done.exit_code, done.stderr) == (0, "")
    return done.json


def test_status_sums_the_cluster_up(at: tuple[str, ...], demo_cluster: EmbeddedCluster) -> None:
    status = answered(rackwise("status", *at, "-o", "json"))
    assert status["cluster"] == demo_cluster.cluster_id
    assert {row["rack"]: row["brokers"] for row in status["brokers"]} == {"a": [1, 4], "b": [2], "c": [3]}
    assert Counter(kind.value for kind in GROUPS.values()) <= Counter(status["groups"])
    assert status["gaps"] == []
    assert {finding["subject"] for finding in status["findings"]} >= {"topic/payments", "topic/views", "group/mailer"}
    assert all(finding["sentence"] and finding["since_ms"] for finding in status["findings"])


def test_racks_add_up_to_the_cluster(at: tuple[str, ...]) -> None:
    rows = {row["rack"]: row for row in answered(rackwise("racks", *at, "-o", "json"))}
    assert {name: row["brokers"] for name, row in rows.items()} == {"a": [1, 4], "b": [2], "c": [3], None: []}
    assert rows[None]["members"] == 5, "three of mailer and two of exports"
    # shop and shop-next: nine tasks each, every one active once and standing by once.
    assert sum(row["active_tasks"] for row in rows.values()) == 18
    assert sum(row["standby_tasks"] for row in rows.values()) == 18
    assert {name: row["loss"] is None for name, row in rows.items()} == {
        "a": False, "b": False, "c": False, None: True,
    }  # fmt: skip
    assert any(name.startswith("payments-") for name in rows["a"]["loss"]["leaderless"])


@pytest.mark.parametrize(
    ("form", "read"),
    [
        pytest.param("jsonl", lambda text: [json.loads(line) for line in text.splitlines()], id="jsonl"),
        pytest.param("yaml", yaml.safe_load, id="yaml"),
        pytest.param("csv", lambda text: list(csv.DictReader(io.StringIO(text))), id="csv"),
        pytest.param("table", lambda text: [{"group": line.split()[0]} for line in text.splitlines()[1:]], id="table"),
    ],
)
def test_groups_come_in_every_form(at: tuple[str, ...], form: str, read: Any) -> None:
    done = rackwise("groups", *at, "-o", form)
    assert (done.exit_code, done.stderr) == (0, "")
    assert {row["group"] for row in read(done.stdout)} >= set(GROUPS)


def test_one_group_is_shown_with_its_members_and_the_copies_of_its_tasks(at: tuple[str, ...]) -> None:
    group = answered(rackwise("groups", "shop", *at, "-o", "json"))
    assert (group["kind"], group["state"], group["assignor"]) == ("classic streams", "Stable", "stream")
    assert {member["rack"] for member in group["member_list"]} == {"a", "b"}
    assert {(task["task"], task["role"]) for task in group["task_list"]} >= {("0_0", "active"), ("0_0", "standby")}
    assert all(task["source"] for task in group["task_list"])


def test_the_kip_848_group_has_what_the_plug_in_would_bring_as_a_sentence(
    at: tuple[str, ...], work: ClusterWorkload
) -> None:
    """Two replicas in three racks, follower fetching: uniform leaves it to chance how many of its reads are local."""
    racks_of = replica_racks(work, "clicks")
    held = held_by_rack(work, "search")
    now = 6 - sum(crossings(racks_of, rack, partitions) for rack, partitions in held.items())
    gain = answered(rackwise("groups", "search", *at, "-o", "json"))["plugin_gain"]
    expected = f"with the plug-in 6 of 6 local instead of {now} of 6"
    if now == 6:
        expected = "nothing to gain now: 6 of 6 are local; uniform does not look at racks when it assigns next"
    assert gain.startswith(expected)
    said = f"plug-in for brokers, group search: {expected}"
    assert said in " ".join(rackwise("groups", *at, "-o", "table").stdout.split())
    assert said in " ".join(rackwise("doctor", *at, "-o", "table").stdout.split())


def test_a_group_that_no_broker_lists_is_bad_input(at: tuple[str, ...]) -> None:
    done = rackwise("groups", "nobody", *at)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "rackwise: there is no group 'nobody'",
        "  why: no broker lists it",
        f"  do:  List all groups: rackwise groups {' '.join(at)} --all",
    ]


def test_the_doctor_answers_every_question(at: tuple[str, ...], still: Cycle, work: ClusterWorkload) -> None:
    rows = answered(rackwise("doctor", *at, "-o", "json"))
    ignoring = {fault.subject for fault in work.plan.faults if fault.kind is Seeded.GROUP_IGNORES_RACKS}
    # By chance both are at their optimum now and then: then there is nothing to gain.
    to_gain = {group for group in ignoring if not still.detection.assessments[group].at_optimum}
    assert [row["check"] for row in rows if row["state"] == "FAULT"] == [
        "clients send client.rack",
        *(["assignors cost no local reads"] if to_gain else []),
        "replicas are spread over racks",
    ]
    assert next(row for row in rows if row["check"] == "clients send client.rack")["line"] == "client.rack=<a|b|c>"
    losses = [row for row in rows if "losing rack " in row["check"]]
    states = {row["check"]: row["state"] for row in rows if row not in losses}
    assert states.pop("racks are known") == "unknown", "a member was put there without a rack"
    assert states.pop("preferred leaders are spread over racks") == "risk", "status has it as info"
    assert set(states.values()) == {"ok", "FAULT"}
    assert len(losses) == 3
    assert losses[0]["state"] == "risk"
    assert losses[0]["check"].startswith("losing rack a leaves ")
    assert "payments" in losses[0]["who"], "its replicas share rack a"


def test_a_plan_says_by_its_exit_code_that_something_is_proposed(at: tuple[str, ...]) -> None:
    done = rackwise("plan", *at, "-o", "json", "--detailed-exitcode")
    assert (done.exit_code, done.stderr) == (3, "")
    kinds = {(row["kind"], row["subject"]["name"]) for row in done.json}
    assert kinds >= {
        ("reassign", "payments"), ("leaders", "views"), ("advise", "mailer"), ("advise", "exports"),
    }  # fmt: skip


def test_a_simulation_shows_the_groups_that_a_change_concerns(at: tuple[str, ...]) -> None:
    done = answered(rackwise("simulate", *at, "--add-member", "shop=c", "--remove-rack", "b", "-o", "json"))
    rows = {row["group"]: row for row in done["groups"]}
    shop = rows["shop"]
    assert shop["prediction"]["assignor"] == "HighAvailabilityTaskAssignor"
    assert shop["own_assignor"]["reads"] == shop["optimum"]["reads"] == shop["now"]["reads"]
    assert shop["waiting"] > 0
    assert next(row for row in done["racks"] if row["rack"] == "b")["then"] is None


@pytest.mark.parametrize(
    ("subject", "word"),
    [
        pytest.param("topic/payments", "replicas move", id="a topic"),
        pytest.param("topic/payments/0", "rack", id="a partition"),
        pytest.param("group/search", "broker", id="a group"),
    ],
)
def test_explain_answers_with_rules(at: tuple[str, ...], subject: str, word: str) -> None:
    done = rackwise("explain", subject, *at, "-o", "json")
    assert done.exit_code == 0
    figures, *judged = done.stderr.splitlines()
    assert figures.startswith("figures of ")
    assert judged == [
        (
            "no running agent's telemetry (there is no topic rackwise.telemetry): judged with the settings given here, "
            "mode propose"
        )
    ]
    rows = done.json
    assert rows
    assert all(row["rule"] and row["sentence"] for row in rows)
    assert word in json.dumps(rows)


def test_what_does_not_answer_is_said_and_the_exit_code_tells(
    at: tuple[str, ...], demo_cluster: EmbeddedCluster
) -> None:
    demo_cluster.inject(ConnectionFault(ConnectionFaultKind.BLACKHOLE), 3)
    try:
        through = ("-b", demo_cluster.proxied_bootstrap_servers, "--set", "observe.call_timeout=1s")
        done = rackwise("racks", *through, "-o", "json")
    finally:
        demo_cluster.proxy.heal()
    assert done.exit_code == 5
    assert "not seen: " in done.stderr
    assert "of broker 3" in done.stderr
    assert [row["rack"] for row in done.json] == ["a", "b", "c", None], "what did answer is shown"
