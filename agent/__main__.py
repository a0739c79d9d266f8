"""The command ``rackwise``: the only place where an error becomes a sentence on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from agent.cli.output import harmless_streams
from agent.collector import walk_seldom
from agent.errors import RackwiseError, told
from config.foreign_text import shortened


def main() -> NoReturn:
    """Run the command line and leave with its exit code; a traceback is shown only with RACKWISE_DEBUG or --debug."""
    with harmless_streams():
        _run()


def _run() -> NoReturn:
    debug = bool(os.environ.get("RACKWISE_DEBUG")) or "--debug" in sys.argv
    if "--debug" in sys.argv:
        sys.argv.remove("--debug")
    walk_seldom()
    # Looking for plugins of pydantic reads what every installed package says of itself; none concerns settings.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from agent.cli.app import command_line  # noqa: PLC0415 typer is slow to import, and an error of its own is caught below

    try:
        command_line(sys.argv[1] if len(sys.argv) > 1 else "")()
    except RackwiseError as error:
        if debug:
            raise
        print(told(error, shortened), file=sys.stderr)  # noqa: T201 the command line talks to a person
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted; a second error while Python flushes stdout helps nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(0)


if __name__ == "__main__":
    main()
