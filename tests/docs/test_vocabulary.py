"""docs/vocabulary.md names each word once, with a type that exists."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from tests.docs.house import CAPITALIZED, PRODUCT, ROOT, class_names, files, tree_of

ROW = re.compile(r"^\| (?P<word>[^|]+) \| (?P<meaning>[^|]+) \| (?P<types>`[^|]+`) \| ?(?P<others>[^|]*)\|$")
ROWS = [found for line in (ROOT / "docs" / "vocabulary.md").read_text().splitlines() if (found := ROW.match(line))]


def names_of(module: ast.Module) -> set[str]:
    """The classes and type aliases that a module defines at its top."""
    classes = {node.name for node in module.body if isinstance(node, ast.ClassDef)}
    assigned = (node.targets[0] for node in module.body if isinstance(node, ast.Assign))
    return classes | {target.id for target in assigned if isinstance(target, ast.Name)}


DEFINED = {
    name for place in ("agent", "assignors", "config") for path in files(place) for name in names_of(tree_of(path))
}


def words(cell: str) -> list[str]:
    return [word.strip() for word in cell.split(",") if word.strip()]


def test_the_vocabulary_has_at_most_forty_rows() -> None:
    assert 30 <= len(ROWS) <= 40


def types_of(row: re.Match[str]) -> set[str]:
    return {name.strip("` ") for name in row["types"].split(",")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["word"])
def test_the_types_of_a_word_exist(row: re.Match[str]) -> None:
    assert types_of(row) <= DEFINED


def test_each_class_of_one_word_is_in_the_vocabulary() -> None:
    single = {name for name in class_names(*PRODUCT) if len(CAPITALIZED.findall(name)) == 1}
    assert single <= set().union(*map(types_of, ROWS))


def test_no_two_classes_of_the_agent_have_one_name() -> None:
    assert [name for name, times in Counter(class_names("agent")).items() if times > 1] == []


def test_each_word_is_explained_once_and_is_no_other_word_s_rejected_synonym() -> None:
    told = Counter(word for row in ROWS for word in words(row["word"]))
    assert [word for word, times in told.items() if times > 1] == []
    assert set(told).isdisjoint(word for row in ROWS for word in words(row["others"]))
