"""The journal on real brokers: one writer at a time, nothing half-written, and no view that stops too early."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary_event
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from agent.act.journal.journal_topic import JournalWatermark, read_journal_topic
from agent.act.journal.kafka_journal import KafkaJournal
from agent.errors import BadInput, ConfigError, FencedOut, JournalUnavailable, WrongCluster
from agent.journal.entries import MAX_VALUE_BYTES, JournalState, JournalWrite
from agent.journal.record_trust import LEADER, leader_in
from testbed.cluster import ConnectionFault, ConnectionFaultKind, EmbeddedCluster
from tests.act.journals import (
    a_write,
    committed_journal,
    delete_topics,
    leader,
    make_topics,
    new_prefix,
    opened,
    order,
    plan,
    records,
)
from tests.cluster.driver import ClusterDriver
from tests.conftest import WatchedCluster
from tests.docs.schemas import journal_schema
from tests.observe.live import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.drill]
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "journal.v1.json"


@pytest.fixture
def servers(cluster: ClusterDriver | WatchedCluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def prefix(servers: str) -> str:
    one = new_prefix()
    make_topics(servers, one)
    return one


def without_leader(view: JournalState) -> dict[str, Any]:
    return {key: entry for key, entry in view.items() if key != LEADER}


def test_a_second_writer_fences_the_first_which_then_writes_nothing(servers: str, prefix: str) -> None:
    with opened(plan(servers, prefix, "one")) as one:
        one.append(a_write("plan/a", n=1), a_write("plan/b", n=1))
        with opened(plan(servers, prefix, "two")) as two:
            assert (one.epoch, two.epoch) == (1, 2)
            assert without_leader(two.view()) == without_leader(one.view())
            for _ in range(2):
                with pytest.raises(FencedOut, match="Another agent took over") as fenced:
                    one.append(a_write("late", n=1))
            assert fenced.value.exit_code == 6
            assert isinstance(one.ended, FencedOut)
            two.append(JournalWrite("plan/b", "gone", None), a_write("plan/c", n=2))
            assert set(two.view()) == {LEADER, "plan/a", "plan/c"}
            assert committed_journal(servers, prefix).view == two.view()
    assert order(servers, prefix) == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]


def test_whatever_was_written_is_read_again_the_same(servers: str, prefix: str) -> None:
    dice = random.Random(5)
    views = []
    for epoch in (1, 2, 3):
        with opened(plan(servers, prefix, f"agent-{epoch}")) as journal:
            assert journal.epoch == epoch
            if views:
                assert without_leader(journal.view()) == without_leader(views[-1])
            for number in range(8):
                keys = dice.sample(["plan/a", "plan/b", "throttle/a/b", "pause", "batch/a/1"], dice.randint(1, 4))
                journal.append(
                    *(
                        JournalWrite(k, "k", dice.choice([None, {"n": number, "text": "ü" * dice.randint(0, 9)}]))
                        for k in keys
                    )
                )
            views.append(journal.view())
            assert committed_journal(servers, prefix).view == journal.view()
            assert read_journal_topic(
                {"bootstrap.servers": servers}, f"{prefix}.journal", prefix=prefix, timeout_ms=10_000
            ) == dict(journal.view())
    assert order(servers, prefix) == sorted(order(servers, prefix))


def test_records_are_events_that_keep_to_the_schema(servers: str, prefix: str) -> None:
    assert json.loads(SCHEMA.read_text()) == journal_schema(), "a change here is one for every reader of the journal"
    with opened(plan(servers, prefix, "one")) as journal:
        journal.append(a_write("plan/a", n=1), JournalWrite("plan/a", "gone", None))
    written = records(servers, prefix)
    assert [record.headers["ce_type"] for record in written] == [
        "rackwise.journal.entry.v1",
        "rackwise.journal.entry.v1",
        "rackwise.journal.gone.v1",
    ]
    for record in written[:2]:
        jsonschema.validate(json.loads(record.value or b""), journal_schema())
        raw = {name: value.encode() for name, value in record.headers.items()}
        event = from_binary_event(KafkaMessage(headers=raw, key=record.key.encode(), value=record.value or b""))
        assert event.get_subject() == record.key
        assert event.get_source() == "/clusters/cluster-under-test/agents/one"
    assert written[2].value is None


def test_a_value_that_is_too_big_is_refused_and_one_below_goes_in(servers: str, prefix: str) -> None:
    with opened(plan(servers, prefix)) as journal:
        big = {"text": "x" * (MAX_VALUE_BYTES - 200)}
        journal.append(JournalWrite("plan/big", "k", big))
        with pytest.raises(BadInput, match="too big"):
            journal.append(a_write("plan/a", n=1), JournalWrite("plan/b", "k", {"text": "x" * MAX_VALUE_BYTES}))
        assert set(committed_journal(servers, prefix).view) == {LEADER, "plan/big"}
        assert committed_journal(servers, prefix).view["plan/big"].value == big


class Cutting:
    """The real producer, with a fault put in right before it commits: no broker can be asked for that moment."""

    def __init__(self, producer: Producer, cut: Callable[[], None]) -> None:
        self._producer = producer
        self._cut = cut

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def commit_transaction(self, *arguments: Any) -> None:
        cut, self._cut = self._cut, lambda: None
        cut()
        self._producer.commit_transaction(*arguments)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(ConnectionFaultKind.MUTE, id="done, and the answer is lost"),
        pytest.param(ConnectionFaultKind.BLACKHOLE, id="lost on its way"),
    ],
)
def test_after_a_commit_without_an_answer_the_topic_is_asked_first(
    embedded_cluster: EmbeddedCluster, kind: ConnectionFaultKind
) -> None:
    servers, prefix = embedded_cluster.bootstrap_servers, new_prefix()
    make_topics(servers, prefix)
    through = plan(embedded_cluster.proxied_bootstrap_servers, prefix, deadline_ms=2_000)
    with opened(through) as journal:
        journal.append(a_write("plan/a", n=1))
        journal._producer = Cutting(journal._producer, lambda: embedded_cluster.inject(ConnectionFault(kind)))  # type: ignore[assignment]
        try:
            with pytest.raises(JournalUnavailable):
                journal.append(a_write("plan/a", n=2), a_write("plan/b", n=2))
            with pytest.raises(JournalUnavailable):
                journal.view()
            with pytest.raises(JournalUnavailable):
                journal.append(a_write("plan/c", n=3))
        finally:
            embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.PASS))
        view = _patiently(journal.view)
        assert view["plan/a"].value == view["plan/b"].value == {"n": 2}, "it was only late"
        assert "plan/c" not in view
        assert committed_journal(servers, prefix).view == view
        _patiently(lambda: journal.append(a_write("plan/c", n=4)))
        assert committed_journal(servers, prefix).view == journal.view()
        places = order(servers, prefix)
        assert len(set(places)) == len(places) == 5, "nothing was written twice"


def test_what_brokers_never_took_was_not_written(embedded_cluster: EmbeddedCluster) -> None:
    servers, prefix = embedded_cluster.bootstrap_servers, new_prefix()
    make_topics(servers, prefix)
    with opened(plan(embedded_cluster.proxied_bootstrap_servers, prefix, deadline_ms=2_000)) as journal:
        journal.append(a_write("plan/a", n=1))
        embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.BLACKHOLE))
        try:
            with pytest.raises(JournalUnavailable):
                journal.append(a_write("plan/a", n=2))
        finally:
            embedded_cluster.inject(ConnectionFault(ConnectionFaultKind.PASS))
        assert _patiently(journal.view)["plan/a"].value == {"n": 1}
        _patiently(lambda: journal.append(a_write("plan/b", n=3)))
        assert committed_journal(servers, prefix).view == journal.view()
        assert committed_journal(servers, prefix).view["plan/a"].value == {"n": 1}


def _patiently(call: Callable[[], Any]) -> Any:
    """The connection comes back in its own time."""
    until = time.monotonic() + 20
    while True:
        try:
            return call()
        except JournalUnavailable:
            assert time.monotonic() < until
            time.sleep(0.2)


def test_a_topic_that_was_made_anew_is_told_and_nothing_is_written_there(servers: str, prefix: str) -> None:
    with opened(plan(servers, prefix, deadline_ms=5_000)) as journal:
        for number in range(3):
            journal.append(a_write("plan/a", n=number))
        delete_topics(servers, *(f"{prefix}.{name}" for name in ("journal", "leader", "commands")))
        make_topics(servers, prefix)
        with pytest.raises(BadInput, match="has lost records"):
            _patiently(lambda: journal.append(a_write("plan/b", n=1)))
        assert committed_journal(servers, prefix).view == {}
    with pytest.raises(BadInput, match="it ends with epoch 0, but epoch 1 has begun before"):
        KafkaJournal.open(plan(servers, prefix), watermark=JournalWatermark(1))


def test_a_topic_that_was_cut_is_told(servers: str, prefix: str) -> None:
    with opened(plan(servers, prefix)) as journal:
        journal.append(a_write("plan/a", n=1))
        admin = AdminClient({"bootstrap.servers": servers})
        cut = TopicPartition(f"{prefix}.journal", 0, 2)
        _set_policy(admin, f"{prefix}.journal", "compact,delete")
        wait_for(lambda: _is_cut(admin, cut), "the brokers know the new policy")
        _set_policy(admin, f"{prefix}.journal", "compact")
        with pytest.raises(BadInput, match="its first records are gone"):
            KafkaJournal.open(plan(servers, prefix, "two"))
        journal.append(a_write("plan/b", n=1))
        assert journal.view()["plan/a"].value == {"n": 1}, "and no writer was fenced for it"


def _is_cut(admin: AdminClient, at: TopicPartition) -> bool:
    try:
        admin.delete_records([at])[at].result(10)
    except KafkaException as failed:
        return bool(failed.args[0].code() != KafkaError.POLICY_VIOLATION)
    return True


def _set_policy(admin: AdminClient, topic: str, policy: str) -> None:
    from confluent_kafka.admin import (  # noqa: PLC0415 named beside their only use
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(10)


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        pytest.param(("delete", 1), "its cleanup.policy is delete", id="one that brokers delete from"),
        pytest.param(("compact", 2), "it has 2 partitions", id="one without an order"),
        pytest.param(None, "no agent in mode execute has run here", id="none"),
    ],
)
def test_a_topic_that_is_no_journal_is_not_written(servers: str, topic: tuple[str, int] | None, why: str) -> None:
    prefix = new_prefix()
    if topic is not None:
        name = f"{prefix}.journal"
        new = NewTopic(name, topic[1], 3, config={"cleanup.policy": topic[0]})
        admin = AdminClient({"bootstrap.servers": servers})  # kept: a dropped client fails the call
        admin.create_topics([new])[name].result(10)
    with pytest.raises(ConfigError, match=why):
        KafkaJournal.open(plan(servers, prefix))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        pytest.param(b"\x00garbage", "hold no valid entries", id="garbage"),
        pytest.param(b'{"v": 2, "shape": "of tomorrow"}', "a newer rackwise wrote it", id="a newer rackwise's entry"),
    ],
)
def test_a_journal_with_records_that_cannot_be_read_is_not_written_and_nobody_is_fenced(
    servers: str, prefix: str, value: bytes, sentence: str
) -> None:
    with opened(plan(servers, prefix, "one")) as one:
        one.append(a_write("plan/a", n=1))
        foreign = Producer({"bootstrap.servers": servers})
        foreign.produce(f"{prefix}.journal", key=b"plan/strange", value=value)
        assert foreign.flush(10) == 0
        with pytest.raises(BadInput, match=sentence):
            KafkaJournal.open(plan(servers, prefix, "two"))
        one.append(a_write("plan/a", n=2))
        assert set(committed_journal(servers, prefix).view) == {LEADER, "plan/a"}, "people can still read the rest"
        foreign.produce(f"{prefix}.journal", key=b"plan/strange", value=None)
        assert foreign.flush(10) == 0
    with opened(plan(servers, prefix, "two")) as two:
        assert two.view()["plan/a"].value == {"n": 2}


def test_another_clusters_journal_is_not_gone_on_with(servers: str, prefix: str) -> None:
    with opened(plan(servers, prefix)):
        pass
    from dataclasses import replace  # noqa: PLC0415 named beside its only use

    with pytest.raises(WrongCluster, match="that of cluster cluster-under-test"):
        KafkaJournal.open(replace(plan(servers, prefix), leader=leader("two", cluster="another")))


def test_what_a_killed_writer_left_open_is_ended_and_what_a_stranger_leaves_open_is_told(
    servers: str, prefix: str
) -> None:
    one = KafkaJournal.open(plan(servers, prefix, "one"))
    one._producer.begin_transaction()
    one._producer.produce(f"{prefix}.journal", key=b"plan/half", value=b"{}")
    assert one._producer.flush(10) == 0
    with opened(plan(servers, prefix, "two")) as two:
        assert (two.epoch, set(two.view())) == (2, {LEADER})
    stranger = Producer({"bootstrap.servers": servers, "transactional.id": f"{prefix}-stranger"})
    stranger.init_transactions(10)
    stranger.begin_transaction()
    stranger.produce(f"{prefix}.journal", key=b"plan/strange", value=b"{}")
    assert stranger.flush(10) == 0
    with pytest.raises(JournalUnavailable, match="a transaction may not be finished yet"):
        KafkaJournal.open(plan(servers, prefix, "three", deadline_ms=2_000))
    stranger.abort_transaction(10)
    with opened(plan(servers, prefix, "four")) as four:
        found = leader_in(four.view())
        assert found is not None
        assert found.agent == "four"
