"""Rates of a batch: throttle settings (the needed ones, our leftovers, their removal), and progress of its copies.

Invariants: settings of other tools never change: an existing rate (own layer, file or cluster-wide default) and a ``*``
stay. Entries are added to and removed from a topic's lists individually, so concurrent writers lose nothing. A rate
that differs from the one we wrote belongs to its writer.

Progress comes from successive looks: bytes, bytes per second of the monotonic clock, and seconds; None is unknown,
never zero. The target size of a copying replica is that of the largest replica that is not copying.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from agent.execute.reassign.messages import ClusterView, ReassignmentView
from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.memo import IdentityMemo
from agent.values.observation import Observation
from agent.values.plan import BrokerProgress, ExecuteFault, ExecuteState, ExecutorStatus, PlanProgress, ReplicaProgress
from agent.values.reassignment import (
    Batch,
    PartitionEndReason,
    ReassignmentPlan,
    ReassignmentPolicy,
    ReassignmentTarget,
    ThrottleDebt,
)
from agent.values.throttles import KEYS_OF, OpType, SeenThrottle, ThrottleChange, ThrottleResource, list_entries
from assignors.problem import TopicPartition

_RATES = KEYS_OF["broker"]
_MOST_BEFORE = 10_000
"""Characters of a list as it was; nothing is put back from it, only whether there was one counts."""
_IDS: IdentityMemo[Mapping[str, str]] = IdentityMemo(4)
"""Topic -> its id, by what a look shows: each throttle is compared with it."""
_OWN: IdentityMemo[Mapping[tuple[ThrottleResource, str], str | None]] = IdentityMemo(4)


_Setting = tuple[ThrottleResource, str, int | tuple[str, ...]]
"""Of a batch: whose it is, its key, and its rate or its entries."""


class ThrottleStatus(Enum):
    """Status of a throttle setting of ours."""

    STANDS = "it is set"
    GONE = "it is not set, or was set again by another tool"
    UNREACHABLE = "it cannot be read or changed now"


class BatchThrottles(NamedTuple):
    """What a batch sets, and what it leaves to others."""

    debts: tuple[ThrottleDebt, ...]
    left: tuple[str, ...]
    """Sentences about throttles that others made."""


def rate_of(
    targets: Sequence[ReassignmentTarget], cluster: ClusterView, policy: ReassignmentPolicy, fixed: int | None = None
) -> int:
    """Bytes per second for each broker of the batch: its headroom, between floor and ceiling.

    What a broker takes in is unknown: the floor. A copy must gain on its producers, so the rate is not below what they
    are known to write to the partitions that one broker copies. What is unknown raises it no further: the headroom is
    the producers', and a copy that is too slow harms nothing.
    """
    chosen = fixed if fixed is not None else policy.limits.throttle
    if chosen is not None:
        return chosen
    floor, ceiling = policy.limits.throttle_floor, policy.limits.throttle_ceiling
    traffic = dict(cluster.traffic)
    brokers = {broker for target in targets for broker in (*target.before, *target.adding)}
    whole = policy.limits.broker_bandwidth
    free = min((whole - traffic.get(broker, whole) for broker in brokers), default=0.0)
    written: dict[int, float] = {}
    for target in targets:
        for broker in target.adding:
            written[broker] = written.get(broker, 0.0) + (target.bytes_per_s or 0.0)
    least = max(floor, 1.25 * max(written.values(), default=0.0))
    return int(min(max(free * policy.limits.throttle_headroom_share, least), max(ceiling, floor)))


def batch_throttles(batch: Batch, cluster: ClusterView) -> BatchThrottles:
    """The debts that the batch would make, and the throttles of others that it keeps to."""
    rate = batch.rate_bytes_per_s
    moving = [target for target in batch.targets if target.moves_data]
    if rate is None or not moving:
        return BatchThrottles((), ())
    now = {(throttle.resource, throttle.key): throttle for throttle in cluster.throttles}
    debts: list[ThrottleDebt] = []
    left: list[str] = []
    for resource, key, wanted in (*_rates(moving, cluster, rate), *_lists(moving)):
        throttle = now.get((resource, key), SeenThrottle(resource, key, None))
        if _others_rule(key, throttle):
            value = throttle.own or throttle.default
            left.append(f"{key} of {resource.kind} {resource.name} stays {value}, which rackwise did not set")
            continue
        ours = wanted if isinstance(wanted, int) else _without(wanted, list_entries(throttle.own))
        if ours != ():
            topic_id = _topic_id(resource, moving)
            before = throttle.own if throttle.own is None else throttle.own[:_MOST_BEFORE]
            debts.append(ThrottleDebt(resource, key, ours, before, batch.proposal_id, batch.number, topic_id=topic_id))
    return BatchThrottles(tuple(sorted(debts, key=lambda debt: (debt.resource, debt.key))), tuple(left))


def missing_throttles(batch: Batch, debts: Sequence[ThrottleDebt], cluster: ClusterView) -> tuple[ThrottleDebt, ...]:
    """The debts, with what they lack by this look: entries or rates that were taken for others' when they were made.

    Brokers report settings a moment late: what an earlier batch has just removed may still have been reported.
    """
    made = {(debt.resource, debt.key): debt for debt in debts}
    missing: list[ThrottleDebt] = []
    for debt in batch_throttles(batch, cluster).debts:
        before = made.get((debt.resource, debt.key))
        if before is None:
            missing.append(debt)
        elif isinstance(before.ours, tuple) and isinstance(debt.ours, tuple):
            more = _without(debt.ours, before.ours)
            missing += [before._replace(ours=(*before.ours, *more))] if more else []
    return tuple(missing)


def throttle_status(debt: ThrottleDebt, cluster: ClusterView) -> ThrottleStatus:
    """Whether what we set is there."""
    if _topic_is_another(debt, cluster):
        return ThrottleStatus.GONE
    if _down(debt.resource, cluster) or debt.resource in cluster.unread:
        return ThrottleStatus.UNREACHABLE
    own = own_value(debt, cluster)
    if own is None:
        return ThrottleStatus.GONE
    is_set = own in debt.rates if isinstance(debt.ours, int) else not set(debt.ours).isdisjoint(list_entries(own))
    return ThrottleStatus.STANDS if is_set else ThrottleStatus.GONE


def own_value(debt: ThrottleDebt, cluster: ClusterView) -> str | None:
    """The value that the debt's resource has for its key by this look; None: not set."""
    rows = cluster.throttles
    owns = _OWN.of((rows,), lambda: {(it.resource, it.key): it.own for it in rows}, lambda _: 1)
    return owns.get((debt.resource, debt.key))


def complete(debt: ThrottleDebt, cluster: ClusterView) -> bool:
    """True when nothing of it is missing, or its broker is down or its topic no more; what was not read is not."""
    if _topic_is_another(debt, cluster):
        return True
    if _down(debt.resource, cluster):
        return True
    if debt.resource in cluster.unread:
        return False
    own = own_value(debt, cluster)
    if isinstance(debt.ours, int):
        return own is not None  # another rate is another tool's by now, and stays
    return own is not None and (own == "*" or set(debt.ours) <= set(list_entries(own)))


def throttle_update(debt: ThrottleDebt) -> ThrottleChange:
    """The change that sets a throttle of ours: a rate only where there is none or ours, entries in any list."""
    if isinstance(debt.ours, tuple):
        return ThrottleChange(debt.resource, debt.key, OpType.APPEND, debt.value, topic_id=debt.topic_id)
    return ThrottleChange(debt.resource, debt.key, OpType.SET, debt.value, expected=(None, *debt.rates), alone=True)


def throttle_removal(debt: ThrottleDebt, cluster: ClusterView) -> ThrottleChange:
    """The change that removes a throttle of ours, given that it is set."""
    own = own_value(debt, cluster) or ""
    if isinstance(debt.ours, int):
        if debt.before is None:
            return ThrottleChange(debt.resource, debt.key, OpType.DELETE, expected=debt.rates)
        return ThrottleChange(debt.resource, debt.key, OpType.SET, debt.before, expected=debt.rates)
    if debt.before != "" and not _without(list_entries(own), debt.ours):  # of an empty list that others made it is left
        return ThrottleChange(debt.resource, debt.key, OpType.DELETE, expected=(own,), topic_id=debt.topic_id)
    return ThrottleChange(debt.resource, debt.key, OpType.SUBTRACT, debt.value, topic_id=debt.topic_id)


def resources_of(targets: Iterable[ReassignmentTarget], debts: Iterable[ThrottleDebt]) -> tuple[ThrottleResource, ...]:
    """Brokers and topics whose throttle settings these targets and debts concern, sorted."""
    resources = {debt.resource for debt in debts}
    moving = [target for target in targets if target.moves_data]
    resources.update(ThrottleResource(topic=topic) for topic in {target.id.topic for target in moving})
    pairs = {(target.before, target.after) for target in moving}
    brokers = {broker for pair in pairs for replicas in pair for broker in replicas}
    resources.update(ThrottleResource(broker=broker) for broker in brokers)
    return tuple(sorted(resources))


def _rates(targets: Sequence[ReassignmentTarget], cluster: ClusterView, rate: int) -> Iterator[_Setting]:
    """Sources send at that rate and copies receive at it. A broker that is down gets no setting."""
    sources = {broker for target in targets for broker in target.before}
    copies = {broker for target in targets for broker in target.adding}
    for key, brokers in ((LEADER_RATE, sources), (FOLLOWER_RATE, copies)):
        for broker in sorted(brokers & cluster.brokers):
            yield ThrottleResource(broker=broker), key, rate


def _lists(targets: Sequence[ReassignmentTarget]) -> Iterator[_Setting]:
    for topic, run in groupby(sorted(targets), key=lambda target: target.id.topic):
        group = list(run)
        leaders = tuple(f"{target.id.partition}:{broker}" for target in group for broker in target.before)
        followers = tuple(f"{target.id.partition}:{broker}" for target in group for broker in target.adding)
        yield ThrottleResource(topic=topic), LEADER_REPLICAS, leaders
        yield ThrottleResource(topic=topic), FOLLOWER_REPLICAS, followers


def _others_rule(key: str, throttle: SeenThrottle) -> bool:
    if key in _RATES:
        return throttle.in_force is not None
    return "*" in list_entries(throttle.own or throttle.default)


def _topic_id(resource: ThrottleResource, targets: Sequence[ReassignmentTarget]) -> str | None:
    if resource.topic is None:
        return None
    return next(target.topic_id for target in targets if target.id.topic == resource.topic)


def _topic_is_another(debt: ThrottleDebt, cluster: ClusterView) -> bool:
    """Settings go with their topic; one of the same name has none of ours."""
    if (name := debt.resource.topic) is None:
        return False
    ids = _IDS.of((cluster.partitions,), lambda: {it.id.topic: it.topic_id for it in cluster.partitions}, lambda _: 1)
    return name in cluster.gone or (name in ids and ids[name] != debt.topic_id)


def _down(resource: ThrottleResource, cluster: ClusterView) -> bool:
    return resource.broker is not None and resource.broker not in cluster.brokers


def _without(entries: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """The entries that are not among the others'."""
    theirs = set(others)
    return tuple(entry for entry in entries if entry not in theirs)


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
