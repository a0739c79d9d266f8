"""The last look before a request: on its own connection, right before it, and what it leaves out is not sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.values.observation import RawReassignment, RawTopic
from agent.values.throttles import OpType, SeenThrottle, ThrottleChange, ThrottleResource
from agent.wire.admin_client import WireAdminClient
from agent.wire.changes import Fate, RequestPrecheck
from agent.wire.protocol import (
    ALTER_PARTITION_REASSIGNMENTS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
)
from agent.wire.protocol import LIST_PARTITION_REASSIGNMENTS as LISTED
from assignors.problem import TopicPartition
from tests.wire.fake_broker import Answer, FakeBroker, encode_body

MOVED, STILL = TopicPartition("moved", 0), TopicPartition("moved", 1)
RATE = ThrottleChange(ThrottleResource(broker=1), "leader.replication.throttled.rate", OpType.DELETE)
LIST = ThrottleChange(ThrottleResource(topic="moved"), "leader.replication.throttled.replicas", OpType.DELETE)
Seen = Mapping[ThrottleChange, SeenThrottle | None]
SENT = {ALTER_PARTITION_REASSIGNMENTS.key, INCREMENTAL_ALTER_CONFIGS.key}


def metadata(version: int, _body: memoryview) -> bytes:
    topic = METADATA.response.MetadataResponseTopic
    rows = [
        topic.MetadataResponsePartition(partition_index=one, leader_id=1, replica_nodes=[1, 2, 3], isr_nodes=[1])
        for one in (0, 1)
    ]
    return encode_body(METADATA, METADATA.response(topics=[topic(name="moved", partitions=rows)]), version)


def listed(version: int, _body: memoryview, code: int = 0) -> bytes:
    topic = LISTED.response.OngoingTopicReassignment
    row = topic.OngoingPartitionReassignment(
        partition_index=0, replicas=[3, 2, 1], adding_replicas=[3], removing_replicas=[1]
    )
    answer = LISTED.response(error_code=code, topics=[topic(name="moved", partitions=[row])] if code == 0 else [])
    return encode_body(LISTED, answer, version)


def altered(version: int, _body: memoryview) -> bytes:
    kind = ALTER_PARTITION_REASSIGNMENTS.response
    topic = kind.ReassignableTopicResponse
    rows = [topic.ReassignablePartitionResponse(partition_index=one, error_code=0) for one in (0, 1)]
    return encode_body(ALTER_PARTITION_REASSIGNMENTS, kind(responses=[topic(name="moved", partitions=rows)]), version)


def configs(code: int = 0) -> Answer:
    def answer(version: int, body: memoryview) -> bytes:
        kind = DESCRIBE_CONFIGS.response.DescribeConfigsResult
        holder, change = (4, RATE) if b"rate" in bytes(body) else (2, LIST)
        row = kind.DescribeConfigsResourceResult(name=change.key, value="7", config_source=2 if holder == 4 else 1)
        rows = [kind(error_code=code, resource_type=holder, resource_name=change.resource.name, configs=[row])]
        return encode_body(DESCRIBE_CONFIGS, DESCRIBE_CONFIGS.response(results=rows), version)

    return answer


def incremented(version: int, body: memoryview) -> bytes:
    api = INCREMENTAL_ALTER_CONFIGS
    holder, change = (4, RATE) if b"rate" in bytes(body) else (2, LIST)
    row = api.response.AlterConfigsResourceResponse(
        error_code=0, resource_type=holder, resource_name=change.resource.name
    )
    return encode_body(api, api.response(responses=[row]), version)


def a_broker(**other: Answer) -> FakeBroker:
    return FakeBroker(
        {
            METADATA.key: metadata,
            LISTED.key: other.get("listed", listed),
            ALTER_PARTITION_REASSIGNMENTS.key: altered,
            DESCRIBE_CONFIGS.key: other.get("configs", configs()),
            INCREMENTAL_ALTER_CONFIGS.key: incremented,
        }
    )


def asked(broker: FakeBroker, *apis: Any) -> list[int]:
    keys = {api.key for api in apis} | SENT
    return [key for key, _ in broker.asked if key in keys]


@pytest.mark.parametrize("target", [(3, 2), None], ids=["a move", "a cancel"])
def test_a_reassignment_is_looked_at_right_before_on_the_same_connection(target: tuple[int, ...] | None) -> None:
    seen: list[RequestPrecheck] = []

    def leave_out(look: RequestPrecheck) -> set[TopicPartition]:
        seen.append(look)
        return {MOVED}

    with a_broker() as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        before = broker.connections
        answers = hand.alter_placements({MOVED: target, STILL: target}, 2_000, None, leave_out)
        assert asked(broker, METADATA, LISTED) == [METADATA.key, LISTED.key, ALTER_PARTITION_REASSIGNMENTS.key]
        assert broker.connections == before
    assert [answers[one].fate for one in (MOVED, STILL)] == [Fate.NOT_SENT, Fate.DONE]
    (look,) = seen
    assert look.running == {MOVED: RawReassignment(MOVED, (3, 2, 1), (3,), (1,))}
    assert [row.replicas for row in look.topics["moved"].partitions] == [(1, 2, 3), (1, 2, 3)]


def test_a_request_from_which_everything_is_left_out_is_not_sent() -> None:
    with a_broker() as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        answers = hand.alter_placements({MOVED: None}, 2_000, None, lambda _: {MOVED})
        assert (answers[MOVED].fate, asked(broker)) == (Fate.NOT_SENT, [])


def test_where_the_last_look_fails_nothing_is_sent() -> None:
    with (
        a_broker(listed=lambda version, body: listed(version, body, 41), configs=configs(29)) as broker,
        WireAdminClient(broker.arguments) as hand,
    ):
        hand.describe_brokers(2_000)
        moved = hand.alter_placements({MOVED: None}, 2_000, None, lambda _: set())
        seen: list[Seen] = []

        def leave_out(throttles: Seen, topics: Mapping[str, RawTopic]) -> set[ThrottleResource]:
            seen.append(throttles)
            return {one.resource for one, found in throttles.items() if found is None}

        rate = hand.change_throttles([RATE], 2_000, None, leave_out)
        assert (moved[MOVED].fate, rate[RATE.resource].fate, asked(broker)) == (Fate.NOT_SENT, Fate.NOT_SENT, [])
        assert seen == [{RATE: None}]


@pytest.mark.parametrize("change", [RATE, LIST], ids=["a broker's rate", "a topic's list"])
@pytest.mark.parametrize("left_out", [False, True])
def test_a_throttle_is_looked_at_right_before_on_the_same_connection(change: ThrottleChange, *, left_out: bool) -> None:
    seen: list[Seen] = []

    def leave_out(throttles: Seen, topics: Mapping[str, RawTopic]) -> set[ThrottleResource]:
        seen.append(throttles)
        assert set(topics) == ({"moved"} if change is LIST else set())
        return {change.resource} if left_out else set()

    with a_broker() as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        before = broker.connections
        answers = hand.change_throttles([change], 2_000, None, leave_out)
        assert broker.connections == before
        sent = [] if left_out else [INCREMENTAL_ALTER_CONFIGS.key]
        looks = [DESCRIBE_CONFIGS.key, *([METADATA.key] if change is LIST else [])]
        assert asked(broker, DESCRIBE_CONFIGS, METADATA) == [*looks, *sent]
    assert seen == [{change: SeenThrottle(change.resource, change.key, "7")}]
    assert answers[change.resource].fate is (Fate.NOT_SENT if left_out else Fate.DONE)
