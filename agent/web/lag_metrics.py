"""Consumer lag under the names of kafka-lag-exporter, for dashboards and alerts that are there already.

Behind a switch, as its series grow with topics and partitions: each level has the subjects that lag most, and counts
the others. Members, clients and hosts, which kafka-lag-exporter adds as labels, would begin new series at a rebalance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from agent.money.costs import GroupLag, partition_lags, sum_of_lags
from agent.values.cycle import Cycle
from agent.values.last_known import is_listed
from agent.values.observation import ObservationPart
from agent.values.snapshot import Snapshot
from agent.web.look_samples import Sample
from agent.web.money_metrics import MetricDescription, label, unique_labels
from assignors.problem import TopicPartition

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
