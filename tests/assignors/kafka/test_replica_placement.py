"""Replica placement of KIP-36: Kafka's own answers, the KIP's examples and promises, and Kafka's refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.cases.registry import AssignorCase
from assignors.kafka.exceptions import (
    AdminOperationException,
    InvalidPartitionsException,
    InvalidReplicationFactorException,
    KafkaRefusal,
)
from assignors.kafka.java import JavaRandom
from assignors.kafka.replica_placement import (
    BrokerMetadata,
    PlacementStart,
    add_partitions,
    alternate_racks,
    assign_replicas,
    create_topic,
)
from assignors.problem import BadProblem
from tests.assignors.kafka.golden import assert_as_kafka, golden_cases
from tests.assignors.strategies import examples


@pytest.mark.parametrize("case", golden_cases("broker.admin_utils"))
def test_the_placement_is_kafkas(case: AssignorCase) -> None:
    assert_as_kafka(case)


def brokers(*racks: str | None) -> tuple[BrokerMetadata, ...]:
    """Brokers 0, 1, … in these racks."""
    return tuple(BrokerMetadata(number, rack) for number, rack in enumerate(racks))


SIX = brokers("rack1", "rack1", "rack2", "rack2", "rack3", "rack3")


def test_kip_36_brokers_are_interlaced_by_rack() -> None:
    assert alternate_racks(SIX) == [0, 2, 4, 1, 3, 5]


def test_kip_36_adjacent_brokers_share_a_rack_only_where_they_must() -> None:
    assert alternate_racks(brokers("a", "a", "a", "b", "c", "c")) == [0, 3, 4, 1, 5, 2]


def test_kip_36_as_many_replicas_as_racks_give_every_rack_one_and_brokers_even_shares() -> None:
    placed = create_topic(SIX, 6, 3, PlacementStart.fixed(0))
    assert placed == {0: (0, 2, 4), 1: (2, 4, 1), 2: (4, 1, 3), 3: (1, 3, 5), 4: (3, 5, 0), 5: (5, 0, 2)}
    assert set(Counter(replica for replicas in placed.values() for replica in replicas).values()) == {3}
    assert Counter(replicas[0] for replicas in placed.values()) == dict.fromkeys(range(6), 1)


def test_kip_36_four_replicas_over_two_racks_leave_no_rack_empty() -> None:
    two_racks = brokers("rack1", "rack1", "rack1", "rack2", "rack2", "rack2")
    for start in range(6):
        for replicas in create_topic(two_racks, 12, 4, PlacementStart.fixed(start)).values():
            assert {two_racks[replica].rack for replica in replicas} == {"rack1", "rack2"}


def test_kip_36_fewer_replicas_than_racks_are_all_apart() -> None:
    for replicas in create_topic(SIX, 18, 2, PlacementStart.fixed(1)).values():
        assert len({SIX[replica].rack for replica in replicas}) == 2


def test_kip_36_without_any_rack_the_placement_is_the_old_one() -> None:
    without = brokers(None, None, None, None, None)
    expected = {0: (0, 1, 2), 1: (1, 2, 3), 2: (2, 3, 4), 3: (3, 4, 0), 4: (4, 0, 1), 5: (0, 2, 3)}
    assert create_topic(without, 6, 3, PlacementStart.fixed(0)) == expected


class TestAddedPartitions:
    def test_the_round_of_leaders_goes_on_where_it_was(self) -> None:
        whole = create_topic(SIX, 9, 3, PlacementStart.fixed(0))
        existing = {number: whole[number] for number in range(4)}
        added = add_partitions(SIX, "orders", existing, 9)
        assert added == {number: whole[number] for number in range(4, 9)}

    def test_it_begins_with_the_preferred_leader_of_partition_0_or_the_next_broker(self) -> None:
        without = brokers(None, None, None, None)
        assert add_partitions(without, "t", {0: (2, 3)}, 2) == {1: (3, 2)}
        assert add_partitions(without[:2] + without[3:], "t", {0: (2, 3)}, 2) == {1: (0, 1)}
        assert add_partitions(without[:2], "t", {0: (2, 3)}, 2) == {1: (1, 0)}, "no broker is next: the first one"

    @pytest.mark.parametrize(
        ("existing", "partitions", "refusal", "sentence"),
        [
            pytest.param(
                {0: (0,), 1: (1,)}, 2, InvalidPartitionsException, "would not be an increase", id="no increase"
            ),
            pytest.param(
                {0: (0,)}, 0, InvalidPartitionsException, "currently has 1 partitions, 0 would", id="a decrease"
            ),
            pytest.param(
                {1: (0,)}, 3, AdminOperationException, "partition id 0 is missing", id="partition 0 is missing"
            ),
            pytest.param(
                {0: (0, 1, 2, 3)}, 2, InvalidReplicationFactorException, "4 larger than", id="too few brokers left"
            ),
        ],
    )
    def test_refusals(self, existing: Any, partitions: int, refusal: type[KafkaRefusal], sentence: str) -> None:
        with pytest.raises(refusal, match=sentence):
            add_partitions(SIX[:3], "orders", existing, partitions)


def test_brokers_of_which_one_has_no_rack() -> None:
    with pytest.raises(
        AdminOperationException, match=r"Not all brokers have rack information\. Add --disable-rack-aware"
    ) as thrown:
        create_topic(brokers("a", "a", "b", None), 1, 2, PlacementStart.fixed(0))
    assert thrown.value.kafka_name == "AdminOperationException"


@pytest.mark.parametrize(
    ("given_brokers", "partitions", "replication_factor", "name", "sentence"),
    [
        pytest.param(
            SIX, 0, 0, "InvalidPartitionsException", "Number of partitions must be larger than 0.",
            id="no partitions, said before anything else",
        ),
        pytest.param(
            SIX, 1, 0, "InvalidReplicationFactorException",
            "Replication factor must be larger than 0.", id="no replicas",
        ),
        pytest.param(
            (), 1, 1, "InvalidReplicationFactorException",
            "Replication factor: 1 larger than available brokers: 0.", id="no brokers",
        ),
        pytest.param(
            brokers("a", None), 1, 1, "AdminOperationException",
            "Not all brokers have rack information for replica rack aware assignment.", id="a rack is missing",
        ),
    ],
)  # fmt: skip
def test_kafkas_refusals(
    given_brokers: Any, partitions: int, replication_factor: int, name: str, sentence: str
) -> None:
    with pytest.raises(KafkaRefusal) as thrown:
        assign_replicas(given_brokers, partitions, replication_factor, PlacementStart.fixed(0))
    assert (thrown.value.kafka_name, str(thrown.value)) == (name, sentence)


def test_a_refused_topic_draws_nothing() -> None:
    def drawn(_size: int) -> PlacementStart:
        raise AssertionError("drew")

    with pytest.raises(InvalidReplicationFactorException):
        assign_replicas(SIX, 1, 7, drawn)


def test_a_broker_id_twice_is_named() -> None:
    with pytest.raises(BadProblem, match="brokers has an id twice"):
        assign_replicas((*SIX, SIX[0]), 1, 1, PlacementStart.fixed(0))


# --- properties -------------------------------------------------------------------------------------------------

RACKS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9)


@given(
    racks=RACKS,
    partitions=st.integers(1, 40),
    factor=st.integers(1, 9),
    start=st.integers(0, 20),
    shift=st.integers(0, 20),
)
@examples(400)
def test_kip_36_promises(racks: list[str], partitions: int, factor: int, start: int, shift: int) -> None:
    """Every rack has a replica, or no rack has two; no broker has two; leaders are even over the brokers."""
    cluster = brokers(*racks)
    factor = min(factor, len(cluster))
    placed = create_topic(cluster, partitions, factor, PlacementStart(start, shift))
    assert sorted(placed) == list(range(partitions))
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert len({cluster[replica].rack for replica in replicas}) == min(factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in placed.values())
    assert max(leaders[broker.id] for broker in cluster) - min(leaders[broker.id] for broker in cluster) <= 1


@given(
    racks=st.one_of(RACKS, st.lists(st.none(), min_size=1, max_size=9)),
    first=st.integers(1, 12),
    more=st.integers(1, 12),
    factor=st.integers(1, 9),
)
@examples(200)
def test_adding_partitions_in_two_steps_or_in_one_keeps_every_promise(
    racks: list[str | None], first: int, more: int, factor: int
) -> None:
    cluster = brokers(*racks)
    factor = min(factor, len(cluster))
    topic = create_topic(cluster, first, factor, PlacementStart.fixed(0))
    for total in (first + more, first + 2 * more):
        topic |= add_partitions(cluster, "t", topic, total)
    assert sorted(topic) == list(range(first + 2 * more))
    for replicas in topic.values():
        assert len(set(replicas)) == factor
        assert len({cluster[replica].rack for replica in replicas}) == min(factor, len(set(racks)))
    if racks[0] is None:  # with racks Kafka begins anywhere, see add_partitions
        leaders = Counter(replicas[0] for replicas in topic.values())
        assert max(leaders[broker.id] for broker in cluster) - min(leaders[broker.id] for broker in cluster) <= 1


@given(seed=st.integers(-(2**63), 2**63 - 1), size=st.integers(1, 50))
@examples(100)
def test_drawn_starts_are_below_the_number_of_brokers(seed: int, size: int) -> None:
    next_int: Callable[[int], int] = JavaRandom(seed).next_int
    start = PlacementStart.drawn(next_int, size)
    assert 0 <= start.at < size
    assert 0 <= start.shift < size
