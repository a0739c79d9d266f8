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


MATERIAL_SHARE = 0.2
"""A figure that differs by more than this part of what it was is another one for a person who decides by it."""


class Figures(NamedTuple):
    """What changes from look to look. None is unknown, never zero."""

    bytes_to_move: int | None = None
    cross_rack_bytes_per_s_before: float | None = None
    cross_rack_bytes_per_s_after: float | None = None
    usd_per_day_before: float | None = None
    usd_per_day_after: float | None = None

    def adds_to(self, before: Figures) -> bool:
        """Whether something that was unknown is known."""
        return any(old is None and new is not None for old, new in zip(before, self, strict=True))


def figures_of(proposal: Proposal) -> Figures:
    """The figures of the look that it was made from, which is of its ``created_ms``."""
    return Figures(*(getattr(proposal.predicted, name) for name in Figures._fields))


def differ(before: Figures, after: Figures) -> bool:
    """Whether a figure that both know differs materially; what is no longer known leaves the older figure in place."""
    pairs = zip(before, after, strict=True)
    return any(old is not None and new is not None and abs(new - old) > MATERIAL_SHARE * abs(old) for old, new in pairs)
