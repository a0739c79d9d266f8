"""Kafka's own names and limits have one home: what it spells is spelled nowhere else in the product.

The home of agent/ and pipeline/ is agent/values/kafka.py; keys of rackwise's own connection they take from config/.
config/ and assignors/ know nothing of the project, so each of them spells a name of Kafka's in one file of its own.
testbed/ starts Kafka, so it is not read.

Spelled is a fact in a text by itself, in a list with commas, as a line `key=value`, or in an f-string beside a value. A
sentence that mentions a config key is read as it is written: it spells none. No sentence mentions limits, classes and
`-StreamThread-`: a text that holds one of these spells it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from agent.values import kafka
from assignors.clients import strategy
from assignors.kafka import streams_problem
from config import catalogue, jaas, kafka_keys, streams_names, value_kinds
from tests.docs.house import ROOT, files, tree_of

HOME = ROOT / "agent" / "values" / "kafka.py"
WORDS = {"none", "classic", "consumer", "share", "streams", "compact", "delete"}
"""Names of Kafka's that are plain words too: of them only the use as a name is Kafka's."""
ALL_NAMES = {value for name, value in vars(kafka).items() if name.isupper() and isinstance(value, str)}
NAMES = ALL_NAMES - WORDS
LIMITS = {str(value) for name, value in vars(kafka).items() if name.isupper() and isinstance(value, int)}
ANYWHERE = re.compile(rf"{kafka.STREAM_THREAD}|org\.apache\.kafka[.\w]+\w")
OTHER_KEYS = {
    *kafka_keys.KEYS, *kafka_keys.ALIASES, *kafka_keys.FOLDED, *kafka_keys.IGNORED, *streams_names.FOREIGN_NAMES,
    *(field.alias for field in streams_names.StreamsSettings.model_fields.values()),
}  # fmt: skip
"""Config keys of Kafka's that need no constant while one file alone spells them."""
CONNECTION = {
    value for home in (kafka_keys, jaas) for name, value in vars(home).items() if name.isupper() and type(value) is str
} - {kafka_keys.DEFAULT_CLIENT_ID, *NAMES}  # fmt: skip
OWN_USE = {
    # a label of metrics
    "pipeline/stream/metrics.py": {"stream"},
    # a path of attributes
    "agent/predict/predict.py": {"group.id"},
    # the last part of a setting of rackwise's own, topics.replication.factor
    "config/sections.py": {"replication.factor"},
}
VALUE = "\0"
"""Placeholder of a value in an f-string."""
KEY = re.compile(r"[a-z]+(\.[a-z_]+){1,}")
KEY_WITH_VALUE = re.compile(rf"(?<![\w.-])({KEY.pattern})(?:=| ?{VALUE})")
NO_KEYS = re.compile(r"(agent|rackwise|topics|execute|kafka|group|notify)\..*|click\.utils|[a-z]+\.html")
"""Modules, own topics, own settings, templates and paths of attributes: dotted, and no config keys of Kafka."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def product() -> list[Path]:
    return [path for place in ("agent", "assignors", "config", "pipeline") for path in files(place)]


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each text and whole number of a module with its line; f-strings whole, docstrings left out."""
    left_out = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    left_out |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=parts):
                yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else VALUE for part in parts)
            case ast.Constant(value=str() | int() as value) if id(node) not in left_out:
                yield node.lineno, str(value)


def facts(text: str) -> Iterator[str]:
    """The facts that a text spells; which of them are Kafka's, is the caller's to say."""
    yield text
    if "," in text and " " not in text:
        yield from text.split(",")
    if VALUE in text:
        yield from (piece.strip(" =:;,") for piece in text.split(VALUE) if re.search(r"[._-]\w", piece))
    yield from (found[1] for found in KEY_WITH_VALUE.finditer(text))
    yield from ANYWHERE.findall(text)
    yield from (number for number in re.findall(r"\d+", text.replace("_", "")) if number in LIMITS)


def spelled(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and fact."""
    for line, text in texts(tree):
        yield from ((line, fact) for fact in facts(text))


@cache
def places(*folders: str) -> dict[str, set[str]]:
    """Fact -> the files of the folders that spell it."""
    found: dict[str, set[str]] = {}
    for folder in folders:
        for path in files(folder):
            for _, fact in spelled(tree_of(path)):
                if fact not in OWN_USE.get(name(path), set()):
                    found.setdefault(fact, set()).add(name(path))
    return found


def is_home(fact: str) -> bool:
    """Whether agent/values/kafka.py spells it, or all of a list of words, as in "compact,delete"."""
    return fact in NAMES | LIMITS or ("," in fact and {*fact.split(",")} <= ALL_NAMES)


def test_no_fact_of_kafka_is_spelled_outside_of_its_home() -> None:
    found = {fact: files_ - {name(HOME)} for fact, files_ in places("agent", "pipeline").items() if is_home(fact)}
    found = {fact: sorted(files_) for fact, files_ in found.items() if files_}
    assert not found, f"import these from agent/values/kafka.py: {found}"


@pytest.mark.parametrize("folders", [("agent", "pipeline"), ("config",), ("assignors",)], ids="+".join)
def test_no_fact_of_kafka_is_spelled_in_two_files(folders: tuple[str, ...]) -> None:
    kafkas = NAMES | LIMITS | OTHER_KEYS | CONNECTION
    twice = {fact: sorted(of) for fact, of in places(*folders).items() if fact in kafkas and len(of) > 1}
    assert not twice, f"give each of these one home: {twice}"


def test_no_other_dotted_name_of_the_agent_is_spelled_in_two_files() -> None:
    """Keys that no table lists yet."""
    own = "\n".join(catalogue.names())
    dotted = {fact: of for fact, of in places("agent").items() if KEY.fullmatch(fact) and fact not in own}
    found = {fact: of for fact, of in dotted.items() if not NO_KEYS.fullmatch(fact)}
    assert not {fact: sorted(of) for fact, of in found.items() if len(of) > 1}


def test_no_name_of_the_connection_is_spelled_outside_of_config() -> None:
    found = {fact: sorted(of) for fact, of in places("agent", "pipeline").items() if fact in CONNECTION}
    assert not found, f"import these from config/: {found}"


@pytest.mark.parametrize("home", [kafka_keys, value_kinds, strategy, streams_problem], ids=lambda home: home.__name__)
def test_constants_of_one_name_agree(home: ModuleType) -> None:
    shared = {key for key in vars(home).keys() & vars(kafka).keys() if key.isupper()}
    assert shared
    assert {key: getattr(home, key) for key in shared} == {key: getattr(kafka, key) for key in shared}


def test_the_strategies_of_streams_are_the_same_everywhere() -> None:
    known = {kafka.NO_STRATEGY, kafka.MIN_TRAFFIC, kafka.BALANCE_SUBTOPOLOGY}
    assert {*get_args(streams_names.RackAwareStrategy)} == known == {*get_args(streams_problem.RackStrategy)}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('"""num.partitions"""', set()),
        ('A = "num.partitions"', {"num.partitions"}),
        ('C = {"cleanup.policy": 1}', {"cleanup.policy"}),
        ('A = f"set {B}: num.partitions {C}"', {"num.partitions"}),
        ('A = f"broker.rack={B}"', {"broker.rack"}),
        ('A = "restart it with broker.rack=az-a"', {"broker.rack"}),
        ('A = f"{B}=cooperative-sticky"', {"cooperative-sticky"}),
        ('A = "rackwise.Assignor,uniform,range"', {"uniform", "range"}),
        ('A = "compact,delete"', {"compact,delete"}),
        ('A = "compact"', set()),
        ("A = 1_048_588", {"1048588"}),
        ('A = "raise it to 1048588"', {"1048588"}),
        ('A = re.compile("[a-z]{1,249}")', {"249"}),
        ('A = f"{B}-StreamThread-"', {"-StreamThread-"}),
        (f'A = "set it to {kafka.RACK_AWARE_SELECTOR}"', {kafka.RACK_AWARE_SELECTOR}),
        ('A = re.compile("(?:-StreamThread-([0-9]+))?")', {"-StreamThread-"}),
        ('A = "a sentence on num.partitions, read as it is"', set()),
        ('A = f"{B} has a sentence on num.partitions, read as it is"', set()),
    ],
)
def test_what_is_spelled(code: str, found: set[str]) -> None:
    assert {fact for _, fact in spelled(ast.parse(code)) if is_home(fact)} == found


def test_each_name_has_one_constant() -> None:
    values = [value for key, value in vars(kafka).items() if key.isupper() and isinstance(value, str)]
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
    all_texts = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", *product()]
    others = {found for path in all_texts for found in re.findall(r"librdkafka (\d+\.\d+[\d.]*\d)", path.read_text())}
    assert others <= {release}
