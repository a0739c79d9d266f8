"""The log: one event, one line, for any values; console on a terminal, JSON elsewhere.

Lines go to stderr; a console shows an event's sentence instead of its fields, except at level debug. Invariants:
1. No secret is written: not under a key that names one, and no known secret value under any key.
2. No value forges a line, moves a cursor or hides (`config.foreign_text`).
3. No value is longer than 1 KiB (a traceback 8 KiB), no list longer than 32 items.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, TextIO

import structlog

from config.foreign_text import safe_text
from config.secrets import MASK, without_url_secrets

MAX_VALUE_BYTES = 1_024
MAX_TRACEBACK_BYTES = 8_192
MAX_ITEMS = 32

_SECRET_KEY = re.compile(
    r"password|passwd|secret|token|jaas|credential|authorization|private.?key|ssl\.key", re.IGNORECASE
)
_HEAD = ("time", "level", "event", "sentence")
_FOR_A_PERSON = ("problems", "traceback")
_SHORT_SECRET = 4
_SECRET_LINE = 16
_MAX_DEPTH = 6
_EVENT_WIDTH = 12

Event = MutableMapping[str, Any]


def set_up_logging(
    *,
    level: str = "info",
    form: Literal["auto", "console", "json"] = "auto",
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
) -> None:
    """Write every log event of this process to ``stream`` (stderr), one line each."""
    target = stream or sys.stderr
    console = form == "console" or (form == "auto" and target.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _one_line_traceback,
    ]
    last: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        LogSanitizer(secrets),
        _console(colours=target.isatty()) if console else structlog.processors.JSONRenderer(sort_keys=False),
    ]
    if console and level != "debug":
        last.insert(1, _for_a_person)
    handler = logging.StreamHandler(target)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    _quieten_libraries(level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


class LogSanitizer:
    """The processor that keeps the invariants; the last one before the line is written."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        variants = {form for secret in secrets for form in _spellings(secret)}
        self._whole = frozenset(variants)
        long = sorted((form for form in variants if len(form) >= _SHORT_SECRET), key=len, reverse=True)
        self._inside = re.compile("|".join(map(re.escape, long))) if long else None

    def __call__(self, _logger: object, _method: str, event: Event) -> Event:
        """The event with safe values; its keys are safe too, because libraries pass foreign mappings."""
        ordered = {**{key: event[key] for key in _HEAD if key in event}, **event}
        return {self.text(str(key), 128): self._value(str(key), value, _MAX_DEPTH) for key, value in ordered.items()}

    def text(self, text: str, limit: int = MAX_VALUE_BYTES) -> str:
        """One text without secrets, without control characters and not too long."""
        if text in self._whole:
            return MASK
        return safe_text(without_url_secrets(self._inside.sub(MASK, text) if self._inside else text), limit)

    def _value(self, key: str, value: object, depth: int) -> Any:
        if _SECRET_KEY.search(key) and value is not None:
            return MASK
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self.text(value, MAX_TRACEBACK_BYTES if key == "traceback" else MAX_VALUE_BYTES)
            case Mapping() if depth:
                return self._mapping(value, depth)
            case Sequence() | frozenset() | set() if depth and not isinstance(value, bytes | bytearray):
                return self._items(key, list(value), depth)
            case _:
                return self.text(str(value))

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        kept = list(value.items())[:MAX_ITEMS]
        tidy = {self.text(str(key), 128): self._value(str(key), below, depth - 1) for key, below in kept}
        return tidy | ({"…": f"{len(value) - MAX_ITEMS} more"} if len(value) > MAX_ITEMS else {})

    def _items(self, key: str, values: list[Any], depth: int) -> list[Any]:
        kept = [self._value(key, value, depth - 1) for value in values[:MAX_ITEMS]]
        return kept + ([f"… {len(values) - MAX_ITEMS} more"] if len(values) > MAX_ITEMS else [])


def _for_a_person(_logger: object, _method: str, event: Event) -> Event:
    """Of an event with a sentence: the sentence, and what no sentence has. The fields are for machines."""
    if "sentence" not in event:
        return event
    kept = {key: value for key, value in event.items() if key in _HEAD or (key in _FOR_A_PERSON and value)}
    sentence = kept.pop("sentence")
    return {**kept, "event": f"{event.get('event', ''):<{_EVENT_WIDTH}} {sentence}"}


def _spellings(secret: str) -> set[str]:
    """A secret as itself and as it looks once it was quoted; lines of a key each by themselves."""
    if not secret.strip():
        return set()
    lines = [line.strip() for line in secret.splitlines()] if "\n" in secret else []
    quoted = {repr(secret)[1:-1], json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {secret, secret.strip()} | quoted | {line for line in lines if len(line) >= _SECRET_LINE}


def _one_line_traceback(logger: Any, method: str, event: Event) -> Event:
    """An exception as one value named ``traceback``: the renderers would print it over many lines."""
    event = structlog.processors.format_exc_info(logger, method, event)
    if "exception" in event:
        event["traceback"] = event.pop("exception")
    event.pop("stack_info", None)
    return event


def _console(*, colours: bool) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=colours, timestamp_key="time", pad_event_to=_EVENT_WIDTH, sort_keys=False
    )


def _quieten_libraries(level: str) -> None:
    """Libraries log at INFO what rackwise logs itself; kafka-python's log holds whole requests, so it is left out."""
    # It warns of each skipped look, which the loop reports itself.
    logging.getLogger("apscheduler").setLevel("DEBUG" if level == "debug" else "ERROR")
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "httpx", "py4j"):
        logging.getLogger(name).setLevel("DEBUG" if level == "debug" else "WARNING")
    # It logs each error of a batch with its traceback, which ingest reports itself.
    logging.getLogger("py4j.clientserver").setLevel("DEBUG" if level == "debug" else "CRITICAL")
    kafka = logging.getLogger("kafka")
    kafka.propagate = False
    kafka.addHandler(logging.NullHandler())
