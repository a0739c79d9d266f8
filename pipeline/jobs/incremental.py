"""Incremental sums: the sums of the current hours, kept from batch to batch, with the looks that they include.

Invariant: the kept sums equal those that bronze gives for their looks. They are dropped when one of these looks, or one
before them, was read again, or when one covers another stretch of time than before; then all looks are added up anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from pyspark.sql import DataFrame, Row

from pipeline.jobs.work import ClusterHour
from pipeline.transforms.spans import HOUR_MS

Each = TypeVar("Each")


class LookId(NamedTuple):
    """Identity of a look."""

    cluster: str
    look: str


class HourShare(NamedTuple):
    """The part of an hour that a look covers; shares are of the time since the look before."""

    hour_ms: int
    from_share: float
    to_share: float
    ms: int


class LookHours(NamedTuple):
    """A whole look, and the hours to which it contributes."""

    instance: str
    previous: str | None
    taken_ms: int
    monotonic_ms: int
    shown_in_ms: int | None
    """The hour in which it was taken; None where that is not one of those in question."""
    stretches: tuple[HourShare, ...]
    """Of the hours in question, sorted."""

    def within(self, cluster: str, hours: Collection[ClusterHour]) -> LookHours:
        """The same, where fewer hours are in question."""
        shown = self.shown_in_ms
        return self._replace(
            shown_in_ms=None if shown is None or ClusterHour(cluster, shown) not in hours else shown,
            stretches=tuple(one for one in self.stretches if ClusterHour(cluster, one.hour_ms) in hours),
        )

    @property
    def contributes(self) -> bool:
        """Whether any of the hours would read otherwise without it."""
        return bool(self.stretches) or self.shown_in_ms is not None


Looks = Mapping[LookId, LookHours]


class HourlySums(NamedTuple, Generic[Each]):
    """What looks come to by hour: something for each of the tables."""

    traffic: Each
    """`traffic.traffic_sums`."""
    placements: Each
    """`ledger.placement_sums`."""
    copies: Each
    """`ledger.copy_sums`."""
    reads: Each
    """`reads.read_sums`."""
    lags: Each
    """`reads.lag_sums`."""
    locality: Each
    """`reads.locality_sums`."""
    sizes: Each
    """`traffic.newest_sizes`, of the looks before the hours as well."""
    counters: Each
    """`conservation.counter_sums`."""
    readers: Each
    """`reads.newest_readers`, of the looks before the hours as well."""


class KeptSums(NamedTuple):
    """Sums of some looks in some hours."""

    sums: HourlySums[DataFrame]
    hours: frozenset[ClusterHour]
    looks: Looks
    """All known looks, also those that contribute nothing to these hours: their sizes may count."""


class IncrementalSums:
    """Of one runner, whose refreshes come one after the other."""

    def __init__(self) -> None:
        self._kept: KeptSums | None = None

    def take(self, looks: Looks, hours: Collection[ClusterHour], touched: Collection[LookId]) -> KeptSums | None:
        """What is carried; None where that is nothing that holds. It is no longer carried then.

        ``looks`` are all that are known by now, ``touched`` those whose rows were written anew.
        """
        kept, self._kept = self._kept, None
        return kept if kept is not None and still_valid(kept, looks, hours, touched) else None

    def keep(self, sums: HourlySums[DataFrame], looks: Looks, hours: frozenset[ClusterHour]) -> None:
        """Carry these, of all ``looks`` that are known by now."""
        self._kept = KeptSums(sums, hours, looks)


def looks_of(times: Iterable[Row], spans: Iterable[Row], hours: Collection[ClusterHour]) -> dict[LookId, LookHours]:
    """Every whole look of the rows of `spans.timeline`, once; their parts of these hours, as in `spans.by_hour`."""
    stretches: dict[LookId, list[HourShare]] = {}
    for row in spans:
        one = HourShare(row["hour_ms"], row["from_share"], row["to_share"], row["ms"])
        stretches.setdefault(LookId(row["cluster"], row["look"]), []).append(one)
    looks = {}
    for row in times:
        if row["of_instance_ms"] is None:
            continue
        id_ = LookId(row["cluster"], row["look"])
        taken = row["taken_ms"] - row["taken_ms"] % HOUR_MS
        shares = tuple(sorted(stretches.get(id_, ())))
        looks[id_] = LookHours(
            row["instance"], row["previous"], row["taken_ms"], row["monotonic_ms"], taken, shares
        ).within(id_.cluster, hours)
    return looks


def contributing(looks: Looks) -> dict[LookId, LookHours]:
    """The looks that contribute to an hour."""
    return {id_: look for id_, look in looks.items() if look.contributes}


def newest_of(looks: Looks) -> dict[tuple[str, str], int]:
    """Cluster and instance -> its newest look by its monotonic clock."""
    newest: dict[tuple[str, str], int] = {}
    for (cluster, _), look in looks.items():
        key = (cluster, look.instance)
        newest[key] = max(newest.get(key, look.monotonic_ms), look.monotonic_ms)
    return newest


def still_valid(kept: KeptSums, now: Looks, hours: Collection[ClusterHour], touched: Collection[LookId]) -> bool:
    """Whether the kept sums plus the new looks equal the sums of all looks in these hours."""
    before = {id_: look.within(id_.cluster, hours) for id_, look in kept.looks.items()}
    newest = newest_of(kept.looks)
    for id_, look in now.items():
        if id_ in before:
            counts = look.contributes or before[id_].contributes
            if id_ in touched or (counts and look != before[id_]):
                return False
        # A look that contributes nothing is not read, though its sizes may count; and a look's rows are those
        # with which later ones of its instance are compared.
        elif not look.contributes or look.monotonic_ms <= newest.get(
            (id_.cluster, look.instance), look.monotonic_ms - 1
        ):
            return False
    return contributing(before).keys() <= now.keys()


def with_predecessors(new: Collection[LookId], looks: Looks) -> list[LookId]:
    """The looks whose rows it takes to add up the ``new`` ones: these, and the one before each; sorted."""
    before = {LookId(id_.cluster, looks[id_].previous or "") for id_ in new}
    return sorted({*new, *before} & looks.keys())
