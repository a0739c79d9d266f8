"""What a client of librdkafka met is worded as rackwise's own client words it, and no time is claimed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from agent.errors import ClusterUnreachable
from agent.record.librdkafka import ClientErrors, client_settings, refusal
from tests.wire.test_deadlines import listener, silence

TRANSPORT = KafkaError._TRANSPORT
RESOLVE = KafkaError._RESOLVE
DOWN = KafkaError._ALL_BROKERS_DOWN
REFUSED = "a:9/bootstrap: Connect to ipv4#127.0.0.1:9 failed: Connection refused (after 0ms in state CONNECT)"
UNKNOWN = "b:9/bootstrap: Failed to resolve 'b:9': Name or service not known (after 1ms in state CONNECT)"


@pytest.mark.parametrize(
    ("heard", "why"),
    [
        pytest.param([(TRANSPORT, REFUSED)], "a:9: connection refused", id="a port without a listener"),
        pytest.param(
            [(TRANSPORT, REFUSED), (TRANSPORT, REFUSED.replace("CONNECT", "CONNECT, 5 identical error(s) suppressed"))],
            "a:9: connection refused",
            id="one that came several times",
        ),
        pytest.param([(RESOLVE, UNKNOWN)], "host b does not resolve", id="a host without an address"),
        pytest.param(
            [(TRANSPORT, REFUSED), (RESOLVE, UNKNOWN), (DOWN, "2/2 brokers are down")],
            "a:9: connection refused; host b does not resolve",
            id="one of each",
        ),
        pytest.param(
            [(TRANSPORT, "a:9/bootstrap: Disconnected (after 3ms in state APIVERSION_QUERY)")],
            "a:9: Disconnected",
            id="another reason is quoted",
        ),
        pytest.param([], "a:9,b:9: no answer", id="silence"),
    ],
)
def test_what_kept_the_client_out_is_named(heard: Sequence[tuple[int, str]], why: str) -> None:
    failed = KafkaException(KafkaError(TRANSPORT, "Failed to get metadata: Local: Broker transport failure"))
    error = refusal(failed, "topic x", [KafkaError(code, text) for code, text in heard], servers="a:9,b:9")
    assert isinstance(error, ClusterUnreachable)
    assert (error.what, error.why) == ("No broker answered about topic x", why)


def test_a_cause_that_repeats_does_not_push_another_one_out() -> None:
    told = ClientErrors()
    note = told.settings["error_cb"]
    note(KafkaError(RESOLVE, UNKNOWN))
    for passed_ms in range(20):
        note(KafkaError(TRANSPORT, REFUSED.replace("0ms", f"{passed_ms}ms")))
    assert [error.code() for error in told.errors()] == [RESOLVE, TRANSPORT]


def test_a_real_client_tells_refused_from_silent() -> None:
    with listener(silence) as frozen:
        assert _why("127.0.0.1:1") == "127.0.0.1:1: connection refused"
        assert _why(frozen) == f"{frozen}: no answer"


def _why(servers: str) -> str:
    heard = ClientErrors()
    admin = AdminClient(client_settings({"bootstrap.servers": servers}, heard.settings))
    with pytest.raises(KafkaException) as caught:
        admin.list_topics(timeout=1)
    admin.poll(0)
    return refusal(caught.value, "topic x", heard.errors(), servers=servers).why
