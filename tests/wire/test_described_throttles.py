"""Throttle settings as the brokers concerned report them: one that is behind enforces what it has, not what is set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest

from agent.values.kafka import FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.throttles import SeenThrottle, ThrottleResource
from agent.wire.admin_client import WireAdminClient
from agent.wire.changes import DescribedThrottles
from agent.wire.protocol import DESCRIBE_CLUSTER, DESCRIBE_CONFIGS
from tests.wire.fake_broker import Answer, FakeBroker, encode_body

TOPIC, UNKNOWN_TOPIC, NOT_AUTHORIZED = 2, 3, 29
PAYMENTS = ThrottleResource(topic="payments")


def configs(broker: int, values: Mapping[str, str], topic_error: int = 0) -> Answer:
    """A broker with a rate of its own, whose metadata has these settings of the topic."""

    def answer(version: int, body: memoryview) -> bytes:
        kind = DESCRIBE_CONFIGS.response.DescribeConfigsResult
        row = kind.DescribeConfigsResourceResult
        rate = row(name=LEADER_RATE, value="800", config_source=2)
        lists = [row(name=key, value=value, config_source=1) for key, value in values.items()]
        rows = [kind(resource_type=4, resource_name=str(broker), configs=[rate])] if b"rate" in bytes(body) else []
        rows.append(kind(error_code=topic_error, resource_type=TOPIC, resource_name="payments", configs=lists))
        return encode_body(DESCRIBE_CONFIGS, DESCRIBE_CONFIGS.response(results=rows), version)

    return answer


@contextmanager
def brokers(*answers: Answer) -> Iterator[WireAdminClient]:
    """A client of brokers 1, 2, ... that report so."""
    ports: list[int] = []

    def cluster(version: int, _body: memoryview) -> bytes:
        row = DESCRIBE_CLUSTER.response.DescribeClusterBroker
        rows = [
            row(broker_id=number, host="127.0.0.1", port=port, rack="a", is_fenced=False)
            for number, port in enumerate(ports, start=1)
        ]
        answer = DESCRIBE_CLUSTER.response(cluster_id="fake", controller_id=1, brokers=rows)
        return encode_body(DESCRIBE_CLUSTER, answer, version)

    with ExitStack() as stack:
        for answer in answers:
            fake = FakeBroker({DESCRIBE_CONFIGS.key: answer, DESCRIBE_CLUSTER.key: cluster})
            ports.append(stack.enter_context(fake).port)
        client = stack.enter_context(WireAdminClient({"bootstrap_servers": [f"127.0.0.1:{ports[0]}"]}))
        client.describe_brokers(2_000)
        yield client


def described(*answers: Answer) -> DescribedThrottles:
    with brokers(*answers) as client:
        return client.describe_throttles(["payments"], range(1, len(answers) + 1), 2_000)


SET = {LEADER_REPLICAS: "0:1,1:1", FOLLOWER_REPLICAS: "0:2,1:2"}


def test_a_list_that_all_brokers_have_is_seen() -> None:
    read = described(configs(1, SET), configs(2, SET))
    assert (read.gaps, read.differing) == ((), ())
    assert read.settings[PAYMENTS, LEADER_REPLICAS] == SeenThrottle(PAYMENTS, LEADER_REPLICAS, "0:1,1:1")
    rates = [read.settings[ThrottleResource(broker=one), LEADER_RATE].own for one in (1, 2)]
    assert rates == ["800", "800"]


@pytest.mark.parametrize(
    "behind",
    [
        configs(2, {}),
        configs(2, {LEADER_REPLICAS: "0:1", FOLLOWER_REPLICAS: "0:2,1:2"}),
        configs(2, {}, topic_error=UNKNOWN_TOPIC),
    ],
    ids=["without the lists", "with a former list", "without the topic"],
)
def test_a_list_that_one_broker_lacks_is_not_seen(behind: Answer) -> None:
    read = described(configs(1, SET), behind)
    assert (read.differing, read.gaps) == (("payments",), ())
    assert {resource for resource, _ in read.settings} == {ThrottleResource(broker=1), ThrottleResource(broker=2)}


def test_a_right_that_is_missing_everywhere_is_one_gap_and_no_difference() -> None:
    refused = {"topic_error": NOT_AUTHORIZED}
    read = described(configs(1, {}, **refused), configs(2, {}, **refused))
    assert ([gap.subject for gap in read.gaps], read.differing) == (["payments"], ())


def test_without_brokers_any_one_reports_the_topics() -> None:
    with brokers(configs(1, SET), configs(2, SET)) as client:
        read = client.describe_throttles(["payments"], [], 2_000)
    assert read.settings[PAYMENTS, FOLLOWER_REPLICAS].own == "0:2,1:2"
