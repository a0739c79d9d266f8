"""``top``: on a terminal a page that is painted anew, elsewhere a line of JSON per look; it leaves no trace."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from agent.cli.options import SettingsOptions
from agent.cli.session import ShownLook, shown_of
from agent.cli.top import _live, _page, first_began
from agent.documents.status import top_document
from agent.simulate.evaluation import evaluate, first_memory, next_look
from agent.telemetry.events import to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from tests.builders import an_observation, reader
from tests.cli.conftest import Run
from tests.command import RACKWISE, ROOT, environment
from tests.recorded_looks import observation_to_events
from tests.snapshots import tp

ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
OURS = {b"\x1b[?25l", b"\x1b[?25h", b"\x1b[H", b"\x1b[K", b"\x1b[J", b"\x1b[1m", b"\x1b[0m"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Three looks, ten seconds apart; one group has a name that would clear the screen."""
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1, 2), (2, 1), ends=[0, 0]).selector(None)
    answers.group("shop", reader("m", "b", "orders-0")).group("\x1b[2Jevil", reader("n", "b", "orders-0 orders-1"))
    limits = Limits()
    path = tmp_path / "looks.jsonl"
    answers.sizes = {(b, p): 0 for p in answers.ends for b in (1, 2)}
    memory = first_memory(answers.at(0), limits)
    with path.open("w") as out:
        for number in (1, 2, 3):
            for partition in range(2):
                answers.ends[tp(f"orders-{partition}")] += 10_000
            answers.sizes = {(b, p): end * 1_000 for p, end in answers.ends.items() for b in (1, 2)}
            look = answers.at(number * 10)
            seen, memory = next_look(look, memory, limits)
            events = observation_to_events(look, seen.before, limits, look=f"l-{number}")
            out.writelines(f"{line}\n" for event in events for line in to_lines(event))
    return path


def test_its_first_page_names_no_option_that_it_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1, 2)).group("shop", reader("m", "b", "orders-0"))
    monkeypatch.setattr("agent.cli.session.looking", lambda _: nullcontext(answers.at))
    looks = _live(SettingsOptions(bootstrap="127.0.0.1:1"), 5_000, lambda _: True)
    first = next(looks)
    looks.close()
    assert isinstance(first, ShownLook)
    page = " ".join(_page(first, "5s"))
    assert "rates: unknown, as" in page
    assert page.count("; the next look measures them") == 1
    assert "--for" not in page


def test_without_a_terminal_each_look_is_a_line_of_json(file: Path, here: Run) -> None:
    done = here("top", "--replay", str(file))
    assert (done.exit_code, done.stderr) == (0, "")
    looks = [json.loads(line) for line in done.stdout.splitlines()]
    assert [look["taken_ms"] - looks[0]["taken_ms"] for look in looks] == [0, 10_000, 20_000]
    assert [row["group"] for row in looks[0]["groups"]] == ["\x1b[2Jevil", "shop"]
    assert looks[0]["groups"][0]["cross_rack_bytes_per_s"] == 1_000_000
    assert looks[0]["topics"][0]["topic"] == "orders"
    assert looks[0]["money"]["rates"]["source"] == "file"


def test_a_table_that_goes_into_a_pipe_has_no_control_codes(file: Path, here: Run) -> None:
    done = here("top", "--replay", str(file), "-o", "table", "--count", "2")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.count("across racks: ") == 2
    assert "\x1b" not in done.stdout


def test_it_ends_after_as_many_looks_as_were_asked_for(file: Path, here: Run) -> None:
    assert len(here("top", "--replay", str(file), "--count", "2").stdout.splitlines()) == 2


def test_a_pause_below_a_second_is_refused(file: Path, here: Run) -> None:
    done = here("top", "--replay", str(file), "--every", "10ms")
    assert done.exit_code == 2
    assert "from 1s to 1h" in done.stderr


def test_on_a_terminal_only_our_own_codes_steer_it_and_the_cursor_comes_back(file: Path) -> None:
    code, told, before, after = on_terminal("--replay", str(file), rows=24, columns=80)
    assert code == 0
    assert set(ESCAPES.findall(told)) <= OURS
    assert rb"\x1b[2Jevil" in told  # in letters
    assert told.index(b"\x1b[?25l") < told.index(b"\x1b[?25h")
    assert told.rindex(b"\x1b[?25h") > told.rindex(b"\x1b[J")
    assert before == after
    pages = ESCAPES.sub(b"", told.split(b"\x1b[H")[-1]).decode().splitlines()
    assert max(map(len, pages)) <= 80
    assert any("across racks: " in line for line in pages)


def test_what_has_no_room_on_a_page_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "14")
    monkeypatch.setenv("COLUMNS", "80")
    answers = an_observation(a=(1,), b=(2,)).topic("orders", (1, 2), (2, 1))
    for number in range(9):
        answers.group(f"g{number}", reader("m", "b", "orders-0"))
    page = _page(shown_of(evaluate(answers.at(), Memory(), Limits()), top_document), "5s")
    shown = [line for line in page if re.match(r"g\d ", line)]
    assert len(page) <= 13
    assert f"{9 - len(shown)} more: rackwise groups" in page


def test_the_second_look_has_a_base_that_is_old_enough() -> None:
    assert first_began(100.0, 100_004, 5_000) + 5 == pytest.approx(105.004)
    assert first_began(100.0, 99_990, 5_000) == 100.0
    assert first_began(100.0, 100_004, 2_000) == 100.0, "looks this close share the first base"


def test_a_page_is_never_higher_than_the_terminal(file: Path) -> None:
    _, told, _, _ = on_terminal("--replay", str(file), rows=10, columns=80)
    for page in told.split(b"\x1b[H")[2:]:
        assert page.split(b"\x1b[J")[0].count(b"\n") <= 9


@pytest.mark.parametrize(
    "leaving", [pytest.param(b"q", id="q"), pytest.param(b"\x03", id="Ctrl-C"), pytest.param(None, id="SIGINT")]
)
def test_it_leaves_cleanly_while_it_waits(leaving: bytes | None, tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    code, told, before, after = on_terminal(program=[RACKWISE[0], str(script)], leaving=leaving or b"", when=b"ready")
    assert (code, before) == (0, after)
    assert b"Traceback" not in told
    assert told.rstrip().endswith(b"\x1b[?25h")


WAITING = """
import time
from contextlib import suppress
import typer
from agent.cli.top import _keys

def main():
    with suppress(KeyboardInterrupt), _keys(on_terminal=True) as wait:
        print("ready", flush=True)
        if not wait(time.monotonic() + 60):
            raise SystemExit(9)

main()
"""


def _environment() -> dict[str, str]:
    """Without a size of the terminal, which the runner of tests sets: the pseudo-terminal has its own."""
    whole = environment(TERM="xterm", PYTHONPATH=str(ROOT))
    return {name: value for name, value in whole.items() if name not in {"LINES", "COLUMNS"}}


def on_terminal(
    *arguments: str,
    program: list[str] | None = None,
    rows: int = 24,
    columns: int = 80,
    leaving: bytes = b"",
    when: bytes = b"",
) -> tuple[int, bytes, list[object], list[object]]:
    """(Exit code, all bytes, the terminal's settings before and after) of a run in a pseudo-terminal.

    ``leaving`` is typed once ``when`` was seen; nothing typed there is a SIGINT.
    """
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        program or [*RACKWISE, "top", *arguments],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, start_new_session=True,
        preexec_fn=_own_terminal,  # noqa: PLW1509 Ctrl-C reaches only who has the terminal for their own
        env=_environment(),
    )  # fmt: skip
    told, typed, until = b"", not when, time.monotonic() + 60
    try:
        while time.monotonic() < until:
            if select.select([ours], [], [], 0.1)[0]:
                told += os.read(ours, 65_536)
            elif process.poll() is not None:
                break
            if not typed and when in told:
                typed = True
                if leaving:
                    os.write(ours, leaving)
                else:
                    process.send_signal(signal.SIGINT)
        code = process.wait(10)
        while select.select([ours], [], [], 0)[0]:  # what it wrote last
            told += os.read(ours, 65_536)
        return code, told, before, termios.tcgetattr(theirs)
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
