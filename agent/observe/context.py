"""What every question of one look needs: whom to ask, how far, how long, and what the last look knew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from agent.observe.locators.question import LocatorQuestion
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
from agent.values.observation import Gap, GapCause, Observation, ObservationPart, RawRackRow
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveScope:
    """The limits of a look; the defaults see everything."""

    include_topics: tuple[str, ...] = ()
    """Shell-style patterns, case-sensitive; empty sees all. What is left out here is not seen at all."""
    exclude_topics: tuple[str, ...] = ()
    include_groups: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    call_timeout_ms: int = 5_000
    """Hard deadline of one call, connection set-up included."""
    deadline_ms: int = 30_000
    """Hard deadline of a whole look."""
    parts: frozenset[ObservationPart] = frozenset(ObservationPart)
    """Parts that are asked for; any other is a gap that says so. Brokers are always asked for."""
    refresh_ms: Mapping[ObservationPart, int] = field(default_factory=lambda: SLOW_PARTS_REFRESH_MS)
    """Part -> how old its answer may get before it is asked again; a part that is absent is asked at every look."""
    expected_cluster_id: str | None = None
    """The look is refused when the brokers tell another cluster id."""
    application_urls: tuple[str, ...] = ()
    """Where applications tell their own lags."""
    application_max_bytes: int = 4 * 1024 * 1024
    rack_locators: tuple[LocatorQuestion, ...] = ()
    """Rack locators outside of the process, in the order of ``rack.locator.class``."""
    shrink_share: float = 0.2
    """Part of the known topics or groups that may vanish unexplained before the smaller world is doubted."""
    names_asked: int = 1_000
    """Vanished names that are asked about one by one, at most, in one look."""

    def takes_topic(self, name: str) -> bool:
        """Whether that topic is seen."""
        return _takes(name, self.include_topics, self.exclude_topics)

    def takes_group(self, name: str) -> bool:
        """Whether that group is seen."""
        return _takes(name, self.include_groups, self.exclude_groups)

    @property
    def takes_all_topics(self) -> bool:
        """True when no pattern leaves a topic out."""
        return not self.include_topics and not self.exclude_topics


def _takes(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    if include and not any(fnmatchcase(name, pattern) for pattern in include):
        return False
    return not any(fnmatchcase(name, pattern) for pattern in exclude)


@dataclass(slots=True)
class ObserverState:
    """Belongs to one observer and is updated at the end of each look. A new one knows nothing."""

    last: Observation | None = None
    known_topics: frozenset[str] = frozenset()
    """Shown in the last look, or hidden since; a caller that remembers more may fill it in."""
    known_groups: frozenset[str] = frozenset()
    taken_ms: dict[ObservationPart, int] = field(default_factory=dict)
    """Part -> monotonic time of its last complete answer."""
    rack_tables: dict[str, tuple[bytes, tuple[RawRackRow, ...]]] = field(default_factory=dict)
    """Rack locator -> (digest of the text of its last good answer, the rows of it): not read twice."""
    asked_locators: set[str] = field(default_factory=set)
    """Rack locators whose question has not come back."""

    def age_ms(self, part: ObservationPart, now_ms: int) -> int | None:
        """How old the last complete answer to that part is; None when there is none."""
        taken = self.taken_ms.get(part)
        return None if taken is None or self.last is None else now_ms - taken

    def is_due(self, part: ObservationPart, now_ms: int, refresh_ms: Mapping[ObservationPart, int]) -> bool:
        """Whether that part is to be asked again now."""
        age = self.age_ms(part, now_ms)
        return age is None or age >= refresh_ms.get(part, 0)


@dataclass(frozen=True, slots=True)
class ObserverClients:
    """What a look asks with; a context manager that closes all connections."""

    wire: WireClient

    @classmethod
    def open(cls, config: KafkaClientConfig) -> Self:
        """The client of that configuration; connects nothing yet. Raises ConfigError for what cannot be used."""
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
    """One look's surroundings."""

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
        """What the next call may take."""
        return max(1, min(self.scope.call_timeout_ms, int(self.deadline.left_s * 1000)))

    def wants(self, part: ObservationPart) -> bool:
        """Whether that part is asked for in this look."""
        return part in self.scope.parts

    def not_asked(self, part: ObservationPart) -> tuple[Gap, ...]:
        """The gap of a part that is not wanted; nothing for one that is wanted."""
        return () if self.wants(part) else (Gap(part, GapCause.NOT_ASKED, "", "not requested in this look"),)


T = TypeVar("T")

_MARGIN_MS = 1_000
"""So that a question that ends at its own deadline, with what came by then, is never cut off by this one."""


class ObserveQuery(Generic[T]):
    """One question; ``answer`` is the empty value until `ask_together` has run it, and stays so when it failed."""

    def __init__(self, part: ObservationPart, question: Callable[[], T], empty: T, *, subject: str = "") -> None:
        self.part = part
        self.subject = subject
        self.question = question
        self.answer = empty


def ask_together(context: ObserveContext, asks: Sequence[ObserveQuery[Any]], *, name: str) -> tuple[Gap, ...]:
    """Run the questions that are wanted, side by side, and be back by the deadline; returns the gaps of the others."""
    wanted = [ask for ask in asks if context.wants(ask.part)]
    jobs = {number: ask.question for number, ask in enumerate(wanted)}
    gaps = [gap for part in dict.fromkeys(ask.part for ask in asks) for gap in context.not_asked(part)]
    for number, result in gather(jobs, Deadline.after_ms(context.timeout_ms + _MARGIN_MS), name=name).items():
        ask = wanted[number]
        if isinstance(result, CallFailed):
            gaps.append(Gap(ask.part, result.cause, ask.subject, result.detail))
        else:
            ask.answer = result
    return tuple(gaps)


# Parts that change seldom and cost much: asked now and then, carried in between, with their age.
#
# Invariant: a carried answer was whole. A config that is missing in it is asked for at every look, and its gap
# repeated.

TOPIC_KEYS = (CLEANUP_POLICY, FOLLOWER_REPLICAS, LEADER_REPLICAS, MIN_INSYNC_REPLICAS, REMOTE_STORAGE, UNCLEAN_ELECTION)
BROKER_KEYS = (
    AUTO_CREATE_TOPICS,
    AUTO_LEADER_REBALANCE,
    DEFAULT_REPLICATION_FACTOR,
    FOLLOWER_RATE,
    STREAMS_INITIAL_DELAY,  # which brokers have from 4.2 on
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
    last = context.recall.last
    wire = context.clients.wire
    return _refreshed(
        context,
        ObservationPart.TOPIC_CONFIGS,
        topics,
        last.topic_configs if last else {},
        lambda names: wire.describe_topic_configs(names, TOPIC_KEYS, context.timeout_ms),
    )


def broker_configs(context: ObserveContext) -> CachedConfigs:
    """Configs of the brokers that serve."""
    last = context.recall.last
    wire = context.clients.wire
    return _refreshed(
        context,
        ObservationPart.BROKER_CONFIGS,
        map(str, wire.broker_ids),
        {str(broker): values for broker, values in last.broker_configs.items()} if last else {},
        lambda _missing: wire.describe_broker_configs(BROKER_KEYS, context.timeout_ms),
    )


def group_configs(context: ObserveContext, groups: Iterable[str]) -> CachedConfigs:
    """Configs of KIP-848 and KIP-1071 groups."""
    last = context.recall.last
    wire = context.clients.wire
    return _refreshed(
        context,
        ObservationPart.GROUP_CONFIGS,
        groups,
        last.group_configs if last else {},
        lambda names: wire.describe_group_configs(names, context.timeout_ms),
    )


def log_dirs(context: ObserveContext) -> tuple[LogDirs, bool]:
    """Sizes on disk and whether they were asked for now; carried only when the last answer was whole."""
    last = context.recall.last
    if last is None or context.recall.is_due(ObservationPart.LOG_DIRS, context.now_ms, context.scope.refresh_ms):
        return context.clients.wire.describe_log_dirs(context.timeout_ms), True
    return LogDirs(last.replica_bytes, last.cordoned, ()), False


def _refreshed(
    context: ObserveContext, part: ObservationPart, names: Iterable[str], carried: ByName, fetch: Fetch
) -> CachedConfigs:
    """All names when due, else the carried ones and what is not known yet."""
    wanted = tuple(sorted(names))
    due = context.recall.is_due(part, context.now_ms, context.scope.refresh_ms)
    known = {} if due else {name: carried[name] for name in wanted if name in carried}
    missing = tuple(name for name in wanted if name not in known)
    values, gaps = fetch(missing) if missing else ({}, ())
    return CachedConfigs({**known, **values}, gaps, asked_all=due)
