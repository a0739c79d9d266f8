"""Rack locators outside of the process: real files, real programs, and whatever they do wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agent.observe.ask_locators import ask_locator
from agent.observe.context import CommandQuestion, FileQuestion, ObserverState, TableForm
from agent.values.observation import GapCause, RawRackRow
from agent.wire.failure import CallFailed
from tests.observe.rack_locators import ROWS, SECRET, alive_children, failure

TEXT = "broker.1=a\nbroker.2=b\n"


def a_file(path: Path, *, form: str = "properties", max_bytes: int = 1_000) -> FileQuestion:
    return FileQuestion(name="file", path=str(path), form=TableForm(form), max_bytes=max_bytes)


def a_command(*argv: str, timeout_ms: int = 5_000, max_bytes: int = 1_000) -> CommandQuestion:
    return CommandQuestion(
        name="command", argv=argv, form=TableForm.PROPERTIES, timeout_ms=timeout_ms, max_bytes=max_bytes
    )


def python(code: str, **limits: int) -> CommandQuestion:
    return a_command(sys.executable, "-c", code, **limits)


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_file_is_read_in_every_look_and_parsed_only_when_it_changed(tmp_path: Path) -> None:
    file, recall = tmp_path / "racks.properties", ObserverState()
    file.write_text(TEXT)
    first = ask_locator(a_file(file), recall, 1_000)
    assert first == ROWS
    file.write_text(TEXT)
    assert ask_locator(a_file(file), recall, 1_000) is first
    file.write_text("broker.1=c\n")
    assert ask_locator(a_file(file), recall, 1_000) == (RawRackRow("broker", "1", "c"),)


def no_file(path: Path) -> None:
    """There is none."""


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "cause", "sentence"),
    [
        pytest.param(no_file, GapCause.UNREACHABLE, "{path} cannot be read (No such file or directory)", id="no file"),
        pytest.param(Path.mkdir, GapCause.UNUSABLE, "{path} cannot be read (it is a directory", id="a folder"),
        pytest.param(
            a_fifo, GapCause.UNUSABLE, "{path} cannot be read (it is a named pipe", id="a pipe without a writer"
        ),
        pytest.param(
            lambda path: path.symlink_to(path),
            GapCause.UNREACHABLE,
            "{path} cannot be read (Too many levels",
            id="a loop",
        ),
        pytest.param(
            lambda path: path.write_bytes(b"#" * 1_001),
            GapCause.TOO_LARGE,
            "{path} cannot be read (it is larger than 1,000 bytes)",
            id="too large",
        ),
        pytest.param(
            lambda path: path.symlink_to("/dev/zero"),
            GapCause.UNUSABLE,
            "{path} cannot be read (it is a device",
            id="a device",
        ),
        pytest.param(
            lambda path: path.write_bytes(b"broker.1=\xff"),
            GapCause.UNUSABLE,
            "its answer is no UTF-8 (byte 10)",
            id="no text",
        ),
        pytest.param(
            lambda path: path.write_text(f"token={SECRET}"),
            GapCause.UNUSABLE,
            "entry 1 of its answer is no row",
            id="no table",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, make: Callable[[Path], object], cause: GapCause, sentence: str
) -> None:
    path = tmp_path / "racks"
    make(path)
    failed = failure(a_file(path))
    assert failed.cause is cause
    assert sentence.format(path=path) in failed.detail
    assert SECRET not in failed.detail


def test_a_file_without_the_right_to_read_it_is_said_to_be_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_arguments: object) -> int:  # the super-user, who may run this, is refused nothing
        raise PermissionError(13, "Permission denied")

    (tmp_path / "racks").touch()
    monkeypatch.setattr("config.plain_file.os.open", refused)
    failed = failure(a_file(tmp_path / "racks"))
    assert (failed.cause, failed.detail) == (GapCause.NOT_ALLOWED, f"{tmp_path / 'racks'} may not be read")


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_program_gets_its_arguments_as_they_are_and_none_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKWISE_KAFKA_SASL_PASSWORD", SECRET)
    monkeypatch.setenv("ZONE_OF_TEST", "b")
    code = (
        "import os, sys\n"
        "assert sys.argv[1:] == ['$HOME; echo *', 'a b'], sys.argv\n"
        "assert sys.stdin.read() == '' and not os.isatty(0)\n"
        "assert not [name for name in os.environ if name.startswith('RACKWISE_')]\n"
        "print('broker.1=a'); print('broker.2=' + os.environ['ZONE_OF_TEST'])\n"
        f"print('{SECRET}', file=sys.stderr)\n"
    )
    question = a_command(sys.executable, "-c", code, "$HOME; echo *", "a b")
    assert ask_locator(question, ObserverState(), 10_000) == ROWS


@pytest.mark.parametrize(
    ("question", "cause", "sentence"),
    [
        pytest.param(
            a_command("/no/such/program"), GapCause.UNREACHABLE, "there is no program /no/such/program", id="no program"
        ),
        pytest.param(
            a_command("no-such-program"), GapCause.UNREACHABLE, "there is no program no-such", id="not on the path"
        ),
        pytest.param(
            a_command("a\0b"), GapCause.UNUSABLE, "cannot be run (its arguments hold a zero byte)", id="a zero byte"
        ),
        pytest.param(
            python(f"import sys; print('broker.1=a'); sys.exit('{SECRET}')"),
            GapCause.UNUSABLE,
            "it ended with exit code 1; run it by hand to see its output",
            id="an error after a good answer",
        ),
        pytest.param(
            python("import os; os.kill(os.getpid(), 11)"), GapCause.UNUSABLE, "it was ended by signal 11", id="a crash"
        ),
        pytest.param(python("pass"), GapCause.UNUSABLE, "its answer names no broker", id="nothing said"),
        pytest.param(python(f"print('{SECRET}')"), GapCause.UNUSABLE, "entry 1 of its answer is no row", id="no table"),
        pytest.param(
            python("import os; os.write(1, b'broker.1=\\xe9')"),
            GapCause.UNUSABLE,
            "its answer is no UTF-8",
            id="no UTF-8",
        ),
        pytest.param(
            python("import time; time.sleep(60)", timeout_ms=300),
            GapCause.TIMED_OUT,
            "it did not end in time, and was stopped",
            id="silence",
        ),
        pytest.param(
            python("import time\nwhile True: print('broker.1=a', flush=True); time.sleep(0.02)", timeout_ms=300),
            GapCause.TIMED_OUT,
            "it did not end in time, and was stopped",
            id="dripping",
        ),
        pytest.param(
            python("import os, time; print('broker.1=a', flush=True); os.close(1); time.sleep(60)", timeout_ms=500),
            GapCause.TIMED_OUT,
            "it did not end in time, and was stopped",
            id="an answer, and then no end",
        ),
        pytest.param(
            python("while True: print('x' * 65536)", max_bytes=100_000),
            GapCause.TOO_LARGE,
            "it printed more than 100000 bytes, and was stopped",
            id="no end of output",
        ),
        pytest.param(
            python(
                "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)",
                timeout_ms=400,
            ),
            GapCause.TIMED_OUT,
            "it did not end in time, and was stopped",
            id="deaf to signals",
        ),
    ],
)
def test_a_program_that_fails_is_a_sentence_in_time(question: CommandQuestion, cause: GapCause, sentence: str) -> None:
    began = time.monotonic()
    failed = failure(question)
    assert failed.cause is cause
    assert sentence in failed.detail
    assert SECRET not in failed.detail
    assert time.monotonic() - began < 5
    assert not alive_children()


@pytest.mark.parametrize(
    ("make", "mode", "cause", "sentence"),
    [
        pytest.param(Path.touch, 0o644, GapCause.NOT_ALLOWED, "{path} may not be executed", id="no right"),
        pytest.param(Path.mkdir, 0o755, GapCause.NOT_ALLOWED, "{path} may not be executed", id="a folder"),
        pytest.param(
            lambda path: path.write_text("echo broker.1=a"),
            0o755,
            GapCause.UNUSABLE,
            "{path} cannot be run (Exec format error)",
            id="a script without a first line that says of what",
        ),
    ],
)
def test_a_file_that_is_no_program_is_a_sentence(
    tmp_path: Path, make: Callable[[Path], object], mode: int, cause: GapCause, sentence: str
) -> None:
    path = tmp_path / "racks"
    make(path)
    path.chmod(mode)
    failed = failure(a_command(str(path)))
    assert (failed.cause, failed.detail) == (cause, sentence.format(path=path))


CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]{detached})
open({file!r}, "w").write(str(child.pid))
print("broker.1=a"); print("broker.2=b")
sys.stdout.flush()
{rest}
"""


@pytest.mark.parametrize(
    ("rest", "answers"),
    [
        pytest.param("", True, id="a program that ends and leaves a child, which holds its output open"),
        pytest.param("import time; time.sleep(600)", False, id="a program that is stopped with its child"),
    ],
)
def test_children_of_a_program_are_ended_with_it(tmp_path: Path, rest: str, answers: bool) -> None:
    file = tmp_path / "pid"
    question = python(CHILD.format(file=str(file), rest=rest, detached=""), timeout_ms=3_000)
    began = time.monotonic()
    if answers:
        assert ask_locator(question, ObserverState(), 10_000) == ROWS
        assert time.monotonic() - began < 2.5
    else:
        assert failure(question).cause is GapCause.TIMED_OUT
    child = int(file.read_text())
    wait_until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE)


def test_a_child_that_left_the_group_does_not_hold_the_look(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = CHILD.format(file=str(file), rest="", detached=", start_new_session=True")
    began = time.monotonic()
    try:
        assert ask_locator(python(code, timeout_ms=3_000), ObserverState(), 10_000) == ROWS
        assert time.monotonic() - began < 2.5
    finally:
        os.kill(int(file.read_text()), signal.SIGKILL)


SLOW_START = """
real = subprocess.Popen
def started(*given, **named):
    process = real(*given, **named)
    time.sleep(0.3)
    return process
subprocess.Popen = started
"""


@pytest.mark.parametrize("start", [pytest.param("", id="it runs"), pytest.param(SLOW_START, id="it was just started")])
def test_an_agent_that_ends_in_the_middle_of_a_look_leaves_no_program_behind(tmp_path: Path, start: str) -> None:
    file = tmp_path / "pid"
    program = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = (
        "import subprocess, sys, threading, time\n"
        "from pathlib import Path\n"
        "from agent.observe.ask_locators import output_of\n"
        "from agent.wire.failure import Deadline\n"
        f"{start}\n"
        f"argv = [sys.executable, '-c', {program!r}]\n"
        "ask = lambda: output_of(argv, deadline=Deadline.after_ms(60_000), max_bytes=100)\n"
        "threading.Thread(target=ask, daemon=True).start()\n"
        f"while not Path({str(file)!r}).exists() or not Path({str(file)!r}).read_text(): time.sleep(0.01)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    left = int(file.read_text())
    wait_until(lambda: not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE)


# --- from look to look ------------------------------------------------------------------------------------------------


def test_a_locator_that_has_not_come_back_is_not_asked_again(tmp_path: Path) -> None:
    recall, gate = ObserverState(), tmp_path / "gate"
    code = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\nprint('broker.1=a')"
    question = python(code)
    first = threading.Thread(target=ask_locator, args=(question, recall, 10_000))
    first.start()
    wait_until(lambda: "command" in recall.asked_locators)
    with pytest.raises(CallFailed, match="it has not yet answered the request of an earlier look"):
        ask_locator(question, recall, 1_000)
    gate.touch()
    first.join(10)
    assert recall.asked_locators == set()
    assert ask_locator(question, recall, 10_000) == (RawRackRow("broker", "1", "a"),)


def wait_until(true: Callable[[], bool], within_s: float = 10) -> None:
    until = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)
