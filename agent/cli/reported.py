"""What does the running agent report of itself? Its newest cycle report, read beside a command's own look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.cli.loading import AskedBeside
from agent.cli.running_agents import STALE_MS
from agent.values.words import lasted

if TYPE_CHECKING:
    from agent.record.heard import Heard
    from agent.simulate.evaluation import Seen
    from agent.values.observation import Observation
    from agent.values.progress import AgentDocument, OtherAgent
    from config.settings import Settings

REPORT_MS = 2_000
"""As long a command waits for it, from its start."""


class AgentsReport:
    """The newest report in the telemetry topic, asked for in a thread from now on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked: AskedBeside[tuple[Heard, ...]] = AskedBeside("agent.record.newest_look", self._ask, ())

    def of(self, observation: Observation) -> AgentDocument | None:
        """What it says; None where no agent's telemetry of this cluster tells."""
        if not any(one.name == self._settings.telemetry_topic for one in observation.topics):
            return None
        heard = [one for one in self._asked.answer(REPORT_MS / 1000) if one.cluster == observation.cluster_id]
        if not heard:
            return None
        report = heard[0].report
        return {
            "name": report.agent,
            "host": report.host,
            "mode": report.mode,
            "leads": report.leads,
            "acting": list(report.acting),
            "age_ms": _age_ms(heard[0], observation),
            "pid": report.pid,
            "others": [
                {
                    "name": one.report.agent,
                    "host": one.report.host,
                    "pid": one.report.pid,
                    "mode": one.report.mode,
                    "leads": one.report.leads,
                    "same_settings": one.report.limits_digest == report.limits_digest,
                    "age_ms": _age_ms(one, observation),
                }
                for one in heard[1:]
            ],
        }

    def _ask(self) -> tuple[Heard, ...]:
        from agent.record.newest_look import agents_heard

        settings = self._settings
        return agents_heard(
            settings.kafka.confluent(),
            settings.telemetry_topic,
            prefix=settings.topics.prefix,
            timeout_ms=REPORT_MS,
        )


def _age_ms(one: Heard, observation: Observation) -> int | None:
    return None if one.ahead_ms > STALE_MS else max(0, observation.taken_ms - one.newest_ms)


def agent_line(look: Seen) -> str | None:
    """The agent in a few words, for a cell; None where none is known."""
    agent = look.agent
    if agent is None:
        return None
    lines = [_line(agent, several=bool(agent["others"])), *(_line(one, several=True) for one in agent["others"])]
    if any(not one["same_settings"] for one in agent["others"]):
        lines.append("agents with different settings write to the same telemetry")
    return "; ".join(lines)


def _line(agent: AgentDocument | OtherAgent, *, several: bool) -> str:
    """One agent; with its process where there are several, whose names may be the same."""
    where = f" on {agent['host']}" if agent["host"] else ""
    process = f", process {agent['pid']}" if several and agent["pid"] is not None else ""
    leads = {True: ", leads", False: ", stands by", None: ""}[agent["leads"]]
    name = agent["name"] or "(unnamed)"
    age_ms = agent["age_ms"]
    age = "age unknown: its clock is ahead" if age_ms is None else f"last report {lasted(age_ms)} ago"
    return f"{name}{where}{process}, mode {agent['mode']}{leads}, {age}"
