"""The log: one event is one line, no value forges a line, no secret is written."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from config.logging import MAX_ITEMS, MAX_VALUE_BYTES, set_up_logging

SECRET = "canary-9f3b-äöü"
KEY = f"-----BEGIN PRIVATE KEY-----\nMIIcanary{'A' * 24}\nMIIcanary{'B' * 24}\n-----END PRIVATE KEY-----\n"
FORMS = pytest.mark.parametrize("form", ["json", "console"])


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    structlog.reset_defaults()


HOSTILE = [
    pytest.param("a\nlevel=error event=forged", id="a line feed"),
    pytest.param("a\r\n{}", id="carriage return and line feed"),
    pytest.param("\x1b[2J\x1b]0;owned\x07", id="terminal escapes"),
    pytest.param("\x9b31m", id="a C1 control sequence introducer"),
    pytest.param("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg", id="every other line separator"),
    pytest.param("abc\u202edcba\u2066x\u200f", id="bidirectional controls"),
    pytest.param("\ud800 half a surrogate pair", id="a lone surrogate"),
    pytest.param("\x00\x7f", id="NUL and DEL"),
]


@FORMS
@pytest.mark.parametrize("value", HOSTILE)
def test_a_foreign_value_stays_on_its_line_and_steers_nothing(out: io.StringIO, form: str, value: str) -> None:
    set_up_logging(form=form, stream=out)  # type: ignore[arg-type] # a table's row
    log = structlog.get_logger("test")
    log.info(value, member=value, nested={"x": [value], value: 1}, raw=value.encode("utf-8", "surrogatepass"))
    logging.getLogger("library").warning("said %s", value)
    try:
        raise ValueError(value)
    except ValueError:
        log.exception("failed")
    text = out.getvalue()
    assert len(text.splitlines()) == 3  # str.splitlines knows every separator there is
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in text.replace("\n", ""))
    assert not set(text) & set("\u2028\u2029\u202e\u2066\u200f\ud800")


@FORMS
@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"text": f"login with {SECRET} failed"}, id="inside a text"),
        pytest.param({"password": "other-secret", "sasl.password": 12345}, id="under a key that names one"),
        pytest.param({"conf": {"sasl.jaas.config": 'x password="other-secret";'}}, id="under a nested key"),
        pytest.param({"text": repr({"p": SECRET}), "json": json.dumps({"p": SECRET})}, id="quoted"),
        pytest.param({"text": f"key is {KEY!r}", "plain": KEY}, id="a private key"),
        pytest.param({"list": [SECRET], "tuple": ({"a": SECRET},)}, id="in a list"),
        pytest.param({SECRET: 1, "map": {SECRET: 1}}, id="as a key"),
        pytest.param({"long": "x" * (MAX_VALUE_BYTES - 8) + SECRET}, id="where a long value is cut"),
        pytest.param({"object": Exception(SECRET)}, id="in an object's text"),
    ],
)
def test_no_secret_is_written(out: io.StringIO, form: str, values: dict[str, object]) -> None:
    set_up_logging(form=form, secrets=[SECRET, KEY], stream=out)  # type: ignore[arg-type] # a table's row
    structlog.get_logger("test").info("event", **values)
    text = out.getvalue()
    for fragment in ("canary", "other-secret", "12345"):
        assert fragment not in text
    assert text.count("\n") == 1


def test_a_short_secret_is_hidden_as_a_whole_value_only(out: io.StringIO) -> None:
    set_up_logging(form="json", secrets=["abc", " "], stream=out)
    structlog.get_logger("test").info("event", whole="abc", inside="the abc of it")
    line = json.loads(out.getvalue())
    assert (line["whole"], line["inside"]) == ("******", "the abc of it")


def test_values_are_cut_to_a_kibibyte_and_lists_to_their_first_items(out: io.StringIO) -> None:
    set_up_logging(form="json", stream=out)
    structlog.get_logger("test").info("event", text="ä" * 5_000, items=list(range(100)), deep=[[[[[[[[["x"]]]]]]]]])
    line = json.loads(out.getvalue())
    assert len(line["text"].encode()) <= MAX_VALUE_BYTES
    assert line["text"].endswith("(5000 characters)")
    assert len(line["items"]) == MAX_ITEMS + 1
    assert line["items"][-1] == "… 68 more"


def test_the_form_follows_the_terminal_and_the_level_holds(out: io.StringIO) -> None:
    set_up_logging(form="auto", level="warning", stream=out)
    log = structlog.get_logger("test")
    log.info("quiet")
    log.warning("loud")
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["event"] == "loud"


def test_an_event_begins_with_time_level_and_name(out: io.StringIO) -> None:
    set_up_logging(form="json", stream=out)
    structlog.get_logger("test").info("cycle", sentence="nothing to do", cycle=1)
    assert list(json.loads(out.getvalue()))[:4] == ["time", "level", "event", "sentence"]


@pytest.mark.parametrize(("level", "has_fields"), [("info", False), ("debug", True)])
def test_a_console_shows_the_sentence_of_an_event_and_its_fields_only_at_debug(
    out: io.StringIO, level: str, has_fields: bool
) -> None:
    set_up_logging(form="console", level=level, stream=out)
    log = structlog.get_logger("test")
    log.info("cycle", sentence="saw 3 brokers", stages_ms={"look": 3}, problems=["the disk is full"], gaps=[])
    log.info("bare", value="kept")
    (line, bare) = out.getvalue().splitlines()
    assert "saw 3 brokers" in line
    assert ("sentence=" in line) is has_fields, "a person reads the sentence itself"
    assert "the disk is full" in line, "no sentence has it"
    assert ("stages_ms" in line, "gaps" in line) == (has_fields, has_fields)
    assert "kept" in bare, "an event without a sentence is its fields"
