"""The document of a proposal: its fields in their fixed order, as the proposals topic, files and commands have it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from agent.values.proposal import SCHEMA_VERSION

SCHEMA_ID = f"urn:rackwise:proposal:v{SCHEMA_VERSION}"


_DOCUMENT = ConfigDict(use_attribute_docstrings=True, extra="ignore", strict=True)


@with_config(_DOCUMENT)
class SubjectDocument(TypedDict):
    """What the proposal is about, written kind/name."""

    kind: str
    """cluster, broker, rack, topic, group, member or task."""
    name: str


@with_config(_DOCUMENT)
class RowDocument(TypedDict):
    """One line of the comparison of before and after; only what changes is listed."""

    key: str
    """A partition (topic-0), a member id, "process task role", or the name of a setting."""
    value: list[str | int]
    """Replicas in order (the first is the preferred leader), partitions, a rack, or the setting's value."""


@with_config(_DOCUMENT)
class MoveDocument(TypedDict):
    """One elementary change."""

    what: str
    """replica, leader, partition, task or setting."""
    subject: str
    source: str | None
    target: str | None
    bytes: int | None
    """Bytes copied or restored by it; null when unknown."""


@with_config(_DOCUMENT)
class LocalityDocument(TypedDict):
    """How much of the subject's work is local, by one named measure."""

    measure: Literal["kafka", "read-local"]
    """kafka: any replica is in the reader's rack. read-local: the leader is, or an in-sync replica where the brokers
    have a rack-aware selector and the client sends its rack."""
    unit: str
    """partitions or bytes_per_s."""
    local: float
    total: float
    unknown: float
    """Part of the total of which locality is unknown."""


@with_config(_DOCUMENT)
class PredictedDocument(TypedDict):
    """What is expected to follow; null is unknown, never zero."""

    before: list[LocalityDocument]
    after: list[LocalityDocument]
    cross_rack_bytes_per_s_before: float | None
    cross_rack_bytes_per_s_after: float | None
    usd_per_day_before: float | None
    usd_per_day_after: float | None
    moves: int
    bytes_to_move: int | None
    seconds: float | None


@with_config(_DOCUMENT)
class FactDocument(TypedDict):
    """A named fact; facts come in the order in which a reader wants them."""

    name: str
    value: str | int | float | bool | list[str | int] | None


@with_config(_DOCUMENT)
class ProposalDocument(TypedDict):
    """What rackwise would do about a finding: before, after, gain, cost, reason and expiry."""

    schema_version: int
    id: str
    """p- and 12 hex digits; the same snapshot gives the same id in every agent and command."""
    kind: Literal["reassign", "leaders", "trigger", "advise"]
    reason: str
    """Name of the reason, in lower case with underscores."""
    reason_text: str
    """The reason as people read it."""
    subject: SubjectDocument
    sentence: str
    before: list[RowDocument]
    after: list[RowDocument]
    moves: list[MoveDocument]
    predicted: PredictedDocument
    lower_bound: float | None
    """No change of this kind can reach less: crossing reads, or bytes copied for a reassignment."""
    optimal: bool | None
    """Whether the lower bound is reached; null where there is none."""
    evidence: list[FactDocument]
    findings: list[str]
    """Ids of the findings that it answers."""
    line: str | None
    """The exact configuration line to set, or command to run."""
    snapshot_hash: str
    """Digest of what the proposal rests on; the proposal is void when it no longer holds."""
    created_ms: int
    """Epoch milliseconds."""
    expires_ms: int
    """Epoch milliseconds; not to be used later."""
