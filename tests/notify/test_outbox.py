"""The outbox of a target groups, bounds, tries again and gives up; nothing is lost without being counted."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.notify.notification import (
    FIRST_PAUSE_MS,
    LONGEST_PAUSE_MS,
    MOST_WAITING,
    EventNotification,
    NotificationEvent,
    OutboxLimits,
    TargetOutbox,
    accepted,
    due,
    queued,
    refused,
)
from agent.values.finding import FindingSeverity

LIMITS = OutboxLimits(group_for_ms=30_000, most_per_hour=3, give_up_after_ms=600_000)
HOUR_MS = 3_600_000


def event(key: str, severity: FindingSeverity = FindingSeverity.WARNING) -> EventNotification:
    return EventNotification(NotificationEvent.FINDING, key, f"{key} has a fault", severity)


def test_events_within_the_window_are_one_message() -> None:
    outbox, _ = queued(TargetOutbox(), (event("a"),), 0)
    outbox, message = due(outbox, LIMITS, 20_000)
    assert message is None
    outbox, _ = queued(outbox, (event("b"),), 25_000)
    outbox, message = due(outbox, LIMITS, 30_000)
    assert message is not None
    assert [one.key for one in message.notifications] == ["a", "b"]
    assert outbox.waiting == ()


def test_beyond_the_budget_of_an_hour_events_wait_and_share_a_message() -> None:
    outbox, sent = TargetOutbox(), []
    for number in range(60):
        now_ms = number * 60_000
        outbox, _ = queued(outbox, (event(str(number)),), now_ms)
        outbox, message = due(outbox, LIMITS, now_ms + 30_000)
        if message is not None:
            sent.append(len(message.notifications))
            outbox = accepted(outbox)
    assert sent == [1, 1, 1]
    outbox, message = due(outbox, LIMITS, HOUR_MS + 30_000)
    assert message is not None
    assert len(message.notifications) == 57


def test_a_message_that_is_refused_is_tried_again_ever_more_seldom_and_given_up_at_last() -> None:
    outbox, _ = queued(TargetOutbox(), (event("a"), event("b")), 0)
    limits = LIMITS._replace(give_up_after_ms=HOUR_MS)
    times, now_ms, given_up = [], 0, False
    while not given_up:
        outbox, message = due(outbox, limits, now_ms, closing=True)
        if message is not None:
            times.append(now_ms)
            outbox, given_up = refused(outbox, limits, now_ms)
        now_ms += 1_000
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[:3] == [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS]
    assert max(pauses) == LONGEST_PAUSE_MS
    assert times[-1] <= HOUR_MS
    assert (outbox.message, outbox.lost) == (None, 2)


def test_the_next_message_says_how_many_were_lost() -> None:
    outbox = TargetOutbox(lost=2)
    outbox, _ = queued(outbox, (event("c"),), 0)
    outbox, message = due(outbox, LIMITS, 30_000)
    assert message is not None
    assert (message.left_out, outbox.lost) == (2, 0)


def test_of_more_than_may_wait_the_most_urgent_are_kept_and_the_others_counted() -> None:
    flood = tuple(event(f"w{number}") for number in range(MOST_WAITING + 5))
    outbox, dropped = queued(TargetOutbox(), (event("worst", FindingSeverity.CRITICAL), *flood), 0)
    assert (len(outbox.waiting), dropped, outbox.lost) == (MOST_WAITING, 6, 6)
    assert outbox.waiting[0].key == "worst"


@given(
    st.lists(
        st.tuples(st.integers(0, 700), st.integers(0, 400_000), st.sampled_from(["yes", "no", "no answer"])),
        max_size=40,
    )
)
def test_each_event_is_accepted_waiting_or_counted_and_accepted_once(steps: list[tuple[int, int, str]]) -> None:
    outbox, now_ms, number = TargetOutbox(), 0, 0
    delivered: list[str] = []
    lost = 0
    for events, pause_ms, answer in steps:
        now_ms += pause_ms
        new = tuple(event(str(number + offset)) for offset in range(events))
        number += events
        outbox, dropped = queued(outbox, new, now_ms)
        lost += dropped
        before = outbox.message
        outbox, message = due(outbox, LIMITS, now_ms)
        assert message is None or before is None or message is before
        if message is not None and answer == "yes":
            delivered += [one.key for one in message.notifications]
            outbox = accepted(outbox)
        elif message is not None and answer == "no":
            outbox, given_up = refused(outbox, LIMITS, now_ms)
            lost += len(message.notifications) if given_up else 0
        assert len(outbox.waiting) <= MOST_WAITING
        assert len(outbox.begun) <= LIMITS.most_per_hour
    on_the_way = len(outbox.message.notifications) if outbox.message else 0
    assert len(delivered) == len(set(delivered))
    assert len(delivered) + len(outbox.waiting) + on_the_way + lost == number
