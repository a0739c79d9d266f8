"""``top``: traffic across racks and its cost, look after look, the costliest groups and topics first.

On a terminal each look takes the place of the one before; elsewhere each is one line of JSON. q, Ctrl-C or a closed
pipe ends it with 0. Names go through `agent.cli.output` into a page before they reach the terminal: the codes that
steer it are those written here, and no others.
"""

from __future__ import annotations

import io
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, redirect_stdout, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli import agent_api, options, rates, running_agents, session
from agent.cli.output import OutputFormat, emit, emit_json, emit_line, emit_text, say

if TYPE_CHECKING:
    from agent.errors import RackwiseError
    from agent.simulate.evaluation import StageEvaluation

_HIDE_CURSOR, _SHOW_CURSOR, _HOME, _CLEAR_LINE, _CLEAR_REST = "\x1b[?25l", "\x1b[?25h", "\x1b[H", "\x1b[K", "\x1b[J"
_LEAST_EVERY_MS = 1_000
_SLICE_S = 0.2
"""A Ctrl-C that comes just before a call that waits is heard when the call returns."""
_GROUPS = ("group", "members", "local", "best", "across racks", "$/day", "lag")
_TOPICS = ("topic", "written", "copied", "read", "$/day")
"""Columns of few words: a row is one line, also on a narrow terminal."""

Looks = Generator["session.ShownLook | RackwiseError", None, None]
"""The document of look after look, and what kept one from being taken."""
Wait = Callable[[float], bool]
"""Waits until that second of the monotonic clock; True when the person wants to leave."""


def top(
    source: options.SettingsOptions,
    output: options.Output = None,
    replay: options.Replay = None,
    every: Annotated[str, typer.Option("--every", metavar="DURATION", help="Time between two looks.")] = "5s",
    count: Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="End after N looks.")] = None,
) -> None:
    """Live: traffic across racks and its cost a day, by group and by topic, costliest first. q or Ctrl-C ends it."""
    on_terminal = sys.stdout.isatty() and output in (None, OutputFormat.TABLE)
    every_ms = rates.parsed(every, "--every", least_ms=_LEAST_EVERY_MS) or _LEAST_EVERY_MS
    last: session.ShownLook | None = None
    with suppress(KeyboardInterrupt, BrokenPipeError), _keys(on_terminal=on_terminal) as wait:
        looks = _looks(source, replay, every_ms, wait)
        with closing(looks):
            for number, look in enumerate(looks, 1):
                _show(look, every, as_table=on_terminal or output is OutputFormat.TABLE, on_terminal=on_terminal)
                if number == count:
                    last = None if isinstance(look, Exception) else look
                    break
    if last is not None:  # it was not interrupted, so it ends as a command that looks once
        session.leave_look(last.look)
    raise typer.Exit(0)


def _looks(source: options.SettingsOptions, replay: Path | None, every_ms: int, wait: Wait) -> Looks:
    if agent_api.named_agent() is not None:
        session.refuse_beside_agent(replay, None)
        agent_api.note_options(*source)
        return _of_an_agent(every_ms, wait)
    return _recorded(replay) if replay is not None else _live(source, every_ms, wait)


def _of_an_agent(every_ms: int, wait: Wait) -> Looks:
    """The looks of the agent that ``--agent`` names, each once. Raises what the first answer raises."""
    from agent.errors import RackwiseError

    look = session.ShownLook(*agent_api.answer("/money"))
    yield look
    shown_ms = look.look["taken_ms"]
    while not wait(time.monotonic() + every_ms / 1000):
        try:
            look = session.ShownLook(*agent_api.answer("/money"))
        except RackwiseError as error:
            yield error
            shown_ms = -1  # the message took the place of the look
            continue
        if look.look["taken_ms"] != shown_ms:
            yield look
            shown_ms = look.look["taken_ms"]


def _live(source: options.SettingsOptions, every_ms: int, wait: Wait) -> Looks:
    """A live cluster. Raises what the first look raises."""
    from agent.daemon.limits_from_settings import to_limits
    from agent.errors import RackwiseError

    loaded = options.settings(source)
    agent, beside = rates.AgentLookQuery(loaded.settings), running_agents.AgentQuery(loaded)
    with session.looking(loaded) as take:
        began = time.monotonic()
        observation = take()
        from agent.simulate.evaluation import first_memory, next_look

        began = first_began(began, observation.monotonic_ms, every_ms)
        running = beside.agent(observation, rates.AGENT_MS / 1000)
        limits = running_agents.with_groups_of(running, to_limits(loaded.settings), observation.taken_ms)
        first = rates.with_base_of(agent, observation, limits, running)
        yield _shown(first._replace(rates=first.rates._replace(remedy="the next look measures them")))
        memory = running_agents.with_absences_of(running, first_memory(observation, limits), observation)
        while True:
            began = max(began + every_ms / 1000, time.monotonic())
            if wait(began):
                return
            try:
                observation = take()
            except RackwiseError as error:
                yield error
                continue
            look, memory = next_look(observation, memory, limits)
            yield _shown(look)


def _shown(look: StageEvaluation) -> session.ShownLook:
    from agent.documents.status import top_document

    return session.shown_of(look, top_document)


def first_began(began: float, taken_ms: int, every_ms: int) -> float:
    """When the first look counts as begun, in seconds of the monotonic clock, so that the second one has rates.

    Rates need a base that is old enough (``SHORTEST_BASE_MS``); a millisecond less, and there are none.
    """
    from agent.values.rates import SHORTEST_BASE_MS

    return began if every_ms < SHORTEST_BASE_MS else max(began, (taken_ms + SHORTEST_BASE_MS - every_ms) / 1000)


def _recorded(replay: Path) -> Looks:
    """The looks of a file, one after the other."""
    yield from map(_shown, session.recorded(replay))


def _show(look: session.ShownLook | RackwiseError, every: str, *, as_table: bool, on_terminal: bool) -> None:
    if isinstance(look, Exception):
        if on_terminal:
            sys.stdout.write(_HOME)
        say(f"this look failed, the next one is in {every}: {look}")
    elif on_terminal:
        _paint(_page(look, every))
    elif as_table:  # a file or another program reads it, for which there is nothing to paint over
        sys.stdout.write("".join(f"{line}\n" for line in [*_page(look, every, on_terminal=False), ""]))
    else:
        with redirect_stdout(io.StringIO()) as page:
            emit_json(look.document)
        sys.stdout.write(page.getvalue())  # fails where nothing reads it any more, which ends the command
    sys.stdout.flush()


class _Page(io.StringIO):
    """What is printed while a page is made; as wide as the terminal that it will be shown on."""

    def __init__(self, *, on_terminal: bool) -> None:
        super().__init__()
        self._on_terminal = on_terminal

    def isatty(self) -> bool:
        """Whether tables are laid out for a terminal."""
        return self._on_terminal


def _page(look: session.ShownLook, every: str, *, on_terminal: bool = True) -> list[str]:
    """The lines of one look, no more than the terminal has."""
    from agent.cli import tables
    from agent.values.number_format import counted

    height = shutil.get_terminal_size((80, 24)).lines
    document, facts = look
    groups, topics = tables.groups(document["groups"]), tables.topics(document["topics"])
    taken = datetime.fromtimestamp(document["taken_ms"] / 1000).astimezone().strftime("%H:%M:%S")
    with redirect_stdout(_Page(on_terminal=on_terminal)) as page:
        total = tables.across_racks(document["money"]["total"], facts) or "unknown"
        ends = ", q ends it" if on_terminal else ""
        emit_line(f"rackwise top  {taken}, every {every}{ends}   cluster {document['cluster']}")
        emit_text(f"across racks: {total}")
        if document["not_seen"]:
            emit_text(f"not seen: {counted(document['not_seen'], 'part')} of the cluster; named by: rackwise status")
        tables.basis(facts)
    lines = page.getvalue().splitlines()
    room = height - 1 - len(lines)
    of_group, of_topic = (tables.with_money(columns, priced=facts["priced"]) for columns in (_GROUPS, _TOPICS))
    fitted = partial(_fitted, on_terminal=on_terminal)
    of_topics = fitted(topics, of_topic, room // 2)
    of_groups = fitted(groups, of_group, room - len(of_topics))
    of_topics = fitted(topics, of_topic, room - len(of_groups))
    return [*lines, *of_groups, *of_topics][: height - 1]


def _fitted(rows: list[dict[str, Any]], columns: tuple[str, ...], room: int, *, on_terminal: bool) -> list[str]:
    """An empty line, the table of as many rows as there are lines for, and how many rows are left."""
    for most in range(min(len(rows), max(0, room)), -1, -1):
        with redirect_stdout(_Page(on_terminal=on_terminal)) as page:
            emit_line()
            if most:
                emit(rows[:most], columns, OutputFormat.TABLE)
            if len(rows) > most:
                emit_text(f"{len(rows) - most:,} more: rackwise {columns[0]}s")
        lines = page.getvalue().splitlines()
        if len(lines) <= room:
            return lines
    return []


def _paint(lines: list[str]) -> None:
    """In the place of the page before, without a flicker: line by line, then nothing below."""
    sys.stdout.write(_HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_REST)


@contextmanager
def _keys(*, on_terminal: bool) -> Iterator[Wait]:
    """How to wait for the next look, and for q where a person can press it; the terminal is as before afterwards."""
    if not on_terminal:
        yield _sleep
        return
    sys.stdout.write(f"{_HIDE_CURSOR}{_HOME}{_CLEAR_REST}")
    try:
        if sys.stdin.isatty():
            with _unbuffered(sys.stdin.fileno()) as wait:
                yield wait
        else:
            yield _sleep
    finally:
        sys.stdout.write(f"{_SHOW_CURSOR}\n")
        sys.stdout.flush()


@contextmanager
def _unbuffered(terminal: int) -> Iterator[Wait]:
    import termios
    import tty

    before = termios.tcgetattr(terminal)

    def wait(until: float) -> bool:
        while (left := until - time.monotonic()) > 0:
            if select.select([terminal], [], [], min(left, _SLICE_S))[0] and os.read(terminal, 64) in _LEAVING:
                return True
        return False

    try:
        tty.setcbreak(terminal)  # a key counts at once; Ctrl-C stays a signal
        yield wait
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


_LEAVING = (b"q", b"Q", b"")
"""The key, or the end of input: the terminal is gone."""


def _sleep(until: float) -> bool:
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _SLICE_S))
    return False
