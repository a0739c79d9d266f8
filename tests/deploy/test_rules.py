"""Alert and recording rules: promtool accepts them, each alert does what its table says, and has its runbook."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from agent.cli.app import full_application
from tests.deploy.alert_cases import CASES
from tests.deploy.alert_scenarios import SCENARIOS
from tests.deploy.alerts import ROOT, RULES, RUNBOOKS, Rule, rules, unit_test_output, written_texts
from tests.deploy.promtool import prometheus_tool

ALERTS = tuple(rule for rule in rules() if not rule.records)
RUNBOOK = (ROOT / RUNBOOKS).read_text()
PARTS = ("Means", "Look", "Do", "Resolves")
"""The paragraphs of a runbook's section, in their order."""


def of_name(alert: Rule) -> str:
    return alert.name


def test_promtool_accepts_the_rules():
    done = subprocess.run(
        [str(prometheus_tool("promtool")), "check", "rules", "--lint=all", "--lint-fatal", *map(str, RULES)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == len(RULES) == 2


def test_each_alert_does_what_its_table_says_with_the_written_texts():
    code, said = unit_test_output(written_texts())
    assert code == 0, f"write tests/golden/alerts.json anew where only texts differ: make alerts\n{said}"
    assert said.count("SUCCESS") == len(ALERTS)


def test_a_wrong_expectation_of_an_alert_is_seen():
    texts = dict(written_texts())
    name, (first, *rest) = next(iter(texts.items()))
    code, said = unit_test_output(
        {**texts, name: [{**first, "summary": "All is well"}, *rest]}, only=name.split(":")[0]
    )
    assert code != 0
    assert "All is well" in said


def test_each_alert_has_one_row_and_all_its_scenarios_say_something():
    assert [case.alert for case in CASES] == sorted(
        {rule.name for rule in ALERTS}, key=[case.alert for case in CASES].index
    )
    for case in CASES:
        fires, quiet, resolves, absent, restart = case.scenarios
        assert fires.fires, case.alert
        assert quiet.quiet, case.alert
        assert not quiet.fires, case.alert
        assert resolves.fires, case.alert
        assert max(resolves.quiet) > max(resolves.fires), case.alert
        assert absent.fires or absent.quiet, case.alert
        assert restart.fires or restart.quiet, case.alert
        assert len(case.scenarios) == len(SCENARIOS)


@pytest.mark.parametrize("alert", ALERTS, ids=of_name)
def test_an_alert_says_how_urgent_it_is_and_what_to_do(alert: Rule):
    assert alert.name.startswith("Rackwise")
    assert alert.labels["severity"] in {"critical", "warning", "info"}
    assert set(alert.labels) == {"severity"}
    assert set(alert.annotations) == {"summary", "description", "runbook_url"}
    assert alert.annotations["runbook_url"] == f"{RUNBOOKS}#{alert.name.lower()}"
    assert not alert.annotations["summary"].endswith(".")
    assert alert.annotations["description"].endswith((".", "}"))


@pytest.mark.parametrize("alert", ALERTS, ids=of_name)
def test_an_alert_has_a_section_with_all_its_parts(alert: Rule):
    sections = re.findall(rf"^### {alert.name}\n(.*?)(?=^##|\Z)", RUNBOOK, re.MULTILINE | re.DOTALL)
    assert len(sections) == 1
    assert tuple(re.findall(r"^\*\*(\w+)\.\*\* \S", sections[0], re.MULTILINE)) == PARTS
    lasts = {"s": "at once", "m": f"after {alert.lasts[:-1]} min", "h": f"after {alert.lasts[:-1]} h"}[alert.lasts[-1]]
    assert sections[0].splitlines()[1] == f"Severity {alert.labels['severity']}, {lasts}."


def test_the_runbooks_have_no_section_of_an_alert_that_does_not_exist():
    assert re.findall(r"^### (\w+)$", RUNBOOK, re.MULTILINE) == [rule.name for rule in ALERTS]


def test_runbooks_name_only_commands_that_exist():
    root = get_command(full_application(loaded=True))
    said = re.findall(r"`rackwise ([^`]+)`", RUNBOOK)
    assert len(said) > len(ALERTS)
    for words in said:
        command, known = root, {}
        for word in words.split():
            known = getattr(command, "commands", {})
            if word not in known:
                break
            command = known[word]
        assert command is not root, words
        assert not getattr(command, "no_args_is_help", False), words
        options = {name for one in command.params for name in one.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", words)) <= options, words


def test_runbooks_name_only_settings_that_exist():
    documented = (ROOT / "docs" / "operations.md").read_text()
    settings = set(re.findall(r"^\| `([^`]+)` \| .* \| .* \|$", documented, re.MULTILINE))
    of_kafka = {"broker.rack", "client.rack", "min.insync.replicas"}
    named = set(re.findall(r"`([a-z_]+(?:\.[a-z_<>…]+)+)`", RUNBOOK)) - of_kafka
    of_groups = {f"groups.<application.id>.{name}" for name in named}
    unknown = {name for name in named if name not in settings and f"groups.<application.id>.{name}" not in settings}
    assert len(of_groups & settings) + len(named & settings) > 10
    assert unknown == {"groups.<application.id>", "trigger.allow_…", "rackwise.recording.yaml"}
    assert any(name.startswith("trigger.allow_") for name in settings)


def test_alerts_of_long_duration_outlive_a_restart_of_the_agent():
    """A `for` begins anew when the series has a gap, unless the expression reaches over it."""
    reaches = re.compile(r"last_over_time|rate\(|increase\(|changes\(|_over_time|:avg1h|rackwise_build_info")
    long = [
        rule for rule in ALERTS if rule.lasts.endswith("h") or (rule.lasts.endswith("m") and int(rule.lasts[:-1]) >= 15)
    ]
    assert len(long) > 10
    assert [rule.name for rule in long if not reaches.search(rule.expr)] == []


def test_prometheus_takes_the_configuration_with_the_rules(tmp_path: Path):
    folder = ROOT / "deploy" / "prometheus"
    done = subprocess.run(
        [str(prometheus_tool("promtool")), "check", "config", "--lint-fatal", str(folder / "prometheus.yaml")],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rackwise.alerts.yaml" in done.stdout
    assert "rackwise.recording.yaml" in done.stdout
    config = yaml.safe_load((folder / "prometheus.yaml").read_text())
    (scrape,) = config["scrape_configs"]
    assert re.fullmatch(".*rackwise.*", scrape["job_name"])  # the rules find agents by it
    assert all("cluster" in one["labels"] for one in scrape["static_configs"])
