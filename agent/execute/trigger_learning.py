"""What do looks teach of the groups that may be triggered? Who came and went, and how long rebalances last. Pure.

Only groups with a proposed trigger are followed, and something is written only when it changed: a quiet
group costs no entry. A look every few seconds sees only slow rebalances, and of these a lower bound; those are the ones
that matter. Transactions are learned where they are asked for, right before a trigger (`agent.act.trigger`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from zlib import crc32

from agent.journal.triggers import LearnedGroup, learned, learned_groups, learned_of
from agent.values.journal import View, Write
from agent.values.kafka import STABLE
from agent.values.memory import Memory
from agent.values.proposal import Proposal, ProposalKind
from agent.values.snapshot import ConsumerGroup, GroupKind, Role, Snapshot, StreamsGroup

KEPT_REBALANCES = 20
LEAST_MS = 1_000
"""Shorter rebalances teach nothing."""
CLASSIC = frozenset((GroupKind.CLASSIC_CONSUMER, GroupKind.CLASSIC_STREAMS))


def learn(view: View, snapshot: Snapshot, memory: Memory, proposals: Sequence[Proposal]) -> tuple[Write, ...]:
    """What this look adds; ``memory`` is that of the look before, and ``proposals`` are those of this cycle."""
    writes: list[Write] = []
    for group_id in sorted(_followed(view, snapshot, proposals)):
        known = learned_of(view, group_id) or LearnedGroup(group_id=group_id)
        now = _seen(known, snapshot, memory)
        if now != known:
            writes.append(learned(now))
    gone = [row for row in learned_groups(view) if row.group_id in snapshot.vanished_groups]
    return (*writes, *(learned(row)._replace(kind="forgotten", value=None) for row in gone))


def transactional(known: LearnedGroup | None, group_id: str, how: str) -> Write:
    """Transactions of a group's members were seen."""
    before = known or LearnedGroup(group_id=group_id)
    return learned(replace(before, transactional=True, transactional_how=how))


def _followed(view: View, snapshot: Snapshot, proposals: Iterable[Proposal]) -> set[str]:
    """Groups with a trigger proposal, applications with warm-ups, and those that are followed already."""
    names = {one.subject.name for one in proposals if one.kind is ProposalKind.TRIGGER}
    names.update(
        name for name, copies in snapshot.copies.items() if any(copy.role is Role.WARMUP for copy in copies)
    )  # fmt: skip
    names.update(row.group_id for row in learned_groups(view))
    groups = ((name, snapshot.groups.get(name)) for name in names)
    return {
        name for name, group in groups if isinstance(group, ConsumerGroup | StreamsGroup) and group.kind in CLASSIC
    }  # fmt: skip


def _seen(known: LearnedGroup, snapshot: Snapshot, memory: Memory) -> LearnedGroup:
    group = snapshot.groups[known.group_id]
    if not isinstance(group, ConsumerGroup | StreamsGroup) or group.state != STABLE or group.hidden:
        return known
    members = tuple(sorted(crc32(member.id.encode(errors="surrogatepass")) for member in group.members))
    if members != known.members:
        before, now = set(known.members), set(members)
        first = not known.members
        known = replace(
            known,
            members=members,
            came_ms=snapshot.taken_ms if now - before and not first else known.came_ms,
            went_ms=snapshot.taken_ms if before - now else known.went_ms,
        )
    since = memory.rebalancing.get(known.group_id)
    if since is not None and memory.monotonic_ms - since >= LEAST_MS:
        lasted = (*known.slow_rebalances_ms, memory.monotonic_ms - since)
        known = replace(known, slow_rebalances_ms=lasted[-KEPT_REBALANCES:])
    return known
