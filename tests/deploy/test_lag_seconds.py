"""Consumer lag in seconds: recording rules work it out of the records of a partition, and guess nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.deploy.alerts import rules
from tests.deploy.promtool import prometheus_tool

AT = 'cluster="prod", job="rackwise", cluster_name="c-1"'
LAG, END = "kafka_consumergroup_group_lag", "kafka_partition_latest_offset"
SECONDS, MOST = "kafka_consumergroup_group_lag_seconds", "kafka_consumergroup_group_max_lag_seconds"


def series(metric: str, instance: str = "a", **labels: str) -> str:
    of = "".join(f", {name}={json.dumps(value)}" for name, value in labels.items())
    return f'{metric}{{{AT}, instance="{instance}"{of}}}'


def of_group(partition: str, instance: str = "a") -> str:
    return series(LAG, instance, group="shop", topic="orders", partition=partition)


def end_of(partition: str, instance: str = "a") -> str:
    return series(END, instance, topic="orders", partition=partition)


WRITTEN = "0+600x20"
"""600 records a minute."""


@pytest.mark.parametrize(
    ("given", "seconds", "most"),
    [
        pytest.param({of_group("0"): "300x20", end_of("0"): WRITTEN}, {"0": 30.0}, 30.0, id="ten-records-a-second"),
        pytest.param(
            {of_group("0"): "300x20", end_of("0"): WRITTEN, of_group("1"): "0x20", end_of("1"): "5x20"},
            {"0": 30.0, "1": 0.0}, 30.0, id="caught-up-without-writers",
        ),
        pytest.param({of_group("0"): "300x20", end_of("0"): "5x20"}, {}, None, id="unknown-without-writers"),
        pytest.param(
            {of_group("0"): "300x20", end_of("0"): WRITTEN, of_group("0", "b"): "310x20", end_of("0", "b"): WRITTEN},
            {"0": 31.0}, 31.0, id="two-agents-are-one",
        ),
    ],
)  # fmt: skip
def test_seconds_are_records_behind_by_records_a_second(
    given: Mapping[str, str], seconds: Mapping[str, float], most: float | None, tmp_path: Path
) -> None:
    written = [rule.as_written() for rule in rules() if rule.name in {SECONDS, MOST}]
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "lag", "rules": written}]}))
    where = {"cluster": "prod", "job": "rackwise", "cluster_name": "c-1", "group": "shop"}
    expected = [
        (SECONDS, [({**where, "topic": "orders", "partition": at}, value) for at, value in seconds.items()]),
        (MOST, [] if most is None else [(where, most)]),
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in given.items()],
        "promql_expr_test": [
            {"expr": name, "eval_time": "15m", "exp_samples": [_sample(name, *one) for one in rows]}
            for name, rows in expected
        ],
    }
    file = tmp_path / "test.yaml"
    file.write_text(json.dumps({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run(
        [str(prometheus_tool("promtool")), "test", "rules", str(file)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def _sample(name: str, labels: Mapping[str, str], value: float) -> dict[str, object]:
    named = ", ".join(f"{label}={json.dumps(of)}" for label, of in labels.items())
    return {"labels": f"{name}{{{named}}}", "value": value}
