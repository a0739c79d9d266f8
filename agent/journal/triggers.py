"""Journal entries of rebalance triggers, and what was learned from them. Pure.

====================================  =================================================================================
``trigger/<group>/<proposal>``        one trigger: ``intent`` before the join, ``outcome`` after it, ``judged`` later
``learned/trigger-path/<release>``    the trigger path that makes a broker release rebalance
``learned/group/<group>``             joins and leaves, rebalance durations and transactions of a group
====================================  =================================================================================

A judged entry keeps only its verdict. Group names may contain a slash: values name the group, keys are not parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from agent.journal.entries import Entry, JournalState, JournalWrite, read_value, read_values, under
from agent.values.typed_json import to_json

TRIGGERS = "trigger"
PATHS = "learned/trigger-path"
GROUPS = "learned/group"
DAY_MS = 86_400_000
"""The longest that a budget looks back."""
KEPT = 1_000
"""Judged triggers that stay, the newest, and all that were sent within a day, which the budget of a day counts."""
KEPT_TIMES = 100
"""Earlier triggers of the same proposal that stay in its entry, and all of the day before it..."""
MOST_TIMES = 1_000
"""...up to the largest budget of a day."""
_HARMLESS = ("NOT_SENT", "REFUSED")
"""Effects, as they are written, after which no request was sent."""


class TriggerPath(StrEnum):
    """Requests that make a group rebalance without a new member in it."""

    PENDING_LEAVE = "pending leave"
    """Ask for a member id and give it back: the coordinator of Kafka 4 rebalances, and no member has joined."""
    PHANTOM_JOIN = "phantom join"
    """Join, and leave before the group has assembled: for coordinators that ignore the former."""


class TriggerEffect(StrEnum):
    """Effect of a trigger's request, as the coordinator shows it right after."""

    REBALANCING = "the group began to rebalance"
    NOTHING = "the group stayed stable"
    REFUSED = "the coordinator refused"
    NOT_SENT = "no request was sent"
    UNKNOWN = "its effect could not be observed"


class TriggerVerdict(StrEnum):
    """Verdict on a trigger by later looks."""

    AS_PREDICTED = "as predicted"
    PARTLY = "some of the predicted moves happened"
    OTHERWISE = "other moves than predicted happened"
    NO_EFFECT = "nothing moved"
    NO_REBALANCE = "no new generation was seen"
    OVERTAKEN = "members joined or left since, so its effect is unknown"
    CANNOT_TELL = "its effect could not be observed in time"
    NOT_DONE = "no rebalance was requested"


class ItemMove(NamedTuple):
    """A partition or task that changes hands."""

    item: str
    """``topic-0`` of a consumer group, ``0_1`` of an application."""
    source: str | None
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerExpectation:
    """Assignment before a trigger, and the moves that it is predicted to bring."""

    generation: int | None
    """The highest generation that a member sent; each rebalance raises it by one. None where no member sent one."""
    readers: tuple[str, ...]
    """Members of a consumer group, processes of an application."""
    holds: Mapping[str, tuple[str, ...]]
    """Reader -> items; empty once judged, and for groups with too many."""
    moves: tuple[ItemMove, ...]
    items: int
    """Number of all partitions or tasks of the group."""
    gain: str = ""
    """Its gain and its cost, as in the proposal."""


class TriggerJudgement(NamedTuple):
    """Judgement of a trigger."""

    verdict: TriggerVerdict
    at_ms: int
    sentence: str
    rebalances: int | None = None
    """Generations since; None where they could not be counted."""
    came: int = 0
    """Predicted moves that came."""
    beyond: tuple[str, ...] = ()
    """Items that were taken from their reader beyond the predicted ones; the first few."""
    beyond_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerEntry:
    """One trigger from its intent to its judgement."""

    group_id: str
    proposal_id: str
    reason: str
    """Name of the `ProposalReason`."""
    intended_ms: int
    """Epoch milliseconds."""
    expected: TriggerExpectation
    earlier_ms: tuple[int, ...] = ()
    """Epoch milliseconds of earlier triggers of the same proposal."""
    path: TriggerPath | None = None
    effect: TriggerEffect | None = None
    acted_ms: int | None = None
    sentence: str = ""
    """Outcome of the request, as a sentence."""
    judgement: TriggerJudgement | None = None

    @property
    def open(self) -> bool:
        """True until it is judged."""
        return self.judgement is None

    @property
    def times_ms(self) -> tuple[int, ...]:
        """When this proposal was acted upon, or was about to be; oldest first."""
        return (*self.earlier_ms, self.intended_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedGroup:
    """Facts learned about a group from looks and triggers; None is unknown."""

    group_id: str
    members: tuple[int, ...] = ()
    """Digests of the member ids of the last look that showed them, sorted."""
    came_ms: int | None = None
    """Epoch milliseconds of the last look that found a member that had not been there."""
    went_ms: int | None = None
    """...and of the last one that missed a member."""
    slow_rebalances_ms: tuple[int, ...] = field(default=())
    """Lower bounds of how long rebalances lasted that looks could see, the latest last."""
    transactional: bool | None = None
    """True once a transaction of its members was seen. Never False: what may not be seen looks the same as none."""
    transactional_how: str = ""


class LearnedPath(NamedTuple):
    """The `TriggerPath` that worked last at a broker's release."""

    path: TriggerPath
    at_ms: int


def with_earlier(entry: TriggerEntry, view: JournalState) -> TriggerEntry:
    """The same entry with the times of earlier ones under its key, which it is about to replace."""
    before = read_value(TriggerEntry, view.get(_key(entry)))
    if before is None:
        return entry
    asked = before.effect is None or before.effect.name not in _HARMLESS
    times = before.times_ms if asked else before.earlier_ms
    of_a_day = [at for at in times if entry.intended_ms - at < DAY_MS]
    return replace(entry, earlier_ms=max(times[-KEPT_TIMES:], tuple(of_a_day[-MOST_TIMES:]), key=len))


def intent(entry: TriggerEntry) -> JournalWrite:
    """The entry of an intended trigger; it is durable before the first request to the coordinator."""
    return JournalWrite(_key(entry), "intent", to_json(TriggerEntry, entry))


def outcome(entry: TriggerEntry) -> JournalWrite:
    """The journal write after the probe, with its effect."""
    return JournalWrite(_key(entry), "outcome", to_json(TriggerEntry, entry))


def judged(entry: TriggerEntry, judgement: TriggerJudgement) -> JournalWrite:
    """Its verdict; what was only needed to find it is left out from now on."""
    closed = replace(entry, judgement=judgement, expected=replace(entry.expected, holds={}, moves=()))
    return JournalWrite(_key(entry), "judged", to_json(TriggerEntry, closed))


def path_learned(release: str, path: TriggerPath, at_ms: int) -> JournalWrite:
    """That way of asking made a group of that release rebalance."""
    return JournalWrite(f"{PATHS}/{release}", "learned", to_json(LearnedPath, LearnedPath(path, at_ms)))


def learned(group: LearnedGroup) -> JournalWrite:
    """The journal write of what rackwise has learned of a group."""
    return JournalWrite(f"{GROUPS}/{group.group_id}", "learned", to_json(LearnedGroup, group))


def trigger_cleanup(view: JournalState, now_ms: int) -> tuple[JournalWrite, ...]:
    """Deletes the oldest judged triggers beyond `KEPT`; none that a budget still counts."""
    closed = [entry for entry in _rows(view) if entry.value.get("judgement") is not None]
    oldest = sorted(closed, key=lambda entry: (_whole(entry.value.get("intended_ms")), entry.key))
    old = oldest[: max(0, len(closed) - KEPT)]
    return tuple(
        JournalWrite(one.key, "forgotten", None) for one in old if all(now_ms - at >= DAY_MS for at in _asked(one))
    )


def triggers(view: JournalState, group_id: str | None = None) -> tuple[TriggerEntry, ...]:
    """All triggers, or those of one group, by the time of their intents."""
    return _read_all(_rows(view, group_id))


def open_triggers(view: JournalState, group_id: str | None = None) -> tuple[TriggerEntry, ...]:
    """Triggers without a judgement, by the time of their intents."""
    return _read_all(entry for entry in _rows(view, group_id) if entry.value.get("judgement") is None)


def acted_at(view: JournalState, group_id: str | None = None) -> tuple[int, ...]:
    """Epoch milliseconds of everything that was or may have been asked of groups, for budgets and cooldowns."""
    return tuple(sorted(at for entry in _rows(view, group_id) for at in _asked(entry)))


def path_at(view: JournalState, release: str) -> TriggerPath | None:
    """The path that worked last at that release; None when none is known."""
    found = read_value(LearnedPath, view.get(f"{PATHS}/{release}"))
    return None if found is None else found.path


def learned_of(view: JournalState, group_id: str) -> LearnedGroup | None:
    """What rackwise has learned of a group; None while that is nothing."""
    return read_value(LearnedGroup, view.get(f"{GROUPS}/{group_id}"))


def learned_groups(view: JournalState) -> Iterable[LearnedGroup]:
    """All groups of which something was learned."""
    return read_values(LearnedGroup, under(view, GROUPS))


def _key(entry: TriggerEntry) -> str:
    return f"{TRIGGERS}/{entry.group_id}/{entry.proposal_id}"


def _rows(view: JournalState, group_id: str | None = None) -> Iterator[Entry]:
    """Triggers as they were written, in no order."""
    begin = f"{TRIGGERS}/" if group_id is None else f"{TRIGGERS}/{group_id}/"
    for key, entry in view.items():
        if key.startswith(begin) and group_id in (None, entry.value.get("group_id")):
            yield entry


def _read_all(rows: Iterable[Entry]) -> tuple[TriggerEntry, ...]:
    return tuple(sorted(read_values(TriggerEntry, rows), key=lambda one: (one.intended_ms, one.proposal_id)))


def _asked(entry: Entry) -> list[int]:
    """When this was or may have been asked. Looked up for each proposal, so the few fields are read as they are."""
    earlier = entry.value.get("earlier_ms")
    times = [at for at in earlier if isinstance(at, int)] if isinstance(earlier, list) else []
    if entry.value.get("effect") not in _HARMLESS:
        times.append(_whole(entry.value.get("intended_ms")))
    return times


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
