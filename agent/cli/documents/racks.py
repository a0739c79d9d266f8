"""What ``racks`` prints: one row per rack."""

from __future__ import annotations

from typing import TypedDict

from agent.cli.documents.money import RatesSource


class LostTaskDocument(TypedDict):
    """A task that would have to restore."""

    group: str
    task: str
    process: str
    """The Kafka Streams process that runs it."""


class SurvivorDocument(TypedDict):
    """A broker outside the rack, with what it leads now and afterwards."""

    broker: int
    rack: str | None
    """Null where it is not known."""
    leaders: int
    leaders_after: int
    bytes_per_s: float | None
    """What the partitions that it leads take in; null where one rate is unknown."""
    bytes_per_s_after: float | None
    led_bytes: int | None
    """Bytes on disk of what it leads; null where one size is unknown."""
    led_bytes_after: int | None


class LossDocument(TypedDict):
    """What losing a rack costs."""

    leaderless: list[str]
    """Partitions that would have no leader."""
    under_min_isr: list[str]
    """Partitions that would be under their min ISR."""
    untold: list[str]
    """Partitions for which that is unknown."""
    tasks_without_caught_up_standby: list[LostTaskDocument]
    untold_tasks: list[LostTaskDocument]
    """Tasks for which it is unknown whether another rack has a standby that has caught up."""
    untold_groups: list[str]
    """Applications whose tasks are unknown."""
    not_seen: list[str]
    """Missing answers that may hide more of each; while there is one, an empty list is not known to be all."""
    survivors: list[SurvivorDocument]
    """Empty also where no topic was seen and some may be hidden."""


class AbsenceDocument(TypedDict):
    """A broker that is not live."""

    broker: int
    for_ms: int | None
    """How long it has been absent, as far as looks tell; null where only one look was taken."""
    sentence: str


class RackDocument(TypedDict):
    """A rack with what is in it, what crosses its border, and what losing it costs."""

    rack: str | None
    """Null for everything whose rack is not known."""
    known_from: dict[str, int]
    """Where the rack is known from -> how many brokers and members."""
    brokers: list[int] | None
    """Null where none was seen and some may be hidden, as in the numbers that follow."""
    absent_brokers: list[int] | None
    """Those of ``brokers`` that are not live."""
    absences: list[AbsenceDocument]
    """Of each of these, since when."""
    replicas: int | None
    leaders: int | None
    members: int | None
    active_tasks: int | None
    standby_tasks: int | None
    """Standbys and warm-ups."""
    cross_rack_in_bytes_per_s: float | None
    """Bytes per second that come in from other racks: at least, where ``unknown_parts`` is above 0; null: unknown."""
    cross_rack_out_bytes_per_s: float | None
    """Bytes per second that go out to other racks, in the same way."""
    usd_per_day: float | None
    """Dollars a day for what comes in, in the same way: the sum of all racks is what crosses racks in all."""
    unknown_parts: int
    """Reads and copies in the whole cluster of which it is not known how many bytes cross, or between which racks."""
    rates: RatesSource
    """Where bytes per second come from."""
    losing_it: str | None
    """What losing the rack costs, as one sentence; null where there is no rack to lose."""
    loss: LossDocument | None
