"""Where new partitions go: Kafka's placers and the best, on what a snapshot shows."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agent.documents.plan import placement_to_json
from agent.errors import BadInput
from agent.plan.new_partitions import ClusterPlacer, KafkaPlacer, place_added, place_new_topic
from agent.propose.codec import read_reassignment_json
from agent.values.snapshot import RackState, Snapshot
from tests.plan.random_clusters import random_clusters
from tests.snapshots import a_cluster

SIX = {"a": (1, 4), "b": (2, 5), "c": (3, 6)}


def kafka(placer: KafkaPlacer = KafkaPlacer.STRIPED, seed: int = 0) -> ClusterPlacer:
    return ClusterPlacer(placer, Random(seed).randrange)


def test_a_new_topic_goes_where_least_is_and_kafkas_placer_does_not_look() -> None:
    built = a_cluster(**SIX).topic("old", *[(1, 2, 3)] * 5)
    ours, best = place_new_topic(built.snapshot(), "new", 1, 3, kafka())
    assert (ours.by, best.by) == ("kafka", "optimum")
    assert set(best.replicas[0]) == {4, 5, 6}
    assert best.spread is not None
    assert best.spread.cluster_replicas == (1, 5)
    assert (best.spread.most_in_a_rack, best.spread.against_the_rule) == (1, 0)
    drawn = {place_new_topic(built.snapshot(), "new", 1, 3, kafka(seed=seed))[0].replicas for seed in range(40)}
    assert len(drawn) > 1, "Kafka's answer is one of many"
    assert {len({(broker - 1) % 3 for broker in of}) for (of,) in drawn} == {3}, "and each has every rack"


def test_added_partitions_even_out_the_topic_as_it_will_be() -> None:
    built = a_cluster(**SIX).topic("t", (1, 2, 3), (1, 2, 3), (1, 2, 3))
    _, best = place_added(built.snapshot(), "t", 6, kafka())
    assert best.existing == ((1, 2, 3),) * 3
    assert Counter(broker for of in best.replicas for broker in of) == {4: 3, 5: 3, 6: 3}
    assert sorted(of[0] for of in best.replicas) == [4, 5, 6]


def test_kip_36_adds_partitions_without_any_draw() -> None:
    built = a_cluster(**SIX).topic("t", (2, 3, 1))
    answers = {place_added(built.snapshot(), "t", 5, kafka(KafkaPlacer.KIP_36, seed))[0].replicas for seed in range(9)}
    assert len(answers) == 1
    assert "nothing is random" in place_added(built.snapshot(), "t", 5, kafka(KafkaPlacer.KIP_36))[0].sentence


def test_replicas_that_a_running_reassignment_takes_away_are_not_counted() -> None:
    built = a_cluster().topic("t", (3, 1, 2)).moving("t-0", (3, 1, 2), (3,), (1, 2))
    _, best = place_added(built.snapshot(), "t", 2, kafka())
    assert best.existing == ((3,),)
    assert len(best.replicas[0]) == 1


def test_brokers_that_are_away_fenced_or_cordoned_get_nothing_from_the_optimum() -> None:
    built = a_cluster(**SIX).broker(4, "a", alive=False, fenced=True).broker(5, "b", cordoned=True)
    built.broker(7, "a", alive=False, fenced=None, host=None).topic("t", (1,))
    ours, best = place_new_topic(built.snapshot(), "new", 12, 3, kafka())
    assert {broker for of in best.replicas for broker in of} == {1, 2, 3, 6}
    assert {broker for of in ours.replicas for broker in of} == {1, 2, 3, 6}, "Kafka takes fenced ones last"
    assert best.sentence.endswith("; brokers that are absent take nothing: 4, 7")


def test_a_rack_without_a_broker_that_takes_replicas_breaks_the_rule_and_it_is_said() -> None:
    built = a_cluster(**SIX).broker(3, "c", alive=False, fenced=True).broker(6, "c", alive=False, fenced=True)
    _, best = place_new_topic(built.snapshot(), "new", 4, 3, kafka())
    assert best.spread is not None
    assert (best.spread.most_in_a_rack, best.spread.against_the_rule) == (2, 4)


def test_brokers_without_rack_are_left_out_of_the_optimum_and_named() -> None:
    built = a_cluster(a=(1,), b=(2,), _=(3,))
    _, best = place_new_topic(built.snapshot(), "new", 2, 2, kafka())
    assert {broker for of in best.replicas for broker in of} == {1, 2}
    assert best.sentence.endswith("; brokers without a known rack take nothing: 3")


def test_what_kafka_refuses_is_said_in_its_words_and_has_no_files() -> None:
    built = a_cluster(a=(1,), b=(2,), _=(3,))
    ours, _ = place_new_topic(built.snapshot(), "new", 2, 2, kafka(KafkaPlacer.KIP_36))
    row = placement_to_json(ours)
    assert row["sentence"].startswith("Kafka would refuse: AdminOperationException: Not all brokers have rack")
    assert (row["command"], row["reassignment"], row["replica_assignment"]) == (None, None, None)


REFUSED: list[Any] = [
    pytest.param("t", 1, 1, "topic t is there already", id="a topic of that name"),
    pytest.param("a b", 1, 1, "'a b' is no name for a topic", id="a blank in the name"),
    pytest.param("..", 1, 1, "'..' is no name for a topic", id="dots only"),
    pytest.param("", 1, 1, "'' is no name for a topic", id="no name"),
    pytest.param("x_y", 1, 1, "topic x_y would collide with x.y", id="a name that metrics cannot tell apart"),
    pytest.param("new", 0, 1, "a topic cannot have 0 partitions", id="no partitions"),
    pytest.param("new", -3, 1, "a topic cannot have -3 partitions", id="less than none"),
    pytest.param("new", 1, 0, "a topic cannot have 0 replicas of a partition", id="no replicas"),
    pytest.param("new", 1, 4, "4 replicas of a partition cannot be placed", id="more replicas than brokers"),
    pytest.param("new", 100_001, 1, "100001 new partitions are too many", id="a typing error"),
]


@pytest.mark.parametrize(("topic", "partitions", "factor", "what"), REFUSED)
def test_bad_new_topics(topic: str, partitions: int, factor: int, what: str) -> None:
    snapshot = a_cluster().topic("t", (1, 2, 3)).topic("x.y", (1,)).snapshot()
    with pytest.raises(BadInput) as refused:
        place_new_topic(snapshot, topic, partitions, factor, kafka())
    assert refused.value.what == what
    assert refused.value.why
    assert refused.value.todo


@pytest.mark.parametrize(
    ("topic", "partitions", "what"),
    [
        pytest.param("nobody", 3, "there is no topic 'nobody'", id="an unknown topic"),
        pytest.param("t", 2, "topic t has 2 partitions already", id="as many as there are"),
        pytest.param("t", -1, "topic t has 2 partitions already", id="less than none"),
        pytest.param("hollow", 2, "topic hollow has no partitions yet", id="a topic that is being created"),
    ],
)
def test_bad_additions(topic: str, partitions: int, what: str) -> None:
    with pytest.raises(BadInput) as refused:
        place_added(a_cluster().topic("t", (1,), (2,)).topic("hollow").snapshot(), topic, partitions, kafka())
    assert refused.value.what == what


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(random_clusters(), st.integers(1, 9), st.integers(1, 4), st.sampled_from(KafkaPlacer), st.integers(0, 99))
def test_whatever_the_cluster_both_are_valid_and_the_best_is_never_less_even(
    snapshot: Snapshot, partitions: int, factor: int, placer: KafkaPlacer, seed: int
) -> None:
    usable = [b for b in snapshot.brokers if b.alive and not b.fenced and not b.cordoned]
    known = [b for b in usable if b.rack.state is RackState.KNOWN]
    assume(factor <= len(known or usable))
    ours, best = place_new_topic(snapshot, "brand-new", partitions, factor, kafka(placer, seed))
    for placed in (ours, best):
        if placed.refused is None:
            assert len(placed.replicas) == partitions
            assert all(len(of) == len(set(of)) == factor for of in placed.replicas)
            written = read_reassignment_json(json.dumps(placement_to_json(placed)["reassignment"]))
            assert tuple(written.values()) == placed.replicas
    assert {broker for of in best.replicas for broker in of} <= {broker.id for broker in known or usable}
    ours_elsewhere = {broker for of in ours.replicas for broker in of} - {broker.id for broker in known or usable}
    if ours.spread is not None and best.spread is not None and not ours_elsewhere:
        assert best.spread.most_in_a_rack <= ours.spread.most_in_a_rack
        if not ours.spread.against_the_rule:
            assert _width(best.spread.topic_replicas) <= max(1, _width(ours.spread.topic_replicas))


def _width(ends: tuple[int, int]) -> int:
    return ends[1] - ends[0]
