"""Counts and findings as the looks last confirmed them, for metrics: nothing is planned from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.values.finding import Finding
from agent.values.observation import Part


class KnownFinding(NamedTuple):
    """A finding as it was last confirmed."""

    finding: Finding
    seen_ms: int
    """Epoch milliseconds of the last look that found it."""
    gaps: frozenset[tuple[Part, str]]
    """What that look did not see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnown:
    """What metrics count. A count that no look has confirmed yet is None. Times are epoch milliseconds."""

    brokers: Mapping[int, tuple[str, bool]] | None = None
    """Broker -> its rack ("" is unknown), and whether it is alive."""
    brokers_ms: int | None = None
    """When all of it was last confirmed, as below."""
    topics: tuple[int, int] | None = None
    """How many topics and partitions."""
    topics_ms: int | None = None
    groups: Mapping[str, str] | None = None
    """Group -> its kind."""
    groups_ms: int | None = None
    findings: Mapping[str, KnownFinding] = field(default_factory=dict)
    """By id."""

    @property
    def findings_ms(self) -> int | None:
        """When the finding that was not confirmed for longest was last seen; None where there is none."""
        return min((known.seen_ms for known in self.findings.values()), default=None)

    def count_findings(self) -> Counter[tuple[str, str]]:
        """(reason, severity) -> how many."""
        return Counter((one.finding.reason.value, one.finding.severity.value) for one in self.findings.values())
