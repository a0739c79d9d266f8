"""What a person approves, in words made of nothing but what the approval's hash covers; figures stand apart.

The sentence of a published record is text that its writer chose, and the hash does not cover it: it is not shown here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.cli.figures import as_of
from agent.money.words import usd_words
from agent.values.proposal import Proposal, ProposalKind
from agent.values.words import counted, few, sized

MOST_ROWS = 10
"""Partitions, tasks or members that are shown one by one; the rest is counted."""
_NAMED = 6
Brokers = tuple[str | int, ...]


def what_is_approved(proposal: Proposal) -> tuple[str, ...]:
    """Lines: what is done to what and why, what changes in all, and each change, as far as there is room."""
    head = f"{proposal.id}: {proposal.kind.value} {proposal.subject}, because {proposal.reason.value}"
    if proposal.kind in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return head, *_placements(proposal)
    moves = [
        f"{one.what} {one.subject}: {one.source or '(none)'} -> {one.target or '(none)'}" for one in proposal.moves
    ]
    return head, f"changes: {counted(len(moves), 'move')}", *_first(moves)


def figures_as_published(proposal: Proposal, now_ms: int) -> str:
    """The figures of the record: no part of what is approved, as they change all the time."""
    told, parts = proposal.predicted, []
    if proposal.kind is not ProposalKind.LEADERS:
        parts.append("bytes to copy unknown" if told.bytes_to_move is None else f"{sized(told.bytes_to_move)} to copy")
    before, after = usd_words(told.usd_per_day_before), usd_words(told.usd_per_day_after)
    parts.append(f"{before}/day across racks before, {after}/day after" if before and after else "$/day unknown")
    return f"as published: {', '.join(parts)}; {as_of(proposal.created_ms, now_ms)}"


def _placements(proposal: Proposal) -> tuple[str, ...]:
    """Replica lists: the first broker of each is the preferred leader."""
    before = {row.key: row.value for row in proposal.before}
    changes = [(row, before.get(row.key, ())) for row in proposal.after]
    gains = _not_in_other((row.value, old) for row, old in changes)
    losses = _not_in_other((old, row.value) for row, old in changes)
    leaders = sum(row.value[:1] != old[:1] for row, old in changes)
    total = "; ".join(
        (
            f"changes: {counted(len(changes), 'replica list')}",
            f"{counted(gains.total(), 'replica')} added{_by_broker(gains)}",
            f"{counted(losses.total(), 'replica')} removed{_by_broker(losses)}",
            f"{counted(leaders, 'preferred leader')} changed",
        )
    )
    return total, *_first(f"{row.key}: {_listed(old)} -> {_listed(row.value)}" for row, old in changes)


def _not_in_other(pairs: Iterable[tuple[Brokers, Brokers]]) -> Counter[str | int]:
    """How often each broker is in the first list of a pair and not in the second."""
    return Counter(broker for some, others in pairs for broker in some if broker not in others)


def _by_broker(brokers: Counter[str | int]) -> str:
    """`` (broker 2: 1, broker 5: 3)``."""
    if not brokers:
        return ""
    return f" ({few([f'broker {one}: {number:,}' for one, number in sorted(brokers.items(), key=str)], _NAMED)})"


def _listed(brokers: Iterable[str | int]) -> str:
    return ", ".join(map(str, brokers)) or "(none)"


def _first(lines: Iterable[str]) -> tuple[str, ...]:
    every = [*lines]
    more = (f"and {counted(len(every) - MOST_ROWS, 'more change')}: rackwise proposals -o json",)
    return (*every[:MOST_ROWS], *(more if len(every) > MOST_ROWS else ()))
