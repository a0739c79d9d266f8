"""Asks the external rack locators of a look (KIP-36's RackLocator): a file, a command, or an entry point of a package.

Each is asked at every look, side by side with the brokers, within a time and a size limit. A locator that has not yet
answered an earlier look (a file on a dead file server) is not asked again, so that threads never pile up. An answer is
taken whole or not at all, no sentence quotes from it, and an unchanged table is the same object. A failure is a gap:
the last good answer replaces it, and the gap has its age.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agent.observe.context import (
    CommandQuestion,
    EntryPointQuestion,
    FileQuestion,
    LocatorQuestion,
    ObserveContext,
    ObserveQuery,
    ObserverState,
)
from agent.values.number_format import lasted
from agent.values.observation import Gap, GapCause, ObservationPart, RawRackRow, RawRackTable
from agent.values.typed_json import ForeignJsonError, read_json
from agent.wire.failure import CallFailed, Deadline
from config.plain_file import read_plain

# A program runs without a shell, in a session of its own, and without rackwise's environment variables, which may hold
# secrets; so may stderr, which is discarded. Time and output are bounded; when the call returns, its process group is
# killed and its process is reaped, unless the kernel cannot end it.

_OWN_VARIABLES = "RACKWISE_"
_CHUNK_BYTES = 65_536
_LOOK_S = 0.05
"""Interval of checks whether the process has ended while a child holds its output open."""
_END_S = 1.0
_running: set[subprocess.Popen[bytes]] = set()
_starting = threading.Lock()
"""Held while a program starts: none runs unknown when rackwise exits."""


def output_of(argv: Sequence[str], *, deadline: Deadline, max_bytes: int, stdin: bytes = b"") -> bytes:
    """The output of a program that ends with exit code 0. Raises CallFailed otherwise."""
    with _starting:
        process = _start(argv, piped=bool(stdin))
        _running.add(process)
    try:
        with contextlib.suppress(BrokenPipeError):
            if process.stdin is not None:
                process.stdin.write(stdin)
                process.stdin.close()
        output = _read(process, deadline, max_bytes)
        _await_end(process, deadline)
    finally:
        _end(process)
        _running.discard(process)
    _judge(process.returncode)
    return output


def _start(argv: Sequence[str], *, piped: bool) -> subprocess.Popen[bytes]:
    program = argv[0]
    try:
        return subprocess.Popen(
            argv,
            bufsize=0,
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_without_own(os.environ),
            start_new_session=True,
        )
    except FileNotFoundError:
        raise CallFailed(GapCause.UNREACHABLE, f"there is no program {program}") from None
    except PermissionError:
        raise CallFailed(GapCause.NOT_ALLOWED, f"{program} may not be executed") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its arguments hold a zero byte"
        raise CallFailed(GapCause.UNUSABLE, f"{program} cannot be run ({why})") from None


def _without_own(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(_OWN_VARIABLES)}


def _read(process: subprocess.Popen[bytes], deadline: Deadline, max_bytes: int) -> bytes:
    """Its output up to the end of the pipe, or of the process where a child keeps the pipe open."""
    assert process.stdout is not None  # noqa: S101 it was asked for
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    poll = select.poll()  # not select(): a descriptor may have a large number
    poll.register(pipe, select.POLLIN | select.POLLHUP)
    held = bytearray()
    while True:
        ended = False
        if not poll.poll(min(_LOOK_S, deadline.left_s) * 1000):
            ended = _has_ended(process)
            if not ended and deadline.over:
                raise _too_slow()
        try:
            piece = os.read(pipe, _CHUNK_BYTES)
        except BlockingIOError:
            if ended:
                return bytes(held)
            continue
        if not piece:
            return bytes(held)
        held += piece
        if len(held) > max_bytes:
            raise CallFailed(GapCause.TOO_LARGE, f"it printed more than {max_bytes} bytes, and was stopped")
        if deadline.over:
            raise _too_slow()


def _await_end(process: subprocess.Popen[bytes], deadline: Deadline) -> None:
    pause_s = 0.001
    while not _has_ended(process):
        if deadline.over:
            raise _too_slow()
        time.sleep(min(pause_s, deadline.left_s))
        pause_s = min(pause_s * 2, _LOOK_S)


def _too_slow() -> CallFailed:
    return CallFailed(GapCause.TIMED_OUT, "it did not end in time, and was stopped")


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended; it is not reaped here, so that its process group id stays reserved until the kill."""
    import psutil  # noqa: PLC0415 nothing else needs it, and few have a locator that is a program

    try:
        return psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill its process group, leftover children included, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)


def _judge(returncode: int | None) -> None:
    if returncode is None:
        raise CallFailed(GapCause.TIMED_OUT, "it cannot be killed")
    if returncode < 0:
        raise CallFailed(GapCause.UNUSABLE, f"it was ended by signal {-returncode}")
    if returncode:
        sentence = f"it ended with exit code {returncode}; run it by hand to see its output"
        raise CallFailed(GapCause.UNUSABLE, sentence)


@atexit.register
def _end_all() -> None:
    """Kill running programs, one that just starts among them, when rackwise exits in the middle of a look."""
    is_held = _starting.acquire(timeout=_END_S)
    for process in tuple(_running):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    if is_held:
        _starting.release()


# Entry points of installed packages (group ``rackwise.rack_locators``) are foreign code, so each runs in a process of
# its own. Properties, which may hold secrets, go to it through a pipe, as arguments are visible in lists of processes.

MODULE = "agent.observe.locator_entry_point"


def ask_entry_point(
    question: EntryPointQuestion, timeout_ms: int
) -> tuple[bytes, Callable[[bytes], tuple[RawRackRow, ...]]]:
    """The output of its process, and the reader of that. Raises CallFailed."""
    content = output_of(
        (sys.executable, "-P", "-m", MODULE, question.entry_point),
        deadline=Deadline.after_ms(min(question.timeout_ms, timeout_ms)),
        max_bytes=question.max_bytes,
        stdin=json.dumps(dict(question.properties)).encode(),
    )
    return content, read_answer


def read_answer(content: bytes) -> tuple[RawRackRow, ...]:
    """The rows that `entry_point` printed. Raises CallFailed, also with the failure that it printed."""
    from agent.observe.locator_table import decoded, rows_of  # noqa: PLC0415 it loads yaml, and few have a locator

    try:
        answer = read_json(decoded(content), most_bytes=len(content))
    except ForeignJsonError:
        answer = None
    match answer:
        case {"rows": list(rows)}:
            return rows_of(("row " + str(number), *_pair(row)) for number, row in enumerate(rows, start=1))
        case {"failed": str(sentence)}:
            raise CallFailed(GapCause.UNUSABLE, sentence)
        case _:
            raise CallFailed(GapCause.UNUSABLE, "its process gave no answer")


def _pair(row: Any) -> tuple[str, str]:
    match row:
        case [str(key), str(rack)]:
            return key, rack
        case _:
            return "", ""


Rows = tuple[RawRackRow, ...]
_CAUSES = {errno.EINVAL: GapCause.UNUSABLE, errno.EFBIG: GapCause.TOO_LARGE}
Read = Callable[[bytes], Rows]


def locator_asks(context: ObserveContext) -> list[ObserveQuery[Rows | None]]:
    """One query per locator; the answer is None where it failed, and its gap has the locator as subject."""
    return [
        ObserveQuery(
            ObservationPart.RACK_LOCATORS,
            partial(ask_locator, question, context.recall, context.timeout_ms),
            None,
            subject=question.name,
        )
        for question in context.scope.rack_locators
    ]


def answered_tables(
    context: ObserveContext, asks: Sequence[ObserveQuery[Rows | None]], gaps: Sequence[Gap]
) -> tuple[tuple[RawRackTable, ...], tuple[Gap, ...]]:
    """The tables of this look, and the gaps with the age of the table used for each failed answer."""
    kept = _kept(context)
    answered = {ask.subject: RawRackTable(ask.subject, ask.answer, 0) for ask in asks if ask.answer is not None}
    tables = tuple(table for ask in asks if (table := answered.get(ask.subject) or kept.get(ask.subject)))
    return tables, tuple(_with_age(gap, kept) if gap.part is ObservationPart.RACK_LOCATORS else gap for gap in gaps)


def ask_locator(question: LocatorQuestion, recall: ObserverState, timeout_ms: int) -> Rows:
    """The rows of its answer. Raises CallFailed."""
    from agent.observe.locator_table import read_table  # noqa: PLC0415 it loads yaml, and few have a locator

    if question.name in recall.asked_locators:
        raise CallFailed(GapCause.TIMED_OUT, "it has not yet answered the request of an earlier look")
    recall.asked_locators.add(question.name)
    read: Read
    try:
        match question:
            case FileQuestion():
                content, read = file_content(question), partial(read_table, form=question.form)
            case CommandQuestion():
                until = Deadline.after_ms(min(question.timeout_ms, timeout_ms))
                content = output_of(question.argv, deadline=until, max_bytes=question.max_bytes)
                read = partial(read_table, form=question.form)
            case EntryPointQuestion():
                content, read = ask_entry_point(question, timeout_ms)
        return _parsed(question.name, content, read, recall)
    finally:
        recall.asked_locators.discard(question.name)


def file_content(question: FileQuestion) -> bytes:
    """The bytes of a regular file that is not too large. Raises CallFailed."""
    try:
        return read_plain(question.path, question.max_bytes)
    except PermissionError:
        raise CallFailed(GapCause.NOT_ALLOWED, f"{question.path} may not be read") from None
    except OSError as error:
        cause = _CAUSES.get(error.errno or 0, GapCause.UNREACHABLE)
        raise CallFailed(cause, f"{question.path} cannot be read ({error.strerror})") from None


def _parsed(name: str, content: bytes, read: Read, recall: ObserverState) -> Rows:
    """The rows of an answer; those of the last one when its bytes are equal."""
    digest = hashlib.sha256(content).digest()
    known = recall.rack_tables.get(name)
    if known is not None and known[0] == digest:
        return known[1]
    rows = read(content)
    recall.rack_tables[name] = digest, rows
    return rows


def _kept(context: ObserveContext) -> dict[str, RawRackTable]:
    """The last good answers, with their present age."""
    last = context.recall.last
    if last is None:
        return {}
    elapsed_ms = context.now_ms - last.monotonic_ms
    return {table.locator: table._replace(age_ms=table.age_ms + elapsed_ms) for table in last.rack_tables}


def _with_age(gap: Gap, kept: dict[str, RawRackTable]) -> Gap:
    if not gap.subject:
        return gap
    table = kept.get(gap.subject)
    if table is None:
        return gap._replace(detail=f"{gap.detail}; it has never answered, so racks that only it knows are unknown")
    return gap._replace(detail=f"{gap.detail}; its answer from {lasted(table.age_ms)} ago is used")
