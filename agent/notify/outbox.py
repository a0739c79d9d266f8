"""The outbox of one target: what waits, the message on its way, its next try, and the budget of an hour. Pure.

Times are monotonic milliseconds. Invariant: each queued notification is in one accepted message, is waiting, or is
counted (dropped, or part of a message that was given up).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from agent.notify.notification import EventNotification, worst

MOST_WAITING = 1_000
"""Notifications that wait for one target; of more, the most urgent are kept and the others are counted."""
FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 300_000
_HOUR_MS = 3_600_000


class OutboxLimits(NamedTuple):
    """The pace of messages to one target."""

    group_for_ms: int
    most_per_hour: int
    give_up_after_ms: int


class OpenMessage(NamedTuple):
    """A message that its target has not accepted yet."""

    notifications: tuple[EventNotification, ...]
    left_out: int
    """Notifications before it that were lost."""
    since_ms: int
    tries: int = 0
    next_ms: int = 0
    """Time of the next try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOutbox:
    """The outbox at one instant."""

    waiting: tuple[EventNotification, ...] = ()
    since_ms: int = 0
    """Time of the first of them; its group is open until ``group_for`` later."""
    lost: int = 0
    """Notifications that were dropped or given up since the last accepted message: the next one reports their number.
    """
    message: OpenMessage | None = None
    begun: tuple[int, ...] = ()
    """Times of the messages of the last hour."""


def queued(outbox: TargetOutbox, notifications: tuple[EventNotification, ...], now_ms: int) -> tuple[TargetOutbox, int]:
    """The outbox with these, and how many of all that wait were dropped."""
    if not notifications:
        return outbox, 0
    every = (*outbox.waiting, *notifications)
    kept = worst(every, MOST_WAITING)
    dropped = len(every) - len(kept)
    since_ms = outbox.since_ms if outbox.waiting else now_ms
    return replace(outbox, waiting=kept, since_ms=since_ms, lost=outbox.lost + dropped), dropped


def due(
    outbox: TargetOutbox, limits: OutboxLimits, now_ms: int, *, closing: bool = False
) -> tuple[TargetOutbox, OpenMessage | None]:
    """The message to be sent now, if any: a try that is due, or a group whose time is over (``closing``: at once)."""
    if outbox.message is not None:
        return outbox, outbox.message if now_ms >= outbox.message.next_ms else None
    begun = tuple(at for at in outbox.begun if at > now_ms - _HOUR_MS)
    is_open = now_ms < outbox.since_ms + limits.group_for_ms and not closing
    if not outbox.waiting or is_open or len(begun) >= limits.most_per_hour:
        return outbox, None
    message = OpenMessage(outbox.waiting, outbox.lost, since_ms=now_ms, next_ms=now_ms)
    return replace(outbox, waiting=(), lost=0, message=message, begun=(*begun, now_ms)), message


def accepted(outbox: TargetOutbox) -> TargetOutbox:
    """After the target accepted the message."""
    return replace(outbox, message=None)


def refused(outbox: TargetOutbox, limits: OutboxLimits, now_ms: int) -> tuple[TargetOutbox, bool]:
    """After a try that failed: tried again after a pause that doubles, or given up (True) once it is too old."""
    message = outbox.message
    if message is None:
        return outbox, False
    pause_ms = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** min(message.tries, 10))
    next_ms = now_ms + pause_ms
    if next_ms > message.since_ms + limits.give_up_after_ms:
        lost = outbox.lost + message.left_out + len(message.notifications)
        return replace(outbox, message=None, lost=lost), True
    return replace(outbox, message=message._replace(tries=message.tries + 1, next_ms=next_ms)), False
