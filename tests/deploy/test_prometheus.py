"""A real Prometheus, with the rules as they are, scrapes a real agent's server, and answers every panel's query."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from agent.values.assessment import Assessment, Locality, LocalityMeasure
from agent.values.clock import ClockReading
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.snapshot import TaskRole
from agent.web.agent_view import LoopState
from agent.web.app import WebServer, make_app
from agent.web.metrics import METRICS, SeriesCaps
from tests.deploy.alerts import ROOT, rules
from tests.deploy.promql import names
from tests.deploy.promtool import prometheus_tool
from tests.deploy.test_dashboards import PANELS, plain
from tests.web.test_metrics import a_copy, with_copies

FOLDER = ROOT / "deploy" / "prometheus"
VARIABLES = {"$cluster": ".*", "$instance": ".*", "$group": ".*", "$measure": ".*"}


def seen_now() -> LoopState:
    """An agent that knows rates, misses a part, and has just succeeded."""
    full = with_copies(a_copy(), a_copy(role=TaskRole.WARMUP, caught_up=True), a_copy("other-app", lag=None))
    assert full.cycle is not None
    assert full.known is not None
    share = Locality(LocalityMeasure.READ_LOCAL, "bytes_per_s", 1.0, 4.0, 1.0)
    judged = Assessment(group_id="g", current=(share,), optimal=(share._replace(local=3.0),))
    snapshot = full.cycle.snapshot
    cycle = replace(
        full.cycle,
        snapshot=replace(
            snapshot,
            gaps=(Gap.of_broker(ObservationPart.LOG_DIRS, GapCause.TIMED_OUT, 2, "late"),),
            bytes_per_s={row.id: 1.0 for topic in snapshot.topics.values() for row in topic.partitions},
        ),
        detection=replace(full.cycle.detection, assessments={"g": judged}),
    )
    return replace(full, cycle=cycle, last_success=ClockReading(int(time.time() * 1_000), 10_000))


@pytest.fixture(scope="module")
def agent() -> Iterator[WebServer]:
    seen, now = seen_now(), ClockReading(int(time.time() * 1_000), 10_000)
    app = make_app(
        lambda: seen, lambda: now, fresh_ms=30_000, stall_ms=60_000,
        caps=SeriesCaps(consumer_lag="partition"), allowed_hosts=[],
    )  # fmt: skip
    with WebServer(app, "127.0.0.1", 0) as started:
        yield started


@pytest.fixture(scope="module")
def prometheus(agent: WebServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("prometheus")
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(FOLDER / name) for name in config["rule_files"]]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [agent.address]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(prometheus_tool("prometheus")), f"--config.file={folder / 'prometheus.yaml'}",
             f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"],
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        with httpx.Client(base_url=f"http://{address}", timeout=10) as client:
            until(lambda: has_begun(client), folder / "log")
            yield client
    finally:
        process.terminate()
        process.wait(20)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def until(holds: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, log.read_text()[-2_000:]
        time.sleep(0.2)


def has_begun(client: httpx.Client) -> bool:
    """Whether there are two samples of the agent, and one of each recording."""
    try:
        samples = asked(client, "min(count_over_time(rackwise_build_info[1m]))")
        recorded = asked(client, "cluster:rackwise_cross_rack_usd_per_day:avg1d")
    except httpx.HTTPError:
        return False
    return bool(samples) and float(samples[0]["value"][1]) >= 3 and bool(recorded)


def asked(client: httpx.Client, expr: str) -> list[dict[str, Any]]:
    """The series of an expression now."""
    answer = client.get("/api/v1/query", params={"query": expr})
    assert answer.status_code in {200, 503}, f"{expr}: {answer.text}"
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()["data"]["result"]
    return found


def filled(expr: str) -> str:
    """The expression as Grafana sends it with all clusters, agents and groups chosen."""
    for variable, value in VARIABLES.items():
        expr = expr.replace(variable, value)
    return plain(expr)


def test_every_panel_has_an_answer_where_the_agent_exports_its_metrics(prometheus: httpx.Client):
    exported = {one["metric"]["__name__"] for one in asked(prometheus, '{__name__=~".+"}')} - {"ALERTS"}
    assert {one.name for one in METRICS} - exported <= {"rackwise_unplanned"}  # of which the last planning had none
    full = [one for one in PANELS if {it.metric for it in names(plain(one.expr)).selectors} <= exported]
    rest = {one.place for one in PANELS} - {one.place for one in full}
    assert rest <= {"rackwise-overview.json: Firing alerts", "rackwise-overview.json: Left out"}
    assert [one for one in full if not asked(prometheus, filled(one.expr))] == []
    for one in PANELS:
        asked(prometheus, filled(one.expr))  # no many-to-many match, no clash of labels


def test_all_rules_are_loaded_and_none_fails(prometheus: httpx.Client):
    groups = prometheus.get("/api/v1/rules").json()["data"]["groups"]
    loaded = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(loaded) == {rule.name for rule in rules()}
    failed = [(name, one["lastError"]) for name, one in loaded.items() if one["health"] not in {"ok", "unknown"}]
    assert failed == []


def test_of_this_agent_prometheus_calls_nobody(prometheus: httpx.Client):
    """Its throttles have an open plan, its findings are not critical, and it leads."""
    pending = {one["metric"]["alertname"] for one in asked(prometheus, 'ALERTS{severity="critical"}')}
    assert pending == set()
    waits = {one["metric"]["alertname"] for one in asked(prometheus, "ALERTS")}
    assert {"RackwisePartsUnseen", "RackwiseWarmupWaits"} <= waits  # the gap and the warm-up above
