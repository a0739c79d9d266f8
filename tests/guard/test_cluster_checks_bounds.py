"""Bounds of what the cluster must be like: to the millisecond, the replica and the gap."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.guard.judge import guard
from agent.values.limits import ProposalLimits
from agent.values.memory import Memory, RackSighting
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.proposal import Hold, HoldReason, Refuse, RefuseReason, Verdict
from tests.guard.acting import EMPTY_JOURNAL, MINUTE, limits_of, only
from tests.guard.test_judge import shared, swapped
from tests.snapshots import NOW_MS, Builder

HALF_HOUR = 30 * MINUTE
LOOK_MS = 5_000_000
"""The monotonic clock of a snapshot."""


def verdict(
    built: Builder,
    fresh: Builder,
    memory: Memory | None = None,
    *,
    now: dict[str, object] | None = None,
    **limits: object,
) -> Verdict:
    """On what one world proposes, in another, without a journal."""
    _, proposal = only(built)
    (answer,) = guard([proposal], fresh.snapshot(**(now or {})), memory or Memory(), limits_of(**limits), EMPTY_JOURNAL)
    return answer


def away(broker: int, for_ms: int | None) -> Memory:
    """A memory in which that broker has been absent for so long; None: for none known."""
    seen = {broker: RackSighting("a", "a", None, 0, 9)}
    return Memory(brokers=seen) if for_ms is None else Memory(cycle=5, absent={broker: LOOK_MS - for_ms}, brokers=seen)


@pytest.mark.parametrize(
    ("for_ms", "left_ms"),
    [
        pytest.param(None, HALF_HOUR, id="since when is unknown"),
        pytest.param(0, HALF_HOUR, id="seen for the first time"),
        pytest.param(MINUTE, 29 * MINUTE, id="a minute"),
        pytest.param(HALF_HOUR - 2, 2, id="two milliseconds are left"),
        pytest.param(HALF_HOUR - 1, 1, id="one millisecond is left"),
        pytest.param(HALF_HOUR, None, id="as long as is waited"),
        pytest.param(HALF_HOUR + 1, None, id="longer"),
    ],
)
def test_an_absent_broker_is_waited_for_up_to_its_time(for_ms: int | None, left_ms: int | None) -> None:
    answer = verdict(shared(), shared().broker(4, "a", alive=False), away(4, for_ms))
    held = isinstance(answer, Hold) and answer.reason is HoldReason.BROKER_ABSENT
    assert held is (left_ms is not None)
    if left_ms is not None and isinstance(answer, Hold):
        assert answer.until_ms == NOW_MS + left_ms


def test_of_several_absent_brokers_the_one_that_is_waited_for_longest_is_named() -> None:
    gone = shared().broker(1, "a", alive=False).broker(4, "a", alive=False)
    one, four = away(1, 2 * MINUTE), away(4, 5 * MINUTE)
    memory = replace(one, absent={**one.absent, **four.absent}, brokers={**one.brokers, **four.brokers})
    answer = verdict(shared(), gone, memory)
    assert isinstance(answer, Hold)
    assert answer.sentence.startswith("held: broker 1 has been absent for 2 min; ")
    assert answer.until_ms == NOW_MS + 28 * MINUTE
    same = replace(memory, absent={1: LOOK_MS - MINUTE, 4: LOOK_MS - MINUTE})
    answer = verdict(shared(), gone, same)
    assert isinstance(answer, Hold)
    assert answer.sentence.startswith("held: broker 1 has been absent for 60 s; ")


@pytest.mark.parametrize(
    ("late_ms", "expired"),
    [pytest.param(-1, False, id="before"), pytest.param(0, False, id="at"), pytest.param(1, True, id="after")],
)
def test_a_proposal_is_refused_after_the_time_at_which_it_expires(late_ms: int, expired: bool) -> None:
    _, proposal = only(shared())
    answer = verdict(shared(), shared(), now={"taken_ms": proposal.expires_ms + late_ms})
    assert (isinstance(answer, Refuse) and answer.reason is RefuseReason.EXPIRED) is expired


@pytest.mark.parametrize(
    ("left_ms", "held"),
    [pytest.param(1, True, id="one millisecond is left"), pytest.param(0, False, id="over")],
)
def test_a_group_cools_down_for_its_time(left_ms: int, held: bool) -> None:
    memory = Memory(cycle=1, acts={"group/g": LOOK_MS - 20_000 + left_ms})
    answer = verdict(swapped(), swapped(), memory, proposals=ProposalLimits(trigger_cooldown_ms=20_000))
    assert (isinstance(answer, Hold) and answer.reason is HoldReason.COOLING_DOWN) is held
    if held and isinstance(answer, Hold):
        assert answer.until_ms == NOW_MS + left_ms


@pytest.mark.parametrize(
    ("isr", "offline", "min_isr", "held"),
    [
        pytest.param((1, 4), (), 2, False, id="as many as are needed"),
        pytest.param((1, 4), (4,), 2, True, id="one of them offline"),
        pytest.param((1,), (4,), 1, False, id="an offline one that is not in sync"),
        pytest.param((1,), (), 2, True, id="one too few"),
        pytest.param((1,), (), 3, True, id="fewer than it has replicas"),
    ],
)
def test_replicas_that_are_offline_do_not_count_as_in_sync(
    isr: tuple[int, ...], offline: tuple[int, ...], min_isr: int, held: bool
) -> None:
    fresh = shared(isr={0: isr}, min_isr=min_isr)
    topic = fresh.topics["t"]
    first = topic.partitions[0]._replace(offline=offline)
    fresh.topics["t"] = topic._replace(partitions=(first, *topic.partitions[1:]))
    answer = verdict(shared(min_isr=min_isr), fresh)
    assert (isinstance(answer, Hold) and answer.reason is HoldReason.UNDER_MIN_ISR) is held


@pytest.mark.parametrize("replicas", [(1, 4), ()], ids=["with replicas", "without any"])
def test_a_min_isr_that_is_not_known_is_told_as_unknown(replicas: tuple[int, ...]) -> None:
    fresh = shared(min_isr=None)
    topic = fresh.topics["t"]
    first = topic.partitions[0]._replace(replicas=replicas)
    fresh.topics["t"] = topic._replace(partitions=(first, *topic.partitions[1:]))
    answer = verdict(shared(), fresh)
    assert isinstance(answer, Hold)
    assert (answer.reason, answer.sentence) == (HoldReason.UNKNOWN, "held: the min ISR of t is unknown")


PARTS = ObservationPart


@pytest.mark.parametrize(
    ("built", "part", "subject", "held"),
    [
        pytest.param(shared(), PARTS.TOPICS, "t", True, id="a move needs its topic"),
        pytest.param(shared(), PARTS.TOPICS, "u", False, id="a move needs no other topic"),
        pytest.param(shared(), PARTS.REASSIGNMENTS, "u", True, id="moves anywhere concern a move"),
        pytest.param(shared(), PARTS.GROUPS, "g", False, id="a move needs no group"),
        pytest.param(swapped(), PARTS.GROUPS, "g", True, id="a trigger needs its group"),
        pytest.param(swapped(), PARTS.GROUPS, "t", False, id="a trigger needs no group that is named like a topic"),
        pytest.param(swapped(), PARTS.TOPICS, "", True, id="a trigger needs the topics"),
        pytest.param(swapped(), PARTS.TOPIC_CONFIGS, "", False, id="a trigger needs no configs"),
        pytest.param(swapped(), PARTS.REASSIGNMENTS, "", False, id="a trigger needs no list of moves"),
    ],
)
def test_a_gap_holds_what_it_may_hide(built: Builder, part: ObservationPart, subject: str, held: bool) -> None:
    built.topic("u", (1, 2), (2, 3))
    answer = verdict(built, built, now={"gaps": (Gap(part, GapCause.TIMED_OUT, subject, "no answer"),)})
    assert (isinstance(answer, Hold) and answer.reason is HoldReason.UNKNOWN) is held
    if held and isinstance(answer, Hold):
        what = f"{part.value} of {subject}" if subject else part.value
        assert answer.sentence == f"held: {what} unknown ({GapCause.TIMED_OUT.value})"


@pytest.mark.parametrize(
    ("fresh", "sentence"),
    [
        pytest.param(swapped(state="Empty"), "held: group g is Empty, not Stable", id="empty"),
        pytest.param(swapped(hidden=True), "held: group g is hidden from rackwise", id="hidden"),
        pytest.param(
            swapped(hidden=True, state="PreparingRebalance"), "held: group g is hidden from rackwise",
            id="hidden while it rebalances",
        ),
    ],
)  # fmt: skip
def test_a_group_that_is_not_stable_is_not_triggered(fresh: Builder, sentence: str) -> None:
    answer = verdict(swapped(), fresh)
    assert isinstance(answer, Hold)
    assert (answer.reason, answer.sentence) == (HoldReason.GROUP_NOT_STABLE, sentence)
    moved = verdict(shared(), shared().group("t", state="Empty"))
    assert not isinstance(moved, Hold) or moved.reason is not HoldReason.GROUP_NOT_STABLE


def test_the_number_of_moves_in_progress_and_the_first_are_told() -> None:
    fresh = shared().topic("s", (1, 2)).moving("t-1", (2, 3), (), (), own=True).moving("s-0", (1, 2), (), ())
    answer = verdict(shared(), fresh)
    assert isinstance(answer, Hold)
    assert answer.sentence == "held: already in progress: 2 reassignments, s-0 is another tool's"
    other = verdict(swapped(), swapped().topic("u", (1, 2)).moving("u-0", (1, 2), (2,), ()))
    assert not isinstance(other, Hold) or other.reason is not HoldReason.REASSIGNMENT_RUNNING
    read = verdict(swapped(), swapped().moving("t-1", (2,), (), ()))
    assert isinstance(read, Hold)
    assert read.reason is HoldReason.REASSIGNMENT_RUNNING
