"""Dashboards: the committed files are the generated ones, and they use what the agent exports, all of it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest

from agent.values.finding import FindingReason, FindingSeverity
from agent.values.observation import GapCause, ObservationPart
from agent.values.plan import ExecuteFault
from agent.values.proposal import ProposalKind
from agent.values.snapshot import TaskRole
from agent.web.metrics import METRICS
from agent.web.money_metrics import LAG_METRICS
from deploy.grafana.generate import FOLDER, dashboards
from tests.deploy.alerts import ROOT, rules
from tests.deploy.promql import Selector, names
from tests.deploy.promtool import prometheus_tool

NOT_USED: dict[str, str] = {
    one.name: "It is for dashboards of others that are there already; a panel would be empty without the switch."
    for one in LAG_METRICS
}
"""Metric -> why no panel shows it."""
FOR_OTHERS = {"kafka_consumergroup_group_max_lag_seconds"}
"""Recordings that dashboards of others ask for."""

SQL = "rackwise-costs.json"
"""Asks the pipeline's views; tests/pipeline/test_sql.py runs what its panels ask."""

TARGET = frozenset(("cluster", "namespace", "job", "instance"))
"""Labels that Prometheus gives to every series of a target."""
EXPORTED = {one.name: frozenset(one.labels) for one in METRICS}
RECORDED = {rule.name: rule.expr for rule in rules() if rule.records}
OF_PROMETHEUS = {"up": frozenset[str](), "ALERTS": frozenset(("alertname", "alertstate"))}
VALUES = {
    ("rackwise_findings", "severity"): set(FindingSeverity),
    ("rackwise_findings", "reason"): set(FindingReason),
    ("rackwise_gaps", "cause"): set(GapCause),
    ("rackwise_gaps", "part"): set(ObservationPart),
    ("rackwise_brokers", "state"): {"alive", "absent"},
    ("rackwise_brokers", "rack"): {""},
    ("rackwise_cycles_total", "outcome"): {"succeeded", "failed"},
    ("rackwise_records_total", "outcome"): {"written", "failed", "dropped"},
    ("rackwise_acts_total", "outcome"): {"done", "not done"},
    ("rackwise_acts_total", "kind"): set(ProposalKind),
    ("rackwise_acting_fails", "what"): set(ExecuteFault),
    ("rackwise_task_lag_records", "role"): set(TaskRole),
    ("rackwise_task_lag_trend_records_per_second", "role"): set(TaskRole),
    ("cluster_group:rackwise_group_cross_rack_share:excess", "measure"): {"kafka", "read-local"},
    ("ALERTS", "alertstate"): {"firing"},
}
"""The values that a label can have where an expression names one."""


class Used(NamedTuple):
    """An expression of a panel, variable or rule."""

    place: str
    expr: str


def committed() -> dict[str, Any]:
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels") or ()


def of_dashboards() -> list[Used]:
    found: list[Used] = []
    for file, dashboard in committed().items():
        if file == SQL:
            continue
        for panel in panels(dashboard):
            found += [Used(f"{file}: {panel['title']}", target["expr"]) for target in panel.get("targets") or ()]
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                values = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
                assert values is not None, variable["query"]
                found.append(Used(f"{file}: ${variable['name']}", f"count by ({values[2]}) ({values[1]})"))
    return found


def plain(expr: str) -> str:
    """The expression without Grafana's variables in durations; those in matchers are text."""
    return expr.replace("$__rate_interval", "5m")


PANELS = of_dashboards()
RULES = [Used(rule.name, rule.expr) for rule in rules()]


def of_process() -> dict[str, frozenset[str]]:
    """Metrics of the client library beside the agent's own, as make_app registers them."""
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    lines = generate_latest(registry).decode().splitlines()
    return {line.split("{")[0].split(" ")[0]: frozenset() for line in lines if not line.startswith("#")}


def labels_of(selector: Selector) -> frozenset[str] | None:
    """Labels of a metric beside those of its target; None where nothing exports it."""
    if selector.metric in RECORDED:
        return labels_of_recorded(RECORDED[selector.metric])
    return {**of_process(), **OF_PROMETHEUS, **EXPORTED}.get(selector.metric)


def labels_of_recorded(expr: str) -> frozenset[str]:
    used = names(expr)
    if used.labels:
        return used.labels - TARGET
    (selector,) = used.selectors
    return labels_of(selector) or frozenset()


def test_the_committed_dashboards_are_the_generated_ones():
    written = {path.name: path.read_text() for path in FOLDER.glob("*")}
    assert written == dict(dashboards()), "write them anew: make dashboards"
    assert len(written) == 5


@pytest.mark.parametrize("used", [*PANELS, *RULES], ids=lambda used: used.place)
def test_every_name_is_exported(used: Used):
    found = names(plain(used.expr))
    assert found.selectors
    for selector in found.selectors:
        labels = labels_of(selector)
        assert labels is not None, f"nothing exports {selector.metric}"
        for label, operator, value in selector.matchers:
            assert label in labels | TARGET, f"{selector.metric} has no label {label}"
            if label not in TARGET and not value.startswith("$") and selector.metric != "ALERTS":
                known = VALUES[selector.metric, label]
                alternatives = value.split("|") if operator in {"=~", "!~"} else [value]
                assert set(alternatives) <= known, f"{selector.metric}: {label} is never one of {alternatives}"
    known_labels = TARGET.union(*(labels_of(selector) or () for selector in found.selectors))
    assert found.labels <= known_labels


def test_every_metric_is_on_a_dashboard_or_not_with_a_reason():
    shown = {selector.metric for used in PANELS for selector in names(plain(used.expr)).selectors}
    recorded = {one.metric for name in shown & set(RECORDED) for one in names(RECORDED[name]).selectors}
    unused = set(EXPORTED) - shown - recorded
    assert unused == set(NOT_USED)
    assert all(reason.endswith(".") for reason in NOT_USED.values())


def test_every_recording_is_used():
    used = {selector.metric for one in [*PANELS, *RULES] for selector in names(plain(one.expr)).selectors}
    assert set(RECORDED) - used == FOR_OTHERS


def test_promtool_reads_every_expression_of_the_dashboards(tmp_path: Path):
    written = [
        {"record": f"panel:{number}", "expr": plain(used.expr).replace("$__range", "1h")}
        for number, used in enumerate(PANELS)
    ]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": written}]}))
    done = subprocess.run(
        [str(prometheus_tool("promtool")), "check", "rules", str(file)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(PANELS)} rules found" in done.stdout


@pytest.mark.parametrize("used", PANELS, ids=lambda used: used.place)
def test_every_panel_follows_the_variables(used: Used):
    for selector in names(plain(used.expr)).selectors:
        if used.place.endswith("$cluster"):
            continue
        assert any(one.label == "cluster" and one.value == "$cluster" for one in selector.matchers), selector


@pytest.mark.parametrize("file", sorted(dashboards()))
def test_a_dashboard_reads_well(file: str):
    dashboard = committed()[file]
    assert dashboard["uid"] == file.removesuffix(".json")
    assert dashboard["description"].endswith(".")
    names_of = {"datasource", "cluster"} if file == SQL else {"datasource", "cluster", "instance"}
    assert names_of <= {one["name"] for one in dashboard["templating"]["list"]}
    shown = [panel for panel in panels(dashboard) if panel["type"] != "row"]
    assert len(shown) >= 8
    titles = [(panel["title"], panel["type"]) for panel in shown]
    assert len(set(titles)) == len(titles)
    for panel in shown:
        title = panel["title"]
        assert panel["description"].endswith("."), title
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["noValue"] not in {"", "0"}, title  # what is unknown is not zero
        if panel["type"] == "table":
            assert panel["fieldConfig"]["overrides"], title
        else:
            assert defaults["unit"], title
            assert defaults["thresholds"]["steps"], title
        kind = "trino-datasource" if file == SQL else "prometheus"
        assert panel["datasource"] == {"type": kind, "uid": "${datasource}"}, title


def test_panels_lie_beside_each_other_and_never_over_each_other():
    for file, dashboard in committed().items():
        taken: set[tuple[int, int]] = set()
        for panel in panels(dashboard):
            at = panel["gridPos"]
            assert at["x"] + at["w"] <= 24, (file, panel["title"])
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert not cells & taken, (file, panel["title"])
            taken |= cells


def test_legends_name_only_labels_that_series_have():
    for file, dashboard in committed().items():
        for panel in panels(dashboard) if file != SQL else ():
            for target in panel.get("targets") or ():
                used = names(plain(target["expr"]))
                known = TARGET.union(*(labels_of(selector) or () for selector in used.selectors))
                if used.labels:
                    known = used.labels | ({"instance"} if "instance" in used.labels else set())
                asked = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat") or ""))
                assert asked <= known, (file, panel["title"], asked - known)


@pytest.mark.parametrize("file", sorted(dashboards()))
def test_a_dashboard_is_one_of_the_sdks_schema(file: str):
    """Read into the SDK's model and written again it is the same: no field that the schema does not know."""
    dashboard = committed()[file]
    again = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
    assert again == dashboard


def test_grafana_finds_data_source_and_dashboards():
    folder = ROOT / "deploy" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "rackwise.yaml").read_text())["datasources"]
    (provider,) = yaml.safe_load((folder / "dashboards" / "rackwise.yaml").read_text())["providers"]
    jsonschema.validate(source, {"required": ["name", "type", "access", "url", "isDefault"]})
    assert source["type"] == "prometheus"
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards/rackwise"
    assert provider["allowUiUpdates"] is False
