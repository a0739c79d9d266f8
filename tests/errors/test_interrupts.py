"""Ctrl-C at any moment: exit code 130 and not a word. Standard streams that are closed, full or gone.

Moments are counted in modules that are looked for, not in seconds: they are the same on a slow machine.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.command import RACKWISE, ROOT, Done, environment

MAIN = """
import atexit, os, signal, sys
left = int(sys.argv.pop(1))
looked_for = 0
class Raises:
    def __del__(self):
        raise KeyboardInterrupt
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        global looked_for
        looked_for += 1
        if looked_for == left:
            {act}
import agent.__main__
sys.meta_path.insert(0, Interrupt())
{more}
agent.__main__.main()
"""
KILL = "os.kill(os.getpid(), signal.SIGINT)"
IN_A_CALLBACK = "Raises()"
AT_THE_END = f"atexit.register(lambda: {KILL})"
COUNT = "atexit.register(lambda: print('looked for', looked_for))"
NOWHERE = "127.0.0.1:1"


def interrupted(at: int, *arguments: str, act: str = KILL, more: str = "") -> Done:
    """A command that is interrupted while it looks for that module, counted from its own first statement on."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN.format(act=act, more=more), str(at), *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=90, cwd=ROOT,
        env=environment(),
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@cache
def looked_for(*arguments: str) -> int:
    """How many modules a command looks for when it is let through."""
    return int(interrupted(0, *arguments, more=COUNT).stdout.rpartition("looked for ")[2])


def at(share: float, *arguments: str) -> int:
    return 1 + round(share * looked_for(*arguments))


@pytest.fixture(scope="module")
def mute() -> Iterator[str]:
    """The address of what takes connections and says nothing: a command never comes to its end meanwhile."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def look(mute: str, waits: str = "60s") -> tuple[str, ...]:
    return "status", "-b", mute, "--set", f"observe.call_timeout={waits}", "--set", f"observe.deadline={waits}"


@pytest.mark.parametrize("share", [0, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9])
def test_an_interrupt_while_modules_are_loaded_ends_a_command_without_a_word(share: float, mute: str) -> None:
    """In the last third a second thread loads modules, while the first one waits for a broker."""
    assert interrupted(at(share, *look(mute, "1s")), *look(mute)) == Done(130, "", "")


def test_so_does_one_before_the_command_line_is_called() -> None:
    """A script of an installer imports the module, then does what it likes, then calls it."""
    assert interrupted(0, "--help", more=KILL) == Done(130, "", "")


@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_so_does_one_while_the_help_is_made(share: float) -> None:
    assert interrupted(at(share, "--help"), "--help") == Done(130, "", "")


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_one_within_a_callback_that_python_would_only_print_ends_it_too(share: float, mute: str) -> None:
    assert interrupted(at(share, *look(mute, "1s")), *look(mute), act=IN_A_CALLBACK) == Done(130, "", "")


def test_an_interrupt_after_the_answer_takes_no_word_of_it_back_and_adds_none() -> None:
    done = interrupted(0, "--version", more=AT_THE_END)
    assert (done.exit_code, done.stderr) == (130, "")
    assert done.stdout.startswith("rackwise ")


ENDS = """
import atexit, os, threading, time
class Witness:
    def __del__(self, write=os.write):
        write(2, b"the interpreter is taken down")
atexit.register(lambda: print("what is registered is done"))
witness = Witness()
threading.Thread(target=time.sleep, args=(20,), daemon={daemon}).start()
import agent.__main__
agent.__main__.main()
"""


@pytest.mark.parametrize("daemon", [True, False])
@pytest.mark.parametrize(("arguments", "exit_code"), [(("--version",), 0), (("no-such-command",), 2)])
def test_a_command_ends_while_its_threads_wait_for_a_broker(
    daemon: bool, arguments: tuple[str, ...], exit_code: int
) -> None:
    """Below an interpreter that is taken down, a thread that is within librdkafka crashes now and then."""
    done = subprocess.run(
        [sys.executable, "-c", ENDS.format(daemon=daemon), *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=90, cwd=ROOT,
        env=environment(),
    )  # fmt: skip
    assert done.returncode == exit_code
    assert done.stdout.endswith("what is registered is done\n")
    assert "taken down" not in done.stderr


class Silent(NamedTuple):
    """Takes connections and says nothing."""

    listener: socket.socket

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listener.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[Silent]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        yield Silent(listener)


WAITING = [
    ("status",),
    ("plan",),
    ("run", "--once"),
    ("proposals", "list"),
    ("reassign", "status"),
    ("pause",),
]


@pytest.mark.parametrize("command", WAITING, ids=" ".join)
def test_an_interrupt_while_a_broker_is_waited_for_ends_a_command_without_a_word(
    silent: Silent, command: tuple[str, ...]
) -> None:
    process = subprocess.Popen(
        [*RACKWISE, *command, "--bootstrap-servers", silent.address, "--set", "log.level=error"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=environment(),
    )  # fmt: skip
    connection, _ = silent.listener.accept()
    with connection:
        assert connection.recv(4), "it has asked"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=90)
    assert Done(process.returncode, out, err) == Done(130, "", "")


def test_below_nohup_an_interrupt_is_not_for_it() -> None:
    """As shells start what runs in the background: with interrupts ignored."""
    more = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    done = interrupted(20, "--version", more=more)
    assert (done.exit_code, done.stderr) == (0, "")


def shell(script: str) -> Done:
    told = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *RACKWISE],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False, cwd=ROOT, env=environment(),
    )  # fmt: skip
    return Done(told.returncode, told.stdout, told.stderr)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(
            '{ "$@" config docs; echo "code $?" >&2; } | head -1 >/dev/null',
            Done(0, "", "code 0\n"),
            id="head has enough",
        ),
        pytest.param('"$@" config docs >&-', Done(0, "", ""), id="no standard output"),
        pytest.param('"$@" --version 2>&-', Done(0, "VERSION", ""), id="no standard error"),
        pytest.param(f'"$@" status -b {NOWHERE} 2>&-', Done(5, "", ""), id="an error and nowhere to say it"),
        *(
            pytest.param(
                f'"$@" {arguments} >/dev/full',
                Done(
                    1,
                    "",
                    "rackwise: Standard output cannot be written\n  why: No space left on device\n"
                    "  do:  Make room where it is redirected to, or redirect it to another place.\n",
                ),
                id=f"no room for the answer of {arguments}",
            )
            for arguments in ("config docs", "config show -o csv", "--version", "--help")
        ),
    ],
)
def test_streams_that_lead_nowhere_are_no_fault(script: str, expected: Done) -> None:
    done = shell(script)
    if expected.stdout == "VERSION":
        expected = expected._replace(stdout=done.stdout)
        assert done.stdout.startswith("rackwise ")
    assert done == expected
