"""Kafka's own classes read the same bytes: where Kafka parses we give the same value, where it throws `Undecodable`.

Meant differences, each checked below and nowhere else allowed:

1. A name that is no valid text: Kafka puts U+FFFD (or keeps half a surrogate pair); we refuse, because a name that was
   not sent can be looked up nowhere, and half a pair cannot be written again.
2. An AssignmentInfo partition whose topic index the dictionary lacks: Kafka reads a partition without topic; we refuse.
3. Sticky user data that cannot be parsed: Kafka takes it for no history; we say that it is there and broken.
4. Cooperative-sticky user data in librdkafka's layout: Kafka reads its first number, a count, as the generation; we
   read what librdkafka wrote.
5. A stored generation of -1 is no generation here; Kafka keeps the number and treats it as none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from struct import unpack_from
from typing import Any

import pytest

from agent.decode.values import (
    Assignment,
    StickyUserData,
    StreamsAssignment,
    StreamsSubscription,
    StreamsSubscriptionHeader,
    Subscription,
    Undecodable,
    UndecodableReason,
)
from agent.execute.probe_bytes import encode_subscription, encode_subscription_info
from assignors.problem import TopicPartition
from tests.decode.generate import LAYOUTS, Layout, mutated
from tests.decode.oracle import Oracle, kafka_oracle

INPUTS_PER_LAYOUT = 5_000
NO_HISTORY = ({"owned": [], "generation": -1}, {"owned": [], "generation": None})


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    with kafka_oracle(tmp_path_factory.mktemp("oracle")) as started:
        yield started


def inputs(layout: Layout, seed: int) -> Iterator[bytes]:
    """One in five is whole, most have something wrong, one in twenty is noise."""
    r = Random(f"{layout.name}{seed}")
    for i in range(INPUTS_PER_LAYOUT):
        data = layout.encode(layout.make(r))
        if i % 20 == 0:
            yield r.randbytes(r.randrange(40))
        else:
            yield data if i % 5 == 1 else mutated(r, data)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_kafka_reads_the_same(layout: Layout, oracle: Oracle) -> None:
    tried = list(inputs(layout, seed=1))
    parsed = refused = 0
    for data, theirs in zip(tried, oracle.read((layout.name, data) for data in tried), strict=True):
        ours = layout.decode(data)
        difference = compare(layout.name, data, ours, theirs)
        assert difference is None, f"{layout.name} {data.hex()}\n{difference}\nours:   {ours}\nKafka's: {theirs}"
        parsed += not isinstance(ours, Undecodable)
        refused += isinstance(ours, Undecodable)
    assert min(parsed, refused) > INPUTS_PER_LAYOUT // 10, (parsed, refused)  # both sides were tried in earnest


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_what_kafka_writes_is_read(layout: Layout, oracle: Oracle) -> None:
    r = Random(layout.name)
    values = [layout.make(r) for _ in range(500)]
    answers = oracle.read((layout.name, layout.encode(value)) for value in values)
    written = [(value, bytes.fromhex(a["again"])) for value, a in zip(values, answers, strict=True) if a.get("again")]
    if layout.name.endswith("sticky"):
        assert not written  # Kafka does not show how it writes these
        return
    assert len(written) > 300
    for value, data in written:
        again = layout.decode(data)
        assert in_kafkas_order(canonical(again)) == in_kafkas_order(canonical(value)), data.hex()


def test_kafka_takes_our_probes_byte_for_byte(oracle: Oracle) -> None:
    """Bytes that we may send into a live group are written exactly as Kafka writes them: sorted."""
    r = Random(7)
    probes = []
    for _ in range(2_000):
        layout = r.choice([layout for layout in LAYOUTS if layout.name in ("subscription", "subscription-info")])
        value = layout.make(r)
        if isinstance(value, Subscription) and value.version <= 3:
            owned = value.owned and tuple(sorted(value.owned, key=lambda p: (as_in_java(p.topic), p.partition)))
            value = value._replace(topics=tuple(sorted(value.topics, key=as_in_java)), owned=owned)
            probes.append((layout.name, encode_subscription(value)))
        elif isinstance(value, StreamsSubscription):
            probes.append((layout.name, encode_subscription_info(value)))
    answers = oracle.read(probes)
    assert [answer.get("again") for answer in answers] == [data.hex() for _, data in probes]


def in_kafkas_order(value: dict[str, Any]) -> dict[str, Any]:
    """Kafka writes each topic once, and sorts what a subscription lists."""
    return {key: sorted(found) if isinstance(found, list) else found for key, found in value.items()}


def as_in_java(text: str) -> bytes:
    """Java compares strings by UTF-16 code unit."""
    return text.encode("utf-16-be")


def compare(layout: str, data: bytes, ours: Any, theirs: dict[str, Any]) -> str | None:
    """None when both agree or the difference is one that is meant; else what differs."""
    if "error" in theirs:
        return None if isinstance(ours, Undecodable) else "Kafka throws"
    if isinstance(ours, Undecodable):
        return None if meant(layout, data, ours, theirs) else "Kafka parses"
    if layout == "cooperative-sticky" and ours.owned is not None:
        first_number = unpack_from(">i", data)[0]
        return None if theirs["generation"] == first_number else "not even the first number"
    expected = sorted_sets(layout, {key: value for key, value in theirs.items() if key != "again"})
    return None if canonical(ours) == expected else f"another value: {canonical(ours)} instead of {expected}"


def meant(layout: str, data: bytes, ours: Undecodable, theirs: dict[str, Any]) -> bool:
    """Whether Kafka may parse what we refuse: differences 1 to 3."""
    if layout.endswith("sticky") and theirs in NO_HISTORY:
        return True
    texts = json.dumps(theirs)
    if ours.reason is UndecodableReason.NOT_TEXT:
        # Kafka's value does not show the name of a topic without partitions: then the bytes at the place we name tell.
        return "\\ufffd" in texts or "\\ud" in texts or not is_text(data[ours.offset : ours.offset + 4])
    return ours.reason is UndecodableReason.UNKNOWN_TOPIC and "[null," in texts.replace(" ", "")


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def canonical(value: Any) -> dict[str, Any]:
    """Our value in the oracle's words."""
    match value:
        case Subscription():
            return {
                "topics": list(value.topics),
                "user_data": hexadecimal(value.user_data),
                "owned": pairs(value.owned or ()),
                "generation": value.generation,
                "rack": value.rack,
            }
        case Assignment():
            return {"partitions": pairs(value.partitions), "user_data": hexadecimal(value.user_data)}
        case StickyUserData():
            return {"owned": pairs(value.owned or ()), "generation": value.generation}
        case StreamsSubscriptionHeader():
            return value._asdict()
        case StreamsSubscription():
            return {
                "version": value.version,
                "latest_supported": -1 if value.latest_supported is None else value.latest_supported,
                "process_id": value.process_id,
                "prev_tasks": [str(task) for task in value.prev_tasks],
                "standby_tasks": [str(task) for task in value.standby_tasks],
                "endpoint": value.endpoint,
                "offset_sums": {str(task): offset_sum for task, offset_sum in value.offset_sums.items()},
                "unique_field": value.unique_field or 0,
                "error_code": value.error_code or 0,
                "client_tags": [list(tag) for tag in value.client_tags or ()],
            }
        case StreamsAssignment():
            return {
                "version": value.version,
                "commonly_supported": -1 if value.commonly_supported is None else value.commonly_supported,
                "active": [str(task) for task in value.active],
                "standby": {str(task): sorted_pairs(partitions) for task, partitions in value.standby},
                "partitions_by_host": {f"{h.host}:{h.port}": sorted_pairs(h.partitions) for h in value[4]},
                "standby_partitions_by_host": {f"{h.host}:{h.port}": sorted_pairs(h.partitions) for h in value[5]},
                "error_code": value.error_code or 0,
                "next_rebalance_ms": 2**63 - 1 if value.next_rebalance_ms is None else value.next_rebalance_ms,
            }
    raise AssertionError(f"no words for {value!r}")


def sorted_sets(layout: str, theirs: dict[str, Any]) -> dict[str, Any]:
    """Kafka's answer with its sets in order, and difference 5 evened out."""
    if layout.endswith("sticky") and theirs["generation"] == -1:
        return theirs | {"generation": None}
    if layout != "assignment-info":
        return theirs
    sets = ("standby", "partitions_by_host", "standby_partitions_by_host")
    return theirs | {key: {name: sorted_pairs(found) for name, found in theirs[key].items()} for key in sets}


def hexadecimal(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def pairs(partitions: tuple[TopicPartition, ...]) -> list[list[Any]]:
    return [list(partition) for partition in partitions]


def sorted_pairs(partitions: Any) -> list[list[Any]]:
    """A set of partitions as a list; what has no topic comes first."""
    found = {tuple(partition) for partition in partitions}
    return [list(partition) for partition in sorted(found, key=lambda p: (p[0] or "", p[1]))]
