"""Rack locators outside of the process: real files, real programs, real entry points, and whatever they do wrong.

A bound holds for each: the look goes on in time, nothing is left behind, and nothing of what they say is repeated.
"""

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

from agent.observe.context import ObserverState
from agent.observe.locators.ask import ask_locator
from agent.observe.locators.question import CommandQuestion, EntryPointQuestion, FileQuestion, TableForm
from agent.values.observation import GapCause, RawRackRow
from agent.wire.failure import CallFailed
from tests.installed_package import offering

ROWS = (RawRackRow("broker", "1", "a"), RawRackRow("broker", "2", "b"))
TEXT = "broker.1=a\nbroker.2=b\n"
SECRET = "canary-31c0"


def a_file(path: Path, *, form: str = "properties", max_bytes: int = 1_000) -> FileQuestion:
    return FileQuestion(name="file", path=str(path), form=TableForm(form), max_bytes=max_bytes)


def a_command(*argv: str, timeout_ms: int = 5_000, max_bytes: int = 1_000) -> CommandQuestion:
    return CommandQuestion(
        name="command", argv=argv, form=TableForm.PROPERTIES, timeout_ms=timeout_ms, max_bytes=max_bytes
    )


def python(code: str, **limits: int) -> CommandQuestion:
    return a_command(sys.executable, "-c", code, **limits)


def an_entry_point(name: str = "inventory", **more: object) -> EntryPointQuestion:
    settings: dict[str, object] = {"timeout_ms": 10_000, "max_bytes": 10_000, "properties": {}}
    return EntryPointQuestion(name=name, entry_point=name, **{**settings, **more})  # type: ignore[arg-type] # a table's row


def failure(question: FileQuestion | CommandQuestion | EntryPointQuestion, timeout_ms: int = 10_000) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        ask_locator(question, ObserverState(), timeout_ms)
    return failed.value


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


def test_an_agent_that_ends_in_the_middle_of_a_look_leaves_no_program_behind(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    program = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = (
        "import sys, threading, time\n"
        "from pathlib import Path\n"
        "from agent.observe.locators.ask import output_of\n"
        "from agent.wire.failure import Deadline\n"
        f"argv = [sys.executable, '-c', {program!r}]\n"
        "ask = lambda: output_of(argv, deadline=Deadline.after_ms(60_000), max_bytes=100)\n"
        "threading.Thread(target=ask, daemon=True).start()\n"
        f"while not Path({str(file)!r}).exists() or not Path({str(file)!r}).read_text(): time.sleep(0.01)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    left = int(file.read_text())
    wait_until(lambda: not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE)


# --- entry points -----------------------------------------------------------------------------------------------------

INVENTORY = """
import os, sys

class Racks:
    def __init__(self, properties):
        self._racks = properties
        print("this is no answer", os.getpid())
        os.write(1, b"neither is this")

    def get_rack_info(self):
        return {1: self._racks["one"], "2": "b", "client.id.x": None}
"""


def test_an_entry_point_is_given_its_properties_and_asked_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offering(tmp_path, monkeypatch, "inventory", INVENTORY)
    assert ask_locator(an_entry_point(properties={"one": "a"}), ObserverState(), 10_000) == ROWS
    assert "acme_racks" not in sys.modules


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param(
            f"raise RuntimeError('{SECRET}')",
            "loading acme_racks:Racks raised RuntimeError in line 1 of",
            id="raises when loaded",
        ),
        pytest.param(
            "import no_such_module", "loading acme_racks:Racks raised ModuleNotFoundError", id="lacks a module"
        ),
        pytest.param("Other = 1", "loading acme_racks:Racks raised AttributeError", id="lacks its class"),
        pytest.param("Racks = 1", "making the locator raised TypeError", id="is no class"),
        pytest.param(
            f"class Racks:\n    def __init__(self, properties):\n        raise KeyError('{SECRET}')",
            "making the locator raised KeyError in line 3 of acme_racks.py",
            id="raises when made",
        ),
        pytest.param(
            "def Racks(properties):\n    return 1", "get_rack_info raised AttributeError", id="lacks the method"
        ),
        pytest.param(
            f"class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n"
            f"        raise OSError('{SECRET}')",
            "get_rack_info raised OSError in line 4 of acme_racks.py",
            id="raises when asked",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        raise SystemExit(0)",
            "get_rack_info raised SystemExit",
            id="wants to leave",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        return [(1, 'a')]",
            "get_rack_info gave list, and a mapping from broker id to rack is expected",
            id="gives a list",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        return {1: 2}",
            "row 1 of its answer is no row",
            id="gives a number for a rack",
        ),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n        return {}",
            "its answer names no broker",
            id="gives nothing",
        ),
        pytest.param("import os\nos._exit(0)", "its process gave no answer", id="ends its process"),
        pytest.param("import os\nos.kill(os.getpid(), 9)", "it was ended by signal 9", id="kills its process"),
    ],
)
def test_an_entry_point_that_fails_is_a_sentence_that_quotes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, sentence: str
) -> None:
    offering(tmp_path, monkeypatch, "inventory", code)
    failed = failure(an_entry_point())
    assert failed.cause is GapCause.UNUSABLE
    assert sentence in failed.detail
    assert SECRET not in failed.detail


@pytest.mark.parametrize(
    ("code", "limits", "cause"),
    [
        pytest.param("import time\ntime.sleep(600)", {"timeout_ms": 1_500}, GapCause.TIMED_OUT, id="never answers"),
        pytest.param(
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self):\n"
            "        return {n: 'a' * 200 for n in range(10_000)}",
            {"max_bytes": 10_000},
            GapCause.TOO_LARGE,
            id="answers too much",
        ),
        pytest.param(
            "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
            "class Racks:\n    def __init__(self, p): pass\n    def get_rack_info(self): return {1: 'a', 2: 'b'}",
            {},
            None,
            id="leaves a thread, which holds nothing up",
        ),
    ],
)
def test_an_entry_point_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, limits: dict[str, int], cause: GapCause | None
) -> None:
    offering(tmp_path, monkeypatch, "inventory", code)
    began = time.monotonic()
    if cause is None:
        assert ask_locator(an_entry_point(**limits), ObserverState(), 10_000) == ROWS
    else:
        assert failure(an_entry_point(**limits)).cause is cause
    assert time.monotonic() - began < 8
    assert not alive_children()


def test_an_entry_point_that_nobody_or_more_than_one_package_offers_is_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = failure(an_entry_point("inventory"))
    assert missing.detail == "no installed package offers an entry point inventory of group rackwise.rack_locators"
    offering(tmp_path, monkeypatch, "inventory", "")
    offering(tmp_path, monkeypatch, "inventory", "", package="other_racks")
    twice = failure(an_entry_point("inventory"))
    assert twice.detail == "2 installed packages offer an entry point inventory of group rackwise.rack_locators"


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


def alive_children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
