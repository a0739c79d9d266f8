"""Context of one look: clients, scope, deadlines, rack locators, the last look's state, slow parts with their age."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from agent.values.clock import ClockReading
from agent.values.kafka import (
    AUTO_CREATE_TOPICS,
    AUTO_LEADER_REBALANCE,
    CLEANUP_POLICY,
    DEFAULT_REPLICATION_FACTOR,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    GROUP_STANDBYS_DEFAULT,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
    MIN_INSYNC_REPLICAS,
    NUM_PARTITIONS,
    OFFSETS_REPLICATION_FACTOR,
    REMOTE_STORAGE,
    REPLICA_SELECTOR,
    STREAMS_INITIAL_DELAY,
    UNCLEAN_ELECTION,
)
from agent.values.observation import Gap, GapCause, GapScope, Observation, ObservationPart, RawRackRow
from agent.wire.client import WireClient
from agent.wire.cluster_calls import ClusterAnswer, LogDirs
from agent.wire.failure import CallFailed, Deadline, gather
from config.kafka_client import KafkaClientConfig

SLOW_PARTS_REFRESH_MS: Mapping[ObservationPart, int] = MappingProxyType({
    ObservationPart.LOG_DIRS: 30_000,
    ObservationPart.TOPIC_CONFIGS: 60_000,
    ObservationPart.BROKER_CONFIGS: 60_000,
    ObservationPart.GROUP_CONFIGS: 60_000,
})  # fmt: skip
WANTED = "broker.ID, host.NAME, client.id.NAME or group.instance.id.NAME, and a rack"
"""The form of a row of a rack table, as sentences name it."""


class TableForm(StrEnum):
    """The format of a rack table."""

    PROPERTIES = "properties"
    YAML = "yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileQuestion:
    """Read this file."""

    name: str
    """The locator's name in ``rack.locator.class``."""
    path: str
    form: TableForm
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandQuestion:
    """Run this program, without a shell, and read its output."""

    name: str
    argv: tuple[str, ...]
    form: TableForm
    timeout_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPointQuestion:
    """Call this entry point of an installed package, in a process of its own."""

    name: str
    entry_point: str
    timeout_ms: int
    max_bytes: int
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties of the entry point; they may hold secrets, and go to it through a pipe."""


LocatorQuestion = FileQuestion | CommandQuestion | EntryPointQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveScope:
    """The limits of a look; by default there are none."""

    include_topics: tuple[str, ...] = ()
    """Shell-style patterns, case-sensitive; empty: all. Excluded topics and groups are not observed at all."""
    exclude_topics: tuple[str, ...] = ()
    include_groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    call_timeout_ms: int = 5_000
    """Hard deadline of one call, connection set-up included."""
    deadline_ms: int = 30_000
    """Hard deadline of a whole look."""
    parts: frozenset[ObservationPart] = frozenset(ObservationPart)
    """Requested parts; any other is a gap of NOT_ASKED. Brokers are always requested."""
    refresh_ms: Mapping[ObservationPart, int] = field(default_factory=lambda: SLOW_PARTS_REFRESH_MS)
    """Part -> age at which it is requested again; absent parts are requested at every look."""
    expected_cluster_id: str | None = None
    """A look at another cluster id raises WrongCluster."""
    application_urls: tuple[str, ...] = ()
    """Endpoints of applications' own lags."""
    application_max_bytes: int = 4 * 1024 * 1024
    rack_locators: tuple[LocatorQuestion, ...] = ()
    """External rack locators, in the order of ``rack.locator.class``."""
    shrink_share: float = 0.2
    """Share of the known topics or groups that may vanish without an answer before the list counts as incomplete."""
    names_asked: int = 1_000
    """Vanished names that one look describes one by one, at most."""

    def takes_topic(self, name: str) -> bool:
        """Whether that topic is observed."""
        return _takes(name, self.include_topics, self.exclude_topics)

    def takes_group(self, name: str) -> bool:
        """Whether that group is observed."""
        return _takes(name, self.include_groups, self.exclude_groups)

    @property
    def takes_all_topics(self) -> bool:
        """True when no pattern excludes a topic."""
        return not self.include_topics and not self.exclude_topics


def _takes(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    if include and not any(fnmatchcase(name, pattern) for pattern in include):
        return False
    return not any(fnmatchcase(name, pattern) for pattern in exclude)


@dataclass(slots=True)
class ObserverState:
    """State of one observer, updated at the end of each look."""

    last: Observation | None = None
    known_topics: frozenset[str] = frozenset()
    """Shown in the last look, or hidden since; a caller may add remembered names."""
    known_groups: frozenset[str] = frozenset()
    taken_ms: dict[ObservationPart, int] = field(default_factory=dict)
    """Part -> monotonic time of its last complete answer."""
    rack_tables: dict[str, tuple[bytes, tuple[RawRackRow, ...]]] = field(default_factory=dict)
    """Rack locator -> (digest of the text of its last good answer, the rows of it): not read twice."""
    asked_locators: set[str] = field(default_factory=set)
    """Rack locators that have not yet answered."""

    def age_ms(self, part: ObservationPart, now_ms: int) -> int | None:
        """Age of the last complete answer of that part; None without one."""
        taken = self.taken_ms.get(part)
        return None if taken is None or self.last is None else now_ms - taken

    def is_due(self, part: ObservationPart, now_ms: int, refresh_ms: Mapping[ObservationPart, int]) -> bool:
        """Whether that part is requested again now."""
        age = self.age_ms(part, now_ms)
        return age is None or age >= refresh_ms.get(part, 0)


@dataclass(frozen=True, slots=True)
class ObserverClients:
    """The clients of a look; a context manager that closes all connections."""

    wire: WireClient

    @classmethod
    def open(cls, config: KafkaClientConfig) -> Self:
        """The client of that configuration, not yet connected. Raises ConfigError."""
        return cls(WireClient(config.kafka_python()))

    def close(self) -> None:
        """Close all connections."""
        self.wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveContext:
    """Inputs of every query of one look."""

    clients: ObserverClients
    scope: ObserveScope
    recall: ObserverState
    began: ClockReading
    cluster: ClusterAnswer
    deadline: Deadline
    """Of the whole look."""

    @property
    def now_ms(self) -> int:
        """Monotonic clock when the look began."""
        return self.began.monotonic_ms

    @property
    def timeout_ms(self) -> int:
        """Limit of the next call."""
        return max(1, min(self.scope.call_timeout_ms, int(self.deadline.left_s * 1000)))

    def wants(self, part: ObservationPart) -> bool:
        """Whether that part is requested in this look."""
        return part in self.scope.parts

    def not_asked(self, part: ObservationPart) -> tuple[Gap, ...]:
        """The gap of a part that is not requested; empty for one that is."""
        return () if self.wants(part) else (Gap(part, GapCause.NOT_ASKED, "", "not requested in this look"),)


T = TypeVar("T")

_MARGIN_MS = 1_000
"""Added to the deadline of queries, so that one that ends at its own deadline is not cut off."""


class ObserveQuery(Generic[T]):
    """One query; ``answer`` is ``empty`` until `ask_together` has run it, and stays so when it failed."""

    def __init__(
        self,
        part: ObservationPart,
        question: Callable[[], T],
        empty: T,
        *,
        subject: str = "",
        scope: GapScope = GapScope.NAMED,
    ) -> None:
        """``subject`` and ``scope`` are those of the gap where it fails."""
        self.part = part
        self.subject = subject
        self.scope = scope
        self.question = question
        self.answer = empty


def ask_together(context: ObserveContext, asks: Sequence[ObserveQuery[Any]], *, name: str) -> tuple[Gap, ...]:
    """Run the requested queries side by side, by the deadline; returns the gaps of all others."""
    wanted = [ask for ask in asks if context.wants(ask.part)]
    jobs = {number: ask.question for number, ask in enumerate(wanted)}
    gaps = [gap for part in dict.fromkeys(ask.part for ask in asks) for gap in context.not_asked(part)]
    for number, result in gather(jobs, Deadline.after_ms(context.timeout_ms + _MARGIN_MS), name=name).items():
        ask = wanted[number]
        if isinstance(result, CallFailed):
            gaps.append(Gap(ask.part, result.cause, ask.subject, result.detail, ask.scope))
        else:
            ask.answer = result
    return tuple(gaps)


# Slow parts are requested at intervals and carried in between, with their age. A carried answer was complete; a config
# that is missing in it is requested at every look, and its gap repeated.

TOPIC_KEYS = (CLEANUP_POLICY, FOLLOWER_REPLICAS, LEADER_REPLICAS, MIN_INSYNC_REPLICAS, REMOTE_STORAGE, UNCLEAN_ELECTION)
BROKER_KEYS = (
    AUTO_CREATE_TOPICS,
    AUTO_LEADER_REBALANCE,
    DEFAULT_REPLICATION_FACTOR,
    FOLLOWER_RATE,
    STREAMS_INITIAL_DELAY,  # Kafka 4.2
    GROUP_STANDBYS_DEFAULT,
    LEADER_RATE,
    MIN_INSYNC_REPLICAS,
    NUM_PARTITIONS,
    OFFSETS_REPLICATION_FACTOR,
    LOG_DIRS_RATE,
    REPLICA_SELECTOR,
    UNCLEAN_ELECTION,
)

ByName = Mapping[str, Mapping[str, str]]
Fetch = Callable[[tuple[str, ...]], tuple[ByName, tuple[Gap, ...]]]


class CachedConfigs(NamedTuple):
    """Configs of a part after this look, by resource name as text."""

    values: ByName
    gaps: tuple[Gap, ...]
    asked_all: bool
    """False when some were carried from an earlier look."""


NO_CONFIGS = CachedConfigs({}, (), asked_all=False)
NO_LOG_DIRS = LogDirs({}, frozenset(), ())


def topic_configs(context: ObserveContext, topics: Iterable[str]) -> CachedConfigs:
    """Configs of the topics."""
    wire = context.clients.wire
    return _refreshed(
        context,
        ObservationPart.TOPIC_CONFIGS,
        topics,
        lambda last: last.topic_configs,
        lambda names: wire.describe_topic_configs(names, TOPIC_KEYS, context.timeout_ms),
    )


def broker_configs(context: ObserveContext) -> CachedConfigs:
    """Configs of the live brokers."""
    wire = context.clients.wire
    return _refreshed(
        context,
        ObservationPart.BROKER_CONFIGS,
        map(str, wire.broker_ids),
        lambda last: {str(broker): values for broker, values in last.broker_configs.items()},
        lambda _missing: wire.describe_broker_configs(BROKER_KEYS, context.timeout_ms),
    )


def group_configs(context: ObserveContext, groups: Iterable[str]) -> CachedConfigs:
    """Configs of KIP-848 and KIP-1071 groups."""
    wire = context.clients.wire
    return _refreshed(
        context,
        ObservationPart.GROUP_CONFIGS,
        groups,
        lambda last: last.group_configs,
        lambda names: wire.describe_group_configs(names, context.timeout_ms),
    )


def log_dirs(context: ObserveContext) -> tuple[LogDirs, bool]:
    """Sizes on disk and whether they are of this look; carried only when the last answer was complete."""
    last = context.recall.last
    if last is None or context.recall.is_due(ObservationPart.LOG_DIRS, context.now_ms, context.scope.refresh_ms):
        return context.clients.wire.describe_log_dirs(context.timeout_ms), True
    return LogDirs(last.replica_bytes, last.cordoned, ()), False


def _refreshed(
    context: ObserveContext,
    part: ObservationPart,
    names: Iterable[str],
    configs_of: Callable[[Observation], ByName],
    fetch: Fetch,
) -> CachedConfigs:
    """All configs when due, else those of the last look and those that are not known yet."""
    wanted, last = tuple(sorted(names)), context.recall.last
    due = context.recall.is_due(part, context.now_ms, context.scope.refresh_ms)
    carried = {} if due or last is None else configs_of(last)
    known = {name: carried[name] for name in wanted if name in carried}
    missing = tuple(name for name in wanted if name not in known)
    values, gaps = fetch(missing) if missing else ({}, ())
    return CachedConfigs({**known, **values}, gaps, asked_all=due)
