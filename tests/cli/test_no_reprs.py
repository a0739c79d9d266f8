"""No sentence and no cell that a command prints has a value in Python's own notation."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from agent.cli.output import forget
from agent.values.finding import SubjectId
from agent.values.proposal import HoldReason
from tests.cli.conftest import Run
from tests.cli.test_hostile_cluster import CASES, Case, World, run, world
from tests.hostile_cluster import Name, twin

__all__ = ["world"]
ONE = {"a": 1}
REPRS = {
    "a named tuple or a dataclass": re.compile(r"\b[A-Z][A-Za-z]+\([a-z_]+="),
    "a member of an enum": re.compile(r"<\w+\.\w+: |\b[A-Z][a-z]+[A-Za-z]*\.[A-Z][A-Z_]{2,}\b"),
    "a dict": re.compile(r"\{['\"\d]|\b[a-z_]+=[a-z_]+=|\b\w+=[\w.]+, \w+=[\w.]+"),
    "a list or a tuple": re.compile(r"\[['\"\d][^\]:]*, |\(['\"][^)]*, "),
    "no value": re.compile(r"(?<![\w-])None(?![\w-])"),
    "a truth value": re.compile(r"(?<![\w.-])(?:True|False)(?![\w-])"),
    "an object": re.compile(r"<\w[\w.]* object at 0x|frozenset\(|datetime\."),
}
WRITTEN_BY_HAND = ("config docs", "config example", "config show", "config schema", "cluster logs")
"""Documents and settings in YAML's or Markdown's notation, and a broker's own log."""
TABLES = [case for case in CASES if case.command not in WRITTEN_BY_HAND and ("table" in case.forms or "" in case.forms)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("it is Rack(state=1)", "a named tuple or a dataclass"),
        (f"for {SubjectId('group', 'g')!r}", "a named tuple or a dataclass"),
        (f"held: {HoldReason.PAUSED!r}", "a member of an enum"),
        ("held: HoldReason.PAUSED", "a member of an enum"),
        ("topic_replicas=least=1, most=3", "a dict"),
        (f"rates {ONE!r}", "a dict"),
        (f"replicas {[1, 4]}", "a list or a tuple"),
        (f"racks {('a', 'b')}", "a list or a tuple"),
        (f"rack {None}", "no value"),
        (f"proven: {True}", "a truth value"),
    ],
)
def test_the_scan_finds_what_it_looks_for(text: str, kind: str) -> None:
    assert kind in found_in(text)


@pytest.mark.parametrize(
    "text",
    ["set broker.rack=<a|b|c>", "replicas on brokers 1, 4", "groups: orders (3 members, 2 racks)", "$0.02/GB [a]"],
)
def test_the_scan_leaves_plain_words_alone(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize("case", TABLES, ids=lambda case: case.command)
def test_no_command_prints_a_value_in_pythons_notation(here: Run, world: Callable[[Name], World], case: Case) -> None:
    done = run(here, case, world(twin), "table" if "table" in case.forms else "")
    forget()
    lines = [
        line for line in done.stdout.splitlines() if not line.startswith('{"')
    ]  # top writes JSON where it is piped
    for line in (*lines, *done.stderr.splitlines()):
        assert found_in(line) == [], line


def found_in(text: str) -> list[str]:
    return [kind for kind, pattern in REPRS.items() if pattern.search(text)]
