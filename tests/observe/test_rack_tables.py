"""Rack tables: the forms in which they are written, and every way to write none. No sentence quotes from one."""

from __future__ import annotations

import json

import pytest

from agent.observe.ask_locators import read_answer
from agent.observe.context import TableForm
from agent.observe.locator_table import read_table
from agent.values.observation import RawRackRow
from agent.wire.failure import CallFailed

ROWS = (
    RawRackRow("broker", "1", "a"),
    RawRackRow("broker", "2", "no"),
    RawRackRow("client.id", "orders.eu-1", "010"),
    RawRackRow("group.instance.id", "i 1", "a"),
    RawRackRow("host", "10.0.2.7", "b"),
    RawRackRow("host", "fd00::1", "b"),
)
SECRET = "canary-9e2f"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        pytest.param(
            "properties",
            "# racks\nbroker.1=a\n002 : no\nhost.10.0.2.7=b\nhost.fd00\\:\\:1=b\nclient.id.orders.eu-1 = 010 \n"
            "group.instance.id.i\\ 1=\\\n  a\n",
            id="properties, a bare broker id, escapes and a line that goes on",
        ),
        pytest.param(
            "yaml",
            "broker: {1: a}\n2: no\nhost:\n  10.0.2.7: b\n  'fd00::1': b\nclient.id.orders.eu-1: 010\n"
            "group.instance.id: {i 1: a}\n",
            id="YAML, nested and dotted; no and 010 are names of racks",
        ),
        pytest.param(
            "yaml",
            '{"broker": {"1": "a", "2": "no"}, "host": {"10.0.2.7": "b", "fd00::1": "b"},'
            ' "client.id": {"orders.eu-1": "010"}, "group.instance.id": {"i 1": "a"}}',
            id="JSON",
        ),
        pytest.param(
            "yaml",
            "--- &top\nbroker: {1: &r a, 2: !!str no}\nhost: {10.0.2.7: b, 'fd00::1': b}\n"
            "client.id: {orders.eu-1: 010}\ngroup.instance.id: {i 1: a}\n...\n",
            id="YAML with unused anchors",
        ),
        pytest.param(
            "properties",
            "\ufeffbroker.1=a\r\nbroker.2=no\r\nhost.10.0.2.7=b\r\nhost.fd00\\:\\:1=b\r\n"
            "client.id.orders.eu-1=010\r\ngroup.instance.id.i\\ 1=a\r\nbroker.1=a\r\n",
            id="a mark of byte order, a row twice",
        ),
    ],
)
def test_a_table_is_read(form: str, text: str) -> None:
    assert read_table(text.encode(), TableForm(form)) == ROWS


def test_two_racks_for_one_name_are_kept_for_the_model_to_judge() -> None:
    assert read_table(b"broker.1=a\nbroker.1=b\n", TableForm.PROPERTIES) == (
        RawRackRow("broker", "1", "a"), RawRackRow("broker", "1", "b"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("form", "text", "sentence"),
    [
        pytest.param("properties", b"", "its answer names no broker, no host and no client", id="nothing"),
        pytest.param("properties", b"# \n\n", "its answer names no broker, no host and no client", id="comments"),
        pytest.param("yaml", b"", "its answer names no broker, no host and no client", id="no YAML"),
        pytest.param("yaml", b"---\n", "its answer names no broker, no host and no client", id="an empty document"),
        pytest.param("yaml", b"{}", "its answer names no broker, no host and no client", id="an empty mapping"),
        pytest.param("properties", b"broker.1=\xe4\n", "its answer is no UTF-8 (byte 10)", id="another encoding"),
        pytest.param("yaml", b"broker: {1: \xff}", "its answer is no UTF-8 (byte 13)", id="YAML in another encoding"),
        pytest.param(
            "properties",
            f"broker.1=a\npassword={SECRET}\n".encode(),
            "entry 2 of its answer is no row: broker.ID, host.NAME, client.id.NAME or group.instance.id.NAME, and a "
            "rack are expected",
            id="a row that is none",
        ),
        pytest.param("properties", b"broker.=a", "entry 1 of its answer is no row", id="a row without a name"),
        pytest.param(
            "properties", b"host." + b"h" * 2_000 + b"=a", "entry 1 of its answer is no row", id="a long name"
        ),
        pytest.param(
            "properties",
            f"broker.{SECRET}=a".encode(),
            "entry 1 of its answer names a broker by something that is no broker id",
            id="a broker that is no number",
        ),
        pytest.param(
            "properties",
            "broker.\u0661=a".encode(),
            "entry 1 of its answer names a broker by something",
            id="another script's digit",
        ),
        pytest.param(
            "properties",
            b"broker.1=",
            "entry 1 of its answer has no usable rack: 1 to 255 printable characters",
            id="no rack",
        ),
        pytest.param(
            "properties", b"broker.1=\\u0007", "entry 1 of its answer has no usable rack", id="a bell for a rack"
        ),
        pytest.param(
            "properties", b"broker.1=" + b"r" * 256, "entry 1 of its answer has no usable rack", id="a long rack"
        ),
        pytest.param(
            "properties",
            f"broker.1=\\u{SECRET}".encode(),
            "its answer holds an escape that is no character",
            id="a broken escape",
        ),
        pytest.param("yaml", b"- a\n- b\n", "line 1 of its answer is not a mapping of broker", id="a list"),
        pytest.param("yaml", SECRET.encode(), "line 1 of its answer is not a mapping of broker", id="a word"),
        pytest.param("yaml", b"broker: a", "line 1 of its answer is no row", id="a kind without names"),
        pytest.param("yaml", b"broker:\n  1: [a]\n", "line 2 of its answer is not a text", id="a list of racks"),
        pytest.param(
            "yaml", b"broker:\n  1: {a: b}\n", "line 2 of its answer is not a text", id="a mapping for a rack"
        ),
        pytest.param("yaml", b"broker:\n  [1, 2]: a\n", "line 2 of its answer is not a text", id="a list for a name"),
        pytest.param("yaml", b"broker:\n  1:\n", "line 2 of its answer has no usable rack", id="no rack in YAML"),
        pytest.param("yaml", b"x: &x {1: a}\nbroker: *x\n", "line 1 of its answer is no row", id="no kind"),
        pytest.param("yaml", b"broker: &x {1: a}\nhost: *x\n", "line 2 of its answer is not a text", id="an alias"),
        pytest.param(
            "yaml", b"broker: {1: a}\n---\nbroker: {1: b}\n", "its answer holds more than one YAML document", id="two"
        ),
        pytest.param(
            "yaml", f"broker: {{1: a\n{SECRET}: ]".encode(), "its answer is no readable YAML (line 2)", id="broken"
        ),
        pytest.param("yaml", b"[" * 100_000, "line 1 of its answer is not a mapping", id="nested without end"),
        pytest.param(
            "yaml", b"broker: " + b"{a: " * 100_000, "line 1 of its answer is not a text", id="mappings without end"
        ),
        pytest.param("yaml", b"x: !!python/object/apply:os.getcwd []", "line 1 of its answer is not a text", id="code"),
    ],
)
def test_what_is_no_table_is_refused_whole_with_its_place_and_without_its_text(
    form: str, text: bytes, sentence: str
) -> None:
    with pytest.raises(CallFailed) as failed:
        read_table(text, TableForm(form))
    assert sentence in failed.value.detail
    assert SECRET not in failed.value.detail


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param({"rows": [["1", "a"], ["host.h", "b"]]}, 2, id="rows"),
        pytest.param({"rows": []}, "its answer names no broker, no host and no client", id="no rows"),
        pytest.param({"rows": [["1", "a"], [None, "b"]]}, "row 2 of its answer is no row", id="a key of another kind"),
        pytest.param({"rows": [["1", None]]}, "row 1 of its answer is no row", id="a rack of another kind"),
        pytest.param({"rows": ["1"]}, "row 1 of its answer is no row", id="no pair"),
        pytest.param({"failed": "get_rack_info raised KeyError"}, "get_rack_info raised KeyError", id="a failure"),
        pytest.param([1], "its process gave no answer", id="something else"),
        pytest.param({}, "its process gave no answer", id="nothing in it"),
    ],
)
def test_an_entry_points_process_answers_rows_or_one_sentence(answer: object, outcome: int | str) -> None:
    if isinstance(outcome, int):
        assert len(read_answer(json.dumps(answer).encode())) == outcome
        return
    with pytest.raises(CallFailed) as failed:
        read_answer(json.dumps(answer).encode())
    assert outcome in failed.value.detail


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_an_entry_points_process_that_prints_no_json_gave_no_answer(content: bytes) -> None:
    with pytest.raises(CallFailed, match=r"its process gave no answer|its answer is no UTF-8"):
        read_answer(content)
