"""Kafka's own names have one home: what agent/values/kafka.py spells is spelled nowhere else in the product."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.values import kafka
from tests.docs.house import ROOT, files, tree_of

HOME = ROOT / "agent" / "values" / "kafka.py"
WORDS = {"none", "classic", "consumer", "share", "streams", "compact", "delete"}
"""Names of Kafka's that are plain words too: of them only the use as a name is Kafka's."""
NAMES = {value for name, value in vars(kafka).items() if name.isupper() and isinstance(value, str)} - WORDS
OWN_USE = {
    # strategies that a backtest compares have the names that a reader knows
    "pipeline/backtest/strategies.py": {"min_traffic", "balance_subtopology"},
    # a label of metrics
    "pipeline/stream/metrics.py": {"stream"},
    # a path of attributes
    "agent/predict/predict.py": {"group.id"},
}
KEY = re.compile(r"[a-z]+(\.[a-z]+){1,}")
NO_KEYS = re.compile(r"(agent|rackwise|topics|execute|kafka|group)\..*|click\.utils|[a-z]+\.html")
"""Modules, own topics, own settings, templates and paths of attributes: dotted, and no config keys of Kafka."""


def product() -> list[Path]:
    """The files of agent/ and pipeline/; assignors/ and config/ know nothing of the project, testbed/ starts Kafka."""
    return [*files("agent"), *files("pipeline")]


def spelled(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each string constant of a module with its line, without docstrings and the pieces of sentences."""
    left_out = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    left_out |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.lineno, node.value


def test_no_name_of_kafka_is_spelled_outside_of_its_home() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in product()
        if path != HOME
        for line, text in spelled(tree_of(path))
        if text in NAMES - OWN_USE.get(str(path.relative_to(ROOT)), set())
    ]
    assert not found, "import these from agent/values/kafka.py: " + ", ".join(found)


def test_no_config_key_is_spelled_in_two_files() -> None:
    homes: dict[str, set[str]] = {}
    for path in files("agent"):
        for _, text in spelled(tree_of(path)):
            if KEY.fullmatch(text) and not NO_KEYS.fullmatch(text):
                homes.setdefault(text, set()).add(str(path.relative_to(ROOT)))
    twice = {key: sorted(places) for key, places in homes.items() if len(places) > 1}
    assert not twice, f"give these a home in agent/values/kafka.py: {twice}"


def test_a_spelled_name_is_found_and_a_sentence_is_not() -> None:
    code = '"""num.partitions"""\nA = "num.partitions"\nB = f"{A} num.partitions"\nC = {"cleanup.policy": 1}'
    assert sorted(spelled(ast.parse(code))) == [(2, "num.partitions"), (4, "cleanup.policy")]


def test_each_name_has_one_constant() -> None:
    values = [value for name, value in vars(kafka).items() if name.isupper() and isinstance(value, str)]
    twice = {value for value in values if values.count(value) > 1}
    assert twice <= WORDS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(kafka.COOPERATIVE_ASSIGNORS, kafka.EAGER_ASSIGNORS, id="no assignor is cooperative and eager"),
        pytest.param(kafka.RACK_AWARE_ASSIGNORS, kafka.RACK_BLIND_ASSIGNORS, id="no assignor is rack-aware and blind"),
    ],
)
def test_sets_of_assignors_exclude_each_other(one: frozenset[str], other: frozenset[str]) -> None:
    assert not one & other


def test_the_first_releases_with_racks_are_said_once_and_alike() -> None:
    release = kafka.FIRST_WITH_RACK.rpartition(" ")[2]
    assert f"from {release} on" in (ROOT / "docs" / "clients.md").read_text()
    texts = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *product()]
    others = {found for path in texts for found in re.findall(r"librdkafka (\d+\.\d+[\d.]*\d)", path.read_text())}
    assert others <= {release}
