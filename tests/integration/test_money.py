"""Money of the demo's scene, told three ways: by two looks of a command, from the agent's telemetry, by its metrics.

Producers go on at their own pace, so figures of different moments are alike and never equal.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from tests.command import RACKWISE, ROOT, environment, rackwise

PREFIX = "rackwise-money"
ALIKE = 2.0
"""Two figures are alike when neither is more than this many times the other."""
LEAST_BYTES_PER_S = 500.0


class Told(NamedTuple):
    """What the three say."""

    metrics: dict[str, float]
    """Group -> dollars a day."""
    agent: list[dict[str, Any]]
    command: list[dict[str, Any]]
    status: dict[str, Any]
    table: str


@pytest.fixture(scope="module")
def told(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> Iterator[Told]:
    """An agent runs; a command asks its telemetry, and another one looks twice."""
    at = ("-b", demo_cluster.bootstrap_servers, "--set", f"topics.prefix={PREFIX}")
    paced = {
        "poll.interval": "1s", "plan.interval": "5s", "observe.refresh_sizes": "3s", "record.every": "0s",
        "http.port": "0", "log.format": "json",
    }  # fmt: skip
    assigned = [part for name, value in paced.items() for part in ("--set", f"{name}={value}")]
    with subprocess.Popen(
        [*RACKWISE, "run", *at, *assigned], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, cwd=ROOT, env=environment(),
    ) as process:  # fmt: skip
        try:
            address = _listening(process)
            metrics = _with_money(address)
            yield Told(
                metrics=metrics,
                agent=rackwise("groups", *at, "-o", "json").json,
                command=rackwise("groups", *at, "--for", "10s", "-o", "json").json,
                status=rackwise("status", *at, "-o", "json").json,
                table=rackwise("groups", *at, "-o", "table").stdout,
            )
        finally:
            process.kill()


def _listening(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        event = json.loads(line)
        if event["event"] == "listening":
            return str(event["address"])
    raise AssertionError("the agent ended")


def _with_money(address: str) -> dict[str, float]:
    """The agent's dollars by group, once it knows some of at least one byte."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with urlopen(f"http://{address}/metrics", timeout=10) as page:
            families = text_string_to_metric_families(page.read().decode())
        found = {
            sample.labels["group"]: sample.value
            for family in families
            if family.name == "rackwise_group_cross_rack_usd_per_day"
            for sample in family.samples
        }
        if any(found.values()):
            return found
        time.sleep(1)
    raise AssertionError("the agent never knew a rate")


def test_one_look_asks_the_agents_telemetry_and_two_looks_measure(told: Told) -> None:
    assert {row["rates"] for row in told.agent} == {"agent"}
    assert {row["rates"] for row in told.command} == {"command"}
    assert "rates: from the agent's telemetry (look " in told.table
    assert "money: at $0.02/GB (price.usd_per_gb), both directions together" in told.table


def test_both_say_nearly_the_same_of_each_group(told: Told) -> None:
    by_agent = {row["group"]: row["cross_rack_bytes_per_s"] for row in told.agent if not row["unknown_reads"]}
    by_command = {row["group"]: row["cross_rack_bytes_per_s"] for row in told.command if not row["unknown_reads"]}
    both = {
        name: (rate, by_command[name])
        for name, rate in by_agent.items()
        if rate is not None and by_command.get(name) is not None and max(rate, by_command[name]) > LEAST_BYTES_PER_S
    }
    assert both, (by_agent, by_command)
    unlike = {name: pair for name, pair in both.items() if max(pair) > ALIKE * min(pair)}
    assert not unlike, both


def test_metrics_have_the_same_dollars(told: Told) -> None:
    dollars = {row["group"]: row["usd_per_day"] for row in told.command}
    both = {
        name: (usd, dollars[name]) for name, usd in told.metrics.items() if usd > 1e-3 and dollars.get(name) is not None
    }
    assert both
    assert not {name: pair for name, pair in both.items() if max(pair) > ALIKE * min(pair)}, both


def test_status_sums_up_what_crosses_racks(told: Told) -> None:
    money = told.status["money"]
    assert money["rates"]["source"] == "agent"
    assert money["rates"]["agent_look_age_ms"] < 60_000
    assert money["replicate"]["usd_per_day"] > 0
    assert told.status["worst_groups"]


def test_without_an_agent_one_look_knows_no_rates(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> None:
    done = rackwise("status", "-b", demo_cluster.bootstrap_servers, "--set", "topics.prefix=nobody", "-o", "json")
    money = done.json["money"]
    assert money["rates"]["source"] == "unknown"
    assert "there is no topic nobody.telemetry" in money["rates"]["why_not"]
    assert money["total"]["bytes_per_s"] is None
    assert money["total"]["unknown"] > 0


def test_top_goes_on_with_rates_from_the_second_look_on(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> None:
    at = ("-b", demo_cluster.bootstrap_servers, "--set", "topics.prefix=nobody")
    done = rackwise("top", *at, "--every", "6s", "--count", "3")
    assert done.exit_code == 0
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    assert [look["money"]["rates"]["source"] for look in looks] == ["unknown", "command", "command"]
    assert looks[-1]["money"]["replicate"]["usd_per_day"] > 0


def test_topics_show_who_reads_from_where(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> None:
    done = rackwise("topics", "-b", demo_cluster.bootstrap_servers, "--for", "6s", "-o", "json")
    topics = {row["topic"]: row for row in done.json}
    assert topics["payments"]["replicate_bytes_per_s"] is not None
    assert {reader["group"] for topic in topics.values() for reader in topic["readers"]} >= {"shop", "mailer"}
