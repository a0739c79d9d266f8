"""What ``status`` prints."""

from __future__ import annotations

from typing import Literal, TypedDict

from agent.cli.documents.money import MoneyDocument, PricedDocument
from agent.values.progress import AgentDocument


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


class WorstGroup(PricedDocument):
    """One of the groups that cost most."""

    group: str
    unknown_reads: int
    """Reads (one partition by one reader) of which it is not known how many bytes cross."""


class UnknownGroups(TypedDict):
    """Groups of which it is not known, in part or in full, what their reads across racks cost."""

    groups: list[str] | None
    """Null where none was seen and some may be hidden, as in the next."""
    unbounded_groups: list[str] | None
    """Those among them of which not even a bound is known."""
    at_most_cross_rack_bytes_per_s: float | None
    """Bytes per second that the others read across racks at most; null: none has a bound."""
    at_most_usd_per_day: float | None
    """What they cost a day at most; null also where no price is set."""


class RackBrokers(TypedDict):
    """The brokers of a rack."""

    rack: str | None
    """Null for brokers whose rack is not known."""
    brokers: list[int]
    """Their ids."""


class StatusDocument(TypedDict):
    """One look at the cluster: what is there, what crosses racks, and every finding."""

    cluster: str
    """The cluster's id."""
    brokers: list[RackBrokers] | None
    """By rack; null where none was seen and some may be hidden, as in all that follow."""
    absent_brokers: list[int] | None
    """Ids of brokers that are not live: a replica list names them, or an earlier look saw them."""
    topics: int | None
    partitions: int | None
    groups: dict[str, int] | None
    """Kind -> number of groups."""
    rebalancing_groups: list[str] | None
    """Groups that show no racks or assignments of their members in this look."""
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
    """The three groups that may cost most, the worst first; only those that read across racks or may do so."""
    unknown_groups: UnknownGroups
    findings: list[FindingDocument]
    """The gravest first."""
    gaps: list[GapDocument]
