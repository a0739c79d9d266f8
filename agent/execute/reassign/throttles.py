"""Rate and throttle settings of a batch: the needed ones, our leftovers, and their removal.

Invariants: settings of other tools never change: an existing rate (own layer, file or cluster-wide default) and a ``*``
stay. Entries are added to and removed from a topic's lists individually, so concurrent writers lose nothing. A rate
that differs from the one we wrote belongs to its writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from agent.execute.reassign.messages import ClusterView
from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from agent.values.memo import IdentityMemo
from agent.values.reassignment import Batch, ReassignmentPolicy, ReassignmentTarget, ThrottleDebt
from agent.values.throttles import KEYS_OF, OpType, SeenThrottle, ThrottleChange, ThrottleResource, list_entries

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
