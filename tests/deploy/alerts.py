"""The alerts in promtool: each scenario of `alert_cases` as a test, with the texts that an operator gets.

The texts are in tests/golden/alerts.json. Write them anew: make alerts
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import yaml

from tests.deploy.alert_cases import CASES
from tests.deploy.alert_scenarios import SCENARIOS, Labels, Scenario
from tests.deploy.promtool import prometheus_tool

ROOT = Path(__file__).parents[2]
RULES = tuple(sorted((ROOT / "deploy" / "prometheus").glob("rackwise.*.yaml")))
TEXTS = ROOT / "tests" / "golden" / "alerts.json"
RUNBOOKS = "docs/runbooks.md"

Texts = Mapping[str, list[Mapping[str, str]]]
"""Name of a firing (alert, scenario, minute) -> annotations of each alert that fires then."""


class Rule(NamedTuple):
    """An alert or recording rule of the rule files."""

    name: str
    records: bool
    expr: str
    labels: Labels
    annotations: Labels
    lasts: str
    """The alert's `for`."""

    def as_written(self) -> dict[str, object]:
        """The rule as it is in a rule file."""
        if self.records:
            return {"record": self.name, "expr": self.expr}
        return {"alert": self.name, "expr": self.expr, "for": self.lasts, "labels": self.labels,
                "annotations": self.annotations}  # fmt: skip


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule of the rule files."""
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return tuple(
        Rule(
            rule.get("alert") or rule["record"],
            "record" in rule,
            rule["expr"],
            rule.get("labels", {}),
            rule.get("annotations", {}),
            rule.get("for", "0s"),
        )
        for group in groups
        for rule in group["rules"]
    )


def named_scenarios() -> Iterator[tuple[str, str, Labels, Scenario]]:
    """(name, alert, its labels, scenario)."""
    for case in CASES:
        names = (*SCENARIOS, *(f"further {number}" for number in range(1, len(case.further) + 1)))
        for name, scenario in zip(names, (*case.scenarios, *case.further), strict=True):
            yield f"{case.alert}: {name}", case.alert, case.labels, scenario


def unit_test_output(texts: Texts, only: str = "") -> tuple[int, str]:
    """promtool's exit code and what it says.

    An alert is tested with itself and the recording rules alone: promtool evaluates all rules of a file each minute.
    """
    with TemporaryDirectory() as folder:
        files = [_written_test(Path(folder), case.alert, texts) for case in CASES if only in case.alert]
        done = subprocess.run(
            [str(prometheus_tool("promtool")), "test", "rules", *map(str, files)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


def _written_test(folder: Path, alert: str, texts: Texts) -> Path:
    """promtool's test file of an alert, beside its rule file."""
    of_alert = {rule.name: rule for rule in rules()}[alert]
    needed = re.search(r"\bcluster\w*:rackwise_", of_alert.expr) is not None
    used = [rule.as_written() for rule in rules() if needed and rule.records and rule.name.startswith("cluster")]
    rule_file = folder / f"{alert}.yaml"
    rule_file.write_text(json.dumps({"groups": [{"name": "all", "rules": [*used, of_alert.as_written()]}]}))
    tests = [
        {
            "name": name,
            "interval": "1m",
            "input_series": [{"series": one, "values": values} for one, values in scenario.series.items()],
            "alert_rule_test": list(_checks(of_alert, name, labels, scenario, texts)),
        }
        for name, of, labels, scenario in named_scenarios()
        if of == alert
    ]
    test_file = folder / f"{alert}.test.yaml"
    written = {"rule_files": [rule_file.name], "evaluation_interval": "1m", "tests": tests}
    test_file.write_text(json.dumps(written))  # JSON is YAML, and is written in no time
    return test_file


def _checks(rule: Rule, name: str, labels: Labels, scenario: Scenario, texts: Texts) -> Iterator[dict[str, object]]:
    for minute in scenario.quiet:
        yield {"eval_time": f"{minute}m", "alertname": rule.name, "exp_alerts": []}
    for minute in scenario.fires:
        written = [*texts.get(f"{name}: {minute}", []), {}]
        expected = [
            {"exp_labels": {**of, **rule.labels}, "exp_annotations": dict(annotations)}
            for of, annotations in zip(scenario.labels or (labels,), written, strict=False)
        ]
        yield {"eval_time": f"{minute}m", "alertname": rule.name, "exp_alerts": expected}


def written_texts() -> Texts:
    """The texts of tests/golden/alerts.json."""
    return json.loads(TEXTS.read_text()) if TEXTS.exists() else {}


_FAILED = re.compile(
    r"name: (?P<name>[^\n]*),\n\s*alertname: \w+, time: (?P<time>\w+), \n(?P<rest>.*?)(?=\n    +name: |\Z)", re.DOTALL
)
_ANNOTATIONS = re.compile(r"Annotations:\{(.*)\}")
_PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def texts_as_they_fire() -> Texts:
    """The texts that promtool gets where none is expected."""
    _, said = unit_test_output({})
    found: dict[str, list[Mapping[str, str]]] = {}
    for match in _FAILED.finditer(said):
        got = match["rest"].partition("got:")[2]
        minutes = _minutes(match["time"])
        found[f"{match['name']}: {minutes}"] = [
            {key: json.loads(f'"{value}"') for key, value in _PAIR.findall(one)} for one in _ANNOTATIONS.findall(got)
        ]
    return dict(sorted(found.items()))


def _minutes(duration: str) -> int:
    days, hours, minutes = (
        int(found[1]) if (found := re.search(rf"(\d+){unit}(?!s)", duration)) else 0 for unit in ("d", "h", "m")
    )
    return days * 1_440 + hours * 60 + minutes


if __name__ == "__main__":
    TEXTS.write_text(json.dumps(texts_as_they_fire(), indent=1, sort_keys=True, ensure_ascii=False) + "\n")
