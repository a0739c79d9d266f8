"""Sends an operator's command to the leading agent and waits for its answer in the journal.

For the command line and for pages alike: a command goes into the topic or the directory of commands, signed by the
person or by the agent at whose page that person signed in.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from agent.act.commands.commands_topic import send_command
from agent.act.commands.inbox import spool_command
from agent.act.lead.lease import LeadershipPlan
from agent.errors import GaveUp, JournalUnavailable
from agent.execute.commands.command_context import signed, witnessed
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, answer_to, command_to_json
from agent.journal.entries import JournalState
from agent.journal.record_trust import LEADER, LeaderEntry, leader_in
from agent.values.number_format import lasted

SEND_MS = 10_000
"""Deadline of writing one command."""
POLL_S = 0.5
OLD_MS = 900_000
"""A leader confirms its lead every five minutes; one without a confirmation for three times as long may be gone."""


def new_command(
    verb: CommandVerb, who: str, proposal_id: str | None = None, *, plan_hash: str | None = None, reason: str = ""
) -> OperatorCommand:
    """A new command of that person, with a fresh id and the time of now."""
    name = f"{verb.value}-{os.urandom(8).hex()}"
    return OperatorCommand(name, verb, who, time.time_ns() // 1_000_000, proposal_id, plan_hash, reason)


def ask_leader(
    plan: LeadershipPlan,
    command: OperatorCommand,
    wait_s: float,
    *,
    journal: Callable[[], JournalState],
    note: Callable[[str], None] = lambda _: None,
    poll_s: float = POLL_S,
) -> LeaderAnswer:
    """The leading agent's answer, which may be a refusal. Raises GaveUp when no agent leads, or none answers in time.

    ``journal`` returns what the journal has by now, ``note`` gets a sentence about a leader that may be gone.
    """
    leader = _leader(journal(), note)
    _send(plan, command, leader)
    until = time.monotonic() + wait_s
    silence = f"{leader.agent} on {leader.host}, the last leading agent, did not answer"
    while time.monotonic() < until:
        try:
            found = answer_to(journal(), command.id)
        except JournalUnavailable as error:  # the command was sent, so it may be obeyed all the same
            found, silence = None, f"the journal, where the answer is written, cannot be read: {error.why}"
        if found is not None:
            return found.answer
        time.sleep(poll_s)
    raise GaveUp(
        f"No agent answered within {wait_s:.0f} s",
        why=f"{silence}; the command was sent, and the leading agent may still carry it out",
        todo="Check that an agent runs in mode execute; a late answer is listed by: rackwise proposals history",
    )


def _leader(view: JournalState, note: Callable[[str], None]) -> LeaderEntry:
    found = leader_in(view)
    if found is None:
        raise GaveUp(
            "No agent leads, and none has led yet",
            why="an agent in mode execute carries out commands, and the journal names none",
            todo="Start one with: rackwise run --mode execute",
        )
    idle_ms = time.time_ns() // 1_000_000 - max(view[LEADER].at_ms, found.since_ms)
    if idle_ms > OLD_MS:
        note(f"note: {found.agent} on {found.host}, the last leading agent, confirmed it {lasted(idle_ms)} ago")
    return found


def _send(plan: LeadershipPlan, command: OperatorCommand, leader: LeaderEntry) -> None:
    record = _proven(plan, command_to_json(command), plan.cluster or leader.cluster)
    if plan.file is not None:
        spool_command(plan.spool_directory, record, at_ms=command.at_ms)
        return
    send_command(
        plan.config,
        plan.commands_topic,
        record,
        cluster=leader.cluster,
        sender=command.who,
        at_ms=command.at_ms,
        timeout_ms=SEND_MS,
    )


def _proven(plan: LeadershipPlan, record: dict[str, Any], cluster: str) -> dict[str, Any]:
    """The record with the code of the person, or of the agent that vouches for one."""
    if plan.signer is not None:
        return signed(record, plan.signer, cluster)
    return record if plan.witness is None else witnessed(record, plan.witness, cluster)
