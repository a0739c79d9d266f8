"""JSON of others: a value within bounds, or the one error."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.values.typed_json import LATEST_MS, LEAST_INT, MOST_DEPTH, MOST_INT, ForeignJsonError, is_time, read_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(LEAST_INT, MOST_INT)
    | st.floats(-1e18, 1e18).filter(lambda one: not 0 < abs(one) < 1e-99)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans(), st.booleans())
def test_what_is_within_bounds_is_read_as_json_has_it(value: object, ascii_only: bool, as_seen: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert read_json(text, as_seen=as_seen) == value
    assert read_json(text.encode(), as_seen=as_seen) == value


@given(st.binary(max_size=200) | st.text(max_size=200), st.booleans())
def test_foreign_bytes_raise_the_one_error(data: bytes | str, as_seen: bool) -> None:
    try:
        value = read_json(data, as_seen=as_seen)
    except ForeignJsonError:
        return
    json.dumps(value, allow_nan=False)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


REFUSED = [
    pytest.param(b"", "it is not JSON", id="nothing"),
    pytest.param(b'{"a":1', "it is not JSON", id="cut off"),
    pytest.param(b"\xff", "not UTF-8 text at byte 0", id="no text"),
    pytest.param('{"a":1}'.encode("utf-16"), "not UTF-8 text", id="another encoding"),
    pytest.param(b"9" * 400, "more than 6", id="400 digits"),
    pytest.param(b"-" + b"9" * 400, "more than 6", id="400 digits below zero"),
    pytest.param(b"9" * 10_000, "more than 6", id="more digits than Python reads"),
    pytest.param(b"-%d" % 2**66, "more than 6", id="a number beyond any sum of offsets"),
    pytest.param(b"1e400", "too large or too small", id="infinity"),
    pytest.param(b"1e99", "too large or too small", id="a number beyond any measure"),
    pytest.param(b"1e-300", "too large or too small", id="a number that nothing may be divided by"),
    pytest.param(b"0." + b"1" * 400, "too large or too small", id="400 digits of a fraction"),
    pytest.param(b"NaN", "NaN is not a number", id="NaN"),
    pytest.param(b"-Infinity", "-Infinity is not a number", id="an infinity by its name"),
    pytest.param(nested(MOST_DEPTH + 1), "nested more than 64 deep", id="a level too deep"),
    pytest.param(nested(900), "nested more than 64 deep", id="deep"),
    pytest.param(b"[" * 100_000, "nested more than 64 deep", id="deep without end"),
    pytest.param(b'[["]",' * 100 + b"1" + b"]]" * 100, "nested", id="deep, with brackets in texts"),
]
STRICT = [
    pytest.param(b'{"a":1,"a":2}', "a name comes twice", id="a name twice"),
    pytest.param(b"9223372036854775808", "more than 64 bits", id="the first number beyond 64 bits"),
    pytest.param(b'[{"a":{"b":1,"b":1}}]', "a name comes twice", id="a name twice, deep"),
    pytest.param(b'"\\ud800"', "half a surrogate pair", id="half a pair, escaped"),
    pytest.param('["\ud800"]', "half a surrogate pair", id="half a pair"),
    pytest.param(b'{"\\udc00":1}', "half a surrogate pair", id="half a pair in a name"),
]


@pytest.mark.parametrize("as_seen", [False, True])
@pytest.mark.parametrize(("data", "why"), REFUSED)
def test_what_is_beyond_bounds_is_refused_with_a_sentence_that_shows_none_of_it(
    data: bytes, why: str, as_seen: bool
) -> None:
    with pytest.raises(ForeignJsonError) as refused:
        read_json(data, as_seen=as_seen)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 100


@pytest.mark.parametrize(("data", "why"), STRICT)
def test_names_that_were_seen_may_be_anything_and_others_may_not(data: bytes | str, why: str) -> None:
    with pytest.raises(ForeignJsonError, match=why):
        read_json(data)
    read_json(data, as_seen=True)


def test_bounds_on_bytes_and_values_are_the_caller_s() -> None:
    assert read_json(b"[1, 2, 3]", most_bytes=9, most_values=3) == [1, 2, 3]
    with pytest.raises(ForeignJsonError, match="it has 9 bytes, and at most 8 are read"):
        read_json(b"[1, 2, 3]", most_bytes=8)
    with pytest.raises(ForeignJsonError, match="more than 2 values"):
        read_json(b"[1, 2, 3]", most_values=2)


@pytest.mark.parametrize("data", [b"\xef\xbb\xbf[1]", b"[1]", b" [1]\r\n", "[1]"])
def test_a_mark_of_the_byte_order_and_blanks_are_left_aside(data: bytes | str) -> None:
    assert read_json(data) == [1]


def test_numbers_at_the_edges_are_read() -> None:
    edges = [LEAST_INT, MOST_INT, 0, -0.0, 0.1, 1e-99, 0.30000000000000004, 123456789012345678]
    assert read_json(json.dumps(edges)) == edges
    assert math.copysign(1, read_json(b"-0.0")) == -1
    assert read_json(nested(MOST_DEPTH)) == json.loads(nested(MOST_DEPTH))


@pytest.mark.parametrize(("millis", "holds"), [(0, True), (LATEST_MS, True), (-1, False), (LATEST_MS + 1, False)])
def test_a_time_has_a_date(millis: int, holds: bool) -> None:
    assert is_time(millis) is holds
