"""What is next when no batch is open: pay debts, begin a batch, elect, or finish.

Invariants: a batch begins only when no earlier request can take effect, no throttle of ours is left that can be taken
away, no other tool moves anything, and no partition that the plan still touches is under its min ISR. What cannot be
known holds it. A plan finishes when each of its partitions has an end.
"""

from __future__ import annotations

from collections import Counter

from agent.execute.reassign.batches import in_records, in_words, next_batch
from agent.execute.reassign.holding import not_allowed, unsafe
from agent.execute.reassign.judging import Status, View
from agent.execute.reassign.messages import Append, Configure, Elect, Say
from agent.execute.reassign.running import ENDS, Decision
from agent.execute.reassign.state import batches_of, latest_batch
from agent.execute.reassign.throttles import Standing, clearing, rate_of, setting, standing, wanted
from agent.values.reassignment import (
    Batch,
    BatchState,
    Debt,
    End,
    Paid,
    PartitionEnd,
    Plan,
    PlanState,
    Target,
    moved_by,
)
from agent.values.words import counted


def pay_debts(view: View) -> Decision | None:
    """Take away throttles that no open batch needs. A broker that is down owes until it is back."""
    owed = [debt for debt in view.state.records.debts if not _needed(debt, view.batch)]
    found = {debt: standing(debt, view.seen) for debt in owed}
    if not view.state.calm:
        # A request that sets it may still be on its way, and one that takes it away must not be sent twice.
        return (
            Decision(wait_for="waiting until no earlier request can take effect")
            if owed and view.batch is None
            else None
        )
    paid = tuple(Paid(debt.resource, debt.key) for debt, it in found.items() if it is Standing.GONE)
    if paid:
        return Decision(Append(paid))
    due = tuple(debt for debt, it in found.items() if it is Standing.STANDS)
    if not due:
        return Decision(wait_for=_unreachable(owed)) if owed else None
    return Decision(Append(due, Configure(tuple(clearing(debt, view.seen) for debt in due))))


def _unreachable(owed: list[Debt]) -> str:
    first = owed[0]
    what = f"{first.key} of {first.resource.kind} {first.resource.name}"
    one = len(owed) == 1
    stay = "stays set until it" if one else "stay set until they"
    return f"{counted(len(owed), 'throttle')} of rackwise {stay} can be removed: {what} cannot be reached now"


def work_on_plan(view: View) -> Decision | None:
    """The next thing to do for the plan; None when there is none, or a batch is open."""
    plan = view.plan
    if plan is None or view.batch is not None:
        return None
    if not view.state.calm:
        return Decision(wait_for="waiting until no earlier request can take effect")
    if plan.state is PlanState.CANCELLING:
        return _finish(view, plan, PlanState.CANCELLED, _ended_by_then(view, plan))
    pending = _pending(view, plan)
    return (
        _close_at_once(view, plan, pending)
        or _hold(view, plan, pending)
        or _begin(view, plan, pending)
        or _end(view, plan)
    )


def _number(view: View, plan: Plan) -> int:
    """Of the plan's next batch. That of one that was withdrawn before it was sent is used again."""
    last = latest_batch(view.state, plan.proposal_id)
    newest = next(reversed(batches_of(view.state, plan.proposal_id)), None)
    withdrawn = newest is not None and not newest.ends and not newest.sendings
    return last if withdrawn else last + 1


def _needed(debt: Debt, batch: Batch | None) -> bool:
    return batch is not None and (debt.proposal_id, debt.number) == (batch.proposal_id, batch.number)


def _ends(view: View, plan: Plan, *, back: bool, since: int = 0) -> dict[object, End]:
    """Partition -> its end in that direction, by batches after that number."""
    batches = (it for it in batches_of(view.state, plan.proposal_id) if it.back is back)
    return {end.id: end.end for batch in batches if batch.number > since for end in batch.ends}


def _pending(view: View, plan: Plan) -> tuple[Target, ...]:
    """What has still to go through a batch, in the direction of the plan."""
    forward = _ends(view, plan, back=False)
    if plan.state is not PlanState.ROLLING_BACK:
        return tuple(target for target in plan.targets if target.id not in forward)
    back = _ends(view, plan, back=True, since=plan.turned)
    return tuple(it.back() for it in plan.targets if forward.get(it.id) is End.DONE and it.id not in back)


def _close_at_once(view: View, plan: Plan, pending: tuple[Target, ...]) -> Decision | None:
    """Partitions that need no move, or cannot have one, get their end. What others still move is waited for."""
    ends: list[PartitionEnd] = []
    for target in pending:
        status = view.status(target)
        end = End.CHANGED if status is Status.SHUFFLED else None if status is Status.BETWEEN else ENDS.get(status)
        if end is None and view.lost(target):
            end = End.SKIPPED
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
        for number, run in enumerate(in_records(it for it in pending if it.id in ended), _number(view, plan))
    )
    return Decision(Append(batches))


def _hold(view: View, plan: Plan, pending: tuple[Target, ...]) -> Decision | None:
    """Why nothing begins now; what could lose data first."""
    why = (unsafe(view, plan, pending) if pending else None) or not_allowed(view, plan)
    return None if why is None else Decision(wait_for=f"no new batch: {why}", held=True)


def _begin(view: View, plan: Plan, pending: tuple[Target, ...]) -> Decision | None:
    up = view.seen.brokers
    ready = [it for it in pending if view.status(it) is Status.BEFORE and up.issuperset(it.adding)]
    if not pending:
        return None
    if not ready:
        why = "has replicas of before and after without a reassignment, or needs a broker that is down"
        return Decision(wait_for=f"no new batch: of what is left, {pending[0].id} {why}", held=True)
    targets = next_batch(ready, view.seen, view.policy, plan.max_moves)
    moves_data = any(target.moves_data for target in targets)
    rate = rate_of(targets, view.seen, view.policy, plan.throttle_bytes_per_s) if moves_data else None
    batch = Batch(
        plan.proposal_id,
        _number(view, plan),
        targets,
        back=plan.state is PlanState.ROLLING_BACK,
        rate_bytes_per_s=rate,
    )
    throttle = wanted(batch, view.seen)
    debts = tuple(debt._replace(tries=1) for debt in throttle.debts)
    then = Configure(tuple(setting(debt) for debt in debts)) if debts else None
    sentences = (f"batch {batch.number}: {in_words(targets, view.seen, rate)}", *throttle.left)
    says = tuple(Say(alarm=False, sentence=sentence) for sentence in sentences)
    return Decision(Append((batch, *debts), then), says)


def _end(view: View, plan: Plan) -> Decision:
    """Elect preferred leaders, then finish."""
    back = plan.state is PlanState.ROLLING_BACK
    ends = _ends(view, plan, back=back, since=plan.turned if back else 0)
    done = [target.back() if back else target for target in plan.targets if ends.get(target.id) is End.DONE]
    if (unknown := next((target.id for target in done if _unknown_leader(view, target)), None)) is not None:
        return Decision(wait_for=f"the leader of {unknown} is unknown", held=True)
    late = tuple(target.id for target in done if _led_by_another(view, target))
    if late and plan.elections < view.policy.max_elections:
        state = plan.state if back else PlanState.ELECTING
        return Decision(Append((plan._replace(state=state, elections=plan.elections + 1),), Elect(late)))
    led = f"{_partitions(len(late))} not led by the preferred leader" if late else ""
    well = all(end in (End.DONE, End.GONE) for end in ends.values())
    state = PlanState.ROLLED_BACK if back else PlanState.DONE
    sentences = _ended(ends, done="moved back" if back else End.DONE.value)
    return _finish(view, plan, state if well else PlanState.FAILED, [*sentences, led])


def _led_by_another(view: View, target: Target) -> bool:
    """True when its preferred leader could lead it and does not."""
    now, preferred = view.partitions.get(target.id), target.after[0]
    if now is None or now.topic_id != target.topic_id or now.replicas != target.after:
        return False
    return now.leader != preferred and preferred in now.isr and preferred in view.seen.brokers


def _unknown_leader(view: View, target: Target) -> bool:
    now = view.partitions.get(target.id)
    return view.status(target) is Status.UNSEEN or (now is not None and not now.leader_known)


def _ended(ends: dict[object, End], *, done: str = End.DONE.value) -> list[str]:
    """How many partitions ended how, in words."""
    counts = Counter(ends.values())
    return [f"{_partitions(counts[end])} {done if end is End.DONE else end.value}" for end in End if counts[end]]


def _ended_by_then(view: View, plan: Plan) -> list[str]:
    """The same of a plan that was cancelled, perhaps while it was rolling back."""
    back = {id_ for id_, end in _ends(view, plan, back=True).items() if end is End.DONE}
    forward = _ends(view, plan, back=False)
    kept = _ended({id_: end for id_, end in forward.items() if id_ not in back})
    begun = len(plan.targets) - len(forward)
    moved_back = [f"{_partitions(len(back))} moved back"] if back else []
    return [*kept, *moved_back, *([f"{_partitions(begun)} not begun"] if begun else [])]


def _finish(view: View, plan: Plan, state: PlanState, parts: list[str]) -> Decision:
    sentence = "; ".join(part for part in (plan.sentence, *parts) if part)
    forth = {id_ for id_, end in _ends(view, plan, back=False).items() if end is End.DONE}
    back = {id_ for id_, end in _ends(view, plan, back=True).items() if end is End.DONE}
    moved = moved_by(plan, forth - back)
    return Decision(Append((plan._replace(state=state, sentence=sentence, moved=moved),)))


def _partitions(count: int) -> str:
    return counted(count, "partition")
