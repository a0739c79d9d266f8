"""The command ``rackwise``: the process's entry and exit; `agent.cli.command_exit` runs the command line.

Invariant: Ctrl-C ends the process with exit code 130 and no output, from the first statement of this module to the
last. While modules load, and after the command, it exits at once: no resource is open then.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to load than all else before Ctrl-C is heeded
    from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line and leave with its exit code; a traceback is shown only with RACKWISE_DEBUG or --debug."""
    heeded = _heed()
    if heeded:
        sys.unraisablehook = _unraisable
    debug = bool(os.environ.get("RACKWISE_DEBUG")) or "--debug" in sys.argv
    if "--debug" in sys.argv:
        sys.argv.remove("--debug")
    # Looking for plugins of pydantic reads what every installed package says of itself; none concerns settings.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from agent.cli.command_exit import run  # noqa: PLC0415 from here on Ctrl-C is heeded, also while this is loaded

    code = run(sys.argv[1:], debug=debug, interruptible=heeded)
    if heeded:
        signal.signal(signal.SIGINT, _leave_at_once)
    _leave(code)


def _heed() -> bool:
    """Have Ctrl-C heeded; False below nohup, where it is not for this process."""
    heeded = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if heeded:
        signal.signal(signal.SIGINT, _leave_at_once)
    return heeded


def _leave(code: int) -> NoReturn:
    """End the process once everything that is registered for its end is done.

    The interpreter is not taken down: a daemon thread that is still within librdkafka's code would crash with it, other
    threads would keep the process for as long as they wait for a broker, and all of its memory goes anyway.
    """
    from contextlib import suppress  # noqa: PLC0415 what is loaded before Ctrl-C is heeded is as little as can be

    atexit._run_exitfuncs()  # noqa: SLF001 the same that Python calls first when it ends
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _leave_at_once(*_signal: object) -> NoReturn:
    os._exit(INTERRUPTED)


def _unraisable(raised: sys.UnraisableHookArgs) -> None:
    """End the process on Ctrl-C within a callback of Python's own, where KeyboardInterrupt would be lost."""
    if issubclass(raised.exc_type, KeyboardInterrupt):
        _leave_at_once()
    sys.__unraisablehook__(raised)


_heed()  # the importer of this module still has work to do before it calls `main`

if __name__ == "__main__":
    main()
