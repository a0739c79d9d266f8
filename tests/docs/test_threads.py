"""docs/flow.md shows each kind of thread with the effect of an error in it, and no thread is made past that list."""

from __future__ import annotations

import ast
import asyncio
import threading
from collections.abc import Iterator

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from starlette.concurrency import run_in_threadpool

from agent import errors
from tests.docs import house, threads

OWN = {"Thread", "Timer", "ThreadPoolExecutor", "ThreadPool", "start_new_thread", "to_thread", "run_in_executor"}
OF_LIBRARIES = {"BackgroundScheduler": errors.SCHEDULER, "run_in_threadpool": errors.ANSWERS}


def makers(tree: ast.AST, names: set[str]) -> Iterator[str]:
    """Names of these that are called, or of which a class is derived."""
    for node in ast.walk(tree):
        used = [node.func] if isinstance(node, ast.Call) else node.bases if isinstance(node, ast.ClassDef) else []
        yield from (name for one in used if (name := ast.unparse(one).rpartition(".")[2]) in names)


def test_the_table_in_flow_md_is_the_list_in_the_code() -> None:
    assert threads.FLOW.read_text() == threads.written()


def test_each_thread_of_the_agent_is_made_by_the_one_function() -> None:
    found = {
        str(path.relative_to(house.ROOT))
        for path in house.files("agent")
        if path.parent.name != "cli"  # a command has its own: what they miss is missing in its output
        for _ in makers(house.tree_of(path), OWN)
    }
    assert found == {"agent/errors.py"}


@pytest.mark.parametrize(
    "text",
    [
        "threading.Thread(target=f)",
        "alarm = Timer(1, f)",
        "with futures.ThreadPoolExecutor(2) as pool: pass",
        "class Parked(threading.Thread): pass",
        "async def f(): await asyncio.to_thread(g)",
        "loop.run_in_executor(None, f)",
        "_thread.start_new_thread(f, ())",
    ],
)
def test_each_way_to_make_a_thread_is_found(text: str) -> None:
    assert len(list(makers(ast.parse(text), OWN))) == 1
    assert not list(makers(ast.parse("thread: threading.Thread | None = None"), OWN))


def test_each_kind_of_thread_is_used() -> None:
    used = {
        ast.unparse(node.args[0])
        for path in house.files("agent")
        for node in ast.walk(house.tree_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "thread"
    }
    assert {getattr(errors, name) for name in used} == set(errors.THREADS)


def test_each_library_whose_threads_run_code_of_the_agent_has_its_row() -> None:
    used = {name for path in house.files("agent") for name in makers(house.tree_of(path), set(OF_LIBRARIES))}
    assert {OF_LIBRARIES[name] for name in used} == set(errors.LIBRARY_THREADS)


def test_threads_of_libraries_bear_the_names_of_their_rows() -> None:
    scheduler = BackgroundScheduler()
    scheduler.start()
    try:
        assert errors.SCHEDULER.name in {one.name for one in threading.enumerate()}
    finally:
        scheduler.shutdown()
    assert asyncio.run(run_in_threadpool(lambda: threading.current_thread().name)) == errors.ANSWERS.name
