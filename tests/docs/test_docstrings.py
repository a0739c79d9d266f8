"""Public docstrings: each is there and names the errors that its function raises."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.docs import docstrings


def test_every_public_function_has_a_docstring_that_names_its_errors():
    assert [f"{one.place} lacks {one.lacks}" for one in docstrings.undocumented()] == []


@pytest.mark.parametrize(
    ("source", "lacks"),
    [
        pytest.param("def f(): ...", ["a docstring"], id="no docstring"),
        pytest.param("def f():\n    'Does.'\n    raise ValueError(1)", ["Raises ValueError"], id="an error left out"),
        pytest.param("def f():\n    'Does. Raises ValueError.'\n    raise ValueError(1)", [], id="an error named"),
        pytest.param("def _f():\n    raise ValueError(1)", [], id="a private function"),
        pytest.param("def f():\n    'Does.'\n    raise", [], id="an error passed on"),
        pytest.param("@app.command()\ndef f():\n    'Help.'\n    raise BadInput(1)", [], id="a command"),
        pytest.param(
            "def f():\n    'Does.'\n    try:\n        raise ValueError(1)\n    except ValueError:\n        return",
            [],
            id="an error caught",
        ),
        pytest.param(
            "class A:\n    'A.'\n    def f(self):\n        'Does.'\n        raise errors.Lost(1) from None",
            ["Raises Lost"],
            id="a method",
        ),
    ],
)
def test_the_search_finds(source, lacks):
    found = docstrings.undocumented_in(Path("some.py"), ast.parse(source))
    assert [one.lacks for one in found] == lacks
