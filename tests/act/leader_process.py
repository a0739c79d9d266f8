"""An agent that does nothing but lead: takes part in the election, and writes the journal for as long as it may.

Run as a process of its own, so that it can be killed and frozen:
``python -m tests.act.leader_process SERVERS PREFIX NAME``. It prints each change as a line of JSON, with the time of a
clock that all processes share, and ends as an agent does.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from agent.act.leadership import JournalLeadership
from agent.errors import FatalFailure, JournalUnavailable
from agent.journal.entries import JournalPort, JournalWrite
from agent.process import StopSignal
from tests.act.journals import CLUSTER, leadership_plan

_PAUSE_S = 0.05


def main(servers: str, prefix: str, name: str, file: str | None = None) -> int:
    stop = StopSignal()
    fatal: list[FatalFailure] = []

    def asked(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, asked)
    leadership = JournalLeadership(leadership_plan(servers, prefix, name, file=Path(file) if file else None))
    leadership.start()
    leadership.begin(CLUSTER)
    _tell("started")
    last_journal: JournalPort | None = None
    count = 0
    while not stop.wait(_PAUSE_S):
        try:
            journal = leadership.journal()
            if journal is not last_journal:
                last_journal = journal
                _tell("leading", epoch=journal.epoch) if journal is not None else _tell("standby")
            if journal is not None and leadership.may_act():
                count += 1
                journal.append(JournalWrite(f"beat/{name}", "beat", {"n": count}))
                _tell("wrote", epoch=journal.epoch, n=count)
        except FatalFailure as error:
            fatal.append(error)
            break
        except JournalUnavailable as error:
            _tell("unavailable", told=str(error))
    leadership.close()
    if fatal:
        _tell("ended", told=str(fatal[0]), error=type(fatal[0]).__name__)
        return fatal[0].exit_code
    _tell("stopped")
    return 0


def _tell(event: str, **more: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps({"event": event, "at": time.monotonic(), **more}), flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
