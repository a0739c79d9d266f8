"""Weights as bytes and back, and bytes that are no weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.telemetry.topic_records import MAX_ROWS, UnreadableWeightsError, key_of, to_records, weights_of
from agent.values.weights import GroupWeights, PartitionWeight, ReadWeight, RestoreWeight, TopicWeights, group_rates
from tests.docs.schemas import weights_schema

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "weights.v1.json"
HOUR = 3_600_000
ORDERS = TopicWeights(
    "C1",
    "orders",
    3 * HOUR,
    HOUR,
    2 * HOUR,
    (PartitionWeight(0, 1_000.5, 10.0, 100.05, "measured"), PartitionWeight(1, None, 3.0, None, "none")),
)
BILLING = GroupWeights(
    "C1",
    "bill/ing",
    3 * HOUR,
    HOUR,
    2 * HOUR,
    (ReadWeight("orders", 0, 990.0), ReadWeight("orders", 1, 0.0)),
    (RestoreWeight(0, 100.0, 200.0, 300.0, 7, 0.25), RestoreWeight(1, 1.0, 1.0, 1.0, 1, None)),
)


@pytest.mark.parametrize("weights", [ORDERS, BILLING], ids=["a topic", "a group whose id has a slash"])
def test_weights_are_read_as_they_were_written(weights: TopicWeights | GroupWeights) -> None:
    ((key, value),) = to_records(weights)
    assert weights_of(key, value) == weights
    assert list(to_records(weights_of(key, value))) == [(key, value)]


def test_keys_say_cluster_kind_and_name() -> None:
    assert key_of(ORDERS) == "C1/topic/orders"
    assert key_of(BILLING) == "C1/group/bill/ing"


def test_a_subject_with_very_many_rows_is_told_in_several_records() -> None:
    reads = tuple(ReadWeight("t" * 249, number, 123_456.789) for number in range(2 * MAX_ROWS + 1))
    records = list(to_records(BILLING._replace(reads=reads)))
    assert [key for key, _ in records] == ["C1/group/bill/ing", "C1/group.1/bill/ing", "C1/group.2/bill/ing"]
    assert max(len(value) for _, value in records) < 900_000
    read = [weights_of(key, value) for key, value in records]
    assert tuple(row for one in read if isinstance(one, GroupWeights) for row in one.reads) == reads
    assert [one.restores for one in read if isinstance(one, GroupWeights)] == [BILLING.restores, (), ()]
    assert [one.part for one in read] == [0, 1, 2]


def test_the_committed_schema_is_the_one_of_the_code_and_records_keep_to_it() -> None:
    schema = weights_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(SCHEMA.read_text()) == schema, "a change here is one for every reader of weights"
    validator = jsonschema.Draft202012Validator(schema)
    for weights in (ORDERS, BILLING):
        for _, value in to_records(weights):
            validator.validate(json.loads(value))


def _with(weights: TopicWeights | GroupWeights, **changes: Any) -> bytes:
    ((_, value),) = to_records(weights)
    return json.dumps(json.loads(value) | changes).encode()


_ROW = {"partition": 0, "bytes_per_s": 1.0, "records_per_s": 1.0, "bytes_per_record": 1.0, "confidence": "measured"}
_RESTORE = {"subtopology": 0, "low": 1.0, "median": 2.0, "high": 3.0, "samples": 1, "stalled_share": 0.0}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        pytest.param("C1/topic/orders", b"\xff\x00", "is not UTF-8 text at byte 0", id="no text"),
        pytest.param("C1/topic/orders", b"[" * 100_000, "nested more than 64 deep", id="nested without end"),
        pytest.param("C1/topic/orders", _with(ORDERS, more="\ud800"), "half a surrogate pair", id="half a character"),
        pytest.param("C1/topic/orders", _with(ORDERS)[:-1] + b',"v":1}', "comes twice", id="a name that comes twice"),
        pytest.param("C1/topic/orders", b"[]", "has no version", id="a list"),
        pytest.param("C1/topic/orders", b'{"v":true}', "has no version", id="a version that is no number"),
        pytest.param("C1/topic/orders", _with(ORDERS, v=2), "needs a newer rackwise", id="a newer version"),
        pytest.param("C1/topic/orders", _with(ORDERS, v=0), "version 0", id="a version that never was"),
        pytest.param("C1/topic/orders", _with(ORDERS, kind="group"), "without reads", id="the other kind"),
        pytest.param("C1/topic/orders", _with(ORDERS, kind=[]), "is not known", id="a kind that is a list"),
        pytest.param("C1/topic/orders", _with(ORDERS, subject="topic/"), "subject", id="no name"),
        pytest.param("C1/topic/" + "t" * 250, _with(ORDERS, subject="topic/" + "t" * 250), "subject", id="a long name"),
        pytest.param("C2/topic/orders", _with(ORDERS), "it is about", id="another cluster's key"),
        pytest.param("C1/topic/billing", _with(ORDERS), "it is about", id="another topic's key"),
        pytest.param("C1/topic.x/orders", _with(ORDERS), "is not the number of a part", id="a part that is no number"),
        pytest.param("C1/topic/orders", _with(ORDERS, from_ms=9, to_ms=8), "not a period of time", id="time backwards"),
        pytest.param("C1/topic/orders", _with(ORDERS, to_ms=2**60), "is not a period of time", id="an impossible time"),
        pytest.param(
            "C1/topic/orders",
            _with(ORDERS, partitions=[_ROW | {"bytes_per_s": -1.0}]),
            "is not a rate",
            id="a rate below 0",
        ),
        pytest.param(
            "C1/topic/orders",
            _with(ORDERS, partitions=[_ROW | {"bytes_per_s": float("nan")}]),
            "NaN",
            id="not a number",
        ),
        pytest.param(
            "C1/topic/orders",
            _with(ORDERS).replace(b"1000.5", b"1e999"),
            "a number in it is too large",
            id="a rate that is infinite once read",
        ),
        pytest.param(
            "C1/topic/orders", _with(ORDERS).replace(b"1000.5", b"9" * 400), "64 bits", id="a rate of 400 digits"
        ),
        pytest.param(
            "C1/topic/orders",
            _with(ORDERS, partitions=[_ROW | {"partition": -1}]),
            "is not a partition",
            id="a partition below 0",
        ),
        pytest.param(
            "C1/topic/orders",
            _with(ORDERS, partitions=[_ROW | {"partition": True}]),
            "int expected",
            id="a true partition",
        ),
        pytest.param(
            "C1/group/bill/ing", _with(BILLING, restores=[_RESTORE | {"low": 9.0}]), "contradict", id="low above median"
        ),
        pytest.param("C1/group/bill/ing", _with(BILLING, reads=None), "a list expected", id="reads that are null"),
    ],
)
def test_what_is_no_record_of_weights_is_told_in_a_sentence(key: str, value: bytes, why: str) -> None:
    with pytest.raises(UnreadableWeightsError, match=why):
        weights_of(key, value)


def test_fields_of_a_later_minor_version_are_left_aside() -> None:
    rows = [_ROW | {"heaviest_key_share": 0.5}]
    read = weights_of("C1/topic/orders", _with(ORDERS, partitions=rows, later="yes"))
    assert isinstance(read, TopicWeights)
    assert read.partitions == (PartitionWeight(0, 1.0, 1.0, 1.0, "measured"),)


@given(st.text(max_size=30), st.binary(max_size=200))
def test_no_bytes_raise_anything_else(key: str, value: bytes) -> None:
    with pytest.raises(UnreadableWeightsError):  # twenty characters of chance are no record
        weights_of(key, value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([ORDERS, BILLING]), st.sampled_from([*json.loads(next(to_records(ORDERS))[1]), "reads"]), _JSON)
def test_no_field_of_another_type_raises_anything_else(
    weights: TopicWeights | GroupWeights, field: str, foreign: Any
) -> None:
    value = _with(weights, **{field: foreign})
    try:
        read = weights_of(key_of(weights), value)
    except UnreadableWeightsError:
        return
    assert [json.loads(one) for _, one in to_records(read)] == [
        {name: json.loads(value)[name] for name in json.loads(next(to_records(read))[1])}
    ]


def test_a_subtopology_that_a_record_names_twice_is_kept_in_its_order() -> None:
    once = RestoreWeight(1, 1.0, 1.0, 1.0, 1, None)
    group = GroupWeights(
        "c", "app", 3, 1, 2, (), (once._replace(stalled_share=0.25), once, once._replace(subtopology=0))
    )
    kept = group_rates(group)
    assert [(one.subtopology, one.stalled_share) for one in kept.restores] == [(0, None), (1, 0.25), (1, None)]
