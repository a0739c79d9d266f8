"""docs/reference/exit-codes.md, read off the errors of the agent. Write it: python -m tests.docs.exit_code_reference"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from agent.cli.command_exit import CUT_OFF, INTERRUPTED
from agent.errors import RackwiseError
from tests.docs.reference_pages import table, write

HEAD = """\
# Exit codes

What a script can rely on. Each code with the errors that end a command with it, read off the code; what each code
means for single commands is in [operations](../operations.md#exit-codes). An error on stderr says what happened, why,
and what to do.
"""
_OTHERS = {
    0: "done, or no change",
    3: "`plan --detailed-exitcode`: changes are proposed",
    7: "`run`: the memory ceiling is reached; start it again",
    INTERRUPTED: "interrupted (Ctrl-C)",
    CUT_OFF: "nothing reads the output any more",
}
"""Codes that are no error of the tree."""


def page() -> str:
    """A row for each code."""
    rows: dict[int, list[str]] = {code: [meaning] for code, meaning in _OTHERS.items()}
    for error in _errors(RackwiseError):
        rows.setdefault(error.exit_code, []).append(f"*{error.__name__}*: {_sentence(error)}")
    return (
        f"{HEAD}\n{table(('code', 'ends with it'), [(str(code), '<br>'.join(rows[code])) for code in sorted(rows)])}\n"
    )


def codes() -> set[int]:
    """Every code of a command."""
    return {*_OTHERS, *(error.exit_code for error in _errors(RackwiseError))}


def _errors(kind: type[RackwiseError]) -> Iterator[type[RackwiseError]]:
    """The classes of `agent.errors` that are raised: those without classes below them there, and the root."""
    below = [one for one in kind.__subclasses__() if one.__module__ == RackwiseError.__module__]
    if not below or kind is RackwiseError:
        yield kind
    for one in below:
        yield from _errors(one)


def _sentence(error: type[RackwiseError]) -> str:
    if error is RackwiseError:
        return "any other failure."
    return " ".join((inspect.getdoc(error) or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    write("exit-codes.md", page())
