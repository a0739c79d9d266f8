"""What is read from the bytes of a request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol import admin, consumer, metadata, producer

from testbed.cluster.requests import RequestHeader, RequestSubject, api_name, read_header, record, without_brokers

TOPIC = RequestSubject("topic", "orders")


def frame_of(request: Any, client_id: str | None = "probe") -> bytes:
    request.with_header(correlation_id=7, client_id=client_id)
    return bytes(request.encode(header=True))


def recorded(frame: bytes) -> Any:
    header = read_header(frame)
    assert header is not None
    return record(1, 2, header, frame)


def produce(version: int) -> Any:
    kind = producer.ProduceRequest
    partition = kind.TopicProduceData.PartitionProduceData(index=0, records=b"")
    topic = kind.TopicProduceData(name="orders", partition_data=[partition])
    return kind(version=version, transactional_id="rackwise-1", acks=-1, timeout_ms=1, topic_data=[topic])


def create_topics() -> Any:
    topic = admin.CreateTopicsRequest.CreatableTopic(
        name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    return admin.CreateTopicsRequest(version=5, topics=[topic], timeout_ms=1, validate_only=False)


def reassign() -> Any:
    kind = admin.AlterPartitionReassignmentsRequest
    partition = kind.ReassignableTopic.ReassignablePartition(partition_index=0, replicas=[1])
    return kind(version=0, timeout_ms=1, topics=[kind.ReassignableTopic(name="orders", partitions=[partition])])


def alter_configs() -> Any:
    kind = admin.IncrementalAlterConfigsRequest
    config = kind.AlterConfigsResource.AlterableConfig(name="x", config_operation=0, value="y")
    resources = [
        kind.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[config]),
        kind.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config]),
    ]
    return kind(version=1, resources=resources, validate_only=False)


def ask_metadata(topics: list[str] | None, version: int = 9, *, create: bool) -> Any:
    kind = metadata.MetadataRequest
    named = None if topics is None else [kind.MetadataRequestTopic(name=name) for name in topics]
    return kind(version=version, topics=named, allow_auto_topic_creation=create)


@pytest.mark.parametrize(
    ("request_", "api", "subjects"),
    [
        pytest.param(produce(9), "Produce", (RequestSubject("transactional id", "rackwise-1"), TOPIC), id="a write"),
        pytest.param(create_topics(), "CreateTopics", (TOPIC,), id="a creation names its topic"),
        pytest.param(reassign(), "AlterPartitionReassignments", (TOPIC,), id="a reassignment names its topic"),
        pytest.param(alter_configs(), "IncrementalAlterConfigs", (TOPIC, RequestSubject("broker", "1")), id="a config"),
        pytest.param(
            admin.ElectLeadersRequest(version=2, election_type=0, topic_partitions=None, timeout_ms=1),
            "ElectLeaders",
            (RequestSubject("topic", "*"),),
            id="an election without topics means all",
        ),
        pytest.param(
            producer.InitProducerIdRequest(version=2, transactional_id="rackwise-1", transaction_timeout_ms=1),
            "InitProducerId",
            (RequestSubject("transactional id", "rackwise-1"),),
            id="a producer names its transactional id",
        ),
        pytest.param(
            consumer.LeaveGroupRequest(version=4, group_id="g", members=[]),
            "LeaveGroup",
            (RequestSubject("group", "g"),),
            id="leaving names the group",
        ),
        pytest.param(
            ask_metadata(["orders"], create=True), "Metadata", (TOPIC,), id="metadata that may create a topic"
        ),
        pytest.param(
            ask_metadata(["orders"], 1, create=False), "Metadata", (TOPIC,), id="old metadata always may create a topic"
        ),
    ],
)
def test_a_mutating_request_is_recorded_with_what_it_names(
    request_: Any, api: str, subjects: tuple[RequestSubject, ...]
) -> None:
    one = recorded(frame_of(request_))
    assert (one.api, one.mutating, one.subjects) == (api, True, subjects)
    assert (one.broker_id, one.client_id, one.correlation_id) == (2, "probe", 7)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(ask_metadata(None, create=True), id="metadata of all topics creates none"),
        pytest.param(ask_metadata(["orders"], create=False), id="metadata that says it creates nothing"),
        pytest.param(admin.DescribeClusterRequest(version=1), id="describing the cluster"),
        pytest.param(admin.ListPartitionReassignmentsRequest(version=0, timeout_ms=1, topics=None), id="listing moves"),
    ],
)
def test_a_request_that_only_reads_names_nothing(request_: Any) -> None:
    one = recorded(frame_of(request_))
    assert (one.mutating, one.subjects, one.topics) == (False, (), ())


@pytest.mark.parametrize(
    ("api_key", "name"), [(68, "ConsumerGroupHeartbeat"), (76, "ShareGroupHeartbeat"), (88, "StreamsGroupHeartbeat")]
)
def test_heartbeats_of_the_newer_groups_name_their_group(api_key: int, name: str) -> None:
    header = api_key.to_bytes(2, "big") + b"\0\0" + b"\0\0\0\7" + b"\0\5probe" + b"\0"
    one = recorded(header + b"\x07orders" + b"rest")
    assert (one.api, one.mutating, one.subjects) == (name, True, (RequestSubject("group", "orders"),))


def test_an_unknown_api_counts_as_mutating_and_unreadable() -> None:
    one = recorded(b"\x03\xe7\0\0\0\0\0\7\xff\xff")
    assert (one.api, one.mutating, one.subjects, one.topics, one.client_id) == ("api-999", True, None, None, None)


def test_a_newer_version_of_a_known_api_is_not_guessed_at() -> None:
    frame = bytearray(frame_of(create_topics()))
    frame[2:4] = (99).to_bytes(2, "big")
    one = recorded(bytes(frame))
    assert (one.mutating, one.subjects) == (True, None)


def test_a_topic_given_by_id_is_never_mistaken_for_a_name() -> None:
    kind = producer.ProduceRequest
    topic = kind.TopicProduceData(partition_data=[])
    one = recorded(frame_of(kind(version=13, transactional_id=None, acks=-1, timeout_ms=1, topic_data=[topic])))
    assert one.subjects is not None
    assert [subject.kind for subject in one.subjects] == ["topic id"]
    assert one.topics == ()


@given(st.binary(max_size=300))
def test_any_bytes_are_recorded_or_refused_but_never_raise(frame: bytes) -> None:
    header = read_header(frame)
    assert (header is None) == (len(frame) < 10)
    if header is not None:
        one = record(1, 1, header, frame)
        assert one.api == api_name(header.api_key)
        assert one.subjects is not None or one.mutating


@given(
    st.sampled_from([produce(9), create_topics(), reassign(), alter_configs()]),
    st.integers(0, 200),
    st.integers(0, 255),
)
def test_a_damaged_request_is_still_a_mutating_one(request_: Any, at: int, value: int) -> None:
    frame = bytearray(frame_of(request_))
    body = 10 + len("probe")
    frame[min(body + at, len(frame) - 1)] = value
    assert recorded(bytes(frame)).mutating
    assert recorded(bytes(frame[: body + at])).mutating


def brokers_answer(version: int) -> bytes:
    kind = metadata.MetadataResponse
    broker = kind.MetadataResponseBroker(node_id=1, host="h", port=2, rack="a")
    answer = kind(version=version, brokers=[broker], cluster_id="c", controller_id=1, topics=[], throttle_time_ms=0)
    answer.with_header(correlation_id=7)
    return bytes(answer.encode(header=True))


@pytest.mark.parametrize("version", [1, 4, 8, 9, 12, 13])
def test_an_answer_without_brokers_keeps_all_else(version: int) -> None:
    emptied = without_brokers(3, version, brokers_answer(version))
    parsed = metadata.MetadataResponse.decode(emptied, version=version, header=True)
    assert parsed.brokers == []
    assert parsed.controller_id == 1
    assert parsed.header.correlation_id == 7


def test_an_answer_that_cannot_be_read_passes_as_it_was() -> None:
    assert without_brokers(3, 9, b"\0\0\0\7garbage") == b"\0\0\0\7garbage"


def test_a_header_without_a_client_id_is_read() -> None:
    assert read_header(b"\0\3\0\1\0\0\0\7\xff\xff") == RequestHeader(3, 1, 7, None)
