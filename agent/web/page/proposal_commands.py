"""A proposal as commands to copy and files to download: rackwise's own, and those of Kafka's tools. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agent.propose.codec import proposal_to_json, reassignment_json, rollback_json
from agent.values.kafka import BOOTSTRAP_SERVERS
from agent.values.proposal import Proposal, ProposalKind
from config.foreign_text import json_text

_FILE_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class CopiedCommand(NamedTuple):
    """A command with what it is for."""

    title: str
    command: str


class WrittenFile(NamedTuple):
    """A file to download."""

    key: str
    """Its name in the address."""
    title: str
    name: str
    content: Callable[[], str]


def copied_commands(proposal: Proposal, kafka: Mapping[str, Any]) -> list[CopiedCommand]:
    """What a terminal can do with it: rackwise's commands, and Kafka's own tools with the downloaded file."""
    if proposal.kind is ProposalKind.ADVISE:
        found = [CopiedCommand("The setting", proposal.line)] if proposal.line else []
        return [*found, CopiedCommand("Why", f"rackwise explain {proposal.id}")]
    servers = shlex.quote(str(kafka.get(BOOTSTRAP_SERVERS, "localhost:9092")))
    found = [
        CopiedCommand("Approve it", f"rackwise proposals approve {proposal.id}"),
        CopiedCommand("Why", f"rackwise explain {proposal.id}"),
    ]
    if proposal.kind in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        name = f"{_name(proposal)}-reassignment.json"
        run = f"kafka-reassign-partitions.sh --bootstrap-server {servers} --reassignment-json-file {name} --execute"
        found.append(CopiedCommand("With Kafka's own tool", run))
    if proposal.kind is ProposalKind.LEADERS:
        election = "kafka-leader-election.sh --election-type PREFERRED"
        run = f"{election} --bootstrap-server {servers} --path-to-json-file {name}"
        found.append(CopiedCommand("Then elect the leaders", run))
    return found


def written_files(proposal: Proposal) -> list[WrittenFile]:
    """Its document, and for a change of replicas the lists after and before it."""
    name = _name(proposal)
    files = [
        WrittenFile(
            "proposal", "Proposal (JSON)", f"{name}.json", lambda: json_text(proposal_to_json(proposal), indent=2)
        )
    ]
    if proposal.kind in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        files += [
            WrittenFile(
                "reassignment",
                "kafka-reassign-partitions (JSON)",
                f"{name}-reassignment.json",
                lambda: reassignment_json((proposal,)) + "\n",
            ),
            WrittenFile(
                "rollback", "The way back (JSON)", f"{name}-rollback.json", lambda: rollback_json((proposal,)) + "\n"
            ),
        ]
    return files


def _name(proposal: Proposal) -> str:
    return _FILE_NAME.sub("-", proposal.id)
