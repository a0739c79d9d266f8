"""Judgement of a rebalance trigger: predicted moves against those seen in later looks. Pure.

A trigger is judged once its group is stable in a newer generation and every item that was held is held again (a
cooperative protocol leaves a moving partition without owner for one round). Invariants: what cannot be compared is not
judged right; members that joined or left make it `OVERTAKEN`; every trigger is closed in the end, also one whose sender
died.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from zlib import crc32

from agent.decode.members import decode_cooperative_sticky, decode_sticky, decode_subscription
from agent.decode.streams_user_data import decode_subscription_info
from agent.decode.values import StreamsSubscription, StreamsSubscriptionHeader, Undecodable
from agent.journal.entries import JournalState, JournalWrite
from agent.journal.triggers import (
    ItemMove,
    LearnedGroup,
    TriggerEffect,
    TriggerEntry,
    TriggerExpectation,
    TriggerJudgement,
    TriggerVerdict,
    judged,
    learned,
    learned_groups,
    learned_of,
    open_triggers,
    trigger_cleanup,
)
from agent.values.kafka import CONSUMER_PROTOCOL_TYPE, COOPERATIVE_STICKY, STABLE, STICKY, STREAMS_PROTOCOL
from agent.values.memory import Memory
from agent.values.number_format import counted, lasted
from agent.values.observation import RawClassicGroup, RawMember
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.snapshot import (
    CLASSIC_KINDS,
    ConsumerGroup,
    Group,
    GroupKind,
    OtherGroup,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    TaskRole,
)
from assignors.problem import TopicPartition


class GroupView(NamedTuple):
    """A group as far as a trigger is concerned."""

    group_id: str
    kind: GroupKind | None
    """None for a raw group that shows nothing of its members now."""
    state: str
    assignor: str | None
    members: frozenset[str]
    """Member ids."""
    static: tuple[str, ...]
    """Group instance ids."""
    generations: frozenset[int]
    """Generations in which the members were before they joined; newcomers have none."""
    versions: frozenset[int]
    """Versions of the Streams members' metadata; more than one while an application is rolled."""
    unreadable: tuple[str, ...]
    """Client id and reason of each member whose bytes cannot be read."""

    @property
    def generation(self) -> int | None:
        """The highest generation that a member sent; each rebalance raises it by one."""
        return max(self.generations, default=None)


def group_view(group: Group | None) -> GroupView | None:
    """The view of a group of a snapshot; None for a group that is not there."""
    if group is None:
        return None
    if isinstance(group, OtherGroup):
        nothing: frozenset[int] = frozenset()
        return GroupView(group.id, group.kind, group.state or "", None, frozenset(), (), nothing, nothing, ())
    return GroupView(
        group.id,
        group.kind,
        "hidden" if group.hidden and group.state == STABLE else group.state,
        group.assignor,
        frozenset(member.id for member in group.members),
        tuple(sorted(member.instance_id for member in group.members if member.instance_id is not None)),
        frozenset(member.generation for member in group.members if member.generation is not None),
        frozenset(group.metadata_versions) if isinstance(group, StreamsGroup) else frozenset(),
        tuple(
            f"{member.client_id}: {defect.sentence}" for member in group.members for defect in member.defects[:1]
        ),
    )  # fmt: skip


def raw_group_view(group: RawClassicGroup) -> GroupView:
    """The view of a group that was described this moment."""
    decoded = [_decoded(member, group.protocol) for member in group.members] if group.state == STABLE else []
    streams = group.protocol == STREAMS_PROTOCOL
    kind = GroupKind.CLASSIC_STREAMS if streams else GroupKind.CLASSIC_CONSUMER
    if group.protocol_type not in (CONSUMER_PROTOCOL_TYPE, ""):
        kind = GroupKind.OTHER
    return GroupView(
        group.group_id,
        kind,
        group.state,
        group.protocol or None,
        frozenset(member.member_id for member in group.members),
        tuple(sorted(member.instance_id for member in group.members if member.instance_id is not None)),
        frozenset(one.generation for one in decoded if one.generation is not None),
        frozenset(one.version for one in decoded if one.version is not None),
        tuple(one.unreadable for one in decoded if one.unreadable is not None),
    )


class _DecodedMember(NamedTuple):
    """Decoded bytes of one member."""

    generation: int | None = None
    version: int | None = None
    unreadable: str | None = None


def _decoded(member: RawMember, protocol: str) -> _DecodedMember:
    subscription = decode_subscription(member.metadata)
    if isinstance(subscription, Undecodable):
        return _DecodedMember(unreadable=f"{member.client_id}: {subscription.sentence}")
    generation, data = subscription.generation, subscription.user_data
    if protocol == STREAMS_PROTOCOL:
        info = decode_subscription_info(data or b"")
        if isinstance(info, StreamsSubscription | StreamsSubscriptionHeader):
            return _DecodedMember(generation, info.version)
        return _DecodedMember(generation, unreadable=f"{member.client_id}: {info.sentence}")
    if protocol in (STICKY, COOPERATIVE_STICKY) and data:
        read = decode_sticky(data) if protocol == STICKY else decode_cooperative_sticky(data)
        if isinstance(read, Undecodable):
            return _DecodedMember(generation, unreadable=f"{member.client_id}: {read.sentence}")
        generation = generation if generation is not None else read.generation
    return _DecodedMember(generation)


# Streams' transactional ids are ``<application>-<process>-<thread>`` (before KIP-447 ``<application>-<task>``). Other
# clients' transactions that commit a group's offsets include its ``__consumer_offsets`` partition, which groups share.

_OF_STREAMS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-\d+|\d+_\d+")


def transactions_of(
    group_id: str,
    ids: Iterable[str],
    ongoing: Mapping[str, tuple[TopicPartition, ...]],
    offsets: TopicPartition,
    *,
    streams: bool,
) -> str | None:
    """What shows that the group's members write in transactions, as a clause; None where nothing does.

    ``ongoing`` holds the partitions of each ongoing transaction, ``offsets`` is the partition of the group's offsets.
    """
    if streams:
        own = sorted(name for name in ids if _is_of(group_id, name))
        if own:
            return f"the application writes in transactions, such as {own[0]}"
    touching = sorted(name for name, partitions in ongoing.items() if offsets in partitions)
    if touching:
        return f"the transaction {touching[0]} includes {offsets}, which holds the group's offsets"
    return None


def offsets_partition(group_id: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that holds a group's offsets: Java's hash of the name."""
    value = 0
    units = group_id.encode("utf-16-be", errors="surrogatepass")
    for at in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >= 1 << 31 else value
    # As Kafka: the smallest number has no absolute value, and counts as 0.
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def _is_of(application: str, transactional_id: str) -> bool:
    begin = f"{application}-"
    return transactional_id.startswith(begin) and _OF_STREAMS.fullmatch(transactional_id[len(begin) :]) is not None


ORPHAN_MS = 30_000
"""An intent without an outcome is taken for one whose sender died after this long."""
PATIENCE_MS = 60_000
"""A new generation is waited for this long; members notice within a heartbeat interval, 3 s by default."""
JUDGE_WITHIN_MS = 600_000
"""After this long a trigger is closed as it is."""
MOST_CHARACTERS = 200_000
"""Groups with more names of items than that are judged by their generation alone: an entry has at most 900 kB."""
_EXAMPLES = 20
_CLOSED = frozenset((TriggerEffect.NOTHING, TriggerEffect.REFUSED, TriggerEffect.NOT_SENT))
"""Effects after which nothing is to be expected."""

ItemOwners = Mapping[str, tuple[str, ...]]
"""Reader -> partitions or tasks."""


def expected(proposal: Proposal, group: Group | None) -> TriggerExpectation:
    """The group's current items and the proposal's moves, as the journal keeps them."""
    owners = _owners(group)
    items = sum(len(held) for held in owners.values())
    now = group_view(group)
    moves = _predicted(proposal)
    characters = sum(len(reader) + sum(map(len, held)) for reader, held in owners.items())
    characters += sum(len(move.item) + len(move.source or "") + len(move.target) for move in moves)
    small = characters <= MOST_CHARACTERS
    return TriggerExpectation(
        generation=None if now is None else now.generation,
        readers=tuple(sorted(owners)),
        holds=owners if small else {},
        moves=moves if small else (),
        items=items,
        gain=proposal.sentence,
    )


def judge(view: JournalState, snapshot: Snapshot) -> tuple[JournalWrite, ...]:
    """Judgements of open triggers by this look, and deletions of old ones."""
    writes = []
    for entry in open_triggers(view):
        judgement = judge_one(entry, snapshot)
        if judgement is not None:
            writes.append(judged(entry, judgement))
    return (*writes, *trigger_cleanup(view, snapshot.taken_ms))


def judge_one(entry: TriggerEntry, snapshot: Snapshot) -> TriggerJudgement | None:
    """The verdict on one trigger; None while it is too early."""
    now_ms = snapshot.taken_ms
    age_ms = now_ms - (entry.acted_ms or entry.intended_ms)
    if entry.effect in _CLOSED:
        return TriggerJudgement(TriggerVerdict.NOT_DONE, now_ms, entry.sentence or "no rebalance was requested")
    if age_ms < 0 or (entry.effect is None and age_ms < ORPHAN_MS):
        return None
    sent = "" if entry.effect is not None else "; the agent ended before it recorded whether it had asked"
    judged = _look(entry, snapshot.groups.get(entry.group_id), age_ms)
    if judged is None:
        if age_ms < JUDGE_WITHIN_MS:
            return None
        judged = _Judgement(TriggerVerdict.CANNOT_TELL, f"no judgement was possible within {lasted(JUDGE_WITHIN_MS)}")
    return TriggerJudgement(
        verdict=judged.verdict,
        at_ms=now_ms,
        sentence=judged.sentence + sent,
        rebalances=judged.rebalances,
        came=judged.came,
        beyond=judged.beyond[:_EXAMPLES],
        beyond_count=len(judged.beyond),
    )


class _Judgement(NamedTuple):
    """A verdict before it has a time."""

    verdict: TriggerVerdict
    sentence: str
    rebalances: int | None = None
    came: int = 0
    beyond: tuple[str, ...] = ()


def _look(entry: TriggerEntry, group: Group | None, age_ms: int) -> _Judgement | None:
    """Judgement by the group as it is now; None while it is moving or hidden."""
    if not isinstance(group, ReaderGroup) or group.hidden or group.state != STABLE:
        return None
    now = group_view(group)
    rebalances = None
    if entry.expected.generation is not None and now is not None and now.generation is not None:
        rebalances = now.generation - entry.expected.generation
        if rebalances <= 0:
            patience = f"no new generation was seen within {PATIENCE_MS // 1000} s"
            return _Judgement(TriggerVerdict.NO_REBALANCE, patience, 0) if age_ms >= PATIENCE_MS else None
    owners = _owners(group)
    if tuple(sorted(owners)) != entry.expected.readers:
        sentence = "members joined or left since, so its effect cannot be separated from theirs"
        return _Judgement(TriggerVerdict.OVERTAKEN, sentence, rebalances)
    if not entry.expected.holds:
        sentence = f"{_rounds(rebalances)}; too many items to compare: {entry.expected.items:,}"
        return _Judgement(TriggerVerdict.CANNOT_TELL, sentence, rebalances)
    return _compare(entry.expected, owners, _waiting(group), rebalances)


def _compare(
    was: TriggerExpectation, owners: ItemOwners, waiting: set[tuple[str, str]], rebalances: int | None
) -> _Judgement | None:
    before, now = _by_item(was.holds), _by_item(owners)
    if set(before) - set(now):
        return None  # something is still being handed over
    wanted = {(move.item, move.target) for move in was.moves}
    moved = {(item, reader) for item, reader in now.items() if item in before and before[item] != reader}
    came = wanted & {(item, reader) for item, reader in now.items()}
    on_the_way = (wanted - came) & {(item, reader) for reader, item in waiting}
    beyond = tuple(sorted(item for item, _ in moved - wanted))
    sentence = (
        f"{len(came)} of {counted(len(wanted), 'predicted move')} happened"
        f"{f', {len(on_the_way)} warm up' if on_the_way else ''}; {_others(len(beyond))}; "
        f"{_rounds(rebalances)}"
    )
    return _Judgement(_verdict(len(wanted), len(came), beyond, len(moved)), sentence, rebalances, len(came), beyond)


def _others(number: int) -> str:
    """Partitions or tasks that changed their reader though nothing predicted it."""
    if not number:
        return "no other partition or task moved"
    return f"{counted(number, 'other partition or task', 'other partitions or tasks')} moved"


def _verdict(wanted: int, came: int, beyond: tuple[str, ...], moved: int) -> TriggerVerdict:
    if came == wanted and not beyond:
        return TriggerVerdict.AS_PREDICTED
    if not moved:
        return TriggerVerdict.NO_EFFECT
    return TriggerVerdict.OTHERWISE if beyond or not came else TriggerVerdict.PARTLY


def _rounds(rebalances: int | None) -> str:
    if rebalances is None:
        return "its members report no generation"
    return f"{counted(rebalances, 'rebalance')} since the trigger"


def _predicted(proposal: Proposal) -> tuple[ItemMove, ...]:
    """The moves of a proposal by partition or task; of a task that two processes may take over, the first counts."""
    if proposal.reason is ProposalReason.WARMUP_PROMOTABLE:
        moves: dict[str, ItemMove] = {}
        for move in proposal.moves:
            if move.target is not None:
                moves.setdefault(move.subject, ItemMove(move.subject, move.source, move.target))
        return tuple(moves[item] for item in sorted(moves))
    before = _by_item({row.key: tuple(map(str, row.value)) for row in proposal.before})
    after = _by_item({row.key: tuple(map(str, row.value)) for row in proposal.after})
    changed = sorted(item for item, reader in after.items() if before.get(item) != reader)
    return tuple(ItemMove(item, before.get(item), after[item]) for item in changed)


def _owners(group: Group | None) -> ItemOwners:
    match group:
        case ConsumerGroup():
            return {member.id: tuple(map(str, sorted(member.assigned or ()))) for member in group.members}
        case StreamsGroup():
            return {process.id: tuple(map(str, process.active)) for process in group.processes}
    return {}


def _waiting(group: ReaderGroup) -> set[tuple[str, str]]:
    """(process, task) of every copy that is not active."""
    if isinstance(group, ConsumerGroup):
        return set()
    return {(process.id, str(task)) for process in group.processes for task in (*process.standby, *process.warmup)}


def _by_item(owners: ItemOwners) -> dict[str, str]:
    return {item: reader for reader, held in owners.items() for item in held}


# Only groups with a proposed trigger are followed, and only changes are written. Looks see slow rebalances only, and of
# these a lower bound.

KEPT_REBALANCES = 20
LEAST_MS = 1_000
"""Shorter rebalances teach nothing."""


def learn(
    view: JournalState, snapshot: Snapshot, memory: Memory, proposals: Sequence[Proposal]
) -> tuple[JournalWrite, ...]:
    """What this look adds; ``memory`` is that of the look before, and ``proposals`` are those of this cycle."""
    writes: list[JournalWrite] = []
    for group_id in sorted(_followed(view, snapshot, proposals)):
        known = learned_of(view, group_id) or LearnedGroup(group_id=group_id)
        now = _seen(known, snapshot, memory)
        if now != known:
            writes.append(learned(now))
    gone = [row for row in learned_groups(view) if row.group_id in snapshot.vanished_groups]
    return (*writes, *(learned(row)._replace(kind="forgotten", value=None) for row in gone))


def transactional(known: LearnedGroup | None, group_id: str, how: str) -> JournalWrite:
    """Transactions of a group's members were seen."""
    return learned(replace(known or LearnedGroup(group_id=group_id), transactional=True, transactional_how=how))


def _followed(view: JournalState, snapshot: Snapshot, proposals: Iterable[Proposal]) -> set[str]:
    """Groups with a trigger proposal, applications with warm-ups, and those that are followed already."""
    names = {one.subject.name for one in proposals if one.kind is ProposalKind.TRIGGER}
    names.update(
        name for name, copies in snapshot.copies.items() if any(copy.role is TaskRole.WARMUP for copy in copies)
    )  # fmt: skip
    names.update(row.group_id for row in learned_groups(view))
    groups = ((name, snapshot.groups.get(name)) for name in names)
    return {
        name for name, group in groups if isinstance(group, ReaderGroup) and group.kind in CLASSIC_KINDS
    }  # fmt: skip


def _seen(known: LearnedGroup, snapshot: Snapshot, memory: Memory) -> LearnedGroup:
    group = snapshot.groups[known.group_id]
    if not isinstance(group, ReaderGroup) or group.state != STABLE or group.hidden:
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
