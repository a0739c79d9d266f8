"""Whatever listens at the other end, a call is back by its deadline, and says why there is no answer.

The listeners are a few lines each: no real broker drips, sends half a length, or lies about one on demand.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent.errors import ConfigError, NoBrokersYet, TlsFailed
from agent.values.observation import GapCause
from agent.wire.client import WireClient
from agent.wire.failure import CallFailed
from agent.wire.protocol import (
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    LIST_PARTITION_REASSIGNMENTS,
    ApiCall,
)
from tests.wire.fake_broker import Answer, FakeBroker, encode_body

Serve = Callable[[socket.socket], None]

DEADLINE_MS = 600
LATEST_S = 1.2
"""The deadline, and what a loaded machine of two cores may add."""


@contextlib.contextmanager
def listener(serve: Serve) -> Iterator[str]:
    """The address of a listener that does that with each connection."""
    server = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = server.accept()
                held.append(sock)
                threading.Thread(target=run, args=(sock,), daemon=True).start()

    def run(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            serve(sock)

    threading.Thread(target=accept, daemon=True).start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    server.close()
    for sock in held:
        sock.close()


def silence(_sock: socket.socket) -> None:
    """Take the connection and say nothing."""


def drip(sock: socket.socket) -> None:
    """A byte now and then: each one alone would be in time."""
    sock.recv(1000)
    sock.sendall(struct.pack(">i", 1000))
    while True:
        sock.sendall(b"\0")
        time.sleep(0.2)


def hang_up(sock: socket.socket) -> None:
    sock.recv(1000)
    sock.close()


def reset(sock: socket.socket) -> None:
    sock.recv(1000)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def say(data: bytes) -> Serve:
    def serve(sock: socket.socket) -> None:
        sock.recv(1000)
        sock.sendall(data)
        time.sleep(3)

    return serve


@pytest.mark.parametrize(
    ("serve", "cause", "sentence"),
    [
        pytest.param(silence, GapCause.TIMED_OUT, "did not answer to ApiVersions in time", id="a frozen broker"),
        pytest.param(drip, GapCause.TIMED_OUT, "did not answer to ApiVersions in time", id="an answer that drips"),
        pytest.param(
            hang_up, GapCause.UNREACHABLE, "closed the connection; its listener may require TLS", id="hang-up"
        ),
        pytest.param(reset, GapCause.UNREACHABLE, "the connection to 127.0.0.1", id="a reset"),
        pytest.param(
            say(struct.pack(">i", 2**31 - 1)),
            GapCause.TOO_LARGE,
            "more than receive.message.max.bytes",
            id="two gigabytes",
        ),
        pytest.param(
            say(b"\xff\xff\xff\xff"), GapCause.ERROR, "does not speak Kafka's protocol", id="a negative length"
        ),
        pytest.param(say(struct.pack(">i", 4)), GapCause.TIMED_OUT, "in time", id="a length without an answer"),
        pytest.param(
            say(struct.pack(">ii", 6, 99) + b"\0\0"), GapCause.ERROR, "answered another request", id="another's answer"
        ),
        pytest.param(
            say(struct.pack(">ii", 8, 1) + b"\0\0\x7f\xff"),
            GapCause.ERROR,
            "cannot be read",
            id="an answer that is cut",
        ),
        pytest.param(
            say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), GapCause.ERROR, "does not speak Kafka's protocol", id="HTTP"
        ),
    ],
)
def test_whatever_listens_there_the_call_is_back_in_time(serve: Serve, cause: GapCause, sentence: str) -> None:
    with listener(serve) as address, WireClient({"bootstrap_servers": [address]}) as wire:
        began = time.monotonic()
        with pytest.raises(CallFailed) as caught:
            wire.describe_brokers(DEADLINE_MS)
        took = time.monotonic() - began
    assert (caught.value.cause, sentence in caught.value.detail) == (cause, True), caught.value.detail
    assert took < LATEST_S


def test_a_listener_that_wants_tls_is_named() -> None:
    with (
        listener(say(b"\x15\x03\x03\x00\x02\x02\x50")) as address,
        WireClient({"bootstrap_servers": [address]}) as wire,
        pytest.raises(CallFailed) as caught,
    ):
        wire.describe_brokers(DEADLINE_MS)
    assert isinstance(caught.value.error, TlsFailed)
    assert str(caught.value.error) == f"The broker at {address} requires TLS. Set security.protocol to SSL or SASL_SSL."


@pytest.mark.parametrize(
    ("serve", "sentence"),
    [
        pytest.param(silence, "did not finish the TLS handshake in time", id="silence"),
        pytest.param(drip, "The TLS handshake with", id="something else than TLS"),
        pytest.param(
            hang_up, "its listener may be one in plain text (security.protocol)", id="a listener in plain text"
        ),
    ],
)
def test_a_tls_handshake_ends_in_time_too(serve: Serve, sentence: str) -> None:
    with (
        listener(serve) as address,
        WireClient({"bootstrap_servers": [address], "security_protocol": "SSL"}) as wire,
    ):
        began = time.monotonic()
        with pytest.raises(CallFailed) as caught:
            wire.describe_brokers(DEADLINE_MS)
        assert time.monotonic() - began < LATEST_S
    assert sentence in str(caught.value)


def test_a_name_that_takes_long_to_look_up_does_not_hold_up_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    # A resolver that hangs cannot be had on demand.
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kw: time.sleep(3))
    with WireClient({"bootstrap_servers": ["slow.example:9092"]}) as wire:
        began = time.monotonic()
        with pytest.raises(CallFailed, match=r"host slow\.example was not resolved in time"):
            wire.describe_brokers(DEADLINE_MS)
        assert time.monotonic() - began < LATEST_S


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        pytest.param("127.0.0.1:1", "127.0.0.1:1: connection refused", id="no listener"),
        pytest.param("no-such-host.invalid:9092", "host no-such-host.invalid does not resolve", id="no such name"),
        pytest.param("[::1]:1", "[::1]:1: ", id="IPv6"),
    ],
)
def test_an_address_that_leads_nowhere_is_named(address: str, sentence: str) -> None:
    with WireClient({"bootstrap_servers": [address]}) as wire, pytest.raises(CallFailed) as caught:
        wire.describe_brokers(3_000)
    assert sentence in caught.value.detail


def test_one_bad_address_of_two_does_not_matter() -> None:
    with FakeBroker({}) as broker, listener(silence) as frozen:
        addresses = [frozen, *broker.arguments["bootstrap_servers"]]
        for order in (addresses, addresses[::-1]):
            with WireClient({"bootstrap_servers": order}) as wire:
                assert wire.describe_brokers(2_000).cluster_id == "fake"


def test_a_broker_that_was_silent_is_left_alone_for_a_moment() -> None:
    with (
        FakeBroker({LIST_GROUPS.key: late(LIST_GROUPS)}) as broker,
        WireClient(broker.arguments, breaker_ms=900) as wire,
    ):
        wire.describe_brokers(2_000)
        assert wire.list_groups(300).gaps[0].cause is GapCause.TIMED_OUT
        began = time.monotonic()
        (gap,) = wire.list_groups(300).gaps
        assert time.monotonic() - began < 0.2
        assert (gap.cause, gap.subject) == (GapCause.UNREACHABLE, "broker 1")
        assert gap.detail.startswith("not retried yet: ")
        assert gap.detail.endswith("did not answer to ListGroups in time")
        asked = len(broker.asked)
        assert wire.describe_brokers(2_000).cluster_id == "fake", "there is no other broker to ask"
        assert len(broker.asked) > asked
        assert wire.list_groups(300).gaps[0].cause is GapCause.TIMED_OUT, "an answer ends the rest"
        time.sleep(0.9)
        assert wire.list_groups(300).gaps[0].cause is GapCause.TIMED_OUT


def test_a_broker_that_passes_a_question_on_is_not_blamed_for_the_silence() -> None:
    api = LIST_PARTITION_REASSIGNMENTS
    none = encode_body(LIST_GROUPS, LIST_GROUPS.response(groups=[]), 5)
    answers: dict[int, Answer] = {api.key: late(api), LIST_GROUPS.key: lambda _version, _body: none}
    with FakeBroker(answers) as broker, WireClient(broker.arguments) as wire:
        wire.describe_brokers(2_000)
        with pytest.raises(CallFailed, match="did not answer to ListPartitionReassignments in time"):
            wire.list_reassignments(300)
        assert wire.list_groups(2_000).gaps == ()


def test_a_broker_that_answers_other_calls_meanwhile_is_only_slow() -> None:
    quick = encode_body(DESCRIBE_LOG_DIRS, DESCRIBE_LOG_DIRS.response(error_code=0, results=[]), 5)
    answers: dict[int, Answer] = {
        LIST_GROUPS.key: late(LIST_GROUPS),
        DESCRIBE_LOG_DIRS.key: lambda _version, _body: quick,
    }
    with FakeBroker(answers) as broker, WireClient(broker.arguments) as wire:
        wire.describe_brokers(2_000)
        thread = threading.Thread(target=wire.list_groups, args=(500,))
        thread.start()
        time.sleep(0.2)
        assert wire.describe_log_dirs(2_000).gaps == ()
        thread.join()
        assert wire.describe_log_dirs(2_000).gaps == ()


def late(api: ApiCall) -> Answer:
    """An answer that comes after every deadline of these tests."""

    def answer(version: int, _body: memoryview) -> bytes:
        time.sleep(3)
        return encode_body(api, api.response(), version)

    return answer


def test_a_connection_that_the_broker_closed_meanwhile_is_replaced_unnoticed() -> None:
    # Real brokers do this after connections.max.idle.ms; here the socket is shut behind the client's back.
    with FakeBroker({}) as broker, WireClient(broker.arguments) as wire:
        wire.describe_brokers(2_000)
        for connection in wire._pool._idle.values():
            connection[0]._sock.shutdown(socket.SHUT_RDWR)
        assert wire.describe_brokers(2_000).cluster_id == "fake"
        assert broker.connections == 2


def test_connections_are_reused_and_no_thread_or_socket_is_left_after_close() -> None:
    before = set(threading.enumerate())
    empty = {LIST_GROUPS.key: lambda version, _body: encode_body(LIST_GROUPS, LIST_GROUPS.response(groups=[]), version)}
    with FakeBroker(empty) as broker:
        wire = WireClient(broker.arguments)
        wire.describe_brokers(2_000)
        for _ in range(20):
            assert wire.list_groups(2_000).groups == ()
        assert broker.connections == 1
        wire.close()
        left = [thread.name for thread in set(threading.enumerate()) - before if "fake" not in thread.name]
        assert left == []
        assert all(connection.closed for idle in wire._pool._idle.values() for connection in idle)
        with pytest.raises(CallFailed, match="the client is closed"):
            wire.describe_brokers(500)


def described(group: str, *, metadata: bytes = b"\xff", error_code: int = 0) -> Any:
    """A row of a DescribeGroups answer with one member."""
    row = DESCRIBE_GROUPS.response.DescribedGroup
    member = row.DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=metadata, member_assignment=b""
    )
    facts = {"group_state": "Stable", "protocol_type": "consumer", "protocol_data": "x"}
    return row(error_code=error_code, group_id=group, members=[member], **facts)


def coordinator_of_g(version: int, _body: memoryview) -> bytes:
    """FindCoordinator's answer: broker 1 coordinates group g."""
    row = FIND_COORDINATOR.response.Coordinator(key="g", node_id=1, host="h", port=1, error_code=0)
    return encode_body(FIND_COORDINATOR, FIND_COORDINATOR.response(coordinators=[row]), version)


def test_one_unreadable_group_hides_no_other() -> None:
    """Whatever makes an answer unreadable, only the group at fault is lost: the batch is asked again in halves."""

    def answer(version: int, body: memoryview) -> bytes:
        request = DESCRIBE_GROUPS.request.decode(body[1:], version=version)
        whole = encode_body(
            DESCRIBE_GROUPS, DESCRIBE_GROUPS.response(groups=[described(group) for group in request.groups]), version
        )
        return whole.replace(b"bad", b"\xff\xfe\xfd")

    names = [f"g{number:03}" for number in range(150)] + ["bad"] + [f"h{number:03}" for number in range(100)]
    with FakeBroker({DESCRIBE_GROUPS.key: answer}) as broker, WireClient(broker.arguments) as wire:
        wire.describe_brokers(5_000)
        found = wire.describe_groups(names, 5_000, coordinators=dict.fromkeys(names, 1))
    assert [group.group_id for group in found.groups] == sorted(set(names) - {"bad"})
    assert [(gap.subject, gap.cause) for gap in found.gaps] == [("bad", GapCause.ERROR)]
    assert "cannot be read" in found.gaps[0].detail


def test_one_group_that_is_too_large_hides_no_other() -> None:
    def answer(version: int, body: memoryview) -> bytes:
        request = DESCRIBE_GROUPS.request.decode(body[1:], version=version)
        sizes = {group: 40_000 if group == "huge" else 10 for group in request.groups}
        rows = [described(group, metadata=b"x" * size) for group, size in sizes.items()]
        return encode_body(DESCRIBE_GROUPS, DESCRIBE_GROUPS.response(groups=rows), version)

    names = ["a", "b", "huge", "z"]
    with (
        FakeBroker({DESCRIBE_GROUPS.key: answer}) as broker,
        WireClient({**broker.arguments, "receive_message_max_bytes": 20_000}) as wire,
    ):
        wire.describe_brokers(5_000)
        found = wire.describe_groups(names, 5_000, coordinators=dict.fromkeys(names, 1))
    assert [group.group_id for group in found.groups] == ["a", "b", "z"]
    assert [(gap.subject, gap.cause) for gap in found.gaps] == [("huge", GapCause.TOO_LARGE)]


@pytest.mark.parametrize(
    ("refusals", "deadline_ms", "groups", "gaps"),
    [
        pytest.param(2, 5_000, ["g"], [], id="a coordinator that loads for a moment is asked again"),
        pytest.param(10**6, 1_500, [], ["COORDINATOR_LOAD_IN_PROGRESS"], id="one that loads for long is a gap in time"),
    ],
)
def test_an_error_that_passes_by_itself_is_waited_for_until_the_deadline(
    refusals: int, deadline_ms: int, groups: list[str], gaps: list[str]
) -> None:
    asked: list[float] = []

    def answer(version: int, _body: memoryview) -> bytes:
        asked.append(time.monotonic())
        row = described("g", error_code=14 if len(asked) <= refusals else 0)
        return encode_body(DESCRIBE_GROUPS, DESCRIBE_GROUPS.response(groups=[row]), version)

    answers = {DESCRIBE_GROUPS.key: answer, FIND_COORDINATOR.key: coordinator_of_g}
    with FakeBroker(answers) as broker, WireClient(broker.arguments) as wire:
        wire.describe_brokers(5_000)
        began = time.monotonic()
        found = wire.describe_groups(["g"], deadline_ms)
        took = time.monotonic() - began
    assert [group.group_id for group in found.groups] == groups
    assert [gap.detail for gap in found.gaps] == gaps
    assert len(asked) >= 3
    assert took < deadline_ms / 1000 + 0.6


def test_what_a_coordinator_said_is_told_though_the_next_question_was_cut_off() -> None:
    asked: list[int] = []

    def answer(version: int, _body: memoryview) -> bytes:
        asked.append(version)
        if len(asked) > 1:
            time.sleep(2)
        return encode_body(DESCRIBE_GROUPS, DESCRIBE_GROUPS.response(groups=[described("g", error_code=14)]), version)

    answers = {DESCRIBE_GROUPS.key: answer, FIND_COORDINATOR.key: coordinator_of_g}
    with FakeBroker(answers) as broker, WireClient(broker.arguments) as wire:
        wire.describe_brokers(5_000)
        found = wire.describe_groups(["g"], 1_500)
    assert len(asked) == 2
    assert [(gap.subject, gap.cause, gap.detail) for gap in found.gaps] == [
        ("g", GapCause.ERROR, "COORDINATOR_LOAD_IN_PROGRESS")
    ]


def test_a_cluster_that_names_no_broker_is_still_forming() -> None:
    def no_answer(version: int, _body: memoryview) -> bytes:
        return encode_body(DESCRIBE_CLUSTER, DESCRIBE_CLUSTER.response(cluster_id="new", brokers=[]), version)

    with (
        FakeBroker({DESCRIBE_CLUSTER.key: no_answer}) as broker,
        WireClient(broker.arguments) as wire,
        pytest.raises(NoBrokersYet) as caught,
    ):
        wire.describe_brokers(2_000)
    assert str(caught.value) == (
        "The cluster lists no live broker: it may still be starting. Try again in a few seconds."
    )
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(
            {},
            "bootstrap.servers is not set. Give at least one host:port: option -b, environment variable "
            "RACKWISE_KAFKA_BOOTSTRAP_SERVERS, or setting kafka.bootstrap.servers of a config file.",
            id="no address",
        ),
        pytest.param(
            {"bootstrap_servers": ["a:1"], "security_protocol": "SSL", "ssl_cafile": "/no/such/ca.pem"},
            "ssl.ca.location cannot be used: /no/such/ca.pem: No such file or directory. Name a readable PEM file.",
            id="a CA file that is not there",
        ),
        pytest.param(
            {"bootstrap_servers": ["a:1"], "security_protocol": "SSL", "ssl_cafile": __file__},
            f"ssl.ca.location cannot be used: {__file__}: it is not valid PEM, or its password is wrong."
            " Name a readable PEM file.",
            id="a CA file that is no PEM",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        WireClient(arguments)
    assert str(caught.value) == sentence
    assert caught.value.exit_code == 2
