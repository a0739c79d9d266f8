"""The end of a command: its exit code, and its error on stderr in one form (what, why, do).

The only place where an error becomes a sentence and an exit code. An error that is not of our tree is a fault of ours:
it is named as one, and its traceback is shown with ``--debug`` alone.
"""

from __future__ import annotations

import errno
import signal
import sys
from contextlib import suppress

from agent.cli.output import forget, let_go, mend, runnable
from agent.errors import BadInput, GaveUp, RackwiseError, as_rackwise_error, error_lines, reason
from agent.process import collect_seldom
from config.foreign_text import shortened
from config.secrets import hidden, remember

INTERRUPTED = 130
CUT_OFF = 141
"""What reads the output went away before the command's end: the code of a program that SIGPIPE ends."""
_WRITERS = ("agent.cli.output", "click.utils", __name__)
"""The modules that write standard output: ours, the library's for help, and this one, which flushes it."""


def run(arguments: list[str], *, debug: bool, interruptible: bool) -> int:
    """Run the command line; its exit code. Raises nothing."""
    collect_seldom()
    forget()
    mend()
    remember(())
    try:
        code = _run(arguments, interruptible=interruptible)
        with suppress(BrokenPipeError):  # what reads it (`| head`) has what it wanted: that changes no exit code
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except RackwiseError as error:
        code = _tell(error, debug=debug)
    except Exception as error:  # noqa: BLE001 a traceback is nothing that an operator should have to read
        if _Interrupt.seen:  # a module that was interrupted while it was loaded fails in the thread that waits for it
            code = INTERRUPTED
        elif type(error).__name__ == "NoArgsIsHelpError":  # asked for nothing: the library gives the help instead
            print(error, file=sys.stderr)
            code = BadInput.exit_code
        elif isinstance(error, BrokenPipeError) and _wrote(error):
            code = CUT_OFF
        else:
            ours = _usage(error) or _unwritten(error) or _unanswered(error) or _unread(error)
            code = _tell(ours or as_rackwise_error(error), debug=debug)
    let_go(sys.stdout)
    let_go(sys.stderr)
    return code


class _Interrupt:
    """Whether Ctrl-C was seen: what fails after it fails because of it."""

    seen = False

    @classmethod
    def raised(cls, *_signal: object) -> None:
        """The handler of SIGINT while a command runs."""
        cls.seen = True
        raise KeyboardInterrupt


def _run(arguments: list[str], *, interruptible: bool) -> int:
    from agent.cli.agent_api import taken_off
    from agent.cli.app import command_line

    arguments = taken_off(arguments)
    command = command_line(arguments[0] if arguments else "")
    if interruptible:
        # From here on there is something to close: an interrupt goes up through the command as an exception.
        signal.signal(signal.SIGINT, _Interrupt.raised)
    try:
        code = command(arguments, prog_name="rackwise", standalone_mode=False)
    except SystemExit as left:
        if isinstance(left.__context__, OSError) and left.__context__.errno == errno.EPIPE:
            raise BrokenPipeError from None  # the library ends a command like this, with an exit code of its own
        code = left.code
    return code if isinstance(code, int) else 0


def _tell(error: RackwiseError, *, debug: bool) -> int:
    with suppress(OSError):  # there may be nowhere to say it
        if debug:
            import traceback

            print(hidden(traceback.format_exc()), end="", file=sys.stderr)
        print(error_lines(error, lambda text: shortened(hidden(runnable(text)))), file=sys.stderr)
    return error.exit_code


def _usage(error: Exception) -> RackwiseError | None:
    """An error of the library that reads the arguments, in our form; None for any other.

    Known by what it can do: where the library has its classes differs between its versions.
    """
    if not hasattr(error, "format_message"):
        return None
    path = getattr(getattr(error, "ctx", None), "command_path", "rackwise")
    sentence = " ".join(error.format_message().split()).replace("Value error, ", "")
    what, _, meant = sentence.partition(". Did you mean ")
    hint = f"Did you mean {meant} " if meant else ""
    return BadInput(what.removesuffix("."), todo=f"{hint}See: {path} --help")


def _unread(error: Exception) -> BadInput | None:
    from agent.values.typed_json import UnreadableError

    if not isinstance(error, UnreadableError):
        return None
    todo = "Use the rackwise that wrote it, or a newer one."
    return BadInput("A record of the journal cannot be read", why=str(error), todo=todo)


def _unanswered(error: Exception) -> GaveUp | None:
    """The error for an agent's answer that has another form than its documents; None where no agent was asked."""
    from agent.cli.agent_api import named_agent

    agent = named_agent()
    if agent is None or not isinstance(error, (LookupError, TypeError, ValueError, AttributeError)):
        return None
    return GaveUp(
        f"The answer of {agent.url} cannot be read",
        why=f"it has not the form of this version's documents ({type(error).__name__}: {error})",
        todo="Check that the URL is that of an agent, and that its version is the one of this command.",
    )


def _unwritten(error: Exception) -> RackwiseError | None:
    """The error for an answer that standard output does not take; None for any other.

    The system's error has no name of a file, so what was writing tells which one it was.
    """
    if not isinstance(error, OSError) or error.filename is not None or not _wrote(error):
        return None
    todo = "Make room where it is redirected to, or redirect it to another place."
    return GaveUp("Standard output cannot be written", why=reason(error), todo=todo)


def _wrote(error: Exception) -> bool:
    """Whether what failed is writing standard output: sockets and other pipes break too."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and str(at.tb_frame.f_globals.get("__name__")).endswith(_WRITERS)
