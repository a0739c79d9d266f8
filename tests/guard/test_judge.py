"""The guard: the gravest reason is the answer, and what is not surely safe is held."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from agent.detect.find import detect
from agent.guard.cluster_checks import CHECKS
from agent.guard.judge import ALL_CHECKS, guard
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.limits import AgentMode, Limits, ProposalLimits
from agent.values.memory import Memory, RackSighting
from agent.values.observation import Gap, GapCause, ObservationPart
from agent.values.proposal import Allow, Hold, HoldReason, Proposal, ProposalKind, Refuse, RefuseReason, Verdict
from agent.values.snapshot import GroupKind, OtherGroup, Snapshot
from tests.plan.random_clusters import random_cluster
from tests.plan.test_triggers import copy, warming
from tests.snapshots import NOW_MS, Builder, a_cluster, member

LIMITS = Limits()
EXECUTE = Limits(mode=AgentMode.EXECUTE)
SECOND = 1_000


def proposals_of(snapshot: Snapshot) -> tuple[Proposal, ...]:
    detection = detect(snapshot, Memory(), LIMITS, None)
    return propose(snapshot, make_plan(snapshot, detection, LIMITS, None), detection, LIMITS, None)


def shared(**topic: object) -> Builder:
    """t-0 has two copies in rack a; t-1 is fine."""
    return a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4), (2, 3), **topic)  # type: ignore[arg-type]


def swapped(**group: object) -> Builder:
    built = a_cluster().topic("t", (1,), (2,))
    return built.group("g", member("m1", "b", "t-0"), member("m2", "a", "t-1"), **group)  # type: ignore[arg-type]


def verdict(
    built: Builder,
    fresh: Builder | None = None,
    *,
    memory: Memory | None = None,
    limits: Limits = LIMITS,
    kind: ProposalKind | None = None,
    **changes: object,
) -> Verdict:
    """The verdict on the only proposal (of that kind) made of one world and judged in another."""
    made = [p for p in proposals_of(built.snapshot()) if kind is None or p.kind is kind]
    assert len(made) == 1, f"one proposal, but {[p.sentence for p in made]}"
    (answer,) = guard(made, (fresh or built).snapshot(**changes), memory or Memory(), limits)
    assert answer.proposal_id == made[0].id
    return answer


def _without_topics(built: Builder) -> Builder:
    built.topics.clear()
    return built


def gap(part: ObservationPart, subject: str = "") -> Gap:
    return Gap(part, GapCause.TIMED_OUT, subject, "no answer in time")


# --- each reason ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        pytest.param(AgentMode.OBSERVE, HoldReason.DRY_RUN, id="observe is a dry run"),
        pytest.param(AgentMode.PROPOSE, HoldReason.DRY_RUN, id="propose is a dry run"),
        pytest.param(AgentMode.EXECUTE, HoldReason.NOT_LEADING, id="execute is for the agent that leads"),
    ],
)
@pytest.mark.parametrize("built", [shared(), swapped(), warming(copy("p2", "0_1", caught_up=True))])
def test_nothing_is_allowed_without_a_journal_in_any_mode(built, mode, reason):
    answer = verdict(built, limits=Limits(mode=mode))
    assert isinstance(answer, Hold)
    assert answer.reason is reason


@pytest.mark.parametrize(
    ("fresh", "reason", "says"),
    [
        pytest.param(
            shared(isr={0: (1,)}, min_isr=2), HoldReason.UNDER_MIN_ISR, "t-0 has 1 in-sync replica",
            id="the partition it would move is under its min ISR",
        ),
        pytest.param(
            shared(isr={0: ()}, leaders={0: None}), HoldReason.UNDER_MIN_ISR, "t-0 has no leader",
            id="the partition it would move has no leader",
        ),
        pytest.param(shared(min_isr=None), HoldReason.UNKNOWN, "min ISR of t is unknown", id="min ISR is unknown"),
        pytest.param(
            shared().moving("t-1", (2, 3), (), ()), HoldReason.REASSIGNMENT_RUNNING, "t-1 is another tool's",
            id="a foreign reassignment runs elsewhere",
        ),
        pytest.param(
            shared().moving("t-1", (2, 3), (), (), own=True), HoldReason.REASSIGNMENT_RUNNING, "rackwise's own",
            id="one of ours still runs",
        ),
    ],
)  # fmt: skip
def test_a_reassignment_is_held_for_what_it_touches(fresh, reason, says):
    answer = verdict(shared(), fresh, limits=EXECUTE)
    assert isinstance(answer, Hold)
    assert answer.reason is reason
    assert says in answer.sentence


def test_another_partition_under_its_min_isr_does_not_hold_it():
    answer = verdict(shared(), shared(isr={1: (2,)}, min_isr=2), limits=EXECUTE)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.NOT_LEADING


@pytest.mark.parametrize(
    ("min_isr", "holds"),
    [pytest.param(2, False, id="as many as replicas"), pytest.param(3, True, id="more than it has replicas")],
)
def test_a_move_that_would_close_a_partition_to_writes_is_held_and_says_what_to_change(min_isr, holds):
    """Two replicas of which Kafka needs two; with the copy that is made there are three, and it needs three."""
    answer = verdict(shared(min_isr=min_isr), limits=EXECUTE)
    assert isinstance(answer, Hold)
    assert answer.reason is (HoldReason.UNDER_MIN_ISR if holds else HoldReason.NOT_LEADING)
    says = (
        "held: while it moves, t-0 needs 3 in-sync replicas for writes with acks=all, and it has 2: "
        "lower min.insync.replicas of t to 2 first"
    )
    assert (answer.sentence == says) is holds


def test_leaders_change_without_a_copy_whatever_the_min_isr():
    (proposal,) = proposals_of(shared(min_isr=3).snapshot())
    other = proposal._replace(kind=ProposalKind.LEADERS)
    (answer,) = guard([other], shared(min_isr=3).snapshot(), Memory(), EXECUTE)
    assert "while it moves" not in answer.sentence


def test_one_replica_never_needs_two_in_sync():
    built = a_cluster().topic("t", (1,), (2,), min_isr=2)
    built.group("g", member("m1", "b", "t-0"), member("m2", "a", "t-1"))
    answer = verdict(built, limits=EXECUTE)
    assert answer.reason is HoldReason.NOT_LEADING


@pytest.mark.parametrize(
    ("min_isr", "isr", "reason"),
    [
        pytest.param(3, (1,), HoldReason.UNDER_MIN_ISR, id="one of two is not"),
        pytest.param(2, (1, 4), HoldReason.NOT_LEADING, id="both of two for two"),
        pytest.param(1, (4,), HoldReason.NOT_LEADING, id="one of two for one"),
    ],
)
def test_a_partition_never_needs_more_in_sync_than_it_has_replicas(min_isr, isr, reason):
    """Judged by a reassignment: a trigger has no partitions of its own that could be under their min ISR."""
    built = shared(isr={0: isr}, min_isr=min_isr)
    answer = verdict(built, built, limits=EXECUTE, kind=ProposalKind.REASSIGN)
    assert isinstance(answer, Hold)
    assert answer.reason is reason, answer.sentence
    if reason is HoldReason.UNDER_MIN_ISR:
        assert answer.sentence == f"held: t-0 has 1 in-sync replica, and its min ISR is {min_isr}"


@pytest.mark.parametrize(
    ("built", "missing", "held"),
    [
        pytest.param(shared(), gap(ObservationPart.BROKERS), True, id="brokers did not answer"),
        pytest.param(shared(), gap(ObservationPart.REASSIGNMENTS), True, id="whether something moves cannot be seen"),
        pytest.param(shared(), gap(ObservationPart.TOPIC_CONFIGS, "t"), True, id="this topic's configs are missing"),
        pytest.param(
            shared(), gap(ObservationPart.TOPIC_CONFIGS, "other"), False, id="another topic's configs are missing"
        ),
        pytest.param(shared(), gap(ObservationPart.GROUPS), False, id="a reassignment needs no groups"),
        pytest.param(swapped(), gap(ObservationPart.GROUPS, "g"), True, id="this group did not answer"),
        pytest.param(swapped(), gap(ObservationPart.GROUPS, "h"), False, id="another group did not answer"),
        pytest.param(swapped(), gap(ObservationPart.LOG_DIRS), False, id="a rebalance needs no sizes"),
    ],
)
def test_a_gap_holds_only_what_needs_the_part(built, missing, held):
    answer = verdict(built, gaps=(missing,), limits=EXECUTE)
    assert isinstance(answer, Hold)
    assert answer.reason is (HoldReason.UNKNOWN if held else HoldReason.NOT_LEADING)


def test_a_group_that_vanished_with_a_gap_is_unknown_and_without_one_is_stale():
    gone = swapped()
    gone.groups.clear()
    held = verdict(swapped(), gone, gaps=(gap(ObservationPart.GROUPS, "broker 2"),))
    assert isinstance(held, Hold)
    assert held.reason is HoldReason.UNKNOWN
    refused = verdict(swapped(), gone)
    assert isinstance(refused, Refuse)
    assert refused.reason is RefuseReason.STALE_SNAPSHOT


def test_a_group_that_was_listed_alone_among_many_is_unknown() -> None:
    listed = swapped().snapshot()
    listed = replace(listed, groups={"g": OtherGroup("g", GroupKind.CLASSIC_CONSUMER, "Stable", "consumer", "classic")})
    many = Gap.of_several(ObservationPart.GROUPS, GapCause.TIMED_OUT, "150 of them", "no answer in time")
    (made,) = proposals_of(swapped().snapshot())
    (held,) = guard([made], replace(listed, gaps=(many,)), Memory(), LIMITS)
    assert isinstance(held, Hold)
    assert (held.reason, held.sentence) == (
        HoldReason.UNKNOWN,
        "held: groups of 150 of them unknown (no answer in time)",
    )
    (refused,) = guard([made], listed, Memory(), LIMITS)
    assert isinstance(refused, Refuse)


@pytest.mark.parametrize(
    ("cause", "subject", "held"),
    [
        pytest.param(GapCause.TIMED_OUT, "t", True, id="its call failed"),
        pytest.param(
            GapCause.NOT_ALLOWED, "t", False, id="the right was withdrawn, and the plan would be made without it"
        ),
        pytest.param(GapCause.VANISHED, "t", False, id="it is gone"),
    ],
)
def test_a_topic_that_a_group_reads_and_no_answer_shows_is_unknown_only_while_its_call_fails(
    cause: GapCause, subject: str, *, held: bool
) -> None:
    answer = verdict(swapped(), _without_topics(swapped()), gaps=(Gap(ObservationPart.TOPICS, cause, subject, "why"),))
    if held:
        assert isinstance(answer, Hold)
        assert answer.sentence == "held: topics of t unknown (no answer in time)"
    else:
        assert isinstance(answer, Refuse)
        assert answer.reason is RefuseReason.STALE_SNAPSHOT


def test_a_gap_of_another_group_does_not_hold_what_has_changed() -> None:
    now = swapped().group("g", member("m1", "a", "t-1"), member("m2", "b", "t-0"))
    now.group("broker 2", member("m3", "a", ""))
    answer = verdict(swapped(), now, gaps=(gap(ObservationPart.GROUPS, "broker 2"),))
    assert isinstance(answer, Refuse)
    silent = Gap.of_broker(ObservationPart.GROUPS, GapCause.TIMED_OUT, 2, "no answer in time")
    assert isinstance(verdict(swapped(), now, gaps=(silent,)), Hold)


@pytest.mark.parametrize(
    ("built", "fresh"),
    [
        pytest.param(shared(), shared().topic("t", (4, 1), (2, 3)), id="another tool reordered the replicas"),
        pytest.param(shared(), shared().topic("t", (1, 4), (2, 3), topic_id="new"), id="the topic was made anew"),
        pytest.param(shared(), shared().broker(4, "b"), id="a broker it names is in another rack"),
        pytest.param(
            swapped(), swapped().group("g", member("m1", "a", "t-1"), member("m2", "b", "t-0")), id="members swapped"
        ),
        pytest.param(
            swapped(), swapped().group("g", member("m1", "b", "t-0"), member("m2", "c", "t-1")), id="a member moved"
        ),
        pytest.param(swapped(), swapped().topic("t", (1,), (2,), (3,)), id="the topic grew"),
        pytest.param(
            warming(copy("p2", "0_1", caught_up=True)), warming(copy("p2", "0_1", caught_up=False)),
            id="the warm-up fell behind again",
        ),
    ],
)  # fmt: skip
def test_a_proposal_whose_ground_has_changed_is_refused(built, fresh):
    answer = verdict(built, fresh, limits=EXECUTE)
    assert isinstance(answer, Refuse)
    assert answer.reason is RefuseReason.STALE_SNAPSHOT


def test_an_expired_proposal_is_refused():
    late = NOW_MS + LIMITS.proposals.ttl_ms + 30 * SECOND
    answer = verdict(shared(), taken_ms=late, limits=EXECUTE)
    assert answer == Refuse(answer.proposal_id, RefuseReason.EXPIRED, "it expired 30 s ago")


def test_a_group_that_rebalances_now_is_left_alone():
    answer = verdict(swapped(), swapped(state="PreparingRebalance"), limits=EXECUTE)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.GROUP_NOT_STABLE


def flapping(broker: int, rack: str) -> Memory:
    """A memory in which a broker told another rack a moment ago."""
    sighting = RackSighting(rack, rack, "z", 5_000_000 - SECOND, 1, (5_000_000 - SECOND,))
    return Memory(cycle=1, brokers={broker: sighting})


@pytest.mark.parametrize(
    ("built", "fresh", "held"),
    [
        pytest.param(shared(), shared().broker(4, "a", alive=False), True, id="a broker that gives"),
        pytest.param(shared(), shared().broker(9, "a", alive=False), False, id="a broker that it does not name"),
        pytest.param(swapped(), swapped().broker(2, "b", alive=False), True, id="a broker with what the group reads"),
    ],
)
def test_a_broker_that_may_be_restarting_holds_what_rests_on_it_and_says_until_when(built, fresh, held):
    seen = {1: RackSighting("a", "a", None, 0, 9), 2: RackSighting("b", "b", None, 0, 9)}
    away = next(broker.id for broker in fresh.snapshot().brokers if not broker.alive)
    memory = Memory(cycle=5, absent={away: 5_000_000 - 12 * SECOND}, brokers={**seen, 4: seen[1], 9: seen[1]})
    answer = verdict(built, fresh, memory=memory, limits=EXECUTE)
    assert isinstance(answer, Hold)
    if not held:
        assert answer.reason is HoldReason.NOT_LEADING
        return
    assert (answer.reason, answer.until_ms) == (HoldReason.BROKER_ABSENT, NOW_MS + 1_788 * SECOND)
    assert answer.sentence == (
        f"held: broker {away} has been absent for 12 s; this waits until it is back or has been absent for 30 min"
    )
    assert answer.passes
    long = verdict(built, fresh, memory=replace(memory, absent={away: 5_000_000 - 1_800 * SECOND}), limits=EXECUTE)
    assert getattr(long, "reason", None) is not HoldReason.BROKER_ABSENT


def test_what_was_proposed_of_a_lasting_absence_is_not_held_for_it():
    gone = shared().broker(4, "a", alive=False)
    memory = Memory(cycle=5, absent={4: 5_000_000 - 1_800 * SECOND})
    answer = verdict(gone, memory=memory, limits=EXECUTE)
    assert isinstance(answer, Hold)
    assert answer.reason is HoldReason.NOT_LEADING
    once = verdict(gone, limits=EXECUTE)
    assert isinstance(once, Hold)
    assert once.sentence.startswith(
        "held: broker 4 is absent now, since when is unknown; this waits until it is back or has been"
    )


@pytest.mark.parametrize(
    ("built", "broker", "rack", "held"),
    [
        pytest.param(shared(), 1, "a", True, id="a broker that gives"),
        pytest.param(shared(), 9, "a", False, id="a broker it does not name"),
        pytest.param(swapped(), 2, "b", True, id="a broker with replicas of the group's topic"),
        pytest.param(swapped(), 3, "c", False, id="a broker without any"),
    ],
)
def test_a_rack_that_has_not_held_still_holds_what_rests_on_it(built, broker, rack, held):
    answer = verdict(built, memory=flapping(broker, rack), limits=EXECUTE)
    assert isinstance(answer, Hold)
    assert answer.reason is (HoldReason.RACK_NOT_STEADY if held else HoldReason.NOT_LEADING)


def test_a_rebalance_cools_down_and_says_until_when():
    memory = Memory(cycle=1, acts={"group/g": 5_000_000 - 20 * SECOND})
    answer = verdict(
        swapped(), memory=memory, limits=replace(EXECUTE, proposals=ProposalLimits(trigger_cooldown_ms=60 * SECOND))
    )
    assert isinstance(answer, Hold)
    assert (answer.reason, answer.until_ms) == (HoldReason.COOLING_DOWN, NOW_MS + 40 * SECOND)
    over = replace(EXECUTE, proposals=ProposalLimits(trigger_cooldown_ms=20 * SECOND))
    again = verdict(swapped(), memory=memory, limits=over)
    assert isinstance(again, Hold)
    assert again.reason is HoldReason.NOT_LEADING


def test_advice_is_for_its_owner_in_every_mode():
    built = a_cluster().topic("t", (1,), (2,)).group("g", member("m1", None, "t-0"), member("m2", "b", "t-1"))
    for limits in (LIMITS, EXECUTE):
        answer = verdict(built, limits=limits, kind=ProposalKind.ADVISE, gaps=(gap(ObservationPart.BROKERS),))
        assert isinstance(answer, Hold)
        assert answer.reason is HoldReason.OWNER_ACTS


# --- the order ------------------------------------------------------------------------------------------------


def test_the_gravest_reason_is_the_answer_also_in_a_dry_run():
    """Everything is wrong at once; reason after reason is taken away, and the next grave one shows."""
    worst = shared(isr={0: (1,)}, min_isr=2).broker(4, "b").moving("t-1", (2, 3), (), ())
    late = {"taken_ms": NOW_MS + LIMITS.proposals.ttl_ms + SECOND, "gaps": (gap(ObservationPart.BROKERS),)}
    memory = flapping(1, "a")
    heard = [verdict(shared(), worst, memory=memory, **late)]
    healthy = shared(isr={0: (1, 4)}, min_isr=1).broker(4, "b").moving("t-1", (2, 3), (), ())
    heard.append(verdict(shared(), healthy, memory=memory, **late))
    late["gaps"] = ()
    heard.append(verdict(shared(), healthy, memory=memory, **late))
    unmoved = shared().moving("t-1", (2, 3), (), ())
    heard.append(verdict(shared(), unmoved, memory=memory, **late))
    heard.append(verdict(shared(), unmoved, memory=memory))
    heard.append(verdict(shared(), memory=memory))
    heard.append(verdict(shared()))
    assert [answer.reason for answer in heard if not isinstance(answer, Allow)] == [
        HoldReason.UNDER_MIN_ISR,
        HoldReason.UNKNOWN,
        RefuseReason.STALE_SNAPSHOT,
        RefuseReason.EXPIRED,
        HoldReason.REASSIGNMENT_RUNNING,
        HoldReason.RACK_NOT_STEADY,
        HoldReason.DRY_RUN,
    ]


def test_the_mode_is_asked_after_everything_that_the_cluster_shows():
    assert CHECKS[-1].__name__ == "_mode_execute"
    assert CHECKS[0].__name__ == "_enough_in_sync"
    assert ALL_CHECKS[: len(CHECKS)] == CHECKS


def test_an_unchanged_world_never_makes_a_proposal_stale():
    for seed in range(150):
        snapshot = random_cluster(random.Random(seed))
        later = replace(snapshot, taken_ms=snapshot.taken_ms + 5, size_bytes={}, bytes_per_s={}, end_offsets={})
        made = proposals_of(snapshot)
        for answer in guard(made, later, Memory(), LIMITS):
            assert not isinstance(answer, Refuse), f"seed {seed}: {answer.sentence}"
