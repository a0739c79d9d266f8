"""What the journal says of plans, their batches and our throttles.

Keys: ``plan/<proposal id>``, ``batch/<proposal id>/<number>`` and ``throttle/<kind>:<name>/<setting>``. The kind of an
entry is its state, so that the journal reads as a story: ``intent``, ``sent``, ``acked``, ``closed``. Invariant:
``read`` gives back what ``write`` was given, whatever was compacted away in between. An entry that cannot be read is
`UnreadableError`: whoever does not know what was begun must not begin anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent.execute.values import Batch, Change, Debt, Plan, Records, Resource
from agent.journal.entry import Entry, View, Write, under
from agent.typed_json import from_json, to_json

KEEP_PLANS = 200
"""So many ended plans, the newest, stay in the journal."""
KEEP_BATCHES = 200
"""So many batches of ended plans, the newest, stay in the journal."""


def write(change: Change) -> Write:
    """The line that says it."""
    if isinstance(change, Plan):
        return Write(_plan_key(change.proposal_id), change.state.value, to_json(Plan, change))
    if isinstance(change, Batch):
        return Write(_batch_key(change.proposal_id, change.number), change.state.value, to_json(Batch, change))
    if isinstance(change, Debt):
        return Write(_debt_key(change.resource, change.key), "debt", to_json(Debt, change))
    return Write(_debt_key(change.resource, change.key), "paid", None)


def read(view: View) -> Records:
    """What is still to be done. Raises UnreadableError."""
    every = plans(view)
    unended = tuple(sorted((plan for plan in every if not plan.ended), key=lambda plan: plan.order))
    ids = {plan.proposal_id for plan in unended}
    return Records(
        plans=unended,
        batches=tuple(batch for batch in batches(view) if batch.proposal_id in ids),
        debts=debts(view),
        known=frozenset(plan.proposal_id for plan in every),
    )


def plans(view: View) -> tuple[Plan, ...]:
    """Every plan, ended or not, by the time it was last written."""
    return tuple(from_json(Plan, entry.value) for entry in under(view, "plan"))


def batches(view: View, proposal_id: str | None = None) -> tuple[Batch, ...]:
    """The batches of a plan, or of all, by plan and number."""
    prefix = "batch" if proposal_id is None else f"batch/{proposal_id}"
    found = (from_json(Batch, entry.value) for entry in under(view, prefix))
    return tuple(sorted(found, key=lambda batch: (batch.proposal_id, batch.number)))


def plan_of(view: View, proposal_id: str) -> Plan | None:
    """That plan; None when it was never accepted, or long ago. Raises UnreadableError."""
    entry = view.get(_plan_key(proposal_id))
    return None if entry is None else from_json(Plan, entry.value)


def debts(view: View) -> tuple[Debt, ...]:
    """Our throttles, sorted by resource and key."""
    found = (from_json(Debt, entry.value) for entry in under(view, "throttle"))
    return tuple(sorted(found, key=lambda debt: (debt.resource, debt.key)))


def tidy(view: View) -> tuple[Write, ...]:
    """Deletions that keep the journal small: the oldest of what has ended. What is open stays, however much it is."""
    ended = [entry for entry in under(view, "plan") if from_json(Plan, entry.value).ended]
    owners = {entry.key.removeprefix("plan/") for entry in ended}
    old_plans = ended[:-KEEP_PLANS]
    dropped = {entry.key.removeprefix("plan/") for entry in old_plans}
    closed = [entry for entry in under(view, "batch") if _owner(entry) in owners]
    keep = {entry.key for entry in closed[-KEEP_BATCHES:]}
    old_batches = [entry for entry in closed if entry.key not in keep or _owner(entry) in dropped]
    return tuple(_deletions([*old_plans, *old_batches]))


def _deletions(entries: Iterable[Entry]) -> Iterable[Write]:
    return (Write(entry.key, "deleted", None) for entry in entries)


def _owner(entry: Entry) -> str:
    return entry.key.removeprefix("batch/").rpartition("/")[0]


def _plan_key(proposal_id: str) -> str:
    return f"plan/{proposal_id}"


def _batch_key(proposal_id: str, number: int) -> str:
    return f"batch/{proposal_id}/{number}"


def _debt_key(resource: Resource, key: str) -> str:
    return f"throttle/{resource.kind}:{resource.name}/{key}"
