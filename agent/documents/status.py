"""What ``status`` prints."""

from __future__ import annotations

from typing import Literal, TypedDict

from agent.documents.money import MoneyDocument


class FindingDocument(TypedDict):
    """One thing that is wrong, or worth knowing."""

    severity: Literal["critical", "warning", "info"]
    finding: str
    """What kind of finding it is, as one sentence."""
    subject: str
    """``kind/name`` of what it is about."""
    sentence: str
    evidence: dict[str, str | int | float | bool | list[str | int] | None]
    """Figures and names that show it."""
    since_ms: int
    """Epoch milliseconds of the look that saw it first."""
    held: bool
    """True while nothing is planned from it, because a rack does not hold still."""
    id: str


class GapDocument(TypedDict):
    """A part of the cluster that did not answer."""

    part: str
    cause: str
    subject: str
    """Empty: the part as a whole."""
    detail: str


class WorstGroup(TypedDict):
    """One of the groups that cost most."""

    group: str
    usd_per_day: float | None
    """Dollars a day for what it reads across racks: at least, where ``unknown_reads`` is above 0."""
    cross_rack_bytes_per_s: float
    """Bytes per second that it reads across racks, in the same way."""
    unknown_reads: int
    """Reads (one partition by one reader) of which it is not known how many bytes cross."""


class AgentDocument(TypedDict):
    """The agent whose cycle report is the newest in the telemetry topic."""

    name: str | None
    host: str | None
    mode: str
    leads: bool | None
    """Null outside of mode execute."""
    acting: list[str]
    """Mode execute: what keeps it from leading or from carrying plans on, and what open plans wait for."""
    age_ms: int
    """How old that cycle is, by the two clocks."""


class StatusDocument(TypedDict):
    """One look at the cluster: what is there, what crosses racks, and every finding."""

    cluster: str
    """The cluster's id."""
    brokers: dict[str, list[int]]
    """Rack -> the ids of its brokers."""
    topics: int
    partitions: int
    groups: dict[str, int]
    """Kind -> number of groups."""
    proposals: int
    """Changes that rackwise would propose now."""
    not_seen: int
    """Parts that did not answer; they are listed in ``gaps``."""
    agent: AgentDocument | None
    """Null where no telemetry of an agent of this cluster was read, and for a file."""
    took_ms: int
    """How long the look and everything after it took; 0 for a file."""
    money: MoneyDocument
    worst_groups: list[WorstGroup]
    """The three groups that cost most, the worst first; only those that are known to read across racks."""
    findings: list[FindingDocument]
    """The gravest first."""
    gaps: list[GapDocument]
