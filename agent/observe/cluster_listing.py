"""First wave of a look: topics, groups, reassignments, log dirs, broker configs, application lags, rack tables."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from agent.errors import LAG_DEADLINE, thread
from agent.observe.ask_locators import answered_tables, locator_asks
from agent.observe.context import (
    NO_CONFIGS,
    NO_LOG_DIRS,
    CachedConfigs,
    ObserveContext,
    ObserveQuery,
    ObserveScope,
    ask_together,
    broker_configs,
    log_dirs,
)
from agent.values.observation import (
    Gap,
    GapCause,
    ObservationPart,
    RawApplicationLag,
    RawListedGroup,
    RawRackTable,
    RawReassignment,
    RawTopic,
)
from agent.values.typed_json import ForeignJsonError, read_json
from agent.wire.cluster_calls import LogDirs, TopicsAnswer
from agent.wire.group_calls import ListedGroups
from assignors.problem import TaskId, TopicPartition
from config.secrets import MASK, without_url_secrets

# Lags of Streams applications: ``GET`` on each configured URL, bounded in time and size, without redirects and proxy::
#
#     {"v": 1, "application": "orders", "observed_ms": 1730000000000, "instances": [
#         {"process_id": "<uuid>", "client_id": "...", "rack": "a",
#          "tasks": [{"task": "0_1", "role": "active", "lag": 0}, {"task": "1_0", "role": "standby", "lag": 123}]}]}
#
# An answer of another form is a gap. A task without a lag (null or absent) is left out, as unknown is never zero.

_SHORT = 4
_VERSION = 1
_TASK = re.compile(r"(\d{1,9})_(\d{1,9})")
_ROLES = ("active", "standby")
_LARGEST_LAG = 2**63


class ApplicationLags(NamedTuple):
    """The sorted lags of one endpoint, or the gap in their place."""

    lags: tuple[RawApplicationLag, ...]
    gaps: tuple[Gap, ...]


class _Unusable(Exception):  # noqa: N818 it never leaves this module
    """The endpoint gave no usable answer; the cause and a sentence."""

    def __init__(self, cause: GapCause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


def read_application_lags(url: str, *, timeout_ms: int, max_bytes: int) -> ApplicationLags:
    """The lags of that endpoint; never raises."""
    try:
        body = _get(urlsplit(url), time.monotonic() + timeout_ms / 1000, max_bytes)
        return ApplicationLags(parse_application_lags(body), ())
    except _Unusable as unusable:
        detail = hide_in(unusable.detail, url)
        gap = Gap(ObservationPart.APPLICATION_LAGS, unusable.cause, without_url_secrets(url), detail)
        return ApplicationLags((), (gap,))


def parse_application_lags(body: bytes) -> tuple[RawApplicationLag, ...]:
    """The lags in an answer's body, sorted."""
    try:
        document = read_json(body, most_bytes=len(body))
    except ForeignJsonError as error:
        raise _Unusable(GapCause.ERROR, f"the answer cannot be read: {error}") from error
    root = _object(document, "the answer")
    if root.get("v") != _VERSION:
        raise _Unusable(
            GapCause.UNSUPPORTED, f"the answer has version {root.get('v')!r}; version {_VERSION} is supported"
        )
    application = _text(root, "application", "the answer")
    observed_ms = _count(root.get("observed_ms"), "observed_ms")
    lags = [
        lag
        for instance in _list(root, "instances", "the answer")
        for lag in _instance(application, observed_ms, _object(instance, "an instance"))
    ]
    return tuple(sorted(lags))


def _get(target: SplitResult, until: float, max_bytes: int) -> bytes:
    if target.scheme not in ("http", "https") or not target.hostname or target.username is not None:
        raise _Unusable(GapCause.ERROR, "only http:// and https:// URLs without a user are read")
    connection = _connection(target, until)
    ended = threading.Event()
    try:
        connection.connect()
        # The socket's own time-out begins anew with every byte; this one does not.
        thread(LAG_DEADLINE, partial(_shut_down_at, until, connection.sock, ended), target.hostname).start()
        path = target.path or "/"
        connection.request("GET", f"{path}?{target.query}" if target.query else path)
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise _Unusable(GapCause.ERROR, f"it answered {answer.status} {answer.reason}; 200 is expected")
        body = answer.read(max_bytes + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if time.monotonic() >= until or isinstance(error, TimeoutError):
            raise _Unusable(GapCause.TIMED_OUT, "no whole answer in time") from error
        raise _Unusable(GapCause.UNREACHABLE, f"it cannot be read: {error or type(error).__name__}") from error
    finally:
        ended.set()
        connection.close()
    if len(body) > max_bytes:
        raise _Unusable(GapCause.TOO_LARGE, f"the answer is larger than {max_bytes} bytes")
    if time.monotonic() >= until:
        raise _Unusable(GapCause.TIMED_OUT, "no whole answer in time")
    return body


def _connection(target: SplitResult, until: float) -> http.client.HTTPConnection:
    timeout = max(0.001, until - time.monotonic())
    host = str(target.hostname)
    if target.scheme == "https":
        return http.client.HTTPSConnection(host, target.port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, target.port, timeout=timeout)


def _shut_down_at(until: float, sock: socket.socket, ended: threading.Event) -> None:
    """Shut the socket down at that time, which wakes its reader, unless the call has ended by then."""
    if not ended.wait(max(0.0, until - time.monotonic())):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def hide_in(detail: str, url: str) -> str:
    """The sentence with all values of the URL's query masked, as errors and answers may quote them."""
    query = urlsplit(url).query
    values = [value for _, value in parse_qsl(query, keep_blank_values=True)]
    for secret in sorted({query, *values, *map(quote, values)}, key=len, reverse=True):
        detail = detail.replace(secret, MASK) if len(secret) >= _SHORT else detail
    return detail


def _instance(application: str, observed_ms: int, instance: dict[str, Any]) -> list[RawApplicationLag]:
    process = instance.get("process_id") or _text(instance, "client_id", "an instance without process_id")
    if not isinstance(process, str):
        raise _Unusable(GapCause.ERROR, "process_id is not a text")
    rows = (_object(task, "a task") for task in _list(instance, "tasks", "an instance"))
    return [
        RawApplicationLag(application, process, _task(row), _role(row), _count(row["lag"], "lag"), observed_ms)
        for row in rows
        if row.get("lag") is not None
    ]


def _task(row: dict[str, Any]) -> TaskId:
    match = _TASK.fullmatch(str(row.get("task")))
    if match is None:
        raise _Unusable(GapCause.ERROR, f"{row.get('task')!r} is not a task; it is written 0_1")
    return TaskId(int(match.group(1)), int(match.group(2)))


def _role(row: dict[str, Any]) -> str:
    role = row.get("role")
    if role not in _ROLES:
        raise _Unusable(GapCause.ERROR, f"{role!r} is not a role; it is active or standby")
    return str(role)


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Unusable(GapCause.ERROR, f"{what} is not a JSON object")
    return value


def _list(row: dict[str, Any], name: str, what: str) -> list[Any]:
    value = row.get(name)
    if not isinstance(value, list):
        raise _Unusable(GapCause.ERROR, f"{what} has no list {name}")
    return value


def _text(row: dict[str, Any], name: str, what: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value:
        raise _Unusable(GapCause.ERROR, f"{what} has no text {name}")
    return value


def _count(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST_LAG:
        raise _Unusable(GapCause.ERROR, f"{name} is {value!r}; a whole number from 0 is expected")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterListing:
    """The answers of the first wave."""

    topics: tuple[RawTopic, ...] | None
    """None when they did not answer or were not requested."""
    topics_answered_by: int | None
    groups: tuple[RawListedGroup, ...] | None
    """None when they were not requested; a broker that did not list its groups is a gap."""
    groups_complete: bool
    coordinators: Mapping[str, int]
    reassignments: tuple[RawReassignment, ...]
    log_dirs: LogDirs
    log_dirs_fresh: bool
    broker_configs: CachedConfigs
    application_lags: tuple[RawApplicationLag, ...]
    rack_tables: tuple[RawRackTable, ...]
    gaps: tuple[Gap, ...]


def ask_listing(context: ObserveContext) -> ClusterListing:
    """Everything of the first wave, side by side; never raises."""
    wire, scope, timeout_ms = context.clients.wire, context.scope, context.timeout_ms
    topics: ObserveQuery[TopicsAnswer | None] = ObserveQuery(
        ObservationPart.TOPICS, lambda: wire.describe_topics(timeout_ms), None
    )
    listed: ObserveQuery[ListedGroups | None] = ObserveQuery(
        ObservationPart.GROUPS, lambda: wire.list_groups(timeout_ms), None
    )
    moves: ObserveQuery[tuple[RawReassignment, ...]] = ObserveQuery(
        ObservationPart.REASSIGNMENTS, lambda: wire.list_reassignments(timeout_ms), ()
    )
    disks: ObserveQuery[tuple[LogDirs, bool]] = ObserveQuery(
        ObservationPart.LOG_DIRS, partial(log_dirs, context), (NO_LOG_DIRS, False)
    )
    configs: ObserveQuery[CachedConfigs] = ObserveQuery(
        ObservationPart.BROKER_CONFIGS, partial(broker_configs, context), NO_CONFIGS
    )
    lags = [_lags_of(url, context) for url in scope.application_urls]
    locators = locator_asks(context)
    gaps = ask_together(context, (topics, listed, moves, disks, configs, *lags, *locators), name="world")
    tables, gaps = answered_tables(context, locators, gaps)
    groups = listed.answer
    dirs, fresh = disks.answer
    applications = [ask.answer for ask in lags]
    return ClusterListing(
        topics=_topics_in_scope(topics.answer, scope),
        topics_answered_by=topics.answer.answered_by if topics.answer else None,
        groups=_groups_in_scope(groups, scope),
        groups_complete=groups is not None and len(groups.silent) == 0,
        coordinators=groups.coordinators if groups else {},
        reassignments=tuple(row for row in moves.answer if scope.takes_topic(row.id.topic)),
        log_dirs=LogDirs(_sizes_in_scope(dirs, context), dirs.cordoned, dirs.gaps),
        log_dirs_fresh=fresh,
        broker_configs=configs.answer,
        application_lags=tuple(sorted(chain.from_iterable(one.lags for one in applications))),
        rack_tables=tables,
        gaps=(
            *gaps,
            *(groups.gaps if groups else ()),
            *dirs.gaps,
            *configs.answer.gaps,
            *chain.from_iterable(one.gaps for one in applications),
        ),
    )


def _topics_in_scope(answer: TopicsAnswer | None, scope: ObserveScope) -> tuple[RawTopic, ...] | None:
    return None if answer is None else tuple(row for row in answer.topics if scope.takes_topic(row.name))


def _groups_in_scope(answer: ListedGroups | None, scope: ObserveScope) -> tuple[RawListedGroup, ...] | None:
    return None if answer is None else tuple(row for row in answer.groups if scope.takes_group(row.group_id))


def _lags_of(url: str, context: ObserveContext) -> ObserveQuery[ApplicationLags]:
    question = partial(
        read_application_lags, url, timeout_ms=context.timeout_ms, max_bytes=context.scope.application_max_bytes
    )
    return ObserveQuery(
        ObservationPart.APPLICATION_LAGS, question, ApplicationLags((), ()), subject=without_url_secrets(url)
    )


def _sizes_in_scope(dirs: LogDirs, context: ObserveContext) -> Mapping[tuple[int, TopicPartition], int]:
    scope = context.scope
    if scope.takes_all_topics:
        return dirs.replica_bytes
    return {key: size for key, size in dirs.replica_bytes.items() if scope.takes_topic(key[1].topic)}
