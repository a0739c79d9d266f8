"""Metrics of cross-rack traffic, its daily cost and groups' lag in the last cycle.

A partly known figure is exported as its lower bound, beside the number of unknown reads and copies; an unknown one has
no sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from agent.money.costs import CrossRackCosts, lag_of
from agent.money.traffic import CrossRackTraffic, together
from agent.values.cycle import Cycle
from agent.values.last_known import is_listed
from agent.values.limits import Limits
from agent.values.observation import ObservationPart
from agent.values.snapshot import Snapshot
from agent.web.look_samples import Sample, look_costs
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


class CycleCosts:
    """Costs of a cycle, computed once for all scrapes."""

    def __init__(self) -> None:
        self._of: Cycle | None = None
        self._samples: Mapping[str, Sequence[Sample]] = {}

    def samples(self, cycle: Cycle, most_groups: int) -> Mapping[str, Sequence[Sample]]:
        """Metric name -> its samples."""
        if cycle is not self._of:
            self._samples = _samples(cycle.snapshot, cycle.limits, most_groups)
            self._of = cycle
        return self._samples


def _samples(snapshot: Snapshot, limits: Limits, most: int) -> Mapping[str, Sequence[Sample]]:
    costs = look_costs(snapshot)
    whole = is_listed(snapshot, ObservationPart.GROUPS)
    return {
        **_paths(snapshot, costs, limits),
        "rackwise_group_cross_rack_usd_per_day": _by_group(costs, limits, most, whole=whole),
        "rackwise_group_lag_records": _lags(snapshot, most, whole=whole),
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
