"""Replicas of a topic: racks shared, ISR too small, preferred leaders uneven; each present, absent and unknown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.values.finding import FindingReason as Reason
from agent.values.finding import FindingSeverity
from agent.values.limits import Limits, ScopeLimits
from agent.values.observation import PrincipalRights
from agent.values.snapshot import BrokerState, Rack, RackState
from agent.values.throttles import CrowdedRack, crowding, rack_room
from tests.builders import Answers, Run, an_observation

Prepare = Callable[[Answers], object]
SIX_IN_THREE = {"a": (1, 4), "b": (2, 5), "c": (3, 6)}


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        pytest.param((1, 2, 3), None, id="one replica in each rack"),
        pytest.param((1, 4, 2), ("a", ("c",)), id="two of three share a rack, the third rack is free"),
        pytest.param((1, 4), ("a", ("b", "c")), id="both of two share a rack"),
        pytest.param((1,), None, id="a single replica shares nothing"),
        pytest.param((), None, id="no replicas"),
        pytest.param((1, 4, 2, 5), ("a", ("c",)), id="two and two, none in the third"),
        pytest.param((1, 4, 2, 3), None, id="four over three racks: one rack must hold two"),
        pytest.param(
            (1, 4, 9), ("a", ("b", "c")), id="one unknown replica: one of the two other racks is free for certain"
        ),
        pytest.param((1, 4, 2, 9), None, id="the unknown replica may be in the rack that seems free"),
        pytest.param((9, 8), None, id="all unknown"),
    ],
)
def test_a_rack_that_holds_more_than_it_must(
    replicas: tuple[int, ...], expected: tuple[str, tuple[str, ...]] | None
) -> None:
    found = crowding(replicas, rack_room(_brokers(SIX_IN_THREE)))
    assert (None if found is None else (found.rack, found.free)) == expected


def test_a_rack_without_a_broker_that_may_take_a_replica_is_not_free() -> None:
    brokers = _brokers(SIX_IN_THREE)
    fenced = [b._replace(alive=b.id not in (3, 6)) for b in brokers]
    cordoned = [b._replace(cordoned=b.id in (3, 6)) for b in brokers]
    assert crowding((1, 4, 2), rack_room(fenced)) is None
    assert crowding((1, 4, 2), rack_room(cordoned)) is None
    assert crowding((1, 4, 2), rack_room(brokers, leave_out=frozenset((3, 6)))) is None
    assert crowding((1, 4, 2), rack_room(brokers, leave_out=frozenset((3,)))) == CrowdedRack("a", (1, 4), ("c",))


def _brokers(racks: dict[str, tuple[int, ...]]) -> list[BrokerState]:
    return [
        BrokerState(
            broker, f"host{broker}", 9092, Rack(RackState.KNOWN, rack), alive=True, fenced=False, cordoned=False
        )
        for rack, brokers in racks.items()
        for broker in brokers
    ]


def test_replicas_that_share_a_rack_are_one_finding_for_the_topic() -> None:
    answers = an_observation(**SIX_IN_THREE).topic("orders", (1, 4, 2), (1, 2, 3), (2, 5, 1), (3, 1, 2))
    (found,) = Run().look(answers.at(0)).of(Reason.REPLICAS_SHARE_RACK)
    assert found.sentence == (
        "orders has 2 of 4 partitions with replicas that share a rack while another rack is free: "
        "orders-0 has 2 in rack a, and could have one in c"
    )
    assert found.id == "replicas_share_rack:topic/orders"
    assert dict(found.evidence)["first"] == ("orders-0", "orders-2")
    assert dict(found.evidence)["example"] == "orders-0: 1 (a), 4 (a), 2 (b)"


@pytest.mark.parametrize(
    ("prepare", "found"),
    [
        pytest.param(lambda a: a, True, id="as it is"),
        pytest.param(
            lambda a: a.topic("orders", (3, 1, 4, 2)).moving("orders-0", (3, 1, 4, 2), (3,), (4,)),
            False,
            id="a reassignment that mends it is running",
        ),
        pytest.param(
            lambda a: a.topic("orders", (4, 1, 2, 3)).moving("orders-0", (4, 1, 2, 3), (4,), (3,)),
            True,
            id="a reassignment that breaks it is running",
        ),
        pytest.param(lambda a: a.broker(4, None), False, id="the rack of one replica is unknown"),
        pytest.param(lambda a: a.broker(3, "b").broker(6, "b"), False, id="there is no third rack"),
    ],
)
def test_replicas_share_a_rack(prepare: Prepare, found: bool) -> None:
    answers = an_observation(**SIX_IN_THREE).topic("orders", (1, 4, 2))
    prepare(answers)
    assert bool(Run().look(answers.at(0)).of(Reason.REPLICAS_SHARE_RACK)) is found


@pytest.mark.parametrize(
    ("replicas", "told"),
    [
        pytest.param((1, 4), "orders-0 has 2 in rack a, and could have one in b or c", id="one of two"),
        pytest.param((1, 4, 7), "orders-0 has 3 in rack a, and could have one in each of b and c", id="two of three"),
        pytest.param((1, 4, 2), "orders-0 has 2 in rack a, and could have one in c", id="one rack is free"),
    ],
)
def test_no_more_replicas_could_move_than_share_the_rack(replicas: tuple[int, ...], told: str) -> None:
    answers = an_observation(a=(1, 4, 7), b=(2, 5), c=(3, 6)).topic("orders", replicas)
    (found,) = Run().look(answers.at(0)).of(Reason.REPLICAS_SHARE_RACK)
    assert found.sentence.endswith(told)


def test_a_min_isr_above_the_number_of_replicas_is_told_with_that_number() -> None:
    answers = an_observation(a=(1,), b=(2,)).topic("single", (1,), (2,), offline=(1,), min_insync_replicas="2")
    (found,) = Run().look(answers.at(0)).of(Reason.UNDER_MIN_ISR)
    assert found.sentence == (
        "single has 1 of 2 partitions under min ISR (1 without a leader); "
        "min.insync.replicas is 2, of 1 replica: single-0"
    )


def test_what_rests_on_a_rack_that_just_changed_is_held_apart_from_what_does_not() -> None:
    answers = an_observation(**SIX_IN_THREE).topic("orders", (1, 4, 2), (5, 3, 1)).topic("steady", (1, 4, 3))
    run = Run().look(answers.at(0)).look(answers.broker(5, "c").at(10))
    found = {finding.id: finding.held for finding in run.of(Reason.REPLICAS_SHARE_RACK)}
    assert found == {
        "replicas_share_rack:topic/orders": False,
        "replicas_share_rack:topic/orders:held": True,
        "replicas_share_rack:topic/steady": False,
    }


def test_a_rack_that_is_free_only_because_a_broker_just_came_to_it_is_held() -> None:
    answers = an_observation(a=(1, 4), b=(2, 3)).topic("orders", (1, 4))
    run = Run().look(answers.topic("orders", (1, 4, 2)).at(0))
    assert not run.of(Reason.REPLICAS_SHARE_RACK)
    (found,) = run.look(answers.broker(3, "c").at(10)).of(Reason.REPLICAS_SHARE_RACK)
    assert found.held


@pytest.mark.parametrize(
    ("limits", "topic", "found"),
    [
        pytest.param(Limits(), "rackwise.telemetry", False, id="a topic of our own"),
        pytest.param(
            Limits(scope=ScopeLimits(include_own_topics=True)),
            "rackwise.telemetry",
            True,
            id="a topic of our own, asked for",
        ),
        pytest.param(
            Limits(scope=ScopeLimits(exclude_topics=("tmp-*",))),
            "tmp-1",
            False,
            id="a topic that the settings leave out",
        ),
        pytest.param(Limits(), "rackwisely", True, id="a topic that only begins like ours"),
    ],
)
def test_topics_that_are_left_out(limits: Limits, topic: str, found: bool) -> None:
    answers = an_observation(**SIX_IN_THREE).topic(topic, (1, 4, 2))
    assert bool(Run(limits).look(answers.at(0)).of(Reason.REPLICAS_SHARE_RACK)) is found


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(lambda a: a.topic("t", (1, 2, 3), min_insync_replicas="2"), None, id="all in sync"),
        pytest.param(
            lambda a: a.topic("t", (1, 2, 3), isr={0: (1, 2)}, min_insync_replicas="2"),
            Reason.AT_MIN_ISR,
            id="one lost",
        ),
        pytest.param(
            lambda a: a.topic("t", (1, 2, 3), isr={0: (1,)}, min_insync_replicas="2"),
            Reason.UNDER_MIN_ISR,
            id="two lost",
        ),
        pytest.param(
            lambda a: a.topic("t", (1, 2, 3), isr={0: (1, 2)}, min_insync_replicas="1"),
            None,
            id="one lost, one to spare",
        ),
        pytest.param(
            lambda a: a.topic("t", (1, 2), min_insync_replicas="2"),
            None,
            id="min ISR is the replication factor, nothing lost",
        ),
        pytest.param(
            lambda a: a.topic("t", (1,), min_insync_replicas="2"), None, id="min ISR above the replication factor"
        ),
        pytest.param(
            lambda a: a.topic("t", (3,), isr={0: (3,)}, offline=(3,), min_insync_replicas="1"),
            Reason.UNDER_MIN_ISR,
            id="the only replica is offline though it is in the ISR",
        ),
        pytest.param(
            lambda a: a.topic("t", (1, 2, 3), isr={0: (1,)}, min_insync_replicas=""), None, id="min ISR unknown"
        ),
    ],
)
def test_min_isr(prepare: Prepare, reason: Reason | None) -> None:
    answers = an_observation()
    prepare(answers)
    run = Run().look(answers.at(0))
    found = [f.reason for f in run.detection.findings if f.reason in (Reason.AT_MIN_ISR, Reason.UNDER_MIN_ISR)]
    assert found == ([] if reason is None else [reason])


def test_under_min_isr_comes_first_and_names_partitions_and_setting() -> None:
    answers = an_observation(**SIX_IN_THREE)
    answers.topic("orders", (1, 2, 3), (2, 3, 1), (1, 4, 2), isr={0: (1,), 1: ()}, min_insync_replicas="2")
    first = Run().look(answers.at(0)).detection.findings[0]
    assert (first.reason, first.severity) == (Reason.UNDER_MIN_ISR, FindingSeverity.CRITICAL)
    assert first.sentence == (
        "orders has 2 of 3 partitions under min ISR (1 without a leader); min.insync.replicas is 2: "
        "orders-0 and orders-1"
    )


@pytest.mark.parametrize(
    ("leaders", "found"),
    [
        pytest.param((1, 2, 3, 1, 2, 3), [], id="even"),
        pytest.param((1, 1, 1, 1, 2, 3), [], id="four of six, a third above its share"),
        pytest.param((1, 1, 1, 1, 1, 3), ["cluster/test-cluster", "topic/orders"], id="five of six"),
        pytest.param((1, 1, 1, 1, 1), [], id="too few partitions to tell"),
    ],
)
def test_preferred_leaders_in_one_rack(leaders: tuple[int, ...], found: list[str]) -> None:
    replicas = [(leader, *(b for b in (1, 2, 3) if b != leader)) for leader in leaders]
    run = Run().look(an_observation().topic("orders", *replicas).at(0))
    assert [str(finding.subject) for finding in run.of(Reason.LEADER_SKEW)] == found
    if found:
        assert run.of(Reason.LEADER_SKEW)[1].sentence == (
            "rack a has the preferred leaders of 83 % of the partitions of orders, but 33 % of their replicas"
        )


def test_a_rack_that_holds_most_replicas_may_lead_most_partitions() -> None:
    answers = an_observation(a=(1, 4), b=(2,), c=(3,)).topic("orders", *[(1,)] * 8)
    assert not Run().look(answers.at(0)).of(Reason.LEADER_SKEW)


def test_a_topic_without_partitions_makes_no_finding() -> None:
    run = Run().look(an_observation().topic("empty").at(0))
    assert "empty" in run.snapshot.topics
    assert run.detection.findings == ()


def test_missing_rights_are_not_an_empty_cluster() -> None:
    answers = an_observation()
    answers.rights = PrincipalRights(cluster_describe=False, cluster_describe_configs=True)
    assert [f.detail for f in Run().look(answers.at(0)).of(Reason.RIGHTS_MISSING)] == ["cluster_describe"]
