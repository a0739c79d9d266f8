"""Where a partition is on its way, as one look shows it.

Invariant: a partition that could not be seen, or that two parts of the look contradict each other about, is `UNSEEN`
or `BETWEEN`, and nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from agent.execute.reassign.messages import Seen, SeenMove, SeenPartition
from agent.execute.reassign.state import State, Watch
from agent.execute.reassign.whole import whole
from agent.values.reassignment import Batch, BatchState, Plan, Policy, Target
from assignors.problem import TopicPartition


class Status(Enum):
    """Where it is."""

    UNSEEN = "it is not visible"
    BEFORE = "it has its former replicas"
    SHUFFLED = "it has its former replicas in another order"
    MOVING = "it moves as planned"
    BETWEEN = "it has replicas of before and after, but no reassignment is in progress"
    THERE = "it moved as planned"
    OTHER = "it has, or gets, replicas that are not of the plan"
    GONE = "its topic was deleted"
    REPLACED = "its topic was deleted and created again"


class View(NamedTuple):
    """A look, with what is known while it is judged."""

    state: State
    policy: Policy
    seen: Seen
    partitions: dict[TopicPartition, SeenPartition]
    moves: dict[TopicPartition, SeenMove]
    topic_ids: dict[str, str]
    """Of the topics that were seen."""
    plan: Plan | None
    batch: Batch | None
    sizes: dict[TopicPartition, dict[int, int]]
    """Partition -> bytes on the disk of each broker that told them."""

    def status(self, target: Target) -> Status:
        """Where that partition is."""
        return _status(target, self)

    def weak(self, targets: Iterable[Target]) -> str | None:
        """Which of these is seen without a leader or under its min ISR, the first; None when none is, or none may ask.

        What is unknown is not weak; it is `agent.execute.reassign.holding.unread`.
        """
        if not self.policy.limits.min_isr_guard:
            return None
        partitions = self.partitions
        return next((why for target in targets if (why := _weak(target, partitions.get(target.id)))), None)

    def progress_known(self, target: Target) -> bool:
        """False for a partition that moves while the size of a copy that is being made was not reported."""
        now = self.partitions.get(target.id)
        if now is None or self.status(target) is not Status.MOVING:
            return True
        sized = self.sizes.get(target.id, {})
        return all(broker in sized or broker in now.isr or broker not in self.seen.brokers for broker in target.adding)

    def lost(self, target: Target) -> bool:
        """True when a broker that is to get a copy has been down for longer than the grace."""
        down = [broker for broker in target.adding if broker not in self.seen.brokers]
        return any(self.state.down_ms(broker) >= self.policy.limits.grace_after_broker_loss_ms for broker in down)


def view_of(state: State, seen: Seen, policy: Policy) -> View:
    """The look as rules read it, with its clocks brought up to it."""
    partitions = {partition.id: partition for partition in seen.partitions}
    moves = {move.id: move for move in seen.moves}
    topic_ids = {partition.id.topic: partition.topic_id for partition in seen.partitions}
    sizes: dict[TopicPartition, dict[int, int]] = {}
    for id_, broker, size in seen.bytes:
        sizes.setdefault(id_, {})[broker] = size
    view = View(state, policy, seen, partitions, moves, topic_ids, state.plan, state.batch, sizes)
    return view._replace(state=_watched(view))


def open_targets(batch: Batch) -> tuple[Target, ...]:
    """The targets of a batch that have no end yet."""
    ended = {end.id for end in batch.ends}
    return tuple(target for target in batch.targets if target.id not in ended)


def _status(target: Target, view: View) -> Status:
    id_ = target.id
    if id_.topic in view.seen.gone:
        return Status.GONE
    now = view.partitions.get(id_)
    if now is None:  # one that was made anew may have fewer partitions
        another = view.topic_ids.get(target.id.topic, target.topic_id) != target.topic_id
        return Status.REPLACED if another else Status.UNSEEN
    if now.topic_id != target.topic_id:
        return Status.REPLACED
    move = view.moves.get(id_)
    if move is not None:
        return Status.MOVING if move.target == target.after else Status.OTHER
    return _at_rest(target, now.replicas)


def _at_rest(target: Target, replicas: tuple[int, ...]) -> Status:
    if replicas == target.after:
        return Status.THERE
    if replicas == target.before:
        return Status.BEFORE
    if not target.moves_data:
        return Status.OTHER
    sets = {frozenset(target.before): Status.SHUFFLED, frozenset((*target.before, *target.after)): Status.BETWEEN}
    return sets.get(frozenset(replicas), Status.OTHER)


def _weak(target: Target, now: SeenPartition | None) -> str | None:
    if now is None or now.topic_id != target.topic_id:
        return None
    if now.leader is None and now.leader_known:
        return f"{target.id} has no leader"
    return f"{target.id} is under its min ISR" if now.under_min_isr else None


def _watched(view: View) -> State:
    """The state with how long everything has been as this look shows it."""
    state, seen, plan, batch = view.state, view.seen, view.plan, view.batch
    brokers = whole(plan.targets).brokers if plan else frozenset[int]()
    former = dict(state.down)
    down = tuple((broker, former.get(broker, 0)) for broker in sorted(brokers - seen.brokers))
    if batch is None:
        return state._replace(down=down, weak_ms=None, watches=())
    targets = open_targets(batch)
    weak = view.weak(targets) is not None
    weak_ms = (state.weak_ms or 0) if weak else None
    unsure = frozenset(
        target.id
        for target in targets
        # A request takes effect once: what it has moved it will not move again.
        if target.id in state.unsure and view.status(target) not in (Status.MOVING, Status.THERE)
    )
    return state._replace(down=down, weak_ms=weak_ms, watches=_watches(view, targets), unsure=unsure)


def _watches(view: View, targets: Iterable[Target]) -> tuple[Watch, ...]:
    if view.batch is None or view.batch.state is BatchState.INTENT:
        return ()
    former = {watch.id: watch for watch in view.state.watches}
    watches: list[Watch] = []
    for target in targets:
        token = _token(target, view)
        watch = former.get(target.id)
        # Where nothing tells how far a copy is, nothing tells that it stands still.
        same = watch is not None and watch.token == token and view.progress_known(target)
        watches.append(watch if same and watch is not None else Watch(target.id, token))
    return tuple(watches)


def _token(target: Target, view: View) -> tuple[object, ...]:
    """Equal as long as nothing goes on: replicas in sync, and bytes of the copies."""
    now = view.partitions.get(target.id)
    isr = () if now is None else tuple(sorted(now.isr))
    sizes = view.sizes.get(target.id, {})
    copied = sum(sizes.get(broker, 0) for broker in target.adding)
    return view.status(target).name, isr, copied
