"""docs/flow.md shows each kind of thread with the effect of an error in it, and no thread is made past that list."""

from __future__ import annotations

import ast

from agent import errors
from tests.docs import house, threads


def test_the_table_in_flow_md_is_the_list_in_the_code() -> None:
    assert threads.FLOW.read_text() == threads.written()


def test_each_thread_of_the_agent_is_made_by_the_one_function() -> None:
    makers = {
        str(path.relative_to(house.ROOT))
        for path in house.files("agent")
        if path.parent.name != "cli"  # a command has its own: what they miss is missing in its output
        for node in ast.walk(house.tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"threading.Thread", "Thread"}
    }
    assert makers == {"agent/errors.py"}


def test_each_kind_of_thread_is_used() -> None:
    used = {
        ast.unparse(node.args[0])
        for path in house.files("agent")
        for node in ast.walk(house.tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "thread"
    }
    assert {getattr(errors, name) for name in used} == set(errors.THREADS)
