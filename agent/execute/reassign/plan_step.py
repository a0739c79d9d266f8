"""Next step without an open batch: remove throttles, begin a batch, elect leaders, or finish.

Invariants: a batch begins only when no earlier request can take effect, none of our removable throttles is left, no
other tool moves anything and no partition of the plan is under min ISR; unknown holds it. A plan finishes once each of
its partitions has an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agent.execute.reassign.batch_step import ENDS, BatchDecision
from agent.execute.reassign.executor_view import ExecutorView, TargetStatus, not_allowed_reason, unsafe_reason
from agent.execute.reassign.messages import (
    AlterThrottles,
    AppendJournal,
    ClusterView,
    ElectLeaders,
    NotifyOperator,
    PartitionView,
)
from agent.execute.reassign.state import batches_of, latest_batch
from agent.execute.reassign.throttles import (
    ThrottleStatus,
    batch_throttles,
    rate_of,
    throttle_removal,
    throttle_status,
    throttle_update,
)
from agent.journal.targets import EncodedSize, runs
from agent.values.limits import ExecuteLimits
from agent.values.number_format import counted, sized
from agent.values.reassignment import (
    Batch,
    BatchState,
    ClearedThrottle,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentPolicy,
    ReassignmentTarget,
    ThrottleDebt,
    moved_by,
)

if TYPE_CHECKING:
    import networkx as nx

# A batch is filled greedily within the caps: moves without data, then fully in-sync partitions, then the greatest gain
# per copied byte, then the fewest bytes. Equal input gives the equal batch. KIP-455.

RECORD_BYTES = 400_000
"""Of a batch's own record with the ends of all its partitions, and of one list of throttled replicas."""
_END_BYTES = 48
"""Of one partition's end, and of its place among those that are cancelled."""
Place = TypeVar("Place", int, "str | None")


class CopyLoad(NamedTuple):
    """Copies and bytes that a batch brings to, and reads from, one broker or one rack."""

    copies_out: int
    copies_in: int
    bytes_out: int
    bytes_in: int


def next_batch(
    pending: Iterable[ReassignmentTarget],
    cluster: ClusterView,
    policy: ReassignmentPolicy,
    max_moves: int | None = None,
) -> tuple[ReassignmentTarget, ...]:
    """The partitions that may move together now, sorted by partition; empty only when nothing is pending.

    A partition that is beyond a cap by itself, or whose size is unknown where bytes are capped, is the only one of its
    batch that copies anything.
    """
    now = {partition.id: partition for partition in cluster.partitions}
    limits = policy.limits
    at_most = min(limits.batch_partitions, limits.max_moves_per_cluster, max_moves or limits.batch_partitions)
    waiting = [_order(target, now.get(target.id)) for target in pending]
    heapify(waiting)
    copying = _Copying(limits, {of for pair in {(it[-1].before, it[-1].after) for it in waiting} for of in pair})
    record = _Record()
    chosen: list[ReassignmentTarget] = []
    while waiting and len(chosen) < at_most:
        target = heappop(waiting)[-1]
        if target.moves_data and copying.full:
            break  # and so are all that come after it
        copies, cost = _copies(target, now.get(target.id)), _bytes(target)
        fits = copying.takes(copies, cost)
        if not (fits or not copying.copies) or (chosen and not record.takes(target)):
            continue
        chosen.append(target)
        copying.add(copies, cost)
        record.add(target)
        if not fits:
            break
    return tuple(sorted(chosen))


def record_batches(targets: Iterable[ReassignmentTarget]) -> Iterator[list[ReassignmentTarget]]:
    """The targets in order, in as many batches as their records need when all of them have ended."""
    return runs(targets, RECORD_BYTES, _END_BYTES)


class _Copying:
    """How many copies each broker takes part in, and how many bytes are copied."""

    def __init__(self, limits: ExecuteLimits, brokers: Iterable[Iterable[int]]) -> None:
        self.copies = 0
        self._limits = limits
        self._load: Counter[int] = Counter()
        self._free = {broker for of in brokers for broker in of}
        self._taken = 0

    @property
    def full(self) -> bool:
        """Whether no copy fits any more: it takes two brokers."""
        return self.copies > 0 and len(self._free) < 2

    def takes(self, copies: Sequence[tuple[int, int]], cost: int | None) -> bool:
        """Whether these fit too; bytes that are unknown fit no bound."""
        added = Counter(broker for copy in copies for broker in copy)
        few = all(self._load[broker] + more <= self._limits.max_moves_per_broker for broker, more in added.items())
        cap = self._limits.max_bytes_in_flight
        return few and (cap is None or (cost is not None and self._taken + cost <= cap))

    def add(self, copies: Sequence[tuple[int, int]], cost: int | None) -> None:
        """Take them in."""
        self.copies += len(copies)
        self._taken += cost or 0
        for broker in (broker for copy in copies for broker in copy):
            self._load[broker] += 1
            if self._load[broker] >= self._limits.max_moves_per_broker:
                self._free.discard(broker)


class _Record:
    """How long a batch's own record, and those of its topics' lists of throttled replicas, become."""

    def __init__(self) -> None:
        self._size = EncodedSize(_END_BYTES)
        self._listed = 0

    def takes(self, target: ReassignmentTarget) -> bool:
        """Whether that one fits too."""
        return max(self._size.bytes + self._size.more(target), self._listed + _listed(target)) <= RECORD_BYTES

    def add(self, target: ReassignmentTarget) -> None:
        """Take it in."""
        self._size.add(target)
        self._listed += _listed(target)


def _listed(target: ReassignmentTarget) -> int:
    """Bytes that its replicas take in lists of throttled replicas, ``partition:broker,`` each."""
    if not target.moves_data:
        return 0
    number = len(str(target.id.partition)) + 2
    return sum(number + len(str(broker)) for broker in (*target.before, *target.adding))


def replication_graph(targets: Iterable[ReassignmentTarget], cluster: ClusterView) -> nx.MultiDiGraph[int]:
    """Broker -> broker, one edge per copy with its bytes (0 when unknown), keyed by partition.

    A partition without a leader has no replica to copy from; its copies start at the first replica, which will lead it.
    """
    now = {partition.id: partition for partition in cluster.partitions}
    graph = _no_copies()
    for target in targets:
        for source, broker in _copies(target, now.get(target.id)):
            graph.add_edge(source, broker, key=target.id, bytes=target.bytes or 0)
    return graph


def broker_loads(graph: nx.MultiDiGraph[int]) -> Mapping[int, CopyLoad]:
    """Broker -> what it sends and receives, by broker."""
    return _loads(_flows(graph))


def rack_loads(graph: nx.MultiDiGraph[int], racks: Mapping[int, str | None]) -> Mapping[str | None, CopyLoad]:
    """Rack -> what leaves it and what comes in; copies within a rack are not counted, an unknown rack is another."""
    crossing: list[tuple[str | None, str | None, int]] = []
    for source, target, size in _flows(graph):
        here, there = racks.get(source), racks.get(target)
        if here is None or here != there:
            crossing.append((here, there, size))
    return _loads(crossing)


def batch_sentence(targets: Sequence[ReassignmentTarget], cluster: ClusterView, rate_bytes_per_s: int | None) -> str:
    """What a batch means for brokers and racks, in one sentence."""
    graph = replication_graph(targets, cluster)
    loads = broker_loads(graph)
    if not loads:
        return f"{counted(len(targets), 'partition')} with another order of replicas, no data moves"
    unknown = " or more" if any(target.moves_data and target.bytes is None for target in targets) else ""
    busiest = max(loads, key=lambda broker: (loads[broker].bytes_in, loads[broker].copies_in, -broker))
    total = sized(sum(load.bytes_in for load in loads.values()))
    parts = [f"{counted(len(targets), 'partition')}, {total}{unknown} to copy"]
    parts.append(f"most to broker {busiest}: {sized(loads[busiest].bytes_in)}{unknown}")
    if cluster.racks:
        crossing = sum(load.bytes_in for load in rack_loads(graph, dict(cluster.racks)).values())
        parts.append(f"{sized(crossing)} across racks")
    if rate_bytes_per_s:
        slowest = max(max(load.bytes_in, load.bytes_out) for load in loads.values())
        parts.append(f"{slowest // rate_bytes_per_s} s{unknown} at {sized(rate_bytes_per_s)}/s")
    return "; ".join(parts)


def _no_copies() -> nx.MultiDiGraph[int]:
    import networkx as nx  # noqa: PLC0415 a third of the start of every command, and only batches need it

    return nx.MultiDiGraph()


def _flows(graph: nx.MultiDiGraph[int]) -> list[tuple[int, int, int]]:
    return [(source, target, int(data["bytes"])) for source, target, data in graph.edges(data=True)]


def _loads(edges: Iterable[tuple[Place, Place, int]]) -> Mapping[Place, CopyLoad]:
    found: dict[Place, list[int]] = {}
    for source, target, size in edges:
        out, into = found.setdefault(source, [0] * 4), found.setdefault(target, [0] * 4)
        out[0] += 1
        into[1] += 1
        out[2] += size
        into[3] += size
    return {place: CopyLoad(*found[place]) for place in sorted(found, key=str)}


def _order(target: ReassignmentTarget, now: PartitionView | None) -> tuple[bool, bool, float, int, ReassignmentTarget]:
    """Without data first, then whole in-sync sets, then gain per byte, then few bytes; the name last."""
    out_of_sync = now is None or not set(target.before) <= now.isr
    cost = _bytes(target)
    gain = target.gain / max(1, cost) if cost is not None else 0.0
    return target.moves_data, out_of_sync, -gain, cost or 0, target


def _copies(target: ReassignmentTarget, now: PartitionView | None) -> list[tuple[int, int]]:
    """(source, destination) of each copy."""
    leader = None if now is None else now.leader
    source = target.before[0] if leader is None else leader
    return [(source, broker) for broker in target.adding]


def _bytes(target: ReassignmentTarget) -> int | None:
    """Bytes to copy; None when unknown."""
    if not target.adding:
        return 0
    return None if target.bytes is None else target.bytes * len(target.adding)


def clear_throttles(view: ExecutorView) -> BatchDecision | None:
    """Take away throttles that no open batch needs. A broker that is down owes until it is back."""
    owed = [debt for debt in view.state.records.debts if not _needed(debt, view.batch)]
    found = {debt: throttle_status(debt, view.cluster) for debt in owed}
    if not view.state.settled:
        # A request that sets it may still be on its way, and one that takes it away must not be sent twice.
        waits = owed and view.batch is None
        return BatchDecision(wait_for="waiting until no earlier request can take effect") if waits else None
    paid = tuple(ClearedThrottle(debt.resource, debt.key) for debt, it in found.items() if it is ThrottleStatus.GONE)
    if paid:
        return BatchDecision(AppendJournal(paid))
    due = tuple(debt for debt, it in found.items() if it is ThrottleStatus.STANDS)
    if not due:
        return BatchDecision(wait_for=_unreachable(owed)) if owed else None
    removals = tuple(throttle_removal(debt, view.cluster) for debt in due)
    return BatchDecision(AppendJournal(due, AlterThrottles(removals)))


def _unreachable(owed: list[ThrottleDebt]) -> str:
    first = owed[0]
    what = f"{first.key} of {first.resource.kind} {first.resource.name}"
    one = len(owed) == 1
    stay = "stays set until it" if one else "stay set until they"
    return f"{counted(len(owed), 'throttle')} of rackwise {stay} can be removed: {what} cannot be reached now"


def work_on_plan(view: ExecutorView) -> BatchDecision | None:
    """The next thing to do for the plan; None when there is none, or a batch is open."""
    plan = view.plan
    if plan is None or view.batch is not None:
        return None
    if not view.state.settled:
        return BatchDecision(wait_for="waiting until no earlier request can take effect")
    if plan.state is PlanState.CANCELLING:
        return _finish(view, plan, PlanState.CANCELLED, _ended_by_then(view, plan))
    pending = _pending(view, plan)
    return (
        _close_at_once(view, plan, pending)
        or _hold(view, plan, pending)
        or _begin(view, plan, pending)
        or _end(view, plan)
    )


def _number(view: ExecutorView, plan: ReassignmentPlan) -> int:
    """Of the plan's next batch. That of one that was withdrawn before it was sent is used again."""
    last = latest_batch(view.state, plan.proposal_id)
    newest = next(reversed(batches_of(view.state, plan.proposal_id)), None)
    return last if newest is not None and not newest.ends and not newest.sendings else last + 1


def _needed(debt: ThrottleDebt, batch: Batch | None) -> bool:
    return batch is not None and (debt.proposal_id, debt.number) == (batch.proposal_id, batch.number)


def _ends(
    view: ExecutorView, plan: ReassignmentPlan, *, back: bool, since: int = 0
) -> dict[object, PartitionEndReason]:
    """Partition -> its end in that direction, by batches after that number."""
    batches = (it for it in batches_of(view.state, plan.proposal_id) if it.back is back)
    return {end.id: end.end for batch in batches if batch.number > since for end in batch.ends}


def _pending(view: ExecutorView, plan: ReassignmentPlan) -> tuple[ReassignmentTarget, ...]:
    """What has still to go through a batch, in the direction of the plan."""
    forward = _ends(view, plan, back=False)
    if plan.state is not PlanState.ROLLING_BACK:
        return tuple(target for target in plan.targets if target.id not in forward)
    back = _ends(view, plan, back=True, since=plan.turned)
    return tuple(
        it.back() for it in plan.targets if forward.get(it.id) is PartitionEndReason.DONE and it.id not in back
    )


def _close_at_once(
    view: ExecutorView, plan: ReassignmentPlan, pending: tuple[ReassignmentTarget, ...]
) -> BatchDecision | None:
    """Partitions that need no move, or cannot have one, get their end. What others still move is waited for."""
    ends: list[PartitionEnd] = []
    for target in pending:
        status = view.status(target)
        end = (
            PartitionEndReason.CHANGED
            if status is TargetStatus.SHUFFLED
            else None
            if status is TargetStatus.BETWEEN
            else ENDS.get(status)
        )
        if end is None and view.lost(target):
            end = PartitionEndReason.SKIPPED
        if end is not None and target.id not in view.moves:
            ends.append(PartitionEnd(target.id, end))
    if not ends:
        return None
    ended = dict(ends)
    batches = tuple(
        Batch(
            plan.proposal_id,
            number,
            tuple(run),
            BatchState.CLOSED,
            back=plan.state is PlanState.ROLLING_BACK,
            ends=tuple(sorted(PartitionEnd(target.id, ended[target.id]) for target in run)),
        )
        for number, run in enumerate(record_batches(it for it in pending if it.id in ended), _number(view, plan))
    )
    return BatchDecision(AppendJournal(batches))


def _hold(view: ExecutorView, plan: ReassignmentPlan, pending: tuple[ReassignmentTarget, ...]) -> BatchDecision | None:
    """Why nothing begins now; what could lose data first."""
    why = (unsafe_reason(view, plan, pending) if pending else None) or not_allowed_reason(view, plan)
    return None if why is None else BatchDecision(wait_for=f"no new batch: {why}", held=True)


def _begin(view: ExecutorView, plan: ReassignmentPlan, pending: tuple[ReassignmentTarget, ...]) -> BatchDecision | None:
    up = view.cluster.brokers
    ready = [it for it in pending if view.status(it) is TargetStatus.BEFORE and up.issuperset(it.adding)]
    if not pending:
        return None
    if not ready:
        why = "has replicas of before and after without a reassignment, or needs a broker that is down"
        return BatchDecision(wait_for=f"no new batch: of what is left, {pending[0].id} {why}", held=True)
    targets = next_batch(ready, view.cluster, view.policy, plan.max_moves)
    moves_data = any(target.moves_data for target in targets)
    rate = rate_of(targets, view.cluster, view.policy, plan.throttle_bytes_per_s) if moves_data else None
    batch = Batch(
        plan.proposal_id, _number(view, plan), targets, back=plan.state is PlanState.ROLLING_BACK, rate_bytes_per_s=rate
    )
    throttle = batch_throttles(batch, view.cluster)
    debts = tuple(debt._replace(tries=1) for debt in throttle.debts)
    then = AlterThrottles(tuple(throttle_update(debt) for debt in debts)) if debts else None
    sentences = (f"batch {batch.number}: {batch_sentence(targets, view.cluster, rate)}", *throttle.left)
    notices = tuple(NotifyOperator(alarm=False, sentence=sentence) for sentence in sentences)
    return BatchDecision(AppendJournal((batch, *debts), then), notices)


def _end(view: ExecutorView, plan: ReassignmentPlan) -> BatchDecision:
    """Elect preferred leaders, then finish."""
    back = plan.state is PlanState.ROLLING_BACK
    ends = _ends(view, plan, back=back, since=plan.turned if back else 0)
    done = [
        target.back() if back else target for target in plan.targets if ends.get(target.id) is PartitionEndReason.DONE
    ]
    if (unknown := next((target.id for target in done if view.leader_unknown(target)), None)) is not None:
        return BatchDecision(wait_for=f"the leader of {unknown} is unknown", held=True)
    late = tuple(target.id for target in done if view.led_by_another(target))
    if late and plan.elections < view.policy.max_elections:
        state = plan.state if back else PlanState.ELECTING
        return BatchDecision(
            AppendJournal((plan._replace(state=state, elections=plan.elections + 1),), ElectLeaders(late))
        )
    elsewhere = f"{_partitions(len(late))} not led by the preferred leader" if late else ""
    well = all(end in (PartitionEndReason.DONE, PartitionEndReason.GONE) for end in ends.values())
    state = PlanState.ROLLED_BACK if back else PlanState.DONE
    sentences = _ended(ends, done="moved back" if back else PartitionEndReason.DONE.value)
    return _finish(view, plan, state if well else PlanState.FAILED, [*sentences, elsewhere])


def _ended(ends: dict[object, PartitionEndReason], *, done: str = PartitionEndReason.DONE.value) -> list[str]:
    """How many partitions ended how, in words."""
    counts = Counter(ends.values())
    return [
        f"{_partitions(counts[end])} {done if end is PartitionEndReason.DONE else end.value}"
        for end in PartitionEndReason
        if counts[end]
    ]


def _ended_by_then(view: ExecutorView, plan: ReassignmentPlan) -> list[str]:
    """The same of a plan that was cancelled, perhaps while it was rolling back."""
    back = {id_ for id_, end in _ends(view, plan, back=True).items() if end is PartitionEndReason.DONE}
    forward = _ends(view, plan, back=False)
    kept = _ended({id_: end for id_, end in forward.items() if id_ not in back})
    begun = len(plan.targets) - len(forward)
    moved_back = [f"{_partitions(len(back))} moved back"] if back else []
    return [*kept, *moved_back, *([f"{_partitions(begun)} not begun"] if begun else [])]


def _finish(view: ExecutorView, plan: ReassignmentPlan, state: PlanState, parts: list[str]) -> BatchDecision:
    sentence = "; ".join(part for part in (plan.sentence, *parts) if part)
    forth = {id_ for id_, end in _ends(view, plan, back=False).items() if end is PartitionEndReason.DONE}
    back = {id_ for id_, end in _ends(view, plan, back=True).items() if end is PartitionEndReason.DONE}
    moved = moved_by(plan, forth - back)
    return BatchDecision(AppendJournal((plan._replace(state=state, sentence=sentence, moved=moved),)))


def _partitions(count: int) -> str:
    return counted(count, "partition")
