"""Metrics of cross-rack traffic, its daily cost and groups' lag in the last cycle.

A partly known figure is exported as its lower bound, beside the number of unknown reads and copies; an unknown one has
no sample.

Lag is also exported under the names of kafka-lag-exporter, for dashboards and alerts that are there already: behind a
switch, as its series grow with topics and partitions. Each level has the subjects that lag most, and counts the others.
Members, clients and hosts, which kafka-lag-exporter adds as labels, would begin new series at a rebalance.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from agent.money.costs import CrossRackCosts, GroupLag, costs_of, lag_of, partition_lags, sum_of_lags
from agent.money.traffic import CrossRackTraffic, together
from agent.values.cycle import Cycle
from agent.values.last_known import is_listed
from agent.values.limits import Limits
from agent.values.observation import ObservationPart
from agent.values.snapshot import Snapshot
from assignors.problem import TopicPartition
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


LagDetail = Literal["none", "group", "topic", "partition"]
"""The finest level that is exported; a finer one has the coarser ones too."""
_DETAILS: tuple[LagDetail, ...] = ("none", "group", "topic", "partition")

LAG_METRICS: tuple[MetricDescription, ...] = (
    MetricDescription(
        "kafka_consumergroup_group_sum_lag", "gauge", ("cluster_name", "group"),
        "Records behind of a group over all its partitions; a lower bound where some are unknown.",
    ),
    MetricDescription(
        "kafka_consumergroup_group_max_lag", "gauge", ("cluster_name", "group"),
        "Records behind of the group's partition with the highest lag; a lower bound where some are unknown.",
    ),
    MetricDescription(
        "kafka_consumergroup_group_topic_sum_lag", "gauge", ("cluster_name", "group", "topic"),
        "Records behind of a group in one topic; a lower bound where some are unknown.",
    ),
    MetricDescription(
        "kafka_consumergroup_group_lag", "gauge", ("cluster_name", "group", "topic", "partition"),
        "Records behind of a group in one partition.",
    ),
    MetricDescription(
        "kafka_consumergroup_group_offset", "gauge", ("cluster_name", "group", "topic", "partition"),
        "Offset that a group has committed for that partition.",
    ),
    MetricDescription(
        "kafka_partition_latest_offset", "gauge", ("cluster_name", "topic", "partition"),
        "End offset of such a partition.",
    ),
    MetricDescription(
        "rackwise_consumer_lags_left_out", "gauge", ("level",),
        "Groups, topics of groups and partitions of groups with known lag and without these series (metrics.top_lags).",
    ),
)  # fmt: skip

Place = tuple[str, ...]
"""A group; or a group and a topic."""


class _KnownLag(NamedTuple):
    """Records behind of a group or of a topic of it, at least."""

    sum: int
    worst: int


class _LagRow(NamedTuple):
    """One partition of one group."""

    group: str
    partition: TopicPartition
    lag: int


class ConsumerLags:
    """Lags of a cycle at one level of detail, computed once for all scrapes."""

    def __init__(self, detail: LagDetail, most: int) -> None:
        """``most``: subjects of each level that have series."""
        self._detail, self._most = detail, most
        self._of: Cycle | None = None
        self._samples: Mapping[str, Sequence[Sample]] = {}

    def samples(self, cycle: Cycle) -> Mapping[str, Sequence[Sample]]:
        """Metric name -> its samples; none without the switch."""
        if self._detail != "none" and cycle is not self._of:
            self._samples = _samples(cycle.snapshot, self._detail, self._most)
            self._of = cycle
        return self._samples


def _samples(snapshot: Snapshot, detail: LagDetail, most: int) -> dict[str, Sequence[Sample]]:
    """Of all levels up to ``detail``; how many are left out only where groups and topics are all listed."""
    asked = _DETAILS[: _DETAILS.index(detail) + 1]
    lags = {name: of for name in snapshot.groups if (of := partition_lags(snapshot, name)) is not None}
    cluster, left_out = label(snapshot.cluster_id), dict[str, int]()
    found: dict[str, Sequence[Sample]] = {}
    if "group" in asked:
        shown, left_out["group"] = _highest({(name,): sum_of_lags(of) for name, of in lags.items()}, most)
        names = unique_labels(sorted(name for (name,) in shown))
        of_groups = [((cluster, names[name]), lag) for (name,), lag in sorted(shown.items())]
        found["kafka_consumergroup_group_sum_lag"] = [(place, lag.sum) for place, lag in of_groups]
        found["kafka_consumergroup_group_max_lag"] = [(place, lag.worst) for place, lag in of_groups]
    if "topic" in asked:
        shown, left_out["topic"] = _highest(_by_topic(lags), most)
        found["kafka_consumergroup_group_topic_sum_lag"] = [
            ((cluster, *place), lag.sum) for place, lag in _labelled(shown).items()
        ]
    if "partition" in asked:
        rows, left_out["partition"] = _farthest(lags, most)
        found |= _of_partitions(snapshot, cluster, rows)
    if is_listed(snapshot, ObservationPart.GROUPS) and is_listed(snapshot, ObservationPart.TOPICS):
        found["rackwise_consumer_lags_left_out"] = [((level,), number) for level, number in left_out.items()]
    return found


def _highest(lags: Mapping[Place, GroupLag], most: int) -> tuple[dict[Place, _KnownLag], int]:
    """The places with the highest known lag, and how many others have one; an unknown lag has no series."""
    known = {
        place: _KnownLag(lag.known, lag.worst_records or 0) for place, lag in lags.items() if lag.known is not None
    }
    kept = sorted(known, key=lambda place: (-known[place].sum, place))[:most]
    return {place: known[place] for place in kept}, len(known) - len(kept)


def _by_topic(lags: Mapping[str, Mapping[TopicPartition, int | None]]) -> dict[Place, GroupLag]:
    topics: dict[Place, dict[TopicPartition, int | None]] = {}
    for name, of in lags.items():
        for partition, lag in of.items():
            topics.setdefault((name, partition.topic), {})[partition] = lag
    return {place: sum_of_lags(of) for place, of in topics.items()}


def _labelled(shown: Mapping[Place, _KnownLag]) -> dict[Place, _KnownLag]:
    """The same by labels of group and topic."""
    groups, topics = (unique_labels(sorted({place[at] for place in shown})) for at in (0, 1))
    return {(groups[group], topics[topic]): lag for (group, topic), lag in sorted(shown.items())}


def _farthest(lags: Mapping[str, Mapping[TopicPartition, int | None]], most: int) -> tuple[list[_LagRow], int]:
    """The partitions of groups that lag most, by name, and how many others are known."""
    rows = [_LagRow(name, at, lag) for name, of in lags.items() for at, lag in of.items() if lag is not None]
    kept = sorted(rows, key=lambda row: (-row.lag, row.group, row.partition))[:most]
    return sorted(kept), len(rows) - len(kept)


def _of_partitions(snapshot: Snapshot, cluster: str, rows: Sequence[_LagRow]) -> dict[str, list[Sample]]:
    groups = unique_labels(sorted({row.group for row in rows}))
    topics = unique_labels(sorted({row.partition.topic for row in rows}))
    at = {row.partition: (topics[row.partition.topic], str(row.partition.partition)) for row in rows}
    places = [(row, (cluster, groups[row.group], *at[row.partition])) for row in rows]
    committed = snapshot.committed_offsets
    return {
        "kafka_consumergroup_group_lag": [(place, row.lag) for row, place in places],
        "kafka_consumergroup_group_offset": [(place, committed[row.group][row.partition]) for row, place in places],
        "kafka_partition_latest_offset": [
            ((cluster, *place), snapshot.end_offsets[partition]) for partition, place in sorted(at.items())
        ],
    }
