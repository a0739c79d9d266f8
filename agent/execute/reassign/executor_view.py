"""Position of each partition of a batch in a ClusterView, and what holds its requests back: min ISR, other tools.

Invariant: a partition that is not visible, or on which two parts of the view disagree, is `UNSEEN` or `BETWEEN` and
decides nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from agent.execute.reassign.messages import (
    ClusterView,
    NewPartitionReassignment,
    OwnReassignment,
    PartitionView,
    ReassignmentView,
    RequestFate,
    RequestResult,
)
from agent.execute.reassign.state import MachineState, PartitionWatch, plan_scope
from agent.execute.reassign.throttles import resources_of
from agent.values.kafka import UNKNOWN_TOPIC_OR_PARTITION
from agent.values.number_format import counted
from agent.values.observation import RawReassignment, RawTopic
from agent.values.reassignment import Batch, BatchState, ReassignmentPlan, ReassignmentPolicy, ReassignmentTarget
from agent.values.throttles import SeenThrottle, ThrottleChange
from assignors.problem import TopicPartition


class TargetStatus(Enum):
    """Where a partition of the plan is between its former and its planned replicas."""

    UNSEEN = "it is not visible"
    BEFORE = "it has its former replicas"
    SHUFFLED = "it has its former replicas in another order"
    MOVING = "it moves as planned"
    BETWEEN = "it has replicas of before and after, but no reassignment is in progress"
    THERE = "it moved as planned"
    OTHER = "it has, or gets, replicas that are not of the plan"
    GONE = "its topic was deleted"
    REPLACED = "its topic was deleted and created again"


class ExecutorView(NamedTuple):
    """One look with the machine's state, indexed for the decisions that rest on both."""

    state: MachineState
    policy: ReassignmentPolicy
    cluster: ClusterView
    partitions: dict[TopicPartition, PartitionView]
    moves: dict[TopicPartition, ReassignmentView]
    topic_ids: dict[str, str]
    """Topic -> topic id, of the topics that were seen."""
    plan: ReassignmentPlan | None
    batch: Batch | None
    sizes: dict[TopicPartition, dict[int, int]]
    """Partition -> bytes on the disk of each broker that reported them."""

    def status(self, target: ReassignmentTarget) -> TargetStatus:
        """Status of that target by this look."""
        return _status(target, self)

    def weak(self, targets: Iterable[ReassignmentTarget]) -> str | None:
        """Which of these is seen without a leader or under its min ISR, the first; None when none is, or none may ask.

        What is unknown is not weak; it is `agent.execute.reassign.executor_view.unread_reason`.
        """
        if not self.policy.limits.min_isr_guard:
            return None
        partitions = self.partitions
        return next((why for target in targets if (why := _weak(target, partitions.get(target.id)))), None)

    def progress_known(self, target: ReassignmentTarget) -> bool:
        """False for a partition that moves while the size of a copy that is being made was not reported."""
        now = self.partitions.get(target.id)
        if now is None or self.status(target) is not TargetStatus.MOVING:
            return True
        sized = self.sizes.get(target.id, {})
        return all(
            broker in sized or broker in now.isr or broker not in self.cluster.brokers for broker in target.adding
        )

    def lost(self, target: ReassignmentTarget) -> bool:
        """True when a broker that is to get a copy has been down for longer than the grace."""
        down = [broker for broker in target.adding if broker not in self.cluster.brokers]
        return any(self.state.down_ms(broker) >= self.policy.limits.grace_after_broker_loss_ms for broker in down)

    def led_by_another(self, target: ReassignmentTarget) -> bool:
        """True when the preferred leader of a target's new replicas could lead and does not."""
        now, preferred = self.partitions.get(target.id), target.after[0]
        if now is None or now.topic_id != target.topic_id or now.replicas != target.after:
            return False
        return now.leader != preferred and preferred in now.isr and preferred in self.cluster.brokers

    def leader_unknown(self, target: ReassignmentTarget) -> bool:
        """True when the partition or its leader is unread."""
        now = self.partitions.get(target.id)
        return self.status(target) is TargetStatus.UNSEEN or (now is not None and not now.leader_known)


def view_of(state: MachineState, cluster: ClusterView, policy: ReassignmentPolicy) -> ExecutorView:
    """The look as rules read it, with its clocks brought up to it."""
    partitions = {partition.id: partition for partition in cluster.partitions}
    moves = {move.id: move for move in cluster.moves}
    topic_ids = {partition.id.topic: partition.topic_id for partition in cluster.partitions}
    sizes: dict[TopicPartition, dict[int, int]] = {}
    for id_, broker, size in cluster.bytes:
        sizes.setdefault(id_, {})[broker] = size
    view = ExecutorView(state, policy, cluster, partitions, moves, topic_ids, state.plan, state.batch, sizes)
    return view._replace(state=_watched(view))


def open_targets(batch: Batch) -> tuple[ReassignmentTarget, ...]:
    """The targets of a batch that have no end yet."""
    ended = {end.id for end in batch.ends}
    return tuple(target for target in batch.targets if target.id not in ended)


def _status(target: ReassignmentTarget, view: ExecutorView) -> TargetStatus:
    id_ = target.id
    if id_.topic in view.cluster.gone:
        return TargetStatus.GONE
    now = view.partitions.get(id_)
    if now is None:  # one that was made anew may have fewer partitions
        another = view.topic_ids.get(target.id.topic, target.topic_id) != target.topic_id
        return TargetStatus.REPLACED if another else TargetStatus.UNSEEN
    if now.topic_id != target.topic_id:
        return TargetStatus.REPLACED
    move = view.moves.get(id_)
    if move is not None:
        return TargetStatus.MOVING if move.target == target.after else TargetStatus.OTHER
    return _at_rest(target, now.replicas)


def _at_rest(target: ReassignmentTarget, replicas: tuple[int, ...]) -> TargetStatus:
    if replicas == target.after:
        return TargetStatus.THERE
    if replicas == target.before:
        return TargetStatus.BEFORE
    if not target.moves_data:
        return TargetStatus.OTHER
    sets = {
        frozenset(target.before): TargetStatus.SHUFFLED,
        frozenset((*target.before, *target.after)): TargetStatus.BETWEEN,
    }
    return sets.get(frozenset(replicas), TargetStatus.OTHER)


def _weak(target: ReassignmentTarget, now: PartitionView | None) -> str | None:
    if now is None or now.topic_id != target.topic_id:
        return None
    if now.leader is None and now.leader_known:
        return f"{target.id} has no leader"
    return f"{target.id} is under its min ISR" if now.under_min_isr else None


def _watched(view: ExecutorView) -> MachineState:
    """The state with how long everything has been as this look shows it."""
    state, cluster, plan, batch = view.state, view.cluster, view.plan, view.batch
    brokers = plan_scope(plan.targets).brokers if plan else frozenset[int]()
    former = dict(state.down)
    down = tuple((broker, former.get(broker, 0)) for broker in sorted(brokers - cluster.brokers))
    if batch is None:
        return state._replace(down=down, weak_ms=None, watches=())
    targets = open_targets(batch)
    weak = view.weak(targets) is not None
    weak_ms = (state.weak_ms or 0) if weak else None
    unsure = frozenset(
        target.id
        for target in targets
        # A request takes effect once: what it has moved it will not move again.
        if target.id in state.unsure and view.status(target) not in (TargetStatus.MOVING, TargetStatus.THERE)
    )
    return state._replace(down=down, weak_ms=weak_ms, watches=_watches(view, targets), unsure=unsure)


def _watches(view: ExecutorView, targets: Iterable[ReassignmentTarget]) -> tuple[PartitionWatch, ...]:
    if view.batch is None or view.batch.state is BatchState.INTENT:
        return ()
    former = {watch.id: watch for watch in view.state.watches}
    watches: list[PartitionWatch] = []
    for target in targets:
        token = _token(target, view)
        watch = former.get(target.id)
        # Where nothing shows how far a copy is, nothing shows that it has stopped.
        same = watch is not None and watch.token == token and view.progress_known(target)
        watches.append(watch if same and watch is not None else PartitionWatch(target.id, token))
    return tuple(watches)


def _token(target: ReassignmentTarget, view: ExecutorView) -> tuple[object, ...]:
    """Equal as long as nothing goes on: replicas in sync, and bytes of the copies."""
    now = view.partitions.get(target.id)
    isr = () if now is None else tuple(sorted(now.isr))
    sizes = view.sizes.get(target.id, {})
    copied = sum(sizes.get(broker, 0) for broker in target.adding)
    return view.status(target).name, isr, copied


# One rule before a batch begins, is sent and is sent again; in order from possible data loss to impoliteness. A broker
# that is down holds only moves that need it; one that is unread holds all.


def hold_reason(view: ExecutorView, plan: ReassignmentPlan, targets: Iterable[ReassignmentTarget]) -> str | None:
    """Why those partitions of the plan are not to be moved now; None when nothing is against it."""
    targets = tuple(targets)
    return unsafe_reason(view, plan, targets) or _down(view, targets) or not_allowed_reason(view, plan)


def unsafe_reason(view: ExecutorView, plan: ReassignmentPlan, targets: Iterable[ReassignmentTarget]) -> str | None:
    """What could lose data, or get into the way of another tool; and what is not known of these partitions."""
    targets = tuple(targets)
    if (weak := view.weak(plan.targets)) is not None:
        return weak
    if (why := unread_reason(view, targets) or _weak_meanwhile(view, targets)) is not None:
        return why
    if others := _others(view):
        return f"{counted(len(others), 'partition')} moved by another tool, {others[0]} first"
    return None


def not_allowed_reason(view: ExecutorView, plan: ReassignmentPlan) -> str | None:
    """A pause; the guard's verdict before each batch (windows, topics, racks, budgets); refused requests."""
    if plan.paused:
        return "the plan is paused"
    if (why := view.state.may.of(plan.proposal_id) or view.state.over(plan)) is not None:
        return why
    rest = view.state.rest(plan.proposal_id)
    return None if rest is None else f"requested again later: {rest.why or 'not now'}"


def unread_reason(view: ExecutorView, targets: Iterable[ReassignmentTarget]) -> str | None:
    """The first fact about these partitions that the look lacks; None when it lacks none."""
    targets = tuple(targets)
    for target in targets:
        now, status = view.partitions.get(target.id), view.status(target)
        if status is TargetStatus.UNSEEN:
            return f"{target.id} is not visible"
        if now is None or status is TargetStatus.REPLACED:
            continue
        if not now.leader_known:
            return f"brokers do not agree about the leader of {target.id}"
        if view.policy.limits.min_isr_guard and now.min_isr is None:
            return f"the min ISR of {target.id} is unknown"
    silent = sorted(view.cluster.unread & set(resources_of(targets, ()))) if view.cluster.unread else []
    return f"the settings of {silent[0].kind} {silent[0].name} did not answer" if silent else None


def _weak_meanwhile(view: ExecutorView, targets: Iterable[ReassignmentTarget]) -> str | None:
    """The first that would take no writes while it moves, also where it moves back: settings change after approval."""
    if not view.policy.limits.min_isr_guard:
        return None
    return next((why for target in targets if (why := _weakened(view, target)) is not None), None)


def _weakened(view: ExecutorView, target: ReassignmentTarget) -> str | None:
    now = view.partitions.get(target.id)
    if now is None or now.min_isr is None or not target.adding or view.status(target) is not TargetStatus.BEFORE:
        return None
    return under_min_isr_meanwhile(target.id, now.min_isr, now.replicas, target.after)


def _others(view: ExecutorView) -> list[TopicPartition]:
    """Partitions that others move."""
    ours = (
        {target.id for target in view.batch.targets if view.status(target) is TargetStatus.MOVING}
        if view.batch
        else set()
    )
    return [move.id for move in view.cluster.moves if move.id not in ours]


def _down(view: ExecutorView, targets: Iterable[ReassignmentTarget]) -> str | None:
    down = next((target.id for target in targets if not view.cluster.brokers.issuperset(target.adding)), None)
    return f"a broker that gets a copy of {down} is down" if down is not None else None


# Lines that no longer match their decision are left out as not asked for; so a move or rate of another tool since then
# is neither replaced, cancelled nor overwritten.


def no_longer_to_move(
    move: NewPartitionReassignment, topic: RawTopic | None, running: RawReassignment | None
) -> RequestResult | None:
    """Why the reassignment is not sent: its partition has changed since the look; None when it has not."""
    other = _another_topic(move, topic)
    if other is not None or topic is None:
        return other
    replicas = next((row.replicas for row in topic.partitions if row.partition == move.id.partition), None)
    if replicas is None:
        return RequestResult(move.id, RequestFate.RETRY, f"{move.id} could not be seen")
    if running is not None:
        return RequestResult(move.id, RequestFate.RETRY, f"{move.id} is being moved to {_listed(_target(running))}")
    if replicas != move.expected:
        sentence = (
            f"{move.id} has replicas {_listed(replicas)}, not {_listed(move.expected)} as when the move was decided"
        )
        return RequestResult(move.id, RequestFate.RETRY, sentence)
    return None


def no_longer_to_cancel(
    run: OwnReassignment, topic: RawTopic | None, running: RawReassignment | None
) -> RequestResult | None:
    """Why the reassignment is not cancelled: it has changed since the look; None when it has not."""
    other = _another_topic(run, topic)
    if other is not None:
        return other
    if running is None:
        return RequestResult(run.id, RequestFate.NOT_NEEDED, f"{run.id} is no longer being moved")
    if _target(running) != run.target:
        sentence = f"{run.id} is being moved to {_listed(_target(running))}, which is not a move of this plan"
        return RequestResult(run.id, RequestFate.RETRY, sentence)
    return None


def no_longer_to_set(change: ThrottleChange, found: SeenThrottle | None, topic: RawTopic | None = None) -> str | None:
    """Why the throttle is not changed: its setting has changed since the look; None when it has not."""
    if change.topic_id is not None and (topic is None or topic.topic_id != change.topic_id):
        return f"topic {change.resource.topic} could not be seen, or was deleted and created again"
    if change.expected is None:
        return None
    what = f"{change.key} of {change.resource.kind} {change.resource.name}"
    if found is None:
        return f"{what} could not be read"
    if found.own not in change.expected:
        return f"{what} is {found.own or 'not set'}, which is not as when the change was decided"
    if change.alone and found.default is not None:
        return f"{what} is {found.default} by default, which rackwise did not set"
    return None


def _another_topic(of: NewPartitionReassignment | OwnReassignment, topic: RawTopic | None) -> RequestResult | None:
    name = of.id.topic
    if topic is None:
        return RequestResult(of.id, RequestFate.RETRY, f"topic {name} could not be seen")
    if topic.error == UNKNOWN_TOPIC_OR_PARTITION:
        return RequestResult(of.id, RequestFate.GONE, f"topic {name} no longer exists")
    if topic.error is not None:
        return RequestResult(of.id, RequestFate.RETRY, f"topic {name} could not be seen: {topic.error}")
    if topic.topic_id != of.topic_id:
        return RequestResult(of.id, RequestFate.RETRY, f"topic {name} was deleted and created again")
    return None


def _target(running: RawReassignment) -> tuple[int, ...]:
    return tuple(broker for broker in running.replicas if broker not in running.removing)


def _listed(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


def under_min_isr_meanwhile(
    id_: TopicPartition, minimum: int, replicas: Sequence[int], after: Iterable[object]
) -> str | None:
    """Why that partition would refuse writes with acks=all while it moves; None when it would take them.

    While it moves it has more replicas, so a min ISR above their former number counts in full (KIP-455).
    """
    has, needed = len(replicas), min(minimum, len({*replicas, *after}))
    if needed <= has:
        return None
    return (
        f"while it moves, {id_} needs {counted(needed, 'in-sync replica')} for writes with acks=all, and it has {has}:"
        f" lower min.insync.replicas of {id_.topic} to {has} first"
    )
