"""What the command line answers to bad input: the sentence that the user sees, and the exit code.

Here are the ones that need no real broker. The others:
- half-reachable: tests/integration/test_commands.py
- broken bytes of members: tests/integration/test_hostile_members.py
- a wrong password, CA or cluster id, a broker without rack, two spellings: tests/integration/test_odd_cluster.py
- a group that vanishes between two calls: tests/observe/test_observe_cluster.py
- an old broker: tests/observe/test_old_broker.py
"""

from __future__ import annotations

import socket
import uuid

import pytest

from agent.plan.new_partitions import did_you_mean
from agent.wire.protocol import DESCRIBE_CLUSTER, METADATA
from tests.command import rackwise
from tests.wire.fake_broker import FakeBroker, encode_body

STRATEGY = "rack.aware.assignment.strategy"

REFUSED = [
    pytest.param(
        "poll.intervall=5s",
        "poll.intervall: no such setting; did you mean poll.interval?",
        id="an unknown setting is answered with the nearest name",
    ),
    pytest.param(
        "kafka.sasl.username=me",
        "kafka.sasl.username: it has no effect with security.protocol PLAINTEXT; use SASL_SSL",
        id="a user without SASL is a contradiction",
    ),
    pytest.param(
        "probing.rebalance.interval.ms=59999",
        "probing.rebalance.interval.ms: 59999 is out of range; Kafka accepts at least 60000",
        id="probing more often than Kafka allows",
    ),
    pytest.param(
        "max.warmup.replicas=0",
        "max.warmup.replicas: 0 is out of range; Kafka accepts at least 1",
        id="no warm-up at all",
    ),
    pytest.param(
        "acceptable.recovery.lag=-1",
        "acceptable.recovery.lag: -1 is out of range; Kafka accepts at least 0",
        id="a negative lag",
    ),
    pytest.param(
        "groups.shop.num.standby.replicas=-1",
        "groups.shop.num.standby.replicas: -1 is out of range; Kafka accepts at least 0",
        id="less than no standby",
    ),
    pytest.param(
        f"{STRATEGY}=min_cost",
        f"{STRATEGY}: min_cost is in KIP-925's text only; Kafka released it as min_traffic",
        id="min_cost was released as min_traffic",
    ),
    pytest.param(
        f"{STRATEGY}=balanced_min_cost",
        f"{STRATEGY}: balanced_min_cost is in KIP-925's text only; Kafka released it as balance_subtopology",
        id="balanced_min_cost was released as balance_subtopology",
    ),
    pytest.param(
        "groups.shop.rack.aware.assignment.enabled=true",
        "groups.shop.rack.aware.assignment.enabled: it is in KIP-925's text only; Kafka released "
        f"{STRATEGY} (none, min_traffic or balance_subtopology)",
        id="rack.aware.assignment.enabled was released as a strategy",
    ),
]


@pytest.mark.parametrize(("setting", "sentence"), REFUSED)
def test_a_bad_setting_ends_the_command_with_its_sentence(setting: str, sentence: str) -> None:
    done = rackwise("status", "--bootstrap-servers", "127.0.0.1:9", "--set", setting)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"rackwise: {sentence} (flag --set)",
        f"  do:  Correct it and check with: rackwise config check -b 127.0.0.1:9 --set {setting}",
    ]


def test_a_cluster_where_no_answer_listens_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    done = rackwise("status", "--bootstrap-servers", address)
    assert (done.exit_code, done.stdout) == (5, "")
    assert done.stderr.splitlines() == [
        "rackwise: No broker answered",
        f"  why: {address}: connection refused",
        "  do:  Check bootstrap.servers and that the brokers run.",
    ]


def test_a_host_that_does_not_resolve_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_args: object, **_kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    done = rackwise("status", "--bootstrap-servers", "kafka.nowhere:9092")
    assert (done.exit_code, done.stdout) == (5, "")
    assert done.stderr.splitlines()[:2] == [
        "rackwise: No broker answered",
        "  why: host kafka.nowhere does not resolve",
    ]


@pytest.mark.parametrize("command", [("status",), ("doctor",), ("plan",), ("run", "--once")], ids=" ".join)
def test_a_cluster_that_names_no_broker_yet_is_said_to_be_forming(command: tuple[str, ...]) -> None:
    """A fake: a real cluster is in this state for a moment only."""

    def no_answer(version: int, _body: memoryview) -> bytes:
        answer = DESCRIBE_CLUSTER.response(cluster_id="forming", controller_id=-1, brokers=[])
        return encode_body(DESCRIBE_CLUSTER, answer, version)

    with FakeBroker({DESCRIBE_CLUSTER.key: no_answer}) as broker:
        done = rackwise(*command, "--bootstrap-servers", f"127.0.0.1:{broker.port}")
    assert (done.exit_code, done.stdout) == (5, "")
    assert done.stderr.splitlines() == [
        "rackwise: The cluster lists no live broker",
        "  why: it may still be starting",
        "  do:  Try again in a few seconds.",
    ]


def test_a_topic_without_partitions_is_told_as_such_and_plans_nothing() -> None:
    """A fake: a real topic is in this state for a moment only, while it is created."""

    def hollow(version: int, _body: memoryview) -> bytes:
        answer = METADATA.response
        topic = answer.MetadataResponseTopic(
            error_code=0, name="hollow", topic_id=uuid.UUID(int=7), is_internal=False, partitions=[]
        )
        return encode_body(METADATA, answer(cluster_id="fake", controller_id=1, brokers=[], topics=[topic]), version)

    with FakeBroker({METADATA.key: hollow}) as broker:
        at = ("--bootstrap-servers", f"127.0.0.1:{broker.port}", "-o", "json")
        plan, status, explained = (
            rackwise(*asked, *at) for asked in (("plan",), ("status",), ("explain", "topic/hollow"))
        )
    assert (plan.exit_code, plan.json) == (0, [])
    assert (status.json["topics"], status.json["partitions"]) == (1, 0)
    assert [row["sentence"] for row in explained.json if row["rule"] == "not excluded by settings"] == [
        "the topic has no partitions yet, so there is nothing to place"
    ]


def test_the_command_that_checks_settings_does_not_advise_itself() -> None:
    done = rackwise("config", "check", "--set", "poll.interval=soon")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == "  do:  Correct the settings named above."


@pytest.mark.parametrize(("name", "near"), [("nope", None), ("shp", "shop"), ("Shop", "shop")])
def test_a_name_is_suggested_only_where_it_is_near(name: str, near: str | None) -> None:
    assert did_you_mean(name, ("shop", "payments")) == (f"Did you mean {near}? " if near else "")
