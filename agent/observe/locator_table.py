"""Reader of rack tables in properties or YAML (JSON is YAML), and of the rows of an entry point.

::

    broker.1=a                         broker: {1: a}
    host.broker-2.example=b            host: {broker-2.example: b, 10.0.2.7: b}
    client.id.orders-1=a               client.id: {orders-1: a}
    group.instance.id.orders-eu-1=a    group.instance.id: {orders-eu-1: a}

A bare number is a broker id, as in KIP-36. All values are text, so that a rack may be called ``no`` or ``010``. A table
is taken whole or not at all, and an empty one is a failure; a sentence names the place of a mistake and never its text,
which may be a secret; one name with two racks is kept for the model to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import yaml

from agent.observe.context import WANTED, TableForm
from agent.values.kafka import CLIENT_ID, GROUP_INSTANCE_ID
from agent.values.observation import GapCause, RawRackRow
from agent.wire.failure import CallFailed
from config.properties import property_pairs
from config.setting_mistake import SettingMistake

KINDS = (GROUP_INSTANCE_ID, CLIENT_ID, "broker", "host")
_MAX_NAME_CHARS = 1_024
_MAX_RACK_CHARS = 255

Pairs = Iterable[tuple[str, str, str]]
"""(place, key, rack)."""


def read_table(content: bytes, form: TableForm) -> tuple[RawRackRow, ...]:
    """The rows, sorted and each once. Raises CallFailed."""
    text = decoded(content)
    return rows_of(_from_properties(text) if form is TableForm.PROPERTIES else _from_yaml(text))


def rows_of(pairs: Pairs) -> tuple[RawRackRow, ...]:
    """The rows of (place, key, rack). Raises CallFailed."""
    rows = tuple(sorted({_row(*pair) for pair in pairs}))
    if not rows:
        raise CallFailed(GapCause.UNUSABLE, "its answer names no broker, no host and no client")
    return rows


def decoded(content: bytes) -> str:
    """The text of an answer. Raises CallFailed where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CallFailed(GapCause.UNUSABLE, f"its answer is no UTF-8 (byte {error.start + 1})") from None


def _row(place: str, key: str, rack: str) -> RawRackRow:
    of, name = _split(key)
    if of is None or not name or len(name) > _MAX_NAME_CHARS:
        raise CallFailed(GapCause.UNUSABLE, f"{place} of its answer is no row: {WANTED} are expected")
    if of == "broker" and not (name.isascii() and name.isdecimal()):
        raise CallFailed(GapCause.UNUSABLE, f"{place} of its answer names a broker by something that is no broker id")
    if not rack or len(rack) > _MAX_RACK_CHARS or not rack.isprintable():
        sentence = f"{place} of its answer has no usable rack: 1 to {_MAX_RACK_CHARS} printable characters are expected"
        raise CallFailed(GapCause.UNUSABLE, sentence)
    return RawRackRow(of, str(int(name)) if of == "broker" else name, rack)


def _split(key: str) -> tuple[str | None, str]:
    if key.isascii() and key.isdecimal():
        return "broker", key
    of = next((kind for kind in KINDS if key.startswith(f"{kind}.")), None)
    return of, key[len(of) + 1 :] if of else ""


def _from_properties(text: str) -> Iterator[tuple[str, str, str]]:
    try:
        for number, (key, value) in enumerate(property_pairs(text), start=1):
            yield f"entry {number}", key, value.strip()
    except SettingMistake:  # its sentence would quote the text
        raise CallFailed(GapCause.UNUSABLE, r"its answer holds an escape that is no character; write \uXXXX") from None


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _from_yaml(text: str) -> Iterator[tuple[str, str, str]]:
    """Rows from the parser's events: no aliases unfold, nothing is nested deep, and every value stays text."""
    events = _events(text)
    if next(events, None) is None:
        return
    _expect(events, yaml.MappingStartEvent, "a mapping of broker, host, client.id or group.instance.id")
    for key in events:
        if isinstance(key, yaml.MappingEndEvent):
            break
        name = _scalar(key)
        value = next(events)
        if not isinstance(value, yaml.MappingStartEvent):
            yield _place(key), name, _scalar(value)
            continue
        for inner in events:
            if isinstance(inner, yaml.MappingEndEvent):
                break
            yield _place(inner), f"{name}.{_scalar(inner)}", _scalar(next(events))
    if next(events, None) is not None:
        raise CallFailed(GapCause.UNUSABLE, "its answer holds more than one YAML document")


def _events(text: str) -> Iterator[yaml.Event]:
    """The parser's events without those of streams and ends of documents."""
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                yield event
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise CallFailed(GapCause.UNUSABLE, f"its answer is no readable YAML{where}") from None


def _expect(events: Iterator[yaml.Event], kind: type[yaml.Event], what: str) -> None:
    event = next(events)
    if not isinstance(event, kind) and not (isinstance(event, yaml.ScalarEvent) and not event.value):
        raise CallFailed(GapCause.UNUSABLE, f"{_place(event)} of its answer is not {what}")


def _scalar(event: yaml.Event) -> str:
    if not isinstance(event, yaml.ScalarEvent):
        raise CallFailed(GapCause.UNUSABLE, f"{_place(event)} of its answer is not a text: {WANTED} are expected")
    return str(event.value)


def _place(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark is not None else "a line"
