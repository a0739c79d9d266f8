"""Facts of a cluster that a plan depends on: racks, and the group protocols that its brokers offer.

Invariant: nothing is guessed from a version number; the brokers' finalized features decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """A cluster as its workload sees it."""

    cluster_id: str
    racks: Mapping[int, str | None]
    """Broker -> `broker.rack`; None is a broker without one."""
    features: Mapping[str, int]
    """Finalized feature -> level."""
    client_version: str
    """Version of the Java clients that will run."""

    @property
    def consumer_protocol(self) -> bool:
        """Whether the brokers serve KIP-848 groups."""
        return self.features.get("group.version", 0) >= 1

    @property
    def streams_protocol(self) -> bool:
        """Whether the brokers serve KIP-1071 groups."""
        return self.features.get("streams.version", 0) >= 1

    @property
    def rack_names(self) -> tuple[str, ...]:
        """Racks that have a broker, sorted."""
        return tuple(sorted({rack for rack in self.racks.values() if rack is not None}))
