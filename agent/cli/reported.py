"""What does the running agent report of itself? Its newest cycle report, read beside a command's own look."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.documents.status import AgentDocument
    from agent.record.newest_look import NewestLook
    from agent.seen import Seen
    from agent.values.observation import Observation
    from config.settings import Settings

REPORT_MS = 2_000
"""As long a command waits for it, from its start."""


class AgentsReport:
    """The newest report in the telemetry topic, asked for in a thread from now on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._began = time.monotonic()
        self._found: NewestLook | None = None
        self._thread = threading.Thread(target=self._ask, name="newest report", daemon=True)
        self._thread.start()

    def of(self, observation: Observation) -> AgentDocument | None:
        """What it says; None where no agent's telemetry of this cluster tells."""
        from agent.telemetry.derived import ReportData
        from agent.telemetry.events import Kind
        from agent.values.typed_json import UnreadableError, from_json

        if not any(one.name == self._settings.telemetry_topic for one in observation.topics):
            return None
        self._thread.join(max(0.0, self._began + REPORT_MS / 1000 - time.monotonic()))
        event = self._found.events.get(Kind.REPORT) if self._found is not None else None
        if event is None or event.cluster != observation.cluster_id:
            return None
        try:
            report = from_json(ReportData, event.data)
        except UnreadableError:
            return None
        return {
            "name": report.agent,
            "host": report.host,
            "mode": report.mode,
            "leads": report.leads,
            "acting": list(report.acting),
            "age_ms": max(0, observation.taken_ms - event.taken_ms),
        }

    def _ask(self) -> None:
        from agent.record.newest_look import newest_look
        from agent.telemetry.events import Kind

        settings = self._settings
        self._found = newest_look(
            settings.kafka.confluent(),
            settings.telemetry_topic,
            None,
            frozenset({Kind.REPORT}),
            prefix=settings.topics.prefix,
            timeout_ms=REPORT_MS,
        )


def agent_line(look: Seen) -> str | None:
    """The agent in a few words, for a cell; None where none is known."""
    agent = look.agent
    if agent is None:
        return None
    where = f" on {agent['host']}" if agent["host"] else ""
    leads = {True: ", leads", False: ", stands by", None: ""}[agent["leads"]]
    return f"{agent['name'] or '(unnamed)'}{where}, mode {agent['mode']}{leads}, {agent['age_ms'] / 1000:.0f} s ago"
