"""Journal entries of plans, batches and our throttles, and their part of the cycle's memory. Pure.

Keys: ``plan/<plan>`` with ``targets/<plan>/<number>``, ``batch/<plan>/<number>`` and
``throttle/<kind>:<name>/<setting>``. The kind is the state (``intent``, ``sent``, ``acked``, ``closed``). Partitions of
a plan are written once (`agent.journal.targets`). Invariant: reading returns what was written, also after compaction.
An unreadable entry is `UnreadableError`: without known state nothing may begin. Bounds on number never drop what a
budget, a person's veto or a throttle debt still needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, NamedTuple

from agent.journal.entries import Entry, JournalState, JournalWrite, under
from agent.journal.targets import columns, header_value, part_writes, parts_in, plan_in, size_in, split_of, targets_of
from agent.journal.triggers import TriggerEffect, triggers
from agent.values.memo import IdentityMemo
from agent.values.memory import Memory
from agent.values.observation import RawReassignment
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentEntry,
    ReassignmentPlan,
    ReassignmentRecords,
    ReassignmentTarget,
    ThrottleDebt,
    rolled_back_plan,
)
from agent.values.throttles import KEYS_OF, ThrottleResource, list_entries
from agent.values.typed_json import MOST_INT, UnreadableError, from_json, to_json
from assignors.problem import TopicPartition

KEEP_PLANS = 200
"""So many ended plans, the newest, stay in the journal, and all whose batches were sent within a day of the newest
batch: what is moved in a day has a budget, and a batch stays no longer than its plan."""
KEEP_NOES = 1_000
"""So many plans that a person ended or had taken back, the newest, stay besides: no rule begins them again. One
planning proposes no more by default."""
KEEP_BATCHES = 200
"""So many batches of ended plans, the newest, stay in the journal, and all that were sent within a day of the newest;
the budget of a day allows no more of these."""
_DAY_MS = 86_400_000
KEEP_TARGET_BYTES = 16_000_000
"""Partitions of ended plans, the newest, stay up to so many bytes (some 250,000 partitions), so that they can be moved
back; those of the newest plan stay in any case."""
_MOST_BATCH_TARGETS = 500_000
_BATCHES: IdentityMemo[Batch] = IdentityMemo(_MOST_BATCH_TARGETS)
_LARGEST_BROKER = 2**31 - 1
_RATE = re.compile(r"0|[1-9][0-9]{0,18}")


class _BatchRows(NamedTuple):
    """The partitions of a batch as they are written: by number in ``targets``, or by name if they are not there."""

    targets: Mapping[str, object]
    cancelling: tuple[int | tuple[str, int], ...]
    ends: tuple[tuple[int | tuple[str, int], PartitionEndReason], ...]


class _DebtTexts(NamedTuple):
    """A throttle's rates or entries as they are written: as values of Kafka's config."""

    ours: str
    formerly: str | None = None


def change_writes(change: ReassignmentEntry) -> tuple[JournalWrite, ...]:
    """All journal writes of a change."""
    if isinstance(change, ReassignmentPlan):
        return _header(change), *part_writes(change.proposal_id, change.targets)
    if isinstance(change, Batch):
        return (JournalWrite(_batch_key(change.proposal_id, change.number), change.state.value, _batch_value(change)),)
    if isinstance(change, ThrottleDebt):
        return (JournalWrite(_debt_key(change.resource, change.key), "debt", _debt_value(change)),)
    return (JournalWrite(_debt_key(change.resource, change.key), "paid", None),)


def changed(view: JournalState, changes: Iterable[ReassignmentEntry]) -> tuple[JournalWrite, ...]:
    """The journal writes of the changes, given the journal: the partitions of a plan are written once."""
    return tuple(line for change in changes for line in _changed(view, change))


def open_records(view: JournalState) -> ReassignmentRecords:
    """Plans that have not ended with their batches, all throttle debts, and all plan names. Raises UnreadableError."""
    every = plans(view)
    unended = tuple(sorted((plan for plan in every if not plan.ended), key=lambda plan: plan.order))
    ids = {plan.proposal_id for plan in unended}
    return ReassignmentRecords(
        plans=unended,
        batches=tuple(batch for batch in batches(view) if batch.proposal_id in ids),
        debts=throttle_debts(view),
        known=frozenset(plan.proposal_id for plan in every),
    )


def plans(view: JournalState) -> tuple[ReassignmentPlan, ...]:
    """Every plan, ended or not, by the time it was last written. Raises UnreadableError."""
    return tuple(plan for plan, _ in dated_plans(view))


def known(view: JournalState) -> frozenset[str]:
    """The names of every plan, ended or not, unread."""
    return frozenset(key.removeprefix("plan/") for key in view if key.startswith("plan/"))


def dated_plans(view: JournalState) -> tuple[tuple[ReassignmentPlan, int], ...]:
    """Every plan, and the epoch milliseconds at which it was last written. Raises UnreadableError."""
    parts = parts_in(view)
    return tuple((plan_in(entry, parts.get(_named(entry), ())), entry.at_ms) for entry in under(view, "plan"))


def batches(view: JournalState, proposal_id: str | None = None) -> tuple[Batch, ...]:
    """The batches of a plan, or of all, by plan and number. Raises UnreadableError."""
    prefix = "batch" if proposal_id is None else f"batch/{proposal_id}"
    found = (batch for batch, _ in dated_batches(view, prefix))
    return tuple(sorted(found, key=lambda batch: (batch.proposal_id, batch.number)))


def dated_batches(view: JournalState, prefix: str = "batch") -> tuple[tuple[Batch, int], ...]:
    """Every batch, and the epoch milliseconds at which it was last written, in that order. Raises UnreadableError."""
    return tuple((_batch_in(entry), entry.at_ms) for entry in under(view, prefix))


def plan_of(view: JournalState, proposal_id: str) -> ReassignmentPlan | None:
    """That plan; None when it was never accepted, or long ago. Raises UnreadableError."""
    entry = view.get(_plan_key(proposal_id))
    return None if entry is None else plan_in(entry, parts_in(view, proposal_id).get(proposal_id, ()))


def throttle_debts(view: JournalState) -> tuple[ThrottleDebt, ...]:
    """Our throttles, sorted by resource and key. Raises UnreadableError."""
    found = (_debt_in(entry) for entry in under(view, "throttle"))
    return tuple(sorted(found, key=lambda debt: (debt.resource, debt.key)))


def compaction_writes(view: JournalState) -> tuple[JournalWrite, ...]:
    """Deletions that keep the journal small: the oldest of what has ended. What is open stays, however much it is.

    Partitions of a plan are deleted all at once, so that an ended plan without any is one that can no longer be moved
    back, and one with some of them is damaged. Partitions without a plan are left aside. Raises UnreadableError.
    """
    parts = parts_in(view)
    every = [(entry, plan_in(entry, parts.get(_named(entry), ()))) for entry in under(view, "plan")]
    ended = {_named(entry): entry for entry, plan in every if plan.ended}
    closed = [entry for entry in under(view, "batch") if _owner(entry) in ended]
    lately = _of_a_day(closed)
    vetoed = _noes([plan for _, plan in every if plan.ended])
    stay = {*list(ended)[-KEEP_PLANS:], *map(_owner, lately), *vetoed}
    keep = {entry.key for entry in (*closed[-KEEP_BATCHES:], *lately) if _owner(entry) in stay}
    old_plans = [entry for name, entry in ended.items() if name not in stay]
    old_batches = [entry for entry in closed if entry.key not in keep]
    with_targets = _kept_with_targets([entry for name, entry in ended.items() if name in stay])
    with_targets |= {_named(entry) for entry, plan in every if not plan.ended}
    old_parts = [part for name, found in sorted(parts.items()) if name not in with_targets for part in found]
    return tuple(_deletions([*old_plans, *old_batches, *old_parts]))


def _changed(view: JournalState, change: ReassignmentEntry) -> tuple[JournalWrite, ...]:
    former = view.get(_plan_key(change.proposal_id)) if isinstance(change, ReassignmentPlan) else None
    if not isinstance(change, ReassignmentPlan) or former is None:
        return change_writes(change)
    if former.value.get("digest") == split_of(change.targets).digest:
        return (_header(change),)
    lines = change_writes(change)
    written = {line.key for line in lines}
    name = change.proposal_id
    others = (part for part in parts_in(view, name).get(name, ()) if part.key not in written)
    return (*lines, *_deletions(others))


def _header(plan: ReassignmentPlan) -> JournalWrite:
    return JournalWrite(_plan_key(plan.proposal_id), plan.state.value, header_value(plan))


def _of_a_day(batches: list[Entry]) -> list[Entry]:
    """Those that were sent, and written within a day of the newest.

    The newest is the one that was written last: a clock that was ahead once makes no other one old.
    """
    newest_ms = batches[-1].at_ms if batches else 0
    return [entry for entry in batches if newest_ms - entry.at_ms < _DAY_MS and _batch_in(entry).sendings]


def _noes(ended: list[ReassignmentPlan]) -> set[str]:
    """The newest that a person ended or had taken back, and the plans that take these back."""
    backs = {plan.proposal_id for plan in ended if rolled_back_plan(plan.proposal_id) is not None}
    forths = set(map(rolled_back_plan, backs))
    by_word = {plan.proposal_id for plan in ended if plan.heard and plan.state is not PlanState.DONE}
    every = by_word | backs | forths
    return set([plan.proposal_id for plan in ended if plan.proposal_id in every][-KEEP_NOES:])


def _kept_with_targets(ended: list[Entry]) -> set[str]:
    """The newest ended plans whose partitions stay."""
    kept: set[str] = set()
    total = 0
    for entry in reversed(ended):
        total += size_in(entry)
        if kept and total > KEEP_TARGET_BYTES:
            break
        kept.add(_named(entry))
    return kept


def _batch_value(batch: Batch) -> Mapping[str, Any]:
    """Its partitions as columns; their ends refer to these by number."""
    at: dict[TopicPartition, int] = {}
    for number, target in enumerate(batch.targets):
        at.setdefault(target.id, number)
    rows = _BatchRows(
        columns(batch.targets),
        tuple(at.get(id_, id_) for id_ in batch.cancelling),
        tuple((at.get(id_, id_), end) for id_, end in batch.ends),
    )
    return {**to_json(Batch, batch._replace(targets=())), **to_json(_BatchRows, rows)}


def _debt_value(debt: ThrottleDebt) -> Mapping[str, Any]:
    texts = _DebtTexts(debt.value, None if debt.formerly is None else str(debt.formerly))
    return {**to_json(ThrottleDebt, debt), **to_json(_DebtTexts, texts)}


def _debt_in(entry: Entry) -> ThrottleDebt:
    """A throttle of ours: no other setting is ever taken away, whatever an entry names."""
    texts = from_json(_DebtTexts, entry.value)
    ours = _rate(texts.ours, entry) if entry.value.get("key") in KEYS_OF["broker"] else list_entries(texts.ours)
    formerly = None if texts.formerly is None else _rate(texts.formerly, entry)
    debt = from_json(ThrottleDebt, {**entry.value, "ours": [], "formerly": None})
    debt = debt._replace(ours=ours, formerly=formerly)
    of = debt.resource
    one = bool(of.topic) if of.broker is None else of.topic is None and 0 <= of.broker <= _LARGEST_BROKER
    if not one or debt.key not in KEYS_OF[of.kind] or entry.key != _debt_key(of, debt.key):
        raise UnreadableError(f"the record under {entry.key[:80]!r} is not of a throttle of rackwise")
    return debt


def _rate(text: str, entry: Entry) -> int:
    if _RATE.fullmatch(text) is None or int(text) > MOST_INT:
        raise UnreadableError(f"the record under {entry.key[:80]!r} has a rate that is not a number of bytes")
    return int(text)


def _batch_in(entry: Entry) -> Batch:
    return _BATCHES.of((entry,), lambda: _batch_of(entry), lambda batch: len(batch.targets) + 1)


def _batch_of(entry: Entry) -> Batch:
    rows = from_json(_BatchRows, entry.value)
    batch = from_json(Batch, {**entry.value, **{name: [] for name in _BatchRows._fields}})
    if entry.key != _batch_key(batch.proposal_id, batch.number):
        raise UnreadableError(f"the record under {entry.key[:80]!r} is of another batch")
    targets = targets_of(rows.targets)
    return batch._replace(
        targets=targets,
        cancelling=tuple(_id(at, targets) for at in rows.cancelling),
        ends=tuple(PartitionEnd(_id(at, targets), end) for at, end in rows.ends),
    )


def _id(at: int | tuple[str, int], targets: Sequence[ReassignmentTarget]) -> TopicPartition:
    """A partition by its number in the batch, or by its name. Raises UnreadableError."""
    if not isinstance(at, int):
        return TopicPartition(*at)
    if not 0 <= at < len(targets):
        raise UnreadableError(f"a batch has no partition of number {at}")
    return targets[at].id


def _deletions(entries: Iterable[Entry]) -> Iterable[JournalWrite]:
    return (JournalWrite(entry.key, "deleted", None) for entry in entries)


def _named(entry: Entry) -> str:
    return entry.key.removeprefix("plan/")


def _owner(entry: Entry) -> str:
    return entry.key.removeprefix("batch/").rpartition("/")[0]


def _plan_key(proposal_id: str) -> str:
    return f"plan/{proposal_id}"


def _batch_key(proposal_id: str, number: int) -> str:
    return f"batch/{proposal_id}/{number}"


def _debt_key(resource: ThrottleResource, key: str) -> str:
    return f"throttle/{resource.kind}:{resource.name}/{key}"


# Reassignments of ours are thus never taken for another tool's, also after a restart.

_NOT_ASKED = (TriggerEffect.NOT_SENT, TriggerEffect.REFUSED)

BatchKey = tuple[str, int]
"""Proposal id and number of a batch."""


class JournaledMemory(NamedTuple):
    """Memory of a cycle with the journal's facts, and the closed batches for the next cycle."""

    memory: Memory
    closed: AbstractSet[BatchKey]
    """Batches that are closed."""


def remembered(
    memory: Memory, view: JournalState, *, known_closed: AbstractSet[BatchKey] | None, taken_ms: int, monotonic_ms: int
) -> JournaledMemory:
    """The same memory, knowing what the journal knows; ``taken_ms`` is the wall clock at ``monotonic_ms``.

    ``known_closed`` are the batches that were through at the look before (None: there was none): what was closed since
    then has moved between two looks. A journal that cannot be read adds nothing: then every move is another
    tool's, and nothing is touched.
    """
    try:
        known_batches = tuple(batches(view))
    except UnreadableError:
        known_batches = ()
    closed = frozenset(_key(batch) for batch in known_batches if batch.state is BatchState.CLOSED)
    unseen = frozenset() if known_closed is None else closed - known_closed
    moving = frozenset(
        target.id
        for batch in known_batches
        if batch.state in (BatchState.SENT, BatchState.ACKED) or _key(batch) in unseen
        for target in batch.targets
    )
    acts = {f"group/{entry.group_id}": entry for entry in triggers(view) if entry.effect not in _NOT_ASKED}
    at = {
        subject: monotonic_ms - max(0, taken_ms - (entry.acted_ms or entry.intended_ms))
        for subject, entry in acts.items()
    }
    return JournaledMemory(replace(memory, own_reassignments=moving, acts=at), closed)


def _key(batch: Batch) -> BatchKey:
    return batch.proposal_id, batch.number


_CLOCKS_MS = 60_000
"""Clocks of two hosts may differ by so much: an end by the journal's clock is not surely before a look by another."""


class MoveOwner(NamedTuple):
    """Owner of a reassignment that a look shows: a plan of ours, or another tool."""

    plan: str | None
    """The plan of ours that asked for it; None where none did, or where that is unknown."""
    known: bool = True
    """False where it may be ours: the journal is older than the look, or has an end of about the time of the look."""
    ended: bool = False
    """Whether the journal, which is newer than the look, has its end."""


ANOTHER_TOOL = MoveOwner(None)
_UNKNOWN = MoveOwner(None, known=False)


def move_owners(view: JournalState, moves: Iterable[RawReassignment], taken_ms: int) -> dict[TopicPartition, MoveOwner]:
    """Partition -> whose its reassignment is; ``taken_ms``: epoch milliseconds at which the look began.

    The journal may be newer than the look, so a batch that has ended since counts; or older by what is in its way, so
    a move that an open plan is yet to ask for may be ours. A move to other replicas than ours is another tool's.
    Raises UnreadableError.
    """
    reported = {one.id: frozenset(one.replicas) - frozenset(one.removing) for one in moves}
    found = dict.fromkeys(reported, ANOTHER_TOOL)
    if not reported:
        return found
    for plan in plans(view):
        for target in () if plan.ended else plan.targets:
            if reported.get(target.id) in (frozenset(target.after), frozenset(target.before)):
                found[target.id] = _UNKNOWN
    for batch, at_ms in dated_batches(view):
        ends = {end.id for end in batch.ends}
        for target in batch.targets if _asked(batch) else ():
            if reported.get(target.id) == frozenset(target.after):
                found[target.id] = _owner_by(batch, found[target.id], at_ms - taken_ms, ended=target.id in ends)
    return found


def _asked(batch: Batch) -> bool:
    return batch.sendings > 0 or batch.state in (BatchState.SENT, BatchState.ACKED)


def _owner_by(batch: Batch, so_far: MoveOwner, later_ms: int, *, ended: bool) -> MoveOwner:
    """By a batch that asked for these replicas, and was last written so long after the look."""
    if not ended and batch.state is not BatchState.CLOSED:
        return MoveOwner(batch.proposal_id)
    if later_ms >= 0:
        return MoveOwner(batch.proposal_id, ended=True)
    return _UNKNOWN if later_ms > -_CLOCKS_MS else so_far
