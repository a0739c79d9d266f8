"""Earlier triggers as the journal tells them, on the monotonic clock.

The journal's times are those of a wall clock, which may jump. So each trigger is put on the monotonic clock once, when
it is first seen, and stays there: a jump can make a trigger of an earlier process older than it was, and never one of
this process. A time in the future counts as now.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from agent.journal.triggers import Effect, TriggerEntry, TriggerVerdict, triggers
from agent.probing.values import Past
from agent.values.journal import View
from agent.values.proposal import ProposalReason

Anchors = Mapping[tuple[str, str, int], int]
"""(group, proposal, epoch ms of the intent) -> monotonic ms."""
NO_ANCHORS: Anchors = MappingProxyType({})

_NOT_ASKED = (Effect.NOT_SENT, Effect.REFUSED)
_UNTOLD = (TriggerVerdict.OVERTAKEN, TriggerVerdict.CANNOT_TELL)


def past_triggers(
    view: View, anchors: Anchors, *, taken_ms: int, monotonic_ms: int
) -> tuple[Mapping[str, tuple[Past, ...]], Anchors]:
    """(group -> its triggers, oldest first; the anchors to hand in next time, at first an empty mapping)."""
    kept: dict[tuple[str, str, int], int] = {}
    past: dict[str, list[Past]] = {}
    for entry in triggers(view):
        for wall_ms, promoted in _times(entry):
            key = entry.group_id, entry.proposal_id, wall_ms
            kept[key] = anchors.get(key, monotonic_ms - max(0, taken_ms - wall_ms))
            probing = entry.reason == ProposalReason.WARMUP_PROMOTABLE.name
            past.setdefault(entry.group_id, []).append(Past(kept[key], promoted, probing))
    return {group: tuple(sorted(of, key=lambda one: one.at_ms)) for group, of in sorted(past.items())}, kept


def _times(entry: TriggerEntry) -> list[tuple[int, bool | None]]:
    """When it was asked, and what that brought. What is asked again under the same name had changed nothing."""
    earlier: list[tuple[int, bool | None]] = [(at_ms, False) for at_ms in entry.earlier_ms]
    if entry.effect in _NOT_ASKED:
        return earlier
    return [*earlier, (entry.intended_ms, _promoted(entry))]


def _promoted(entry: TriggerEntry) -> bool | None:
    if entry.judgement is None or entry.judgement.verdict in _UNTOLD:
        return None
    return entry.judgement.came > 0
