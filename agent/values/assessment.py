"""Assessments: how local a group's work is now, and how local the best possible assignment would make it.

Two measures, always named: Kafka's own (any replica in the rack; what its assignors look at, for predictions) and
read-local (where bytes are really read; for bytes and money). The optimum is exact and carries its lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from agent.values.finding import Finding
from assignors.problem import ConsumerResult, TaskResult, TopicPartition

if TYPE_CHECKING:  # what it rests on is made of the model, which is made of the memory of findings
    from agent.values.locality import Ground


class Measure(StrEnum):
    """By which rule a partition counts as local. Every share names its measure."""

    KAFKA = "kafka"
    """Any replica is in the rack: what Kafka's assignors look at. For predictions."""
    READ_LOCAL = "read-local"
    """The leader is in the rack; or an in-sync replica is, where the brokers have a rack-aware selector and the client
    sends its rack. For bytes and money."""


class Locality(NamedTuple):
    """How much of a subject's work is local, by one named measure."""

    measure: Measure
    unit: str
    """``partitions`` or ``bytes_per_s``."""
    local: float
    total: float
    unknown: float
    """Part of ``total`` of which locality is unknown (a rack is unknown)."""


class Weighing(NamedTuple):
    """A group against its optimum by bytes, where every partition has a fresh weight; bytes per second throughout."""

    total: float
    crossing: float
    """Read across racks now, by Kafka's measure."""
    optimal_crossing: float
    lower_bound: float
    gained: float
    """What leaves "crossing" and arrives in "local" at the optimum; 0.0 below one byte per second."""
    rates: Mapping[TopicPartition, float]
    """What the group reads of each partition."""


class NotAssessed(StrEnum):
    """Why a group has no assessment; never silently left out."""

    HIDDEN = "a rebalance is running, so no assignment is shown"
    EMPTY = "the group has no members"
    NO_RACKS = "no member's rack is known"
    UNDECODABLE = "member bytes could not be read"
    TOPICS_UNKNOWN = "a subscribed topic could not be described"
    TOPOLOGY_UNKNOWN = "the application's topology is unknown"
    CONTRADICTORY = "the group's data contradicts itself, such as a partition or task with two owners"
    OTHER_KIND = "the group assigns no partitions to readers"
    EXCLUDED = "excluded by the settings"
    OWN = "a group of rackwise itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One group against its optimum. ``why_not`` is set, and everything else empty, when it cannot be judged."""

    group_id: str
    why_not: NotAssessed | None = None
    current: tuple[Locality, ...] = ()
    """One per measure (and unit, when bytes are known)."""
    optimal: tuple[Locality, ...] = ()
    """The same measures and units, in the same order, for the exact optimum at equal balance."""
    crossing: int = 0
    """Partitions (tasks' source partitions) read across racks now, by Kafka's measure."""
    optimal_crossing: int = 0
    lower_bound: int = 0
    moved: int = 0
    """Partitions or tasks that the optimum moves away from their present owner."""
    result: ConsumerResult | TaskResult | None = None
    """The optimal assignment by Kafka's measure."""
    weighing: Weighing | None = None
    """Set where the optimum is the one by bytes: ``optimal``, ``optimal_crossing``, ``moved`` and ``result`` are then
    its figures, and may cross more partitions than now, of less weight."""
    away: int = 0
    """Readers (members, or Streams processes) in a rack that no broker has: all that they read crosses racks.
    None is counted where a replica may be in any rack."""
    ground: Ground | None = field(default=None, repr=False, compare=False)
    """What all of it was judged on, for later stages; None where nothing was judged."""

    @property
    def gap(self) -> int:
        """Crossing partitions that the optimum would bring home; by bytes it may be below 0."""
        return self.crossing - self.optimal_crossing

    @property
    def unknown(self) -> float:
        """Reads of which it is unknown whether they cross, in partitions by Kafka's measure."""
        return max(
            (of.unknown for of in self.current if (of.measure, of.unit) == (Measure.KAFKA, "partitions")), default=0.0
        )

    @property
    def at_optimum(self) -> bool:
        """Whether nothing can be gained, for certain: what is unknown may be gained as well as not."""
        if self.why_not is not None or self.improvable or self.unknown:
            return False
        return not self.crossing or (self.ground is not None and not self.ground.blurred)

    @property
    def improvable(self) -> bool:
        """Whether the optimum is better than the present: by bytes where weights are known, else by partitions."""
        return self.gap > 0 if self.weighing is None else self.weighing.gained > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What `detect` returns: findings sorted by (severity, id), and every group's assessment."""

    findings: tuple[Finding, ...] = ()
    assessments: Mapping[str, Assessment] = field(default_factory=dict)
    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Group -> the topics that decide its assessment, sorted."""
