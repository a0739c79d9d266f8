"""What an operator sees when a command ends with an error: one form, its exit code, and nothing of a library's."""

from __future__ import annotations

import re

from tests.command import Done

LIBRARY = re.compile(r"%\d\||rdkafka#|Traceback \(most recent call last\)|Exception ignored|codec can't decode")
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
MOST_LINES = 6
LONGEST_LINE = 4_000


def assert_one_error(done: Done, *codes: int) -> None:
    """It ended with one of these codes and with one error in our form, and answered nothing."""
    assert done.exit_code in codes, done
    assert done.stdout == "", done
    assert_clean(done)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert lines[0].startswith("rackwise: "), done
    assert len(lines[0]) > len("rackwise: "), done
    assert all(line.startswith(("  why: ", "  do:  ")) for line in lines[1:]), done
    assert len(lines) <= MOST_LINES, done
    assert max(map(len, lines)) < LONGEST_LINE, done


def assert_clean(done: Done) -> None:
    """Nothing that it said is a library's own, or harms a terminal."""
    output = done.stdout + done.stderr
    assert LIBRARY.search(output) is None, done
    assert UNSAFE.search(output) is None, done
