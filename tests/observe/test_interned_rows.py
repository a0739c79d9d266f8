"""Equal rows keep their identity from look to look; the value is never changed."""

from __future__ import annotations

import copy
from dataclasses import replace

from agent.observe.observe_cluster import interned, interned_observation, interned_values
from agent.values.observation import (
    Observation,
    RawBroker,
    RawClassicGroup,
    RawListedGroup,
    RawMember,
    RawPartition,
    RawTopic,
)
from assignors.problem import TopicPartition


def an_observation() -> Observation:
    """Built anew each time, so that no row is shared."""
    partitions = tuple(RawPartition(number, 1, (1, 2, 3), (1, 2, 3), ()) for number in range(3))
    member = RawMember("m", None, "c", "/h", bytes(bytearray(b"abc")), b"")
    return Observation(
        cluster_id="c",
        controller=1,
        brokers=(RawBroker(1, "h", 9092, "a", False), RawBroker(2, "h", 9093, "b", False)),
        topics=(RawTopic("t", "id", False, partitions, None), RawTopic("u", "id2", False, partitions[:1], None)),
        topic_configs={"t": {"min.insync.replicas": "2"}},
        committed_offsets={"g": {TopicPartition("t", 0): 5}, "h": {TopicPartition("t", 1): 7}},
        listed_groups=(RawListedGroup("g", "consumer", "Stable", "classic"),),
        groups=(RawClassicGroup("g", "Stable", "consumer", "range", (member, member._replace(member_id="n")), 1),),
        taken_ms=1,
        monotonic_ms=1,
        took_ms=1,
    )


def test_a_look_that_found_nothing_new_is_made_of_the_last_ones_objects() -> None:
    last, new = an_observation(), replace(an_observation(), taken_ms=2)
    kept = interned_observation(new, last)
    assert kept == new
    assert kept.topics is last.topics
    assert kept.brokers is last.brokers
    assert kept.groups is last.groups
    assert kept.listed_groups is last.listed_groups
    assert kept.topic_configs is last.topic_configs
    assert kept.committed_offsets is last.committed_offsets


def test_only_what_changed_is_new() -> None:
    last, new = an_observation(), an_observation()
    changed = new.topics[0]._replace(
        partitions=(*new.topics[0].partitions[:2], new.topics[0].partitions[2]._replace(leader=2))
    )
    new = replace(new, topics=(changed, new.topics[1]))
    kept = interned_observation(new, last)
    assert kept == new
    assert kept.topics[1] is last.topics[1]
    assert kept.topics[0].partitions[0] is last.topics[0].partitions[0]
    assert kept.topics[0].partitions[2].leader == 2


def test_members_that_stayed_keep_their_identity_when_another_joins() -> None:
    last, new = an_observation(), an_observation()
    group = new.groups[0]
    grown = group._replace(members=(*group.members, group.members[0]._replace(member_id="z")))
    kept = interned_observation(replace(new, groups=(grown,)), last)
    assert kept.groups == (grown,)
    assert kept.groups[0].members[0] is last.groups[0].members[0]
    assert kept.groups[0].members[1] is last.groups[0].members[1]


def test_rows_that_went_or_came_or_changed_places_are_told() -> None:
    rows = (("a", 1), ("b", 2), ("c", 3))
    for new in ((), rows[1:], rows[::-1], (*rows, ("d", 4)), (("a", 1), ("b", 5), ("c", 3))):
        kept = interned(copy.deepcopy(new), rows, lambda row: row[0])
        assert kept == new
        assert kept is not rows
    assert interned((("a", 1), ("b", 2), ("c", 3)), rows, lambda row: row[0]) is rows
    assert interned((), (), lambda row: row) == ()


def test_values_that_changed_are_told() -> None:
    last = {"a": {"x": 1}, "b": {"y": 2}}
    new = {"a": {"x": 1}, "b": {"y": 3}, "c": {"z": 4}}
    kept = interned_values(new, last)
    assert kept == new
    assert kept["a"] is last["a"]
    assert interned_values({"a": {"x": 1}, "b": {"y": 2}}, last) is last
    assert interned_values({"a": {"x": 1}}, last) == {"a": {"x": 1}}


def test_the_first_look_is_taken_as_it_is() -> None:
    first = an_observation()
    assert interned_observation(first, None) is first
