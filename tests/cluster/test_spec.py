"""What may be asked of an embedded cluster, and what is said when it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.cluster.errors import BadSpec
from testbed.cluster.spec import ClusterSpec, KafkaVersion


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        pytest.param(
            {"version": "latest"}, "'latest' is no Kafka version. Give three numbers", id="a version in words"
        ),
        pytest.param({"version": "4.3"}, "'4.3' is no Kafka version", id="a version of two numbers"),
        pytest.param({"version": "3.4.1"}, "Kafka 3.4.1 is too old", id="a version before SCRAM in KRaft"),
        pytest.param({"racks": ()}, "A cluster needs at least one broker", id="no rack at all"),
        pytest.param({"racks": ("a", "")}, "'' is no rack name", id="an empty rack, which Kafka would take for one"),
        pytest.param({"racks": ("a b",)}, "'a b' is no rack name", id="a rack with a blank"),
        pytest.param({"heap": "lots"}, "'lots' is no heap size", id="a heap in words"),
    ],
)
def test_an_impossible_cluster_is_refused_with_a_sentence(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSpec) as refused:
        ClusterSpec(**asked)
    assert sentence in str(refused.value)
    assert refused.value.exit_code == 2


def test_the_default_is_three_brokers_in_three_racks() -> None:
    spec = ClusterSpec()
    assert spec.racks == ("a", "b", "c")
    assert spec.broker_ids == (1, 2, 3)
    assert spec.kafka == (4, 3, 1)


def test_versions_are_compared_as_numbers() -> None:
    assert KafkaVersion.parse("3.10.0") > KafkaVersion.parse("3.9.1")
