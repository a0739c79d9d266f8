"""The placer of KRaft controllers: Kafka's own answers, replayed draws, and what it promises."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.cases.registry import AssignorCase, run_case
from assignors.kafka.exceptions import InvalidReplicationFactorException
from assignors.kafka.java import JavaRandom
from assignors.kafka.striped_placer import UsableBroker, place_striped, replay
from assignors.problem import BadProblem
from tests.assignors.kafka.golden import assert_as_kafka, golden, golden_cases
from tests.assignors.strategies import examples

FILES = ("broker.striped_placer", "4.3.1/broker.striped_placer")


@pytest.mark.parametrize("case", golden_cases(*FILES))
def test_the_placement_is_kafkas(case: AssignorCase) -> None:
    assert_as_kafka(case)


@pytest.mark.parametrize("file", FILES)
def test_recorded_draws_give_the_recorded_placement(file: str) -> None:
    """A controller's generator is not known; its draws are enough."""
    for case in golden(file):
        output = run_case(case)
        next_int = replay([(bound, value) for bound, value in output["draws"]])
        brokers = [UsableBroker(each["id"], each["rack"], each["fenced"]) for each in case.input["brokers"]]
        for topic, placed in zip(case.input["topics"], output["topics"], strict=True):
            if "error" in placed:
                with pytest.raises(InvalidReplicationFactorException):
                    place_striped(brokers, topic["partitions"], topic["replication_factor"], next_int)
            else:
                replicas = place_striped(brokers, topic["partitions"], topic["replication_factor"], next_int)
                assert [list(each) for each in replicas] == placed["replicas"]
        with pytest.raises(BadProblem, match="draws ends"):
            next_int(1)


def cluster(*racks: str) -> list[UsableBroker]:
    """Brokers 0, 1, … in racks of one letter; a capital says that the broker is fenced, a dash that it has no rack."""
    return [
        UsableBroker(number, None if rack == "-" else rack.lower(), rack.isupper()) for number, rack in enumerate(racks)
    ]


def nothing(bound: int) -> int:
    """A generator that always draws 0."""
    return 0 * bound


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "expected"),
    [
        pytest.param(
            "abcabcabc", 3, 3, ((0, 1, 2), (4, 5, 3), (8, 6, 7)), id="racks in turn, and in each rack the next broker"
        ),
        pytest.param("ab", 1, 2, ((0, 1),), id="one broker a rack"),
        pytest.param("aAb", 1, 3, ((0, 2, 1),), id="a fenced broker is only a follower, and the last of its rack"),
        pytest.param("Ab", 1, 2, ((1, 0),), id="a rack whose brokers are all fenced leads nothing"),
        pytest.param("-ab", 1, 3, ((0, 1, 2),), id="brokers without a rack are a rack of their own, the first one"),
        pytest.param("a", 3, 1, ((0,), (0,), (0,)), id="a single broker"),
    ],
)
def test_placement(racks: str, partitions: int, factor: int, expected: tuple[tuple[int, ...], ...]) -> None:
    assert place_striped(cluster(*racks), partitions, factor, nothing) == expected


@pytest.mark.parametrize(
    ("racks", "factor", "release", "sentence"),
    [
        pytest.param("A", 0, (4, 1, 1), "Invalid replication factor 0: the replication factor must be positive.",
                     id="no replicas, said before that all are fenced"),
        pytest.param("A", 2, (4, 1, 1), "All brokers are currently fenced.", id="all fenced, said before too few"),
        pytest.param("A", 2, (4, 3, 1), "All brokers are currently fenced, or have all their log directories cordoned.",
                     id="all fenced, since directories can be cordoned"),
        pytest.param("", 1, (4, 1, 1), "All brokers are currently fenced.", id="no broker at all"),
        pytest.param("a", 2, (4, 2, 0),
                     "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered.",
                     id="too few"),
        pytest.param("a", 2, (4, 3),
                     "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered or "
                     "some brokers have all their log directories cordoned.",
                     id="too few, since directories can be cordoned"),
    ],
)  # fmt: skip
def test_kafkas_refusals(racks: str, factor: int, release: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(InvalidReplicationFactorException) as thrown:
        place_striped(cluster(*racks), 1, factor, nothing, release)
    assert (thrown.value.kafka_name, str(thrown.value)) == ("InvalidReplicationFactorException", sentence)


@pytest.mark.parametrize(
    ("draws", "sentence"),
    [
        pytest.param([(3, 0)], r"draws has \[3, 0\] where a number below 2 is wanted", id="of another cluster"),
        pytest.param([(2, 2)], r"draws has \[2, 2\] where a number below 2 is wanted", id="out of bounds"),
        pytest.param([(2, 1)], "draws ends where a number below 1 is wanted", id="too few"),
    ],
)
def test_draws_that_do_not_fit(draws: list[tuple[int, int]], sentence: str) -> None:
    with pytest.raises(BadProblem, match=sentence):
        place_striped(cluster("a", "a"), 1, 1, replay(draws))


def test_a_broker_id_twice_is_named() -> None:
    with pytest.raises(BadProblem, match="brokers has an id twice"):
        place_striped([UsableBroker(1, "a"), UsableBroker(1, "b")], 1, 1, nothing)


@given(
    racks=st.text("abcABC-", min_size=1, max_size=10),
    partitions=st.integers(0, 40),
    factor=st.integers(1, 10),
    seed=st.integers(0, 2**48),
)
@examples(400)
def test_promises(racks: str, partitions: int, factor: int, seed: int) -> None:
    """Replicas of a partition are on different brokers and in as many racks as can be; leaders are not fenced."""
    brokers = cluster(*racks)
    if all(broker.fenced for broker in brokers):
        brokers.append(UsableBroker(99, "a"))
    factor = min(factor, len(brokers))
    random: Callable[[int], int] = JavaRandom(seed).next_int
    of = {broker.id: broker for broker in brokers}
    for replicas in place_striped(brokers, partitions, factor, random):
        assert len(set(replicas)) == factor
        assert not of[replicas[0]].fenced
        assert len({of[replica].rack for replica in replicas}) == min(factor, len({broker.rack for broker in brokers}))
