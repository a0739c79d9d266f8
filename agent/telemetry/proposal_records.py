"""Proposals as records of the proposals topic: key, CloudEvents attributes, steps of a proposal's life."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import quote

from agent.values.proposal import SCHEMA_ID, SCHEMA_VERSION, LifecycleStep, Proposal

CONTENT_TYPE = "application/json"


def headers(
    *, event_id: str, source: str, kind: str, subject: str, time_ms: int, schema: str
) -> Sequence[tuple[str, bytes]]:
    """The headers of one event; ``schema`` is the URI of the data's JSON Schema."""
    attributes = {
        "ce_specversion": "1.0",
        "ce_id": event_id,
        "ce_source": source,
        "ce_type": kind,
        "ce_subject": subject,
        "ce_time": _timestamp(time_ms),
        "ce_dataschema": schema,
        "content-type": CONTENT_TYPE,
    }
    return tuple((name, value.encode("utf-8", "backslashreplace")) for name, value in attributes.items())


def source(cluster_id: str, agent: str) -> str:
    """The URI reference of an agent beside a cluster."""
    return f"/clusters/{quote(cluster_id, safe='')}/agents/{quote(agent, safe='')}"


def _timestamp(epoch_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds; whole numbers only, so that equal times give equal text."""
    seconds, millis = divmod(epoch_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{millis:03d}Z"


CREATED = f"rackwise.proposal.created.v{SCHEMA_VERSION}"
VOID = "rackwise.proposal.void.v1"
LIFE_SCHEMA = "urn:rackwise:proposal-life:v1"


def slot(proposal: Proposal) -> str:
    """The record's key: subject, kind and reason."""
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


def life_headers(life: LifecycleStep, source: str) -> Sequence[tuple[str, bytes]]:
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
"""A figure that changes by more than this share has changed materially."""


class ProposalFigures(NamedTuple):
    """Figures that change from look to look. None is unknown, never zero."""

    bytes_to_move: int | None = None
    cross_rack_bytes_per_s_before: float | None = None
    cross_rack_bytes_per_s_after: float | None = None
    usd_per_day_before: float | None = None
    usd_per_day_after: float | None = None

    def adds_to(self, before: ProposalFigures) -> bool:
        """Whether a figure that was unknown is known now."""
        return any(old is None and new is not None for old, new in zip(before, self, strict=True))


def figures_of(proposal: Proposal) -> ProposalFigures:
    """The figures of the look that it was made from, which is of its ``created_ms``."""
    return ProposalFigures(*(getattr(proposal.predicted, name) for name in ProposalFigures._fields))


def differ(before: ProposalFigures, after: ProposalFigures) -> bool:
    """Whether a figure known in both differs materially; an unknown one leaves the older figure in place."""
    pairs = zip(before, after, strict=True)
    return any(old is not None and new is not None and abs(new - old) > MATERIAL_SHARE * abs(old) for old, new in pairs)
