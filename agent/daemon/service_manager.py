"""Messages to the service manager (systemd's sd_notify): ready, alive, stopping, and one sentence of status.

Readiness is the end of the first cycle, with any result: settings are accepted, the address is bound and the loop runs.
A cluster that is away fails no start of the service. The watchdog is answered only while ``/livez`` is well.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

import structlog

from agent.values.clock import ClockReading
from agent.values.cycle import sentence
from agent.web.agent_view import HealthStatus, LoopState
from config.foreign_text import safe_text

_ADDRESS = "NOTIFY_SOCKET"
_WATCHDOG_US = "WATCHDOG_USEC"
_WATCHDOG_PID = "WATCHDOG_PID"
_PINGS_PER_TIMEOUT = 3
_MOST_STATUS = 400


class ServiceManager:
    """The notification socket; without an address every message is dropped. One thread calls it."""

    def __init__(self, address: str = "", watchdog_ms: int | None = None) -> None:
        self._address = address
        self._watchdog_ms = watchdog_ms
        self._is_ready = False
        self._is_well = True
        self._is_reached = True
        self._status = ""
        self._last_ping_ms: int | None = None
        self._log = structlog.get_logger("rackwise")

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> ServiceManager:
        """By the variables of sd_notify, which are removed: commands that the agent starts must not speak for it."""
        address = environ.pop(_ADDRESS, "")
        timeout, process = environ.pop(_WATCHDOG_US, ""), environ.pop(_WATCHDOG_PID, "")
        is_ours = not process or process == str(os.getpid())
        watchdog_ms = int(timeout) // 1_000 if is_ours and timeout.isdecimal() else 0
        return cls(address, watchdog_ms or None)

    def report(self, state: LoopState, health: HealthStatus, now: ClockReading) -> None:
        """Send what is new; an unsent message is sent again with the next call."""
        if not self._address:
            return
        becomes_ready = not self._is_ready and state.last_end is not None
        status = _status(state, health)
        pings = health.well and self._is_ping_due(now)
        messages = ["READY=1"] * becomes_ready + ["WATCHDOG=1"] * pings
        if status != self._status:
            messages.append(f"STATUS={status}")
        if messages and self._sent("\n".join(messages)):
            self._is_ready, self._status = self._is_ready or becomes_ready, status
            self._last_ping_ms = now.monotonic_ms if pings else self._last_ping_ms
        self._note(health)

    def stopping(self) -> None:
        """Say that the process is about to end."""
        if self._address:
            self._sent("STOPPING=1\nSTATUS=stopping")

    def _is_ping_due(self, now: ClockReading) -> bool:
        if self._watchdog_ms is None:
            return False
        return (
            self._last_ping_ms is None
            or now.monotonic_ms - self._last_ping_ms >= self._watchdog_ms / _PINGS_PER_TIMEOUT
        )

    def _note(self, health: HealthStatus) -> None:
        """Log that the watchdog is left unanswered, once."""
        if self._watchdog_ms is not None and self._is_well and not health.well:
            why = f"the watchdog of the service manager is not answered: {', '.join(health.reasons)}"
            self._log.error("watchdog_unanswered", sentence=why)
        self._is_well = health.well

    def _sent(self, message: str) -> bool:
        """Whether the socket took the message; it is never waited for."""
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.sendto(message.encode(), socket.MSG_DONTWAIT, address)
        except OSError as error:
            if self._is_reached:
                why = f"the service manager cannot be notified: {error.strerror or error}"
                self._log.warning("service_manager_unreachable", sentence=why)
            self._is_reached = False
            return False
        self._is_reached = True
        return True


def _status(state: LoopState, health: HealthStatus) -> str:
    """One line for ``systemctl status``. Names in it are foreign text: a line of its own would be another message."""
    if not health.well:
        return safe_text(f"not live: {', '.join(health.reasons)}", _MOST_STATUS)
    if state.failure is not None:
        return safe_text(f"not ready: {state.failure.sentence}", _MOST_STATUS)
    return "starting" if state.cycle is None else safe_text(sentence(state.cycle), _MOST_STATUS)
