"""Refusals of a rebalance trigger for a classic group, each with its reason and source. Pure.

Order: from what would interrupt work to what is only impolite; the first reason is the answer. Sources: what the
brokers show (`GroupView`), and settings or earlier rebalances. Unknown transactions refuse plain consumers but not
Streams, whose transactional ids begin with the application id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from agent.execute.trigger_judgement import GroupView, group_view
from agent.journal.entries import JournalState
from agent.journal.triggers import LearnedGroup, acted_at, learned_of, open_triggers
from agent.values.kafka import COOPERATIVE_ASSIGNORS, EAGER_ASSIGNORS, MEMBERLESS_STATES, STABLE
from agent.values.limits import GroupTriggerLimits, Limits, TriState
from agent.values.memory import Memory
from agent.values.number_format import counted
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.snapshot import CLASSIC_KINDS, GroupKind, ReaderGroup, Snapshot, topics_of

OPEN_MS = 60_000
"""A trigger that was not judged yet blocks the next one of its group for this long."""
_SLOW_REBALANCES = 3
"""So many of the last slow rebalances are looked at."""
_NO_MOVES: Mapping[str, int] = MappingProxyType({})
_LIBRDKAFKA = "librdkafka"


class RefusalReason(StrEnum):
    """Why a group is not triggered."""

    NOT_CLASSIC = "brokers assign its partitions, so it cannot be triggered"
    GONE = "the group does not exist"
    EMPTY = "the group has no members"
    NOT_STABLE = "the group is rebalancing"
    UNREADABLE = "the subscription of a member cannot be read"
    UNKNOWN_ASSIGNOR = "the behaviour of its assignor in a rebalance is unknown"
    EAGER = "its members give up every partition in a rebalance"
    STATIC = "it has static members, which must not be rebalanced"
    ROLLING = "its members are being restarted one after the other"
    MIXED_GENERATIONS = "its members come from different generations"
    LONG_POLL = "its members may take long between two polls"
    TRANSACTIONAL = "its members may be writing in transactions"
    OWN_REBALANCE = "it is about to rebalance by itself"
    UNJUDGED = "the effect of its last trigger is not known yet"
    COOLING_DOWN = "the cooldown since its last trigger has not ended"


_LASTING = frozenset(
    {
        RefusalReason.NOT_CLASSIC,
        RefusalReason.GONE,
        RefusalReason.UNREADABLE,
        RefusalReason.UNKNOWN_ASSIGNOR,
        RefusalReason.EAGER,
        RefusalReason.STATIC,
        RefusalReason.LONG_POLL,
        RefusalReason.TRANSACTIONAL,
    }
)
"""Only a setting, or the owner's change of the group, ends these; the others pass."""


class RefusalSource(StrEnum):
    """How the reason of a refusal is known."""

    WIRE = "seen on the wire"
    JOURNAL = "known from the journal"
    SETTING = "set by"
    NO_SETTING = "not set by"
    LEARNED = "learned from"


class RefusalCause(NamedTuple):
    """Why a group is not triggered now, or at all."""

    reason: RefusalReason
    sentence: str
    source: RefusalSource
    of: str = ""
    """The setting, or what it is learned from; empty for the wire and the journal."""
    until_ms: int | None = None
    """Epoch milliseconds when it may be asked again; None when unknown."""

    @property
    def known_by(self) -> str:
        """The source as a clause, such as ``set by trigger.rolling``."""
        return f"{self.source.value} {self.of}" if self.of else self.source.value

    @property
    def lasting(self) -> bool:
        """True where only a setting, or the owner's change of the group, ends it."""
        return self.reason in _LASTING or self.source is RefusalSource.SETTING


def refusal(
    proposal: Proposal,
    snapshot: Snapshot,
    memory: Memory,
    view: JournalState,
    limits: Limits,
    *,
    moved: Mapping[str, int] = _NO_MOVES,
) -> RefusalCause | None:
    """Why the group of a trigger proposal is not to be triggered; None when it may be.

    ``moved`` holds the topics whose replicas rackwise itself moved lately: topic -> epoch milliseconds of the end.
    """
    if proposal.kind is not ProposalKind.TRIGGER:
        return None
    group_id = proposal.subject.name
    allowed = limits.trigger_of(group_id)
    group = snapshot.groups.get(group_id)
    description = group_view(group)
    learned = learned_of(view, group_id)
    why = description_refusal(description, allowed)
    if why is None and isinstance(group, ReaderGroup):
        now = _Now(proposal, group, description, snapshot, memory, view, limits, allowed, learned, moved)
        return next((found for check in _CHECKS if (found := check(now)) is not None), None)
    return why


def description_refusal(description: GroupView | None, allowed: GroupTriggerLimits) -> RefusalCause | None:
    """Refusal by a description of the group alone; None when that shows no reason."""
    if description is None:
        return RefusalCause(RefusalReason.GONE, "the coordinator does not know the group", RefusalSource.WIRE)
    if description.kind is not None and description.kind not in CLASSIC_KINDS:
        return RefusalCause(
            RefusalReason.NOT_CLASSIC,
            f"group {description.group_id} is a {description.kind.value} group",
            RefusalSource.WIRE,
        )
    if description.state in MEMBERLESS_STATES:
        return RefusalCause(
            RefusalReason.EMPTY, f"group {description.group_id} is {description.state}", RefusalSource.WIRE
        )
    if description.state != STABLE:
        return RefusalCause(
            RefusalReason.NOT_STABLE,
            f"group {description.group_id} is {description.state}, not Stable",
            RefusalSource.WIRE,
        )
    return _by_members(description, allowed)


def _by_members(description: GroupView, allowed: GroupTriggerLimits) -> RefusalCause | None:
    if not description.members:
        return RefusalCause(RefusalReason.EMPTY, f"group {description.group_id} has no members", RefusalSource.WIRE)
    if description.unreadable:
        sentence = (
            f"the bytes of {counted(len(description.unreadable), 'member')} cannot be read: {description.unreadable[0]}"
        )
        return RefusalCause(RefusalReason.UNREADABLE, sentence, RefusalSource.WIRE)
    if description.assignor in EAGER_ASSIGNORS and not allowed.allow_eager:
        sentence = f"under {description.assignor} every member gives up all its partitions in a rebalance"
        return RefusalCause(RefusalReason.EAGER, sentence, RefusalSource.WIRE)
    if description.assignor not in EAGER_ASSIGNORS | COOPERATIVE_ASSIGNORS:
        sentence = f"its protocol is {description.assignor or 'hidden'}, which is not one of Kafka's"
        return RefusalCause(RefusalReason.UNKNOWN_ASSIGNOR, sentence, RefusalSource.WIRE)
    return _by_history(description, allowed)


def _by_history(description: GroupView, allowed: GroupTriggerLimits) -> RefusalCause | None:
    if description.static and not allowed.allow_static:
        sentence = f"{counted(len(description.static), 'static member')}, such as {description.static[0]}"
        return RefusalCause(RefusalReason.STATIC, sentence, RefusalSource.WIRE)
    if len(description.versions) > 1 and not allowed.allow_rolling and allowed.rolling is not TriState.NO:
        versions = ", ".join(map(str, sorted(description.versions)))
        return RefusalCause(
            RefusalReason.ROLLING, f"its members send metadata of the versions {versions}", RefusalSource.WIRE
        )
    if len(description.generations) > 1:
        generations = ", ".join(map(str, sorted(description.generations)))
        sentence = f"its members joined the last rebalance from generations {generations}"
        return RefusalCause(RefusalReason.MIXED_GENERATIONS, sentence, RefusalSource.WIRE)
    return None


class _Now(NamedTuple):
    """What the checks look at."""

    proposal: Proposal
    group: ReaderGroup
    description: GroupView | None
    snapshot: Snapshot
    memory: Memory
    view: JournalState
    limits: Limits
    allowed: GroupTriggerLimits
    learned: LearnedGroup | None
    moved: Mapping[str, int]


def _rolling(now: _Now) -> RefusalCause | None:
    if now.allowed.allow_rolling or now.allowed.rolling is TriState.NO:
        return None
    if now.allowed.rolling is TriState.YES:
        return RefusalCause(
            RefusalReason.ROLLING, "its members are being restarted", RefusalSource.SETTING, "trigger.rolling"
        )
    if now.learned is None:
        return None
    came, went = now.learned.came_ms, now.learned.went_ms
    # A promotion follows a member that joined by its nature; only one that joined where another left was restarted.
    promotion = now.proposal.reason is ProposalReason.WARMUP_PROMOTABLE
    times = [at for at in (came, went) if at is not None]
    if not times or (promotion and len(times) < 2):
        return None
    since = min(times) if promotion else max(times)
    until = since + now.allowed.rolling_window_ms
    if since > now.snapshot.taken_ms or now.snapshot.taken_ms >= until:
        return None
    what = "members left and others joined" if came is not None and went is not None else _came_or_went(came)
    sentence = f"{what} within the last {(now.snapshot.taken_ms - since) / 1000:.0f} s"
    return RefusalCause(RefusalReason.ROLLING, sentence, RefusalSource.LEARNED, "the last looks", until)


def _came_or_went(came: int | None) -> str:
    return "members left" if came is None else "members joined"


def _long_poll(now: _Now) -> RefusalCause | None:
    if now.allowed.allow_long_poll or now.allowed.long_poll is TriState.NO:
        return None
    if now.allowed.long_poll is TriState.YES:
        sentence = "its members take long between two polls, and a rebalance waits for the slowest"
        return RefusalCause(RefusalReason.LONG_POLL, sentence, RefusalSource.SETTING, "trigger.long_poll")
    slow = () if now.learned is None else now.learned.slow_rebalances_ms[-_SLOW_REBALANCES:]
    longest = max(slow, default=0)
    if longest <= now.allowed.long_poll_ms:
        return None
    sentence = (
        f"one of its last rebalances lasted {longest / 1000:.0f} s or more, and a rebalance waits for the slowest"
    )
    return RefusalCause(RefusalReason.LONG_POLL, sentence, RefusalSource.LEARNED, counted(len(slow), "slow rebalance"))


def _transactional(now: _Now) -> RefusalCause | None:
    if now.allowed.allow_transactional or now.allowed.transactional is TriState.NO:
        return None
    if now.allowed.transactional is TriState.YES:
        sentence = "its members write in transactions"
        return RefusalCause(RefusalReason.TRANSACTIONAL, sentence, RefusalSource.SETTING, "trigger.transactional")
    if now.learned is not None and now.learned.transactional:
        return RefusalCause(
            RefusalReason.TRANSACTIONAL, now.learned.transactional_how, RefusalSource.LEARNED, "ListTransactions"
        )
    if now.group.kind is GroupKind.CLASSIC_STREAMS:
        return None
    sentence = "it is unknown whether its members write in transactions, and for plain consumers that counts as yes"
    return RefusalCause(RefusalReason.TRANSACTIONAL, sentence, RefusalSource.NO_SETTING, "trigger.transactional")


def _own_rebalance(now: _Now) -> RefusalCause | None:
    """A Java leader that sends its rack rebalances its group by itself once its metadata shows new replica racks."""
    wait_ms = now.limits.trigger.own_rebalance_wait_ms
    if now.proposal.reason is not ProposalReason.REBALANCE_IMPROVES or not _rejoins_by_itself(now):
        return None
    topics = set(topics_of(now.group))
    changed = {topic: now.snapshot.taken_ms - at for topic, at in now.moved.items() if topic in topics}
    for change in now.memory.changes:
        if isinstance(change.subject, int):
            hit = _holds_replicas(change.subject, topics, now.snapshot)
        else:
            hit = change.subject in topics
        if hit:
            what, ago = str(change.subject), now.snapshot.monotonic_ms - change.seen_ms
            changed[what] = min(ago, changed.get(what, ago))
    if not changed:
        return None
    ago, what = min((ago, what) for what, ago in changed.items())
    if ago >= wait_ms:
        return None
    sentence = (
        f"the racks of {what} changed {max(0, ago) / 1000:.0f} s ago; within metadata.max.age.ms "
        f"({wait_ms / 1000:.0f} s) the group notices that and rebalances by itself"
    )
    return RefusalCause(
        RefusalReason.OWN_REBALANCE,
        sentence,
        RefusalSource.WIRE,
        until_ms=now.snapshot.taken_ms + wait_ms - max(0, ago),
    )


def _rejoins_by_itself(now: _Now) -> bool:
    """Whether its leader may be a Java client that sends its rack; any member may be the leader."""
    named = (now.limits.group(now.group.id).client_software_name or "").lower()
    return named != _LIBRDKAFKA and any(member.rack.rack_id is not None for member in now.group.members)


def _holds_replicas(broker: int, topics: set[str], snapshot: Snapshot) -> bool:
    states = (state for name in topics if name in snapshot.topics for state in snapshot.topics[name].partitions)
    return any(broker in state.replicas for state in states)


def _unjudged(now: _Now) -> RefusalCause | None:
    open_ms = [one.acted_ms or one.intended_ms for one in open_triggers(now.view, now.group.id)]
    until = max(open_ms, default=0) + OPEN_MS
    if not open_ms or now.snapshot.taken_ms >= until:
        return None
    ago_s = max(0, now.snapshot.taken_ms - max(open_ms)) / 1000
    sentence = f"the trigger of {ago_s:.0f} s ago has not been judged yet"
    return RefusalCause(RefusalReason.UNJUDGED, sentence, RefusalSource.JOURNAL, until_ms=until)


def _cooling_down(now: _Now) -> RefusalCause | None:
    promotion = now.proposal.reason is ProposalReason.WARMUP_PROMOTABLE
    cooldown_ms = now.limits.probing.floor_ms if promotion else now.limits.proposals.trigger_cooldown_ms
    last = max(acted_at(now.view, now.group.id), default=None)
    if last is None or now.snapshot.taken_ms >= last + cooldown_ms:
        return None
    ago_s = max(0, now.snapshot.taken_ms - last) / 1000
    sentence = f"its last trigger was {ago_s:.0f} s ago, and the cooldown is {cooldown_ms / 1000:.0f} s"
    return RefusalCause(RefusalReason.COOLING_DOWN, sentence, RefusalSource.JOURNAL, until_ms=last + cooldown_ms)


_CHECKS: tuple[Callable[[_Now], RefusalCause | None], ...] = (
    _rolling,
    _long_poll,
    _transactional,
    _own_rebalance,
    _unjudged,
    _cooling_down,
)
"""Gravest first, after what the wire shows."""
