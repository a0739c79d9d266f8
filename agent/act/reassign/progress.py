"""Progress of moves: copied bytes, rate and remaining time, from successive looks.

Bytes, bytes per second of the monotonic clock, and seconds; None is unknown, never zero. The target size of a copying
replica is that of the largest replica that is not copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from agent.execute.reassign.messages import ClusterView, ReassignmentView
from agent.values.observation import Observation
from agent.values.progress import (
    BrokerProgress,
    ExecuteFault,
    ExecuteState,
    ExecutorStatus,
    PlanProgress,
    ReplicaProgress,
)
from agent.values.reassignment import Batch, PartitionEndReason, ReassignmentPlan
from assignors.problem import TopicPartition

_SMOOTHING_S = 20.0
"""Rates are taken over about so long."""


def acting_now(status: ExecutorStatus, ignored: int | None, notices: tuple[str, ...] = ()) -> ExecuteState:
    """What a leading agent is doing; ``ignored`` are records of the journal that no agent wrote."""
    plans = [one for one in status.plans if not one.plan.ended]
    failing = {
        ExecuteFault.LOOK: status.look_failed,
        ExecuteFault.JOURNAL: status.journal_failed,
        ExecuteFault.PLANS: status.failure,
    }
    return ExecuteState(
        leads=True,
        plans=len(plans),
        partitions_left=sum(one.plan.partitions - one.ended for one in plans),
        throttles=len(status.debts),
        records_ignored=ignored,
        troubles={trouble: why for trouble, why in failing.items() if why is not None},
        waiting=len(status.holds),
        waits=status.waits,
        notices=notices,
    )


def cluster_view(observation: Observation) -> ClusterView:
    """Reassignments and replica sizes of one look; the other fields stay empty."""
    return ClusterView(
        brokers=frozenset(broker.id for broker in observation.brokers),
        partitions=(),
        moves=tuple(
            ReassignmentView(one.id, one.replicas, one.adding, one.removing) for one in observation.reassignments
        ),
        bytes=tuple((one, broker, size) for (broker, one), size in observation.replica_bytes.items()),
    )


class _Sample(NamedTuple):
    at_s: float
    bytes: int


class CopyRates:
    """Bytes per second of each copy, from the sizes of successive looks."""

    def __init__(self) -> None:
        self._samples: dict[tuple[TopicPartition, int], _Sample] = {}
        self._now: dict[TopicPartition, tuple[ReplicaProgress, ...]] = {}

    def looked(self, cluster: ClusterView, at_s: float) -> None:
        """Take the sizes of a look; ``at_s`` is on the monotonic clock."""
        sizes = {(partition, broker): size for partition, broker, size in cluster.bytes}
        self._now = {
            move.id: tuple(
                self._replica(move.id, broker, sizes, set(move.replicas) - set(move.adding), at_s)
                for broker in move.adding
            )
            for move in cluster.moves
        }
        moving = {(one.id, one.broker) for rows in self._now.values() for one in rows}
        self._samples = {key: sample for key, sample in self._samples.items() if key in moving}

    def of(self, partitions: Iterable[TopicPartition]) -> tuple[ReplicaProgress, ...]:
        """The copies that are being made of these partitions."""
        return tuple(one for partition in sorted(partitions) for one in self._now.get(partition, ()))

    def _replica(
        self,
        partition: TopicPartition,
        broker: int,
        sizes: Mapping[tuple[TopicPartition, int], int],
        whole: Iterable[int],
        at_s: float,
    ) -> ReplicaProgress:
        size = sizes.get((partition, broker))
        of_bytes = max((sizes[partition, one] for one in whole if (partition, one) in sizes), default=None)
        rate = None if size is None else self._rate((partition, broker), size, at_s)
        left = None if size is None or of_bytes is None else max(0, of_bytes - size)
        return ReplicaProgress(partition, broker, size, of_bytes, rate, _seconds(left, rate))

    def _rate(self, key: tuple[TopicPartition, int], size: int, at_s: float) -> float | None:
        first = self._samples.setdefault(key, _Sample(at_s, size))
        took_s = at_s - first.at_s
        if took_s <= 0:
            return None
        rate = max(0, size - first.bytes) / took_s
        if took_s > _SMOOTHING_S:
            self._samples[key] = _Sample(at_s - took_s / 2, size - int(rate * took_s / 2))
        return rate


def plan_progress(plan: ReassignmentPlan, batches: Iterable[Batch], rates: CopyRates) -> PlanProgress:
    """Progress of a plan: its ended partitions and running copies; ``batches`` are its own."""
    own = tuple(batches)
    ends = {end.id: end.end for batch in own if not batch.back for end in batch.ends}
    replicas = () if plan.ended else rates.of(target.id for target in plan.targets)
    return PlanProgress(
        plan=plan,
        batches=own,
        done=sum(end is PartitionEndReason.DONE for end in ends.values()),
        ended=len(ends),
        replicas=replicas,
        brokers=_brokers(replicas),
    )


def _brokers(replicas: Iterable[ReplicaProgress]) -> tuple[BrokerProgress, ...]:
    by_broker: dict[int, list[ReplicaProgress]] = {}
    for one in replicas:
        by_broker.setdefault(one.broker, []).append(one)
    return tuple(_broker(broker, rows) for broker, rows in sorted(by_broker.items()))


def _broker(broker: int, rows: list[ReplicaProgress]) -> BrokerProgress:
    known = [one.of_bytes - one.bytes for one in rows if one.bytes is not None and one.of_bytes is not None]
    left = sum(max(0, bytes_left) for bytes_left in known) if len(known) == len(rows) else None
    rates = [one.bytes_per_s for one in rows if one.bytes_per_s is not None]
    rate = sum(rates) if len(rates) == len(rows) else None
    return BrokerProgress(broker, len(rows), left, rate, _seconds(left, rate))


def _seconds(left: int | None, rate: float | None) -> float | None:
    if left is None:
        return None
    if left == 0:
        return 0.0
    return left / rate if rate else None
