"""An unreachable cluster is distinguished from a silent one, and the time is named only for silence."""

from __future__ import annotations

import pytest

from agent.errors import ClusterUnreachable
from agent.observe.observe_cluster import reach_cluster
from config.kafka_client import KafkaClientConfig
from tests.wire.test_deadlines import listener, silence

TIMEOUT_MS = 300


def _failure(servers: str) -> ClusterUnreachable:
    with pytest.raises(ClusterUnreachable) as caught:
        reach_cluster(KafkaClientConfig.of({"bootstrap.servers": servers}), TIMEOUT_MS)
    return caught.value


def test_a_silent_broker_took_the_whole_time_and_a_refused_connection_none() -> None:
    with listener(silence) as frozen:
        silent = _failure(frozen)
        mixed = _failure(f"127.0.0.1:1,{frozen}")
    assert silent.what == "No broker answered within 0.3 s"
    assert silent.why == f"{frozen} did not answer to ApiVersions in time"
    assert "127.0.0.1:1: connection refused" in mixed.why
    refused = _failure("127.0.0.1:1")
    assert (refused.what, refused.why) == ("No broker answered", "127.0.0.1:1: connection refused")
