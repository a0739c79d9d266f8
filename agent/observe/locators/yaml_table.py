"""Reads a rack table in YAML, of which JSON is a part.

Invariant: a sentence names the place of a mistake and never its text, because it may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from agent.observe.locators.question import WANTED
from agent.values.observation import GapCause
from agent.wire.failure import CallFailed

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def pairs_of(text: str) -> Iterator[tuple[str, str, str]]:
    """(place, key, rack) of every row. Raises CallFailed for what is no table.

    Read from the parser's events, so that nothing unfolds, nothing is nested deep, and everything stays text.
    """
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
    """The events between the marks of streams and documents: first the document itself, when there is one."""
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
