"""Calls that change something: each is sent once at most, and its answer says what is known of it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import pytest

from agent.values.throttles import OpType, ThrottleChange, ThrottleResource
from agent.wire import protocol
from agent.wire.admin_client import RawTransaction, WireAdminClient
from agent.wire.changes import DONE, ChangeResult, Fate, ForbiddenChangeError
from agent.wire.failure import Deadline
from agent.wire.protocol import (
    ALTER_PARTITION_REASSIGNMENTS,
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_TRANSACTIONS,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_TRANSACTIONS,
    METADATA,
    ApiCall,
)
from agent.wire.protocol import LIST_PARTITION_REASSIGNMENTS as LISTED
from assignors.problem import TopicPartition
from tests.wire.fake_broker import Answer, FakeBroker, encode_body

MOVED = TopicPartition("moved", 0)
RATE = (ThrottleResource(broker=1), "leader.replication.throttled.rate")
REPLICAS = (ThrottleResource(topic="moved"), "leader.replication.throttled.replicas")

Ask = Callable[[WireAdminClient, int], ChangeResult]

CHANGES: dict[ApiCall, Ask] = {
    ALTER_PARTITION_REASSIGNMENTS: lambda hand, ms: hand.alter_placements({MOVED: (1, 2)}, ms)[MOVED],
    ELECT_LEADERS: lambda hand, ms: hand.elect_preferred([MOVED], ms)[MOVED],
    INCREMENTAL_ALTER_CONFIGS: lambda hand, ms: hand.change_throttles(
        [ThrottleChange(*REPLICAS, OpType.SET, "0:1")], ms
    )[REPLICAS[0]],
}
EACH = pytest.mark.parametrize(("api", "ask"), CHANGES.items(), ids=[api.name for api in CHANGES])


def error(api: ApiCall, code: int) -> Answer:
    """The answer that refuses the one partition or topic with that code."""

    def answer(version: int, _body: memoryview) -> bytes:
        return encode_body(api, _refusal(api, code), version)

    return answer


def _refusal(api: ApiCall, code: int) -> Any:
    kind = api.response
    if api is ALTER_PARTITION_REASSIGNMENTS:
        topic = kind.ReassignableTopicResponse
        row = topic.ReassignablePartitionResponse(partition_index=0, error_code=code, error_message="so it is")
        return kind(responses=[topic(name="moved", partitions=[row])])
    if api is ELECT_LEADERS:
        result = kind.ReplicaElectionResult
        row = result.PartitionResult(partition_id=0, error_code=code, error_message="so it is")
        return kind(error_code=0, replica_election_results=[result(topic="moved", partition_result=[row])])
    row = kind.AlterConfigsResourceResponse(
        error_code=code, error_message="so it is", resource_type=2, resource_name="moved"
    )
    return kind(responses=[row])


def asked(broker: FakeBroker, api: ApiCall) -> int:
    return sum(key == api.key for key, _ in broker.asked)


def never(_version: int, _body: memoryview) -> bytes:
    raise OSError


def test_what_changes_a_cluster_is_marked_so_and_nothing_else_is() -> None:
    apis = {name: value for name, value in vars(protocol).items() if isinstance(value, ApiCall)}
    reading = {"API_VERSIONS", "METADATA", "SASL_HANDSHAKE", "SASL_AUTHENTICATE", "OFFSET_FETCH"}
    words = ("DESCRIBE", "LIST", "FIND")
    assert {name for name, api in apis.items() if not api.changes} == {
        name for name in apis if name in reading or any(word in name for word in words)
    }


@EACH
def test_a_broker_that_hangs_up_over_a_change_is_not_asked_again(api: ApiCall, ask: Ask) -> None:
    with FakeBroker({api.key: never}) as broker, FakeBroker({api.key: never}) as other:
        servers = [f"127.0.0.1:{one.port}" for one in (broker, other)]
        with WireAdminClient({"bootstrap_servers": servers}) as hand:
            hand.describe_brokers(2_000)
            answer = ask(hand, 2_000)
        assert (answer.fate, asked(broker, api) + asked(other, api)) == (Fate.UNKNOWN, 1)
        assert "closed the connection" in answer.detail


@EACH
def test_a_change_that_is_not_answered_in_time_has_an_unknown_fate(api: ApiCall, ask: Ask) -> None:
    silent = FakeBroker({api.key: lambda _version, _body: _wait_for_ever()})
    with silent as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        answer = ask(hand, 300)
        assert (answer.fate, asked(broker, api)) == (Fate.UNKNOWN, 1)
        assert "in time" in answer.detail


def _wait_for_ever() -> bytes:
    left, _right = socket.socketpair()
    left.settimeout(5)
    return left.recv(1)


@EACH
def test_a_change_for_which_no_broker_was_there_was_not_sent(api: ApiCall, ask: Ask) -> None:
    with FakeBroker({api.key: error(api, 0)}) as broker:
        hand = WireAdminClient(broker.arguments)
        hand.describe_brokers(2_000)
        broker._listener.shutdown(socket.SHUT_RDWR)
    hand._pool._idle.clear()  # as after a restart of the broker
    with hand:
        assert ask(hand, 1_000).fate is Fate.NOT_SENT


@EACH
def test_an_idle_connection_that_broke_is_replaced_before_a_change_is_sent(
    api: ApiCall, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.wire.connection._IDLE_S", 0.0)
    with FakeBroker({api.key: error(api, 0)}) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        for connections in hand._pool._idle.values():
            connections[0]._sock.shutdown(socket.SHUT_RDWR)
        assert ask(hand, 2_000) == DONE
        assert asked(broker, api) == 1
        assert broker.connections == 2


FATES = [
    ("taken is done", 0, Fate.DONE, None),
    ("an invalid request is refused", 42, Fate.REFUSED, "INVALID_REQUEST"),
    ("a missing right is refused", 31, Fate.REFUSED, "CLUSTER_AUTHORIZATION_FAILED"),
    ("a controller that did not answer in time leaves the fate unknown", 7, Fate.UNKNOWN, "REQUEST_TIMED_OUT"),
    ("a server error of no known kind leaves the fate unknown", -1, Fate.UNKNOWN, "UNKNOWN_SERVER_ERROR"),
    ("a code that is not known here leaves the fate unknown", 32767, Fate.UNKNOWN, "an unknown error code (32767)"),
    ("a controller that lost its office leaves the fate unknown", 41, Fate.UNKNOWN, "NOT_CONTROLLER"),
]


@EACH
@pytest.mark.parametrize(("code", "fate", "name"), [row[1:] for row in FATES], ids=[row[0] for row in FATES])
def test_what_the_broker_says_decides(api: ApiCall, ask: Ask, code: int, fate: Fate, name: str | None) -> None:
    with FakeBroker({api.key: error(api, code)}) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        answer = ask(hand, 2_000)
        assert (answer.fate, answer.error) == (fate, name)


def test_a_partition_that_leads_where_it_should_needs_no_election() -> None:
    with FakeBroker({ELECT_LEADERS.key: error(ELECT_LEADERS, 84)}) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        assert hand.elect_preferred([MOVED], 2_000) == {MOVED: DONE}


def test_a_partition_that_the_broker_passes_over_has_an_unknown_fate() -> None:
    api = ALTER_PARTITION_REASSIGNMENTS
    other = TopicPartition("moved", 7)
    with FakeBroker({api.key: error(api, 0)}) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        answers = hand.alter_placements({MOVED: None, other: (1,)}, 2_000)
        assert {partition: answer.fate for partition, answer in answers.items()} == {
            MOVED: Fate.DONE,
            other: Fate.UNKNOWN,
        }


FORBIDDEN = [
    ("another key of a topic", (ThrottleResource(topic="moved"), "retention.ms"), OpType.SET, "1"),
    ("another key of a broker", (ThrottleResource(broker=1), "log.retention.ms"), OpType.SET, "1"),
    ("a broker's key on a topic", (ThrottleResource(topic="moved"), RATE[1]), OpType.SET, "1"),
    ("the default of all topics", (ThrottleResource(topic=""), REPLICAS[1]), OpType.SET, "1"),
    ("neither a topic nor a broker", (ThrottleResource(), REPLICAS[1]), OpType.SET, "1"),
    ("no broker's id", (ThrottleResource(broker=-1), RATE[1]), OpType.SET, "1"),
    ("a broker and a topic", (ThrottleResource(broker=1, topic="moved"), RATE[1]), OpType.SET, "1"),
    ("a value for a deletion", RATE, OpType.DELETE, "1"),
    ("no value for a setting", RATE, OpType.SET, None),
    ("adding to a number", RATE, OpType.APPEND, "1"),
]


@pytest.mark.parametrize(
    ("setting", "operation", "value"), [row[1:] for row in FORBIDDEN], ids=[row[0] for row in FORBIDDEN]
)
def test_nothing_but_a_throttle_can_be_set(
    setting: tuple[ThrottleResource, str], operation: OpType, value: str | None
) -> None:
    api = INCREMENTAL_ALTER_CONFIGS
    fine = ThrottleChange(*REPLICAS, OpType.SET, "0:1")
    with FakeBroker({api.key: error(api, 0)}) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        with pytest.raises(ForbiddenChangeError):
            hand.change_throttles([fine, ThrottleChange(*setting, operation, value)], 2_000)
        assert asked(broker, api) == 0, "not even the other one was sent"


class OlderBroker(FakeBroker):
    """Takes version 0 of the request, which has no word about the number of replicas."""

    def __init__(self, replicas: list[int], adding: list[int]) -> None:
        super().__init__(
            {
                METADATA.key: lambda version, _body: encode_body(METADATA, self._metadata(replicas), version),
                LISTED.key: lambda version, _body: encode_body(LISTED, self._moving(adding), version),
                ALTER_PARTITION_REASSIGNMENTS.key: error(ALTER_PARTITION_REASSIGNMENTS, 0),
            }
        )

    def _metadata(self, replicas: list[int]) -> Any:
        topic = METADATA.response.MetadataResponseTopic
        row = topic.MetadataResponsePartition(partition_index=0, replica_nodes=replicas)
        return METADATA.response(topics=[topic(name="moved", partitions=[row])])

    def _moving(self, adding: list[int]) -> Any:
        topic = LISTED.response.OngoingTopicReassignment
        row = topic.OngoingPartitionReassignment(partition_index=0, adding_replicas=adding)
        return LISTED.response(topics=[topic(name="moved", partitions=[row] if adding else [])])

    def _versions(self, version: int, _body: memoryview) -> bytes:
        row = API_VERSIONS.response.ApiVersion
        offers = dict.fromkeys(self._answers, 0) | {
            API_VERSIONS.key: 3, DESCRIBE_CLUSTER.key: 2, METADATA.key: 12,
        }  # fmt: skip
        rows = [row(api_key=key, min_version=0, max_version=newest) for key, newest in offers.items()]
        return encode_body(API_VERSIONS, API_VERSIONS.response(error_code=0, api_keys=rows), version)


OLDER = [
    ("as many as there are is sent", [1, 2], [], (2, 3), (1, Fate.DONE, None)),
    ("more is not sent", [1, 2], [], (1, 2, 3), (0, Fate.REFUSED, "INVALID_REPLICATION_FACTOR")),
    ("fewer is not sent", [1, 2], [], (1,), (0, Fate.REFUSED, "INVALID_REPLICATION_FACTOR")),
    ("what is being added does not count", [3, 2, 1], [3], (3, 2), (1, Fate.DONE, None)),
    ("as many as the union is not sent", [3, 2, 1], [3], (3, 2, 1), (0, Fate.REFUSED, "INVALID_REPLICATION_FACTOR")),
    ("a cancel is sent", [3, 2, 1], [3], None, (1, Fate.DONE, None)),
]


@pytest.mark.parametrize(
    ("replicas", "adding", "target", "told"), [row[1:] for row in OLDER], ids=[row[0] for row in OLDER]
)
def test_where_the_broker_would_change_the_number_of_replicas_it_is_compared_before(
    replicas: list[int], adding: list[int], target: tuple[int, ...] | None, told: tuple[int, Fate, str | None]
) -> None:
    with OlderBroker(replicas, adding) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        answer = hand.alter_placements({MOVED: target}, 2_000)[MOVED]
        assert (asked(broker, ALTER_PARTITION_REASSIGNMENTS), answer.fate, answer.error) == told


def test_a_partition_that_an_older_broker_does_not_know_is_not_moved() -> None:
    other = TopicPartition("moved", 5)
    with OlderBroker([1, 2], []) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        answers = hand.alter_placements({other: (1, 2), MOVED: (2, 1)}, 2_000)
        assert (answers[other].error, answers[MOVED]) == ("UNKNOWN_TOPIC_OR_PARTITION", DONE)


def test_what_comes_too_late_is_not_begun() -> None:
    with FakeBroker({api.key: error(api, 0) for api in CHANGES}) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        late = Deadline.after_ms(-1)
        answers = [
            hand.alter_placements({MOVED: (1, 2)}, 2_000, late)[MOVED],
            hand.elect_preferred([MOVED], 2_000, late)[MOVED],
            *hand.change_throttles([ThrottleChange(*REPLICAS, OpType.SET, "0:1")], 2_000, late).values(),
        ]
        assert [answer.fate for answer in answers] == [Fate.NOT_SENT] * 3
        assert [key for key, _ in broker.asked if key not in (API_VERSIONS.key, DESCRIBE_CLUSTER.key)] == []


def test_who_writes_in_transactions_is_asked_of_every_broker_also_before_anybody_has_told_of_them() -> None:
    def listed(version: int, _body: memoryview) -> bytes:
        row = LIST_TRANSACTIONS.response.TransactionState
        rows = [row(transactional_id="writer", producer_id=1, transaction_state="Ongoing")]
        answer = LIST_TRANSACTIONS.response(error_code=0, unknown_state_filters=[], transaction_states=rows)
        return encode_body(LIST_TRANSACTIONS, answer, version)

    with FakeBroker({LIST_TRANSACTIONS.key: listed}) as broker, WireAdminClient(broker.arguments) as hand:
        rows, failed = hand.list_transactions(2_000)
    assert [(row.transactional_id, row.coordinator) for row in rows] == [("writer", 1)]
    assert failed == {}


@pytest.mark.parametrize(
    ("state", "error_code", "partitions", "known"),
    [
        pytest.param("Ongoing", 0, [3], True, id="one that shows a partition"),
        pytest.param("Ongoing", 0, [], False, id="an ongoing one without a partition hides its topics"),
        pytest.param("Empty", 0, [], True, id="one that ended meanwhile has none"),
        pytest.param("Ongoing", 16, [], False, id="a coordinator that moved"),
    ],
)
def test_a_transaction_whose_partitions_are_unknown_is_left_out(
    state: str, error_code: int, partitions: list[int], known: bool
) -> None:
    def described(version: int, _body: memoryview) -> bytes:
        row = DESCRIBE_TRANSACTIONS.response.TransactionState
        topics = [row.TopicData(topic="__consumer_offsets", partitions=partitions)] if partitions else []
        rows = [
            row(
                error_code=error_code,
                transactional_id="writer",
                transaction_state=state,
                transaction_timeout_ms=1,
                transaction_start_time_ms=1,
                producer_id=1,
                producer_epoch=1,
                topics=topics,
            )
        ]
        return encode_body(DESCRIBE_TRANSACTIONS, DESCRIBE_TRANSACTIONS.response(transaction_states=rows), version)

    with FakeBroker({DESCRIBE_TRANSACTIONS.key: described}) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(2_000)
        found = hand.describe_transactions([RawTransaction("writer", "Ongoing", 1)], 2_000)
    expected = {"writer": tuple(TopicPartition("__consumer_offsets", one) for one in partitions)}
    assert found == (expected if known else {})
