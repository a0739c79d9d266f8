"""Metrics of cross-rack traffic, its daily cost and groups' lag in the last cycle.

A partly known figure is exported as its lower bound, beside the number of unknown reads and copies; an unknown one has
no sample.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from agent.money.costs import CrossRackCosts, costs_of, lag_of
from agent.money.traffic import CrossRackTraffic, together
from agent.values.cycle import Cycle
from agent.values.last_known import is_listed
from agent.values.limits import Limits
from agent.values.observation import ObservationPart
from agent.values.snapshot import Snapshot
from config.foreign_text import safe_text
from config.secrets import without_url_secrets

# Labels: the largest subjects have series of their own, the rest is summed up. Names are foreign text: they are cut and
# freed of control characters.

OTHER = "other"
_MAX_LABEL = 200
Item = TypeVar("Item")


def split_top(
    items: Mapping[str, Item], most: int, weight: Callable[[Item], float]
) -> tuple[dict[str, Item], tuple[Item, ...]]:
    """The heaviest ``most`` items by name, and all others; one that is itself named ``other`` is among the others."""
    order = sorted(items, key=lambda name: (name == OTHER, -weight(items[name]), name))
    kept = {name for name in order[:most] if name != OTHER}
    return {name: items[name] for name in sorted(kept)}, tuple(items[name] for name in order if name not in kept)


def label(text: str) -> str:
    """A label value that is safe to write and short."""
    return safe_text(without_url_secrets(text), _MAX_LABEL)


def unique_labels(names: Iterable[str]) -> dict[str, str]:
    """Name -> its label; names that would share one get a number, as two equal series make a whole page invalid."""
    taken: set[str] = set()
    labels: dict[str, str] = {}
    for name in names:
        wanted = shown = label(name)
        number = 2
        while shown in taken:
            shown = f"{wanted} ({number})"
            number += 1
        taken.add(shown)
        labels[name] = shown
    return labels


class MetricDescription(NamedTuple):
    """A metric as it is documented. The name is the exported one, with its ``_total``."""

    name: str
    kind: str
    labels: tuple[str, ...]
    sentence: str


MONEY_METRICS: tuple[MetricDescription, ...] = (
    MetricDescription(
        "rackwise_cross_rack_bytes_per_second", "gauge", ("path",),
        "Bytes per second across racks by path (replicate, consume); a lower bound where some are unknown.",
    ),
    MetricDescription(
        "rackwise_cross_rack_usd_per_day", "gauge", ("path",),
        "Cost per day of these bytes at the configured prices.",
    ),
    MetricDescription(
        "rackwise_cross_rack_unknown", "gauge", ("path",),
        "Copies (replicate) and reads (consume) whose bytes across racks are unknown.",
    ),
    MetricDescription(
        "rackwise_group_cross_rack_usd_per_day", "gauge", ("group",),
        "Cost per day of a group's reads across racks; a lower bound where some are unknown.",
    ),
    MetricDescription(
        "rackwise_group_lag_records", "gauge", ("group",),
        "End offsets minus committed offsets over the topics that a group reads; a lower bound where some are unknown.",
    ),
)  # fmt: skip

Sample = tuple[tuple[str, ...], float]
"""Values of the labels, and the value."""

# Samples and costs of a look are made once. Those of 10,000 groups take about a second, so a scrape of many groups is
# answered from the newest look that has them, and those of a new look are made after the answer to the first scrape.

MOST_AT_ONCE = 2_000
"""Groups whose samples or documents a request makes by itself: about half a second."""
STALE_MS = 180_000
"""A scrape is not answered from a look that is older than the newest one by more: it waits."""


class LookSamples(NamedTuple):
    """The samples of one cycle's look."""

    cycle: Cycle
    of: Mapping[str, Sequence[Sample]]
    """Metric name -> its samples."""


class SampledLooks:
    """The newest samples, for any thread."""

    def __init__(self, make: Callable[[Cycle], Mapping[str, Sequence[Sample]]]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._made: LookSamples | None = None

    def of(self, cycle: Cycle) -> LookSamples:
        """The samples of this cycle; those of a former one where these take long, unless that one is too old."""
        made = self._made
        return made if made is not None and _stands_for(made.cycle, cycle) else self._newest(cycle)

    def is_behind(self, cycle: Cycle) -> bool:
        """Whether the samples of this cycle are neither made nor being made."""
        return (self._made is None or self._made.cycle is not cycle) and not self._making.locked()

    def catch_up(self, cycle: Cycle) -> None:
        """Make the samples of this cycle, unless samples are being made."""
        if self._making.acquire(blocking=False):
            try:
                self._make_of(cycle)
            finally:
                self._making.release()

    def _newest(self, cycle: Cycle) -> LookSamples:
        """Wait for those of this cycle; one thread makes them for all that wait."""
        with self._making:
            return self._make_of(cycle)

    def _make_of(self, cycle: Cycle) -> LookSamples:
        made = self._made
        if made is None or made.cycle is not cycle:
            made = self._made = LookSamples(cycle, self._make(cycle))
        return made


def _stands_for(made: Cycle, newest: Cycle) -> bool:
    """Whether the samples of this cycle answer a scrape after the newest one."""
    if made is newest:
        return True
    few = len(newest.snapshot.groups) <= MOST_AT_ONCE
    return not few and newest.snapshot.taken_ms - made.snapshot.taken_ms <= STALE_MS


class _SharedCosts:
    """Costs of the last snapshots that were asked for: metrics, page and API ask for those of the same look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[tuple[Snapshot, CrossRackCosts], ...] = ()

    def of(self, snapshot: Snapshot) -> CrossRackCosts:
        with self._lock:
            for one, costs in self._last:
                if one is snapshot:
                    return costs
            costs = costs_of(snapshot)
            self._last = (*self._last[-1:], (snapshot, costs))
            return costs


look_costs = _SharedCosts().of
"""`costs_of`, worked out once by snapshot; the last two are kept."""


def money_samples(cycle: Cycle, most_groups: int) -> Mapping[str, Sequence[Sample]]:
    """Metric name -> its samples; groups beyond the dearest ``most_groups`` are summed up."""
    snapshot, limits = cycle.snapshot, cycle.limits
    costs = look_costs(snapshot)
    whole = is_listed(snapshot, ObservationPart.GROUPS)
    return {
        **_paths(snapshot, costs, limits),
        "rackwise_group_cross_rack_usd_per_day": _by_group(costs, limits, most_groups, whole=whole),
        "rackwise_group_lag_records": _lags(snapshot, most_groups, whole=whole),
    }


def _paths(snapshot: Snapshot, costs: CrossRackCosts, limits: Limits) -> dict[str, list[Sample]]:
    """No sample of a path with unlisted topics or groups: a partial sum would look like a fall."""
    samples: dict[str, list[Sample]] = {}
    lists = {
        "replicate": (costs.replicate, (ObservationPart.TOPICS,)),
        "consume": (costs.consume, (ObservationPart.TOPICS, ObservationPart.GROUPS)),
    }
    for path, (traffic, parts) in lists.items():
        if not all(is_listed(snapshot, part) for part in parts):
            continue
        figures = {
            "rackwise_cross_rack_bytes_per_second": traffic.bytes_per_s,
            "rackwise_cross_rack_usd_per_day": traffic.usd_per_day(limits),
            "rackwise_cross_rack_unknown": traffic.unknown,
        }
        for name, value in figures.items():
            if value is not None:
                samples.setdefault(name, []).append(((path,), value))
    return samples


def _by_group(costs: CrossRackCosts, limits: Limits, most: int, *, whole: bool) -> list[Sample]:
    known = {name: traffic for name, traffic in costs.groups.items() if traffic is not None and traffic.parts}
    shown, others = split_top(known, most, lambda traffic: traffic.usd_per_day(limits) or 0.0)
    labels = unique_labels(shown)
    rows: list[tuple[str, CrossRackTraffic]] = [(labels[name], traffic) for name, traffic in shown.items()]
    if others and whole:
        rows.append((OTHER, together(others)))
    priced = [(name, traffic.usd_per_day(limits)) for name, traffic in rows]
    return [((name,), usd) for name, usd in priced if usd is not None]


def _lags(snapshot: Snapshot, most: int, *, whole: bool) -> list[Sample]:
    every = {name: lag_of(snapshot, name) for name in snapshot.groups}
    lags = {name: lag.known for name, lag in every.items() if lag is not None and lag.known is not None}
    shown, others = split_top(lags, most, float)
    labels = unique_labels(shown)
    rest: list[Sample] = [((OTHER,), sum(others))] if others and whole else []
    return [*(((labels[name],), lag) for name, lag in shown.items()), *rest]
