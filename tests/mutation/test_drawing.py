"""Which mutants count, and that what explains a survivor is about code as it is."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from pathlib import Path

import pytest

from tests.mutation.drawing import Mutant, drawn, explained, function, mutant

EXPLAINED = explained(Path(__file__).with_name("survivors.txt").read_text())
NAME = "agent.guard.judge.x_guard__mutmut_3"
SENTENCE = 'def guard():\n    return Hold("held: nothing is done", 3)\n'


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        pytest.param(SENTENCE, SENTENCE.replace("nothing is", "NOTHING IS"), False, id="the text of a sentence"),
        pytest.param(SENTENCE, SENTENCE.replace("3", "4"), True, id="a number"),
        pytest.param(SENTENCE, SENTENCE.replace('"held: nothing is done"', "None"), True, id="no sentence at all"),
        pytest.param("zip(a, b, strict=True)", "zip(a, b, strict=False)", False, id="how long two lists are"),
        pytest.param("zip(a, b, strict=True)", "zip(a, strict=True)", True, id="one list less"),
        pytest.param("def f():\n    a('key')\n", "def f():\n    a('KEY')\n", True, id="a word, which may be a key"),
    ],
)
def test_what_changes_more_than_the_text_of_a_sentence_is_drawn(old: str, new: str, *, counts: bool) -> None:
    assert (mutant(NAME, old, new) is not None) is counts


def test_a_change_is_told_by_its_statement_which_is_one_line() -> None:
    old = "    def f(self):\n        a = 1\n        return g(\n            a,\n            2,\n        )\n"
    made = mutant("agent.guard.guard_context.xǁGuardJournalǁnewest__mutmut_12", old, old.replace("2,", "3,"))
    assert made is not None
    assert made.change == "agent.guard.guard_context.GuardJournal.newest: return g(a, 2) -> return g(a, 3)"


def test_functions_keep_their_underscore() -> None:
    assert function("agent.guard.judge.x__line__mutmut_2") == "agent.guard.judge._line"
    assert function(NAME) == "agent.guard.judge.guard"


def test_a_sample_is_of_its_seed_and_stays_when_other_mutants_come() -> None:
    every = [Mutant(f"m{number}", f"change {number}") for number in range(200)]
    sample = drawn(every, 1, 20)
    assert drawn(reversed(every), 1, 20) == sample
    assert drawn(every, 2, 20) != sample
    more = [*every, *(Mutant(f"n{number}", f"other {number}") for number in range(20))]
    assert len(set(drawn(more, 1, 20)) & set(sample)) > 10


@pytest.mark.parametrize("change", sorted(EXPLAINED))
def test_each_explanation_is_of_a_statement_that_exists(change: str) -> None:
    where, _, what = change.partition(": ")
    path, _, name = where.rpartition(".")
    try:
        found = getattr(importlib.import_module(path), name)
    except ModuleNotFoundError:
        module, _, owner = path.rpartition(".")
        found = getattr(getattr(importlib.import_module(module), owner), name)
    found = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "func", None) or found)
    source = " ".join(ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(found)))).split())
    parts = what.split(" -> ")
    assert any(" -> ".join(parts[:at]) in source for at in range(1, len(parts))), what


def test_each_explanation_has_a_reason() -> None:
    assert all(EXPLAINED.values())
