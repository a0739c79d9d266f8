"""A proposal as a record of the proposals topic: its key, its CloudEvents attributes, and the steps of its life."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent.telemetry.cloud_events import headers
from agent.values.proposal import SCHEMA_ID, SCHEMA_VERSION, Proposal

CREATED = f"rackwise.proposal.created.v{SCHEMA_VERSION}"
VOID = "rackwise.proposal.void.v1"
LIFE_SCHEMA = "urn:rackwise:proposal-life:v1"


class Life(NamedTuple):
    """A step in the life of a proposal after its creation."""

    id: str
    kind: str
    subject: str
    state: str
    """``void``."""
    sentence: str
    at_ms: int
    schema_version: int = 1


def slot(proposal: Proposal) -> str:
    """The record's key: the same question about the same subject has the same slot."""
    return f"{proposal.subject}#{proposal.kind.value}/{proposal.reason.name.lower()}"


def created_headers(proposal: Proposal, source: str) -> Sequence[tuple[str, bytes]]:
    """The attributes of a proposal that ``source`` publishes."""
    return headers(
        event_id=proposal.id,
        source=source,
        kind=CREATED,
        subject=str(proposal.subject),
        time_ms=proposal.created_ms,
        schema=SCHEMA_ID,
    )


def life_headers(life: Life, source: str) -> Sequence[tuple[str, bytes]]:
    """The attributes of a step in a proposal's life."""
    return headers(
        event_id=f"{life.id}.{life.state}",
        source=source,
        kind=VOID,
        subject=life.subject,
        time_ms=life.at_ms,
        schema=LIFE_SCHEMA,
    )
