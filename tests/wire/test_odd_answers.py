"""Answers that are allowed by the protocol and seldom seen; a real broker gives none of them on demand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agent.values.observation import GapCause, RawBroker, RawPartition, RawTopic
from agent.wire.client import WireClient
from agent.wire.failure import CallFailed
from agent.wire.protocol import DESCRIBE_CLUSTER, DESCRIBE_LOG_DIRS, LIST_GROUPS, METADATA
from assignors.problem import TopicPartition
from tests.wire.fake_broker import Answer, FakeBroker, encode_body

TOPIC = METADATA.response.MetadataResponseTopic
PARTITION = TOPIC.MetadataResponsePartition


def answering(api: Any, message: Any) -> Answer:
    return lambda version, _body: encode_body(api, message, version)


@contextmanager
def asking(answers: dict[int, Answer]) -> Iterator[WireClient]:
    """A client that knows a broker with those answers."""
    with FakeBroker(answers) as broker, WireClient(broker.arguments) as wire:
        wire.describe_brokers(5_000)
        yield wire


def partition(number: int, **facts: Any) -> Any:
    given = {"leader_id": 1, "replica_nodes": [1], "isr_nodes": [1], "offline_replicas": [], **facts}
    return PARTITION(error_code=0, partition_index=number, **given)


@pytest.mark.parametrize(
    ("row", "topic"),
    [
        pytest.param(
            TOPIC(error_code=0, name="t", partitions=[]), RawTopic("t", None, False, (), None), id="no partitions"
        ),
        pytest.param(
            TOPIC(error_code=3, name="t", partitions=[]),
            RawTopic("t", None, False, (), "UNKNOWN_TOPIC_OR_PARTITION"),
            id="an unknown topic",
        ),
        pytest.param(
            TOPIC(error_code=5, name="t", is_internal=True, partitions=[partition(0, leader_id=-1, isr_nodes=[])]),
            RawTopic("t", None, True, (RawPartition(0, None, (1,), (), ()),), "LEADER_NOT_AVAILABLE"),
            id="a partition without a leader",
        ),
        pytest.param(
            TOPIC(
                error_code=0, name="t", partitions=[partition(1), partition(0, replica_nodes=[], offline_replicas=[9])]
            ),
            RawTopic("t", None, False, (RawPartition(0, 1, (), (1,), (9,)), RawPartition(1, 1, (1,), (1,), ())), None),
            id="partitions out of order, one without replicas",
        ),
        pytest.param(
            TOPIC(error_code=0, name="tøpic \U0001f600", partitions=[partition(7)]),
            RawTopic("tøpic \U0001f600", None, False, (RawPartition(7, 1, (1,), (1,), ()),), None),
            id="a name beyond ASCII, and a first partition that is not 0",
        ),
    ],
)
def test_odd_topics_are_rows_like_any_other(row: Any, topic: RawTopic) -> None:
    answers = {METADATA.key: answering(METADATA, METADATA.response(topics=[row], brokers=[]))}
    with asking(answers) as wire:
        assert wire.describe_topics(5_000).topics == (topic,)


def test_a_rack_that_is_empty_is_no_rack() -> None:
    row = DESCRIBE_CLUSTER.response.DescribeClusterBroker
    racks = ("", None, "a", "A")
    brokers = [row(broker_id=number, host="h", port=1, rack=rack, is_fenced=False) for number, rack in enumerate(racks)]
    message = DESCRIBE_CLUSTER.response(cluster_id="c", controller_id=-1, brokers=brokers[::-1])
    with asking({DESCRIBE_CLUSTER.key: answering(DESCRIBE_CLUSTER, message)}) as wire:
        answer = wire.describe_brokers(5_000)
    assert answer.controller is None
    assert answer.brokers == tuple(
        RawBroker(number, "h", 1, rack, False) for number, rack in enumerate((None, None, "a", "A"))
    )


def test_a_broker_that_refuses_to_list_its_groups_is_a_gap() -> None:
    message = LIST_GROUPS.response(error_code=15, groups=[])
    with asking({LIST_GROUPS.key: answering(LIST_GROUPS, message)}) as wire:
        listed = wire.list_groups(500)
    assert (listed.groups, listed.silent) == ((), (1,))
    assert [gap[:3] for gap in listed.gaps] == [("groups", GapCause.ERROR, "broker 1")]
    assert listed.gaps[0].detail == "COORDINATOR_NOT_AVAILABLE"


def test_a_broker_that_loads_its_groups_is_asked_again_until_it_has_them() -> None:
    """COORDINATOR_LOAD_IN_PROGRESS passes by itself, for Kafka's AdminClient as well."""
    row = LIST_GROUPS.response.ListedGroup
    loaded = LIST_GROUPS.response(error_code=0, groups=[row(group_id="g", protocol_type="consumer")])
    loading = LIST_GROUPS.response(error_code=14, groups=[])
    asked: list[int] = []

    def answer(version: int, _body: bytes) -> bytes:
        asked.append(version)
        return encode_body(LIST_GROUPS, loading if len(asked) < 3 else loaded, version)

    with asking({LIST_GROUPS.key: answer}) as wire:
        listed = wire.list_groups(5_000)
    assert ([group.group_id for group in listed.groups], listed.silent, listed.gaps) == (["g"], (), ())
    assert len(asked) == 3


def test_log_dirs_leave_future_replicas_out_and_name_the_dir_that_failed() -> None:
    result = DESCRIBE_LOG_DIRS.response.DescribeLogDirsResult
    topic = result.DescribeLogDirsTopic
    row = topic.DescribeLogDirsPartition
    sizes = [
        row(partition_index=0, partition_size=5, offset_lag=0, is_future_key=False),
        row(partition_index=0, partition_size=3, offset_lag=0, is_future_key=True),
    ]
    good = result(error_code=0, log_dir="/one", topics=[topic(name="t", partitions=sizes)], is_cordoned=True)
    bad = result(error_code=56, log_dir="/two", topics=[])
    message = DESCRIBE_LOG_DIRS.response(error_code=0, results=[good, bad])
    with asking({DESCRIBE_LOG_DIRS.key: answering(DESCRIBE_LOG_DIRS, message)}) as wire:
        dirs = wire.describe_log_dirs(5_000)
    assert dirs.replica_bytes == {(1, TopicPartition("t", 0)): 5}
    assert dirs.cordoned == {1}
    assert [(gap.subject, gap.detail) for gap in dirs.gaps] == [("broker 1", "log dir /two: KAFKA_STORAGE_ERROR")]


def test_a_call_that_the_broker_does_not_offer_is_unsupported() -> None:
    with asking({}) as wire:
        with pytest.raises(CallFailed) as caught:
            wire.list_reassignments(5_000)
        listed = wire.list_groups(5_000)
    assert caught.value.cause is GapCause.UNSUPPORTED
    assert "does not offer ListPartitionReassignments v0 or newer (it offers none)" in caught.value.detail
    assert [(gap.cause, gap.subject) for gap in listed.gaps] == [(GapCause.UNSUPPORTED, "broker 1")]
