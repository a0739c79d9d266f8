"""Leader entry of the journal (key ``leader``, first of each term), and corrections of times in the future.

Invariant: an epoch is greater than every earlier epoch of the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from agent.errors import WrongCluster
from agent.journal.entries import Entry, JournalState, JournalWrite, read_value
from agent.values.reassignment import ENDED, BatchState
from agent.values.typed_json import to_json

LEADER = "leader"
KIND = "leader"


class LeaderEntry(NamedTuple):
    """An agent that leads. Its epoch is that of the entry."""

    agent: str
    """Its name among the agents of the cluster."""
    host: str
    pid: int
    cluster: str
    """Id of the cluster whose journal this is."""
    since_ms: int
    """Epoch milliseconds of its clock at which it began to lead."""


def leader_write(leader: LeaderEntry) -> JournalWrite:
    """The journal write of a leader."""
    return JournalWrite(LEADER, KIND, to_json(LeaderEntry, leader))


def leader_in(view: JournalState) -> LeaderEntry | None:
    """The newest leader; None when no agent ever led, or when a newer rackwise wrote another layout."""
    return read_value(LeaderEntry, view.get(LEADER))


def check_cluster(view: JournalState, cluster: str, where: str) -> None:
    """Raises WrongCluster for a journal that another cluster's agents wrote, such as a mirrored topic."""
    leader = leader_in(view)
    if leader is not None and leader.cluster != cluster:
        raise WrongCluster(
            f"The journal {where} is that of cluster {leader.cluster}",
            why=f"this is cluster {cluster}",
            todo="Give this cluster a journal of its own.",
        )


def newest_epoch(view: JournalState) -> int:
    """The greatest epoch of any entry; 0 when no agent ever led."""
    return max((entry.epoch for entry in view.values()), default=0)


# A time in the future (a wrong clock) counts as now and is rewritten once, so that it ages as any other. Times of open
# plans and batches are the executor's.

LATER_MS = 60_000
"""Clocks of agents differ; what is ahead by less is left as it is."""
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "approval": ("at_ms",),
    "trigger": ("intended_ms", "acted_ms"),
    "pause": ("since_ms",),
    "learned": ("came_ms", "went_ms", "at_ms"),
    "plan": (),
    "batch": (),
}
"""Times of a value, by the first part of its key; an entry's own time counts for all of these."""
_OVER = {"plan": frozenset(state.value for state in ENDED), "batch": frozenset({BatchState.CLOSED.value})}
"""Kinds of entries that the executor never writes again."""


def in_past(view: JournalState, now_ms: int) -> JournalState:
    """The journal with every time of the future as now; the same view where there is none."""
    changed = {key: one for key, entry in view.items() if (one := _corrected(entry, now_ms)) is not None}
    return MappingProxyType({**view, **changed}) if changed else view


def corrections(view: JournalState, now_ms: int) -> tuple[JournalWrite, ...]:
    """What is written anew, in the order of the journal; its entry's time is then that of the writing."""
    changed = (_corrected(entry, now_ms) for entry in view.values() if _is_over(entry))
    rows = sorted((one for one in changed if one is not None), key=lambda one: (one.epoch, one.seq))
    return tuple(JournalWrite(one.key, one.kind, one.value) for one in rows)


def _is_over(entry: Entry) -> bool:
    kinds = _OVER.get(_part(entry))
    return kinds is None or entry.kind in kinds


def _corrected(entry: Entry, now_ms: int) -> Entry | None:
    """None where no time of it lies in the future."""
    names = _FIELDS.get(_part(entry))
    if names is None:
        return None
    value = {**entry.value}
    for name in names:
        if _is_later(value.get(name), now_ms):
            value[name] = now_ms
    if "expires_ms" in value and value.get("at_ms") != entry.value.get("at_ms"):
        value["expires_ms"] = now_ms + _lasts_ms(entry.value)
    earlier = value.get("earlier_ms")
    if isinstance(earlier, list) and any(_is_later(at, now_ms) for at in earlier):
        value["earlier_ms"] = [now_ms if _is_later(at, now_ms) else at for at in earlier]
    judgement = value.get("judgement")
    if isinstance(judgement, dict) and _is_later(judgement.get("at_ms"), now_ms):
        value["judgement"] = {**judgement, "at_ms": now_ms}
    if value == dict(entry.value) and not _is_later(entry.at_ms, now_ms):
        return None
    return entry._replace(value=value, at_ms=min(entry.at_ms, now_ms))


def _lasts_ms(value: Mapping[str, Any]) -> int:
    """For how long an approval was given."""
    at_ms, expires_ms = value.get("at_ms"), value.get("expires_ms")
    return max(0, expires_ms - at_ms) if isinstance(at_ms, int) and isinstance(expires_ms, int) else 0


def _is_later(value: object, now_ms: int) -> bool:
    return isinstance(value, int) and value > now_ms + LATER_MS


def _part(entry: Entry) -> str:
    return entry.key.partition("/")[0]
