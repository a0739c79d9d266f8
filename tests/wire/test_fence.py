"""What may call which client: two calls of librdkafka are never made, and kafka-python has one way in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("agent", "assignors", "config", "pipeline", "testbed")
ABORTING = {"describe_cluster", "describe_consumer_groups"}
"""Each can end the process by an assertion in C: on one byte of a stranger's, or on an answer without brokers."""
KAFKA_PYTHON_IN = {
    "agent/wire/protocol.py",
    "testbed/cluster/requests.py",
    "testbed/cluster/readiness.py",
    "assignors/clients/kafka_python.py",
}
"""The way in; the embedded cluster, which reads requests in its proxy and asks whether brokers are up; and the plug for
consumers of kafka-python, which nothing of the agent imports."""


def sources(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def attributes(tree: ast.Module) -> Iterator[str]:
    return (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


def test_the_calls_that_can_abort_the_process_are_made_nowhere() -> None:
    made = {(name, attribute) for name, tree in sources(*PACKAGES) for attribute in attributes(tree)}
    assert {one for one in made if one[1] in ABORTING} == set()


def test_kafka_python_is_imported_only_where_it_is_fenced() -> None:
    importing = {
        name for name, tree in sources(*PACKAGES) if any(module.split(".")[0] == "kafka" for module in imported(tree))
    }
    assert importing <= KAFKA_PYTHON_IN


@pytest.mark.parametrize("line", ["admin.describe_cluster()", "x = self._admin.describe_consumer_groups(['g'])"])
def test_the_search_finds_such_a_call(line: str) -> None:
    assert ABORTING & set(attributes(ast.parse(line)))
