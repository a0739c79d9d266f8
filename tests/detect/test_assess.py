"""Locality by both measures, the optimum, the gap, and the reasons why a group is not assessed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.detect.assess import assess_groups
from agent.detect.assess_consumers import most_local
from agent.values.assessment import Assessment, Locality, LocalityMeasure, NotAssessed
from agent.values.limits import GroupLimits, Limits, ScopeLimits
from agent.values.memo import Memo
from agent.values.snapshot import GroupKind, Member, MemberDefect, Rack, RackState, Snapshot, TaskStatefulness
from assignors.optimal import optimal_consumer
from assignors.problem import ConsumerMember, ConsumerProblem, TopicPartition
from tests.snapshots import Builder, a_cluster, member, process, task

LIMITS = Limits()
READ = LocalityMeasure.READ_LOCAL
KAFKA = LocalityMeasure.KAFKA


def assessed(snapshot: Snapshot, group: str = "g", limits: Limits = LIMITS) -> Assessment:
    return assess_groups(snapshot, limits, None)[group]


def share(
    localities: tuple[Locality, ...], measure: LocalityMeasure, unit: str = "partitions"
) -> tuple[float, float, float]:
    found = [x for x in localities if x.measure is measure and x.unit == unit]
    assert len(found) == 1, f"exactly one locality per measure and unit, but {found}"
    return found[0].local, found[0].total, found[0].unknown


def three_racks(
    *members: Member, replicas: tuple[tuple[int, ...], ...] = ((1,), (2,), (3,)), **topic: object
) -> Builder:
    return a_cluster().topic("t", *replicas, **topic).group("g", *members)  # type: ignore[arg-type]


def test_a_group_that_contradicts_itself_hides_no_other() -> None:
    """No broker lets two members have one id; whatever answers so must not end the cycle."""
    twice = three_racks(member("m", "b", "t-0"), member("m", "a", "t-1", "t-2")).group("h", member("n", "a", "t-0"))
    found = assess_groups(twice.snapshot(), LIMITS, None)
    assert found["g"].why_not is NotAssessed.CONTRADICTORY
    assert found["h"].why_not is None


@pytest.mark.parametrize("number", [pytest.param(-1, id="one below all"), pytest.param(-100, id="far below all")])
def test_a_partition_that_no_topic_can_have_hides_no_other_group(number: int) -> None:
    """Assignments are foreign bytes: any number may stand in them."""
    nowhere = TopicPartition("t", number)
    built = three_racks(member("m", "b", "t-0"), member("o", "a", "t-1")._replace(assigned=(nowhere,)))
    built.streams("s", process("p", "b", "0_0"), topology=[task("0_0", "t-0")._replace(sources=(nowhere,))])
    found = assess_groups(built.group("h", member("n", "a", "t-0")).snapshot(), LIMITS, None)
    assert [found[name].why_not for name in ("g", "s", "h")] == [*[NotAssessed.CONTRADICTORY] * 2, None]


# --- current, optimal, gap ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "kafka", "best", "gap", "moved"),
    [
        pytest.param(
            three_racks(member("m1", "a", "t-0"), member("m2", "b", "t-1"), member("m3", "c", "t-2")),
            (3, 3, 0), (3, 3, 0), 0, 0,
            id="everybody reads at home: nothing to gain",
        ),
        pytest.param(
            three_racks(member("m1", "b", "t-0"), member("m2", "a", "t-1"), member("m3", "c", "t-2")),
            (1, 3, 0), (3, 3, 0), 2, 2,
            id="two members read each other's partition: a swap brings both home",
        ),
        pytest.param(
            three_racks(member("m1", "a", "t-0 t-1"), member("m2", "a", "t-2")),
            (1, 3, 0), (1, 3, 0), 0, 0,
            id="all members live in one rack: the other partitions cross whatever happens",
        ),
        pytest.param(
            three_racks(
                member("m1", "a", "t-0 t-1"), member("m2", "b", "t-2 t-3"), replicas=((1,), (1,), (1,), (2,))
            ),
            (3, 4, 0), (3, 4, 0), 0, 0,
            id="balance comes first: a third partition for rack a would leave rack b with one",
        ),
        pytest.param(
            three_racks(member("m1", "a", "t-0"), member("m2", None, "t-1"), member("m3", "c", "t-2")),
            (2, 3, 1), (2, 3, 1), 0, 0,
            id="a member without rack is unknown, neither local nor crossing",
        ),
        pytest.param(
            three_racks(member("m1", "c", "t-0"), member("m2", None, "t-1"), member("m3", "a", "t-2")),
            (0, 3, 1), (2, 3, 1), 2, 2,
            id="the swap of two known members counts beside an unknown one",
        ),
        pytest.param(
            three_racks(member("m1", "d", "t-0"), member("m2", "a", "t-1"), member("m3", "b", "t-2")),
            (0, 3, 0), (2, 3, 0), 2, 3,
            id="a rack without brokers is known: everything its member reads crosses",
        ),
    ],
)  # fmt: skip
def test_a_group_against_its_optimum(built, kafka, best, gap, moved):
    found = assessed(built.snapshot())
    assert found.why_not is None
    assert share(found.current, KAFKA) == kafka
    assert share(found.optimal, KAFKA) == best
    assert (found.gap, found.moved) == (gap, moved)
    assert found.lower_bound == found.optimal_crossing
    assert (found.result is None) == (gap == 0)


def test_what_an_unknown_member_could_hide_is_no_gain():
    # Giving t-0 to the member without a rack would empty "crossing", but only because nothing is known any more.
    built = three_racks(member("m1", "c", "t-0"), member("m2", None, ""), replicas=((1,),))
    found = assessed(built.snapshot())
    assert (found.crossing, found.optimal_crossing, found.gap) == (1, 1, 0)


def test_a_replica_on_a_broker_without_rack_leaves_locality_open():
    built = (
        a_cluster(a=(1,), _=(2,))
        .topic("t", (2,), (1, 2))
        .group("g", member("m1", "b", "t-0 t-1"), member("m2", "a", ""))
    )
    assert share(assessed(built.snapshot()).current, KAFKA) == (0, 2, 2)
    built.group("g", member("m1", "a", "t-0 t-1"))
    assert share(assessed(built.snapshot()).current, KAFKA) == (1, 2, 1)


def test_the_remembered_rack_of_an_absent_broker_still_counts_for_kafkas_measure():
    built = a_cluster().topic("t", (1, 2), isr={0: (2,)}).group("g", member("m1", "a", "t-0"))
    built.broker(1, "a", alive=False, rack=Rack(RackState.KNOWN, "a", remembered=True))
    found = assessed(built.snapshot())
    assert share(found.current, KAFKA) == (1, 1, 0)
    assert share(found.current, READ) == (0, 1, 0), "but nothing can be read from it"


# --- the two measures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "leader", "isr", "read", "best"),
    [
        pytest.param(True, 1, (1, 2, 3), (1, 1, 0), (1, 1, 0), id="rack-aware selector: an in-sync replica is near"),
        pytest.param(False, 1, (1, 2, 3), (0, 1, 0), (0, 1, 0), id="no selector: only the leader serves, far away"),
        pytest.param(False, 2, (1, 2, 3), (1, 1, 0), (1, 1, 0), id="no selector: the leader itself is near"),
        pytest.param(True, 1, (1, 3), (0, 1, 0), (0, 1, 0), id="selector, but the near replica is out of sync"),
        pytest.param(None, 1, (1, 2, 3), (0, 1, 1), (0, 1, 1), id="selector unknown: whether it is near is unknown"),
        pytest.param(
            None, 2, (1, 2, 3), (1, 1, 0), (1, 1, 0), id="selector unknown, but the leader is near for certain"
        ),
        pytest.param(True, None, (), (0, 1, 1), (0, 1, 1), id="no leader: the source of its bytes is unknown"),
    ],
)
def test_read_local_looks_at_who_really_serves(selector, leader, isr, read, best):
    built = three_racks(member("m1", "b", "t-0"), replicas=((1, 2, 3),), isr={0: isr}, leaders={0: leader})
    built.selector = selector
    found = assessed(built.snapshot())
    assert share(found.current, KAFKA) == (1, 1, 0)
    assert share(found.current, READ) == read
    assert share(found.optimal, READ) == best


def test_the_read_local_optimum_is_its_own_even_where_kafka_sees_no_gap():
    built = three_racks(
        member("m1", "b", "t-0"), member("m2", "a", "t-1"), replicas=((1, 2), (2, 1)), rate=100.0
    )  # fmt: skip
    built.selector = False
    found = assessed(built.snapshot())
    assert found.gap == 0
    assert share(found.current, KAFKA) == (2, 2, 0)
    assert share(found.current, READ) == (0, 2, 0)
    assert share(found.optimal, READ) == (2, 2, 0)
    assert share(found.optimal, READ, "bytes_per_s") == (200.0, 200.0, 0.0)


def test_bytes_are_told_when_every_rate_is_known():
    built = three_racks(member("m1", "b", "t-0"), member("m2", "a", "t-1"), member("m3", None, "t-2"))
    built.rates = {TopicPartition("t", 0): 10.0, TopicPartition("t", 1): 20.0, TopicPartition("t", 2): 5.0}
    found = assessed(built.snapshot())
    assert share(found.current, KAFKA, "bytes_per_s") == (0.0, 35.0, 5.0)
    assert share(found.optimal, KAFKA, "bytes_per_s") == (30.0, 35.0, 5.0)
    del built.rates[TopicPartition("t", 2)]
    assert [x.unit for x in assessed(built.snapshot()).current] == ["partitions", "partitions"]


# --- kinds of group -------------------------------------------------------------------------------------------


def test_range_keeps_equal_partitions_together():
    # Alone, both topics could be brought home; together, partition 0 of both must stay with one member.
    members = (member("m1", "a", "t-0 u-0", topics=("t", "u")), member("m2", "b", "t-1 u-1", topics=("t", "u")))
    built = a_cluster().topic("t", (1,), (2,)).topic("u", (2,), (1,)).group("g", *members, assignor="range")
    assert assessed(built.snapshot()).gap == 0
    built.group("g", *members, assignor="cooperative-sticky")
    assert assessed(built.snapshot()).gap == 2


def test_a_pattern_means_what_its_members_were_assigned():
    members = (
        member("m1", "b", "t-0", topics=(), topic_regex="t.*"),
        member("m2", "a", "t-1", topics=(), topic_regex="t.*"),
    )
    built = a_cluster().topic("t", (1,), (2,)).topic("other", (3,)).group("g", *members, kind=GroupKind.CONSUMER)
    found = assessed(built.snapshot())
    assert (found.gap, found.moved) == (2, 2)


def test_members_with_different_subscriptions_go_to_the_solver():
    members = (
        member("m1", "a", "t-1", topics=("t",)),
        member("m2", "b", "t-0 u-0", topics=("t", "u")),
    )
    built = a_cluster().topic("t", (1,), (2,)).topic("u", (2,)).group("g", *members)
    found = assessed(built.snapshot())
    assert found.result is not None
    assert found.result.assignment["m1"] == (TopicPartition("t", 0),)
    assert found.gap == 2


@pytest.mark.parametrize("kind", [GroupKind.CLASSIC_STREAMS, GroupKind.STREAMS])
def test_tasks_are_brought_to_their_sources(kind):
    topology = [task("0_0", "t-0"), task("0_1", "t-1"), task("0_2", "t-2", TaskStatefulness.STATELESS)]
    processes = (process("p1", "a", "0_1"), process("p2", "b", "0_0"), process("p3", "c", "0_2"))
    built = a_cluster().topic("t", (1,), (2,), (3,)).streams("g", *processes, topology=topology, kind=kind)
    found = assessed(built.snapshot())
    assert share(found.current, KAFKA) == (1, 3, 0)
    assert share(found.optimal, KAFKA) == (3, 3, 0)
    assert (found.gap, found.moved, found.lower_bound) == (2, 2, 0)


def test_a_task_with_two_sources_counts_each():
    topology = [task("0_0", "t-0 u-0"), task("0_1", "t-1 u-1")]
    built = a_cluster().topic("t", (1,), (2,)).topic("u", (1,), (3,))
    built.streams("g", process("p1", "a", "0_1"), process("p2", "b", "0_0"), topology=topology)
    found = assessed(built.snapshot())
    assert share(found.current, KAFKA) == (0, 4, 0)
    assert share(found.optimal, KAFKA) == (3, 4, 0)


def test_balance_subtopology_binds_when_the_application_asks_for_it():
    # Both tasks of each subtopology live in one rack; without the bound each process could take a whole subtopology.
    topology = [task("0_0", "t-0"), task("0_1", "t-1"), task("1_0", "u-0"), task("1_1", "u-1")]
    built = a_cluster().topic("t", (1,), (1,)).topic("u", (2,), (2,))
    built.streams("g", process("p1", "a", "0_0 1_0"), process("p2", "b", "0_1 1_1"), topology=topology)
    snapshot = built.snapshot()
    bound = Limits(groups={"g": GroupLimits(rack_aware_assignment_strategy="balance_subtopology", known=True)})
    assert assessed(snapshot).gap == 2
    assert assessed(snapshot, limits=bound).gap == 0


# --- why not --------------------------------------------------------------------------------------------------

BROKEN = MemberDefect("assignment", "truncated", "the assignment ends in mid-field")


@pytest.mark.parametrize(
    ("built", "why"),
    [
        pytest.param(three_racks(member("m", "a", None)), NotAssessed.HIDDEN, id="no assignment is shown"),
        pytest.param(three_racks(), NotAssessed.EMPTY, id="a group without members"),
        pytest.param(three_racks(member("m", None, "t-0")), NotAssessed.NO_RACKS, id="no rack is sent"),
        pytest.param(
            three_racks(member("m", "a", None, defects=(BROKEN,))), NotAssessed.UNDECODABLE, id="broken bytes"
        ),
        pytest.param(
            three_racks(member("m", "a", "gone-0")), NotAssessed.TOPICS_UNKNOWN, id="a topic that cannot be described"
        ),
        pytest.param(
            a_cluster().streams("g", process("p", "a"), topology=None), NotAssessed.TOPOLOGY_UNKNOWN, id="no topology"
        ),
        pytest.param(
            a_cluster().topic("t", (1,)).streams("g", process("p", "a", "9_9"), topology=[task("0_0", "t-0")]),
            NotAssessed.TOPOLOGY_UNKNOWN,
            id="a task that the topology does not know",
        ),
        pytest.param(
            a_cluster().streams("g", process("p", "a", "0_0"), topology=[task("0_0", "t-0")]),
            NotAssessed.TOPICS_UNKNOWN,
            id="a source topic that cannot be described",
        ),
        pytest.param(
            a_cluster().topic("t", (1,)).streams("g", process("p", None, "0_0"), topology=[task("0_0", "t-0")]),
            NotAssessed.NO_RACKS,
            id="no process tells a rack",
        ),
    ],
)
def test_a_group_that_cannot_be_judged_says_why(built, why):
    found = assessed(built.snapshot())
    assert found == Assessment(group_id="g", why_not=why)


def test_excluded_and_own_groups_are_left_out():
    built = (
        a_cluster()
        .topic("t", (1,))
        .group("audit-1", member("m", "b", "t-0"))
        .group("rackwise-leader", member("n", "b", "t-0"))
    )
    found = assess_groups(built.snapshot(), Limits(scope=ScopeLimits(exclude_groups=("audit-*",))), None)
    assert {a.why_not for a in found.values()} == {NotAssessed.EXCLUDED, NotAssessed.OWN}


# --- the bound and the memo -----------------------------------------------------------------------------------


@given(st.randoms(use_true_random=False))
def test_the_bound_is_what_the_exact_solver_reaches(rng: random.Random):
    racks = ["a", "b", "c", "d"][: rng.randint(1, 4)]
    partitions = rng.randint(1, 14)
    near = [frozenset(rng.sample(racks, rng.randint(0, len(racks)))) for _ in range(partitions)]
    members = [rng.choice([*racks, None]) for _ in range(rng.randint(1, 6))]
    bit_of = {name: 4 << index for index, name in enumerate(racks)}
    histogram = [(sum(bit_of[r] for r in of), 1) for of in near]
    count: dict[int, int] = {}
    for of in members:
        bit = bit_of[of] if of else 0
        count[bit] = count.get(bit, 0) + 1
    problem = ConsumerProblem(
        members=tuple(ConsumerMember(id=f"m{n}", rack=of, topics=("t",)) for n, of in enumerate(members)),
        racks={"t": tuple(near)},
    )
    assert most_local(histogram, count, len(members)) == partitions - optimal_consumer(problem).crossing


def test_more_racks_than_the_bound_tries_are_left_to_the_solver():
    racks = {f"r{n}": (n,) for n in range(10)}
    built = a_cluster(**racks).topic("t", *[(n,) for n in range(10)])
    built.group("g", *[member(f"m{n}", f"r{(n + 1) % 10}", f"t-{n}") for n in range(10)])
    assert assessed(built.snapshot()).gap == 10


def test_a_memo_never_changes_an_answer_and_saves_unchanged_groups():
    built = three_racks(member("m1", "b", "t-0"), member("m2", "a", "t-1"), member("m3", "c", "t-2"), rate=1.0)
    built.topic("u", (2,)).group("h", member("n1", "a", "u-0"))
    memo = Memo()
    first = assess_groups(built.snapshot(), LIMITS, memo)
    memo.turn()
    again = assess_groups(built.snapshot(), LIMITS, memo)
    assert (again, memo.computed) == (first, 0)
    memo.turn()
    built.topic("u", (1,))
    changed = assess_groups(built.snapshot(), LIMITS, memo)
    assert changed == assess_groups(built.snapshot(), LIMITS, None)
    assert share(changed["h"].current, KAFKA) == (1, 1, 0)
    assert changed["g"] is again["g"]
    memo.turn()
    other = replace(built.snapshot(), selector_is_rack_aware=False)
    assert assess_groups(other, LIMITS, memo) == assess_groups(other, LIMITS, None)


def test_only_changed_groups_are_solved_again(monkeypatch: pytest.MonkeyPatch):
    solved: list[str] = []

    def counting(problem: ConsumerProblem, *, may_stay: bool) -> object:
        solved.append(problem.members[0].id)
        return optimal_consumer(problem, may_stay=may_stay)

    monkeypatch.setattr("agent.detect.assess_consumers.optimal_consumer", counting)
    built = a_cluster().topic("t", (1,), (2,))
    for number in range(100):
        built.group(f"g{number}", member(f"m{number}", "b", "t-0"), member(f"n{number}", "a", "t-1"))
    memo = Memo()
    assess_groups(built.snapshot(), LIMITS, memo)
    assert len(solved) == 100
    memo.turn()
    solved.clear()
    built.group("g7", member("m7", "c", "t-0"), member("n7", "a", "t-1"))
    later = replace(built.snapshot(), taken_ms=1, end_offsets={TopicPartition("t", 0): 5})
    assert assess_groups(later, LIMITS, memo)["g7"].gap == 1
    assert solved == ["m7"]
