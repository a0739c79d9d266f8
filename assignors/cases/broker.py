"""Cases of replica placement: ``broker.admin_utils`` (KIP-36) and ``broker.striped_placer`` (KRaft)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assignors.cases.fields import MOST_PARTITIONS, an_object, each, one_of, release, text_or_none, truth, whole
from assignors.kafka.exceptions import KafkaRefusal
from assignors.kafka.java import JavaRandom, bounded
from assignors.kafka.replica_placement import BrokerMetadata, PlacementStart, alternate_racks, assign_replicas
from assignors.kafka.striped_placer import NextInt, UsableBroker, place_striped

GENERATORS = ("java.util.Random", "lcg17")


def _admin_utils(case: Mapping[str, Any], _version: str) -> dict[str, Any]:
    brokers = each(case.get("brokers"), "brokers", _broker_metadata)
    partitions = whole(case.get("partitions"), "partitions", most=MOST_PARTITIONS)
    replication_factor = whole(case.get("replication_factor"), "replication_factor")
    start = PlacementStart.fixed(whole(case.get("fixed_start_index"), "fixed_start_index", 0))
    first = whole(case.get("start_partition_id", -1), "start_partition_id")
    placed = assign_replicas(brokers, partitions, replication_factor, start, first)
    output: dict[str, Any] = {"assignment": {str(partition): list(replicas) for partition, replicas in placed.items()}}
    if all(broker.rack is not None for broker in brokers):
        output["rack_alternated_brokers"] = alternate_racks(brokers)
    return output


def _striped_placer(case: Mapping[str, Any], version: str) -> dict[str, Any]:
    brokers = each(case.get("brokers"), "brokers", _usable_broker)
    topics = each(case.get("topics"), "topics", _topic)
    draw = _generator(case)
    draws: list[list[int]] = []

    def next_int(bound: int) -> int:
        draws.append([bound, draw(bound)])
        return draws[-1][1]

    outputs: list[dict[str, Any]] = []
    for partitions, replication_factor in topics:
        try:
            placed = place_striped(brokers, partitions, replication_factor, next_int, release(version))
        except KafkaRefusal as refusal:
            outputs.append(refusal.output())
        else:
            outputs.append({"replicas": [list(replicas) for replicas in placed]})
    return {"topics": outputs, "draws": draws}


def _broker_metadata(value: Any, field: str) -> BrokerMetadata:
    broker = an_object(value, field)
    return BrokerMetadata(whole(broker.get("id"), f"{field}.id", 0), text_or_none(broker.get("rack"), f"{field}.rack"))


def _usable_broker(value: Any, field: str) -> UsableBroker:
    fenced = truth(an_object(value, field).get("fenced"), f"{field}.fenced")
    return UsableBroker(*_broker_metadata(value, field), fenced)


def _topic(value: Any, field: str) -> tuple[int, int]:
    topic = an_object(value, field)
    return (
        whole(topic.get("partitions"), f"{field}.partitions", 0, MOST_PARTITIONS),
        whole(topic.get("replication_factor"), f"{field}.replication_factor"),
    )


def _generator(case: Mapping[str, Any]) -> NextInt:
    if one_of(case.get("rng"), "rng", GENERATORS) == "java.util.Random":
        return JavaRandom(whole(case.get("seed"), "seed", -(1 << 63), (1 << 63) - 1)).next_int
    state = 17

    def next_bits(bits: int) -> int:
        nonlocal state
        state = (state * 2862933555777941757 + 3037000493) % (1 << 64)
        return state >> 64 - bits

    return lambda bound: bounded(next_bits, bound)


RUNNERS: Mapping[str, Callable[[Mapping[str, Any], str], dict[str, Any]]] = {
    "broker.admin_utils": _admin_utils,
    "broker.striped_placer": _striped_placer,
}
