"""A small abstract cluster for the model checker: what a controller and its brokers make of requests and faults.

It keeps Kafka's rules of KIP-455: a new list replaces a running one, the list of a moving partition is targets and then
removed replicas, a cancel takes out what was being added and keeps that order, a pure change of order is applied at
once, and a cancel that would leave no replica in sync is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from agent.execute.reassign.executor_view import no_longer_to_cancel, no_longer_to_move, no_longer_to_set
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    CancelReassignments,
    ClusterChange,
    ClusterView,
    PartitionView,
    ReassignmentView,
    RequestDone,
    RequestFate,
    RequestResult,
)
from agent.values.observation import RawPartition, RawReassignment, RawTopic
from agent.values.throttles import OpType, SeenThrottle, ThrottleChange, ThrottleResource, list_entries
from assignors.problem import TopicPartition

MIN_ISR = 1


class Part(NamedTuple):
    """One partition as the controller keeps it."""

    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    foreign: bool = False
    """The running move is someone else's."""
    topic_id: str = "id"

    @property
    def moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)


class Cluster(NamedTuple):
    """One topic ``t``; no parts at all when it was deleted."""

    parts: tuple[Part, ...]
    up: frozenset[int]
    settings: tuple[tuple[ThrottleResource, str, str], ...] = ()
    """Own layer, sorted."""
    min_isr: int = MIN_ISR
    harm: str = ""
    """What a request has just broken that can be told by the cluster alone."""


def a_part(*replicas: int) -> Part:
    return Part(replicas, frozenset(replicas), replicas[0])


def view_of(cluster: Cluster, former: tuple[Part, ...] | None = None) -> ClusterView:
    """What a look shows; with ``former``, brokers tell partitions as they were, and the controller as they are."""
    ids = [TopicPartition("t", number) for number in range(len(cluster.parts))]
    parts = cluster.parts if former is None or len(former) != len(cluster.parts) else former
    return ClusterView(
        brokers=cluster.up,
        partitions=tuple(
            PartitionView(id_, part.topic_id, part.leader, part.replicas, part.isr, cluster.min_isr)
            for id_, part in zip(ids, parts, strict=True)
        ),
        moves=tuple(
            ReassignmentView(id_, part.replicas, part.adding, part.removing)
            for id_, part in zip(ids, cluster.parts, strict=True)
            if part.moving
        ),
        gone=frozenset() if cluster.parts else frozenset({"t"}),
        throttles=tuple(SeenThrottle(*setting) for setting in cluster.settings),
        bytes=tuple(
            (id_, broker, int(broker in part.isr))
            for id_, part in zip(ids, cluster.parts, strict=True)
            for broker in sorted(set(part.replicas) & cluster.up if part.moving else ())
        ),
    )


def carried_out(cluster: Cluster, act: ClusterChange) -> tuple[Cluster, RequestDone]:
    """The cluster after the request, and its answer."""
    if isinstance(act, AlterThrottles):
        return _configured(cluster, act)
    results: list[RequestResult] = []
    ids = [move.id for move in act.moves] if isinstance(act, AlterReassignments) else act.partitions
    for index, id_ in enumerate(ids):
        if not cluster.parts:
            results.append(RequestResult(id_, RequestFate.GONE))
            continue
        part = cluster.parts[id_.partition]
        if isinstance(act, AlterReassignments):
            after, kind, harm = _altered(part, act.moves[index].target, cluster.up)
        elif isinstance(act, CancelReassignments):
            after, kind, harm = cancelled(part, cluster.up)
        else:
            after, kind, harm = _elected(part, cluster.up)
        parts = (*cluster.parts[: id_.partition], after, *cluster.parts[id_.partition + 1 :])
        cluster = cluster._replace(parts=parts, harm=cluster.harm or harm)
        results.append(RequestResult(id_, kind))
    return cluster, RequestDone(tuple(results))


def blinded(seen: ClusterView) -> Iterator[tuple[str, ClusterView]]:
    """The look with one thing in it that did not answer; what is not shown is not taken to be absent."""
    resources = sorted(
        {it.resource for it in seen.throttles} | {ThrottleResource(topic="t"), ThrottleResource(broker=3)}
    )
    for resource in resources:
        if resource.broker is None or resource.broker in seen.brokers:
            shown = tuple(it for it in seen.throttles if it.resource != resource)
            yield str(resource), seen._replace(unread=frozenset({resource}), throttles=shown)
    for at, partition in enumerate(seen.partitions):
        others = seen.partitions[:at], seen.partitions[at + 1 :]
        for what, change in (
            ("the min ISR", {"min_isr": None}),
            ("the leader", {"leader": None, "leader_known": False}),
        ):
            changed = partition._replace(**change)  # type: ignore[arg-type] # a row's
            yield f"{what} of t-{at}", seen._replace(partitions=(*others[0], changed, *others[1]))
        yield f"t-{at}", seen._replace(partitions=(*others[0], *others[1]))
    if seen.bytes:
        yield "log dirs", seen._replace(bytes=())


def last_look(cluster: Cluster, act: ClusterChange) -> tuple[ClusterChange, tuple[RequestResult, ...]]:
    """What is left of a request after the last look right before it, and the answers for what was left out.

    By the very functions that run live.
    """
    topic, running = _raw(cluster)
    if isinstance(act, AlterReassignments):
        refusals = {move.id: no_longer_to_move(move, topic, running.get(move.id)) for move in act.moves}
        left = AlterReassignments(tuple(move for move in act.moves if refusals[move.id] is None))
        return left, tuple(one for one in refusals.values() if one is not None)
    if isinstance(act, CancelReassignments):
        refusals = {run.id: no_longer_to_cancel(run, topic, running.get(run.id)) for run in act.runs}
        return CancelReassignments(tuple(run for run in act.runs if refusals[run.id] is None)), tuple(
            one for one in refusals.values() if one is not None
        )
    if isinstance(act, AlterThrottles):
        own = {(resource, key): value for resource, key, value in cluster.settings}
        others = {
            one.resource
            for one in act.settings
            if no_longer_to_set(one, SeenThrottle(one.resource, one.key, own.get((one.resource, one.key))), topic)
            is not None
        }
        left_out = tuple(RequestResult(resource, RequestFate.RETRY) for resource in sorted(others))
        return AlterThrottles(tuple(one for one in act.settings if one.resource not in others)), left_out
    return act, ()


def _raw(cluster: Cluster) -> tuple[RawTopic, dict[TopicPartition, RawReassignment]]:
    rows = tuple(RawPartition(at, part.leader, part.replicas, (), ()) for at, part in enumerate(cluster.parts))
    error = None if cluster.parts else "UNKNOWN_TOPIC_OR_PARTITION"
    topic = RawTopic("t", cluster.parts[0].topic_id if cluster.parts else None, False, rows, error)
    ids = {TopicPartition("t", at): part for at, part in enumerate(cluster.parts)}
    running = {
        id_: RawReassignment(id_, part.replicas, part.adding, part.removing) for id_, part in ids.items() if part.moving
    }
    return topic, running


def begun(part: Part, target: tuple[int, ...], *, foreign: bool, up: frozenset[int]) -> Part:
    """The partition with a reassignment to that list."""
    base = part.target if not part.moving else tuple(it for it in part.replicas if it not in part.adding)
    adding = tuple(broker for broker in target if broker not in base)
    removing = tuple(broker for broker in base if broker not in target)
    part = part._replace(replicas=(*target, *removing), adding=adding, removing=removing, foreign=foreign)
    return part if part.moving else part._replace(foreign=False, isr=part.isr & set(target))


def caught_up(part: Part, up: frozenset[int]) -> Part:
    """The partition once its copies are whole, as far as brokers are up."""
    isr = part.isr | (set(part.replicas) & up)
    if not part.moving or not set(part.target) <= isr:
        return _with_leader(part._replace(isr=frozenset(isr)), up)
    target = part.target
    done = Part(target, frozenset(isr & set(target)), part.leader, topic_id=part.topic_id)
    return _with_leader(done, up)


def lost(cluster: Cluster, broker: int) -> Cluster:
    """The cluster without that broker; the last replica in sync stays so without a leader."""
    up = cluster.up - {broker}
    parts = (part._replace(isr=part.isr - {broker} or part.isr) for part in cluster.parts)
    return cluster._replace(up=up, parts=tuple(_with_leader(part, up) for part in parts))


def back_up(cluster: Cluster, broker: int) -> Cluster:
    """The cluster with that broker again; what it held before joins in as it catches up."""
    up = cluster.up | {broker}
    return cluster._replace(up=up, parts=tuple(_with_leader(part, up) for part in cluster.parts))


def _altered(part: Part, target: tuple[int, ...], up: frozenset[int]) -> tuple[Part, RequestFate, str]:
    if len(target) != len(part.target):
        return part, RequestFate.REFUSED, ""
    harm = ""
    if part.foreign:
        harm = "a foreign move was replaced"
    elif part.topic_id != "id":
        harm = "a topic made anew was reassigned"
    elif part.moving or part.replicas == target:
        harm = "a move was asked for twice"
    return begun(part, target, foreign=False, up=up), RequestFate.OK, harm


def cancelled(part: Part, up: frozenset[int]) -> tuple[Part, RequestFate, str]:
    """The partition after a cancel, the answer, and the harm that it did."""
    if not part.moving:
        return part, RequestFate.NOT_NEEDED, ""
    kept = tuple(broker for broker in part.replicas if broker not in part.adding)
    if not part.isr & set(kept):
        return part, RequestFate.UNCLEAN, ""
    harm = "a foreign move was cancelled" if part.foreign else ""
    after = Part(kept, part.isr & frozenset(kept), part.leader, topic_id=part.topic_id)
    return _with_leader(after, up), RequestFate.OK, harm


def _elected(part: Part, up: frozenset[int]) -> tuple[Part, RequestFate, str]:
    preferred = part.replicas[0]
    if part.leader == preferred:
        return part, RequestFate.NOT_NEEDED, ""
    if preferred not in part.isr & up:
        return part, RequestFate.RETRY, ""
    return part._replace(leader=preferred), RequestFate.OK, ""


def _with_leader(part: Part, up: frozenset[int]) -> Part:
    able = [broker for broker in part.replicas if broker in part.isr and broker in up]
    if part.leader in able:
        return part
    return part._replace(leader=able[0] if able else None)


def _configured(cluster: Cluster, act: AlterThrottles) -> tuple[Cluster, RequestDone]:
    settings = {(resource, key): value for resource, key, value in cluster.settings}
    results: dict[ThrottleResource, RequestFate] = {}
    for change in act.settings:
        if change.resource.broker is not None and change.resource.broker not in cluster.up:
            results[change.resource] = RequestFate.RETRY
            continue
        if change.resource.kind == "topic" and not cluster.parts:
            results[change.resource] = RequestFate.GONE
            continue
        results[change.resource] = RequestFate.OK
        value = applied(settings.get((change.resource, change.key)), change)
        settings.pop((change.resource, change.key), None)
        if value is not None:
            settings[change.resource, change.key] = value
    ordered = tuple(sorted((resource, key, value) for (resource, key), value in settings.items()))
    return cluster._replace(settings=ordered), RequestDone(tuple(RequestResult(*it) for it in results.items()))


def applied(own: str | None, change: ThrottleChange) -> str | None:
    """The value of a config after IncrementalAlterConfigs has applied the change; None: not set."""
    if change.op is OpType.SET:
        return change.value
    if change.op is OpType.DELETE:
        return None
    there = list(list_entries(own))
    named = list_entries(change.value)
    if change.op is OpType.APPEND:
        return ",".join([*there, *(entry for entry in named if entry not in there)])
    return ",".join(entry for entry in there if entry not in named)
