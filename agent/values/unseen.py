"""Which answers of a look are missing, and may hide something: nothing is counted as 0 that they may hide. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from agent.values.limits import Limits
from agent.values.observation import Gap, GapCause, Part
from agent.values.snapshot import OtherGroup, Snapshot

Counted = TypeVar("Counted")


def gaps_of(snapshot: Snapshot, parts: Iterable[Part]) -> list[Gap]:
    """Gaps in these parts; what vanished between two calls is none. What rights may hide of groups counts as groups."""
    wanted = frozenset(parts)
    return [
        gap
        for gap in snapshot.gaps
        if gap.cause is not GapCause.VANISHED
        and (
            gap.part in wanted
            or (Part.GROUPS in wanted and gap.part is Part.RIGHTS and gap.subject == Part.GROUPS.value)
        )
    ]


def seen_of(counted: Counted, snapshot: Snapshot, *parts: Part) -> Counted | None:
    """A number of things in these parts, or the things; None where there are none, and some may be hidden."""
    return counted if counted or not gaps_of(snapshot, parts) else None


def hidden_groups(snapshot: Snapshot, limits: Limits) -> tuple[str, ...]:
    """Groups that rebalance and show no racks or assignments of their members; without those the settings exclude."""
    groups = snapshot.groups.values()
    hidden = [group.id for group in groups if not isinstance(group, OtherGroup) and group.hidden]
    return tuple([name for name in hidden if not limits.excludes_group(name)])
