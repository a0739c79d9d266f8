"""What crosses racks, what it costs a day and how far behind groups are, as metrics of the last cycle.

What is known only in part is exported as the least that it can be, with the number of unknown reads and copies beside
it; what is unknown has no sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agent.money.costs import Costs, costs_of
from agent.money.lags import lag_of
from agent.money.traffic import Traffic, together
from agent.values.cycle import Cycle
from agent.values.last_known import is_listed
from agent.values.limits import Limits
from agent.values.observation import Part
from agent.values.snapshot import Snapshot
from agent.web.top import OTHER, split_top, unique_labels


class Described(NamedTuple):
    """A metric as it is documented. The name is the exported one, with its ``_total``."""

    name: str
    kind: str
    labels: tuple[str, ...]
    sentence: str


MONEY_METRICS: tuple[Described, ...] = (
    Described(
        "rackwise_cross_rack_bytes_per_second", "gauge", ("path",),
        "Bytes per second across racks by path (replicate, consume); a lower bound where some are unknown.",
    ),
    Described(
        "rackwise_cross_rack_usd_per_day", "gauge", ("path",),
        "Cost per day of these bytes at the configured prices.",
    ),
    Described(
        "rackwise_cross_rack_unknown", "gauge", ("path",),
        "Copies (replicate) and reads (consume) whose bytes across racks are unknown.",
    ),
    Described(
        "rackwise_group_cross_rack_usd_per_day", "gauge", ("group",),
        "Cost per day of a group's reads across racks; a lower bound where some are unknown.",
    ),
    Described(
        "rackwise_group_lag_records", "gauge", ("group",),
        "End offsets minus committed offsets over the topics that a group reads; a lower bound where some are unknown.",
    ),
)  # fmt: skip

Sample = tuple[tuple[str, ...], float]


class MoneyOfCycle:
    """Works a cycle's costs out once, however often it is asked."""

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
    costs = costs_of(snapshot)
    whole = is_listed(snapshot, Part.GROUPS)
    return {
        **_paths(snapshot, costs, limits),
        "rackwise_group_cross_rack_usd_per_day": _by_group(costs, limits, most, whole=whole),
        "rackwise_group_lag_records": _lags(snapshot, most, whole=whole),
    }


def _paths(snapshot: Snapshot, costs: Costs, limits: Limits) -> dict[str, list[Sample]]:
    """Nothing of a path of which a topic or a group may not be listed: a sum over a part would look like a fall."""
    found: dict[str, list[Sample]] = {}
    lists = {"replicate": (costs.replicate, (Part.TOPICS,)), "consume": (costs.consume, (Part.TOPICS, Part.GROUPS))}
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
                found.setdefault(name, []).append(((path,), value))
    return found


def _by_group(costs: Costs, limits: Limits, most: int, *, whole: bool) -> list[Sample]:
    known = {name: traffic for name, traffic in costs.groups.items() if traffic is not None and traffic.parts}
    shown, others = split_top(known, most, lambda traffic: traffic.usd_per_day(limits) or 0.0)
    labels = unique_labels(shown)
    rows: list[tuple[str, Traffic]] = [(labels[name], traffic) for name, traffic in shown.items()]
    if others and whole:
        rows.append((OTHER, together(others)))
    priced = [(name, traffic.usd_per_day(limits)) for name, traffic in rows]
    return [((name,), usd) for name, usd in priced if usd is not None]


def _lags(snapshot: Snapshot, most: int, *, whole: bool) -> list[Sample]:
    found = {name: lag_of(snapshot, name) for name in snapshot.groups}
    lags = {name: lag.known for name, lag in found.items() if lag is not None and lag.known is not None}
    shown, others = split_top(lags, most, float)
    labels = unique_labels(shown)
    rest: list[Sample] = [((OTHER,), sum(others))] if others and whole else []
    return [*(((labels[name],), lag) for name, lag in shown.items()), *rest]
