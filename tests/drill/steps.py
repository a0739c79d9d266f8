"""Steps of an executor at which a drill kills or holds it, hooked around its journal and its admin client."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterable
from typing import Any

from agent.journal.entries import JournalPort, JournalState, JournalWrite
from agent.values.observation import RawReassignment
from agent.values.throttles import OpType
from agent.wire import connection
from agent.wire.admin_client import WireAdminClient
from agent.wire.protocol import ALTER_PARTITION_REASSIGNMENTS

_REMOVING = (OpType.DELETE, OpType.SUBTRACT)


class Death:
    """Kills this process as SIGKILL does, or holds it, the n-th time that a step is reached."""

    def __init__(self, step: str | None, times: int, *, holds: bool = False) -> None:
        self._step = step
        self._left = times
        self._holds = holds
        self.go = threading.Event()
        """Ends the hold."""

    def at(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                self._reached(step)

    def _reached(self, step: str) -> None:
        if not self._holds:
            os.kill(os.getpid(), signal.SIGKILL)
        say(f"at {step}")
        self.go.wait(120)


class DyingJournal:
    """The journal, with steps to die at."""

    def __init__(self, inner: JournalPort, death: Death) -> None:
        self._inner = inner
        self._death = death

    @property
    def epoch(self) -> int:
        return self._inner.epoch

    def view(self) -> JournalState:
        return self._inner.view()

    def append(self, *writes: JournalWrite) -> None:
        self._inner.append(*writes)
        self._death.at("append")
        for write in writes:
            self._death.at(f"after {write.kind}")


class DyingAdminClient(WireAdminClient):
    """The admin client, with steps to die at."""

    def __init__(self, arguments: dict[str, Any], death: Death) -> None:
        super().__init__(arguments)
        self._death = death
        self._looked = False

    def list_reassignments(self, deadline_ms: int) -> tuple[RawReassignment, ...]:
        moves = super().list_reassignments(deadline_ms)
        if not self._looked:
            self._looked = True
            say("looked")
        self._death.at("look")
        if moves:
            self._death.at("mid-progress")
        return moves

    def alter_placements(self, targets: Any, deadline_ms: int, begin_by: Any = None, leave_out: Any = None) -> Any:
        self._death.at("before the cancel" if set(targets.values()) == {None} else "before the request")
        answers = super().alter_placements(targets, deadline_ms, begin_by, leave_out)
        self._death.at("request acknowledged")
        return answers

    def change_throttles(
        self, changes: Iterable[Any], deadline_ms: int, begin_by: Any = None, leave_out: Any = None
    ) -> Any:
        wanted = list(changes)
        clearing = any(change.op in _REMOVING for change in wanted)
        if clearing:
            self._death.at("before throttle clear")
        answers = super().change_throttles(wanted, deadline_ms, begin_by, leave_out)
        self._death.at("after throttle clear" if clearing else "throttle set")
        return answers


def die_when_sent(death: Death) -> None:
    """Before the answer to a reassignment is read."""
    answer = connection.BrokerConnection._answer

    def dying(self: Any, api: Any, version: int, deadline: Any) -> Any:
        if api is ALTER_PARTITION_REASSIGNMENTS:
            death.at("request sent")
        return answer(self, api, version, deadline)

    connection.BrokerConnection._answer = dying  # type: ignore[method-assign]


def say(word: str) -> None:
    """A word of this process to the drill."""
    print(word, flush=True)
