"""Creates rackwise's own topics with replicas spread over racks, and checks those that exist.

Creating and writing them are the only mutating requests of a dry run. An existing topic is never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from agent.record.librdkafka import client_settings, error_text
from agent.values.kafka import CLEANUP_POLICY, MIN_INSYNC_REPLICAS, RETENTION_MS
from agent.values.number_format import counted
from agent.values.observation import Observation, ObservationPart, RawBroker

RETRY_MS = 30_000
_NOT_YET = "it does not exist yet"
_NO_RIGHT = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTopic:
    """A topic of rackwise's own, as it is created."""

    name: str
    partitions: int
    replication_factor: int
    min_insync_replicas: int
    cleanup_policy: str
    retention_ms: int
    configs: tuple[tuple[str, str], ...] = ()
    """More of Kafka's topic configs, name and value."""


class OwnTopics:
    """Creates missing topics, and remembers existing ones."""

    def __init__(self, config: Mapping[str, str | int], topics: Sequence[OwnTopic], deadline_ms: int) -> None:
        self._config = config
        self._admin: AdminClient | None = None
        self._topics = {topic.name: topic for topic in topics}
        self._timeout_s = deadline_ms / 1_000
        self._ready: set[str] = set()
        self._shown: set[str] = set()
        """What the last look showed, and what was created since: it should be shown by the next."""
        self._new: set[str] = set()
        self._next_try_ms = 0
        self._problems: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        """How the latest attempt to create a topic failed."""

    def ensure(self, observation: Observation) -> None:
        """Create the topics that the observation lacks."""
        unseen = _hides_topics(observation)
        shown = _shown_topics(observation) & self._topics.keys()
        if not unseen:
            for name in self._shown - shown:  # it was deleted
                self.forget(name)
            self._shown = shown
        self._ready |= shown
        missing = [topic for name, topic in self._topics.items() if name not in self._ready]
        refused, why_not = self._refused, _why_not(observation)
        self._problems = {topic.name: refused.get(topic.name, why_not) for topic in missing}
        if missing and not unseen and usable_brokers(observation) and observation.monotonic_ms >= self._next_try_ms:
            self._next_try_ms = observation.monotonic_ms + RETRY_MS
            self._create(missing, observation)

    def is_ready(self, name: str) -> bool:
        """Whether that topic exists: a write to a missing one could make a broker auto-create it."""
        return name in self._ready

    def take_new(self, name: str) -> bool:
        """Whether it was created here since the last call, so that it is empty."""
        new = name in self._new
        self._new.discard(name)
        return new

    def forget(self, name: str) -> None:
        """The topic was deleted: it is created anew."""
        self._ready.discard(name)
        self._next_try_ms = 0

    def problems(self) -> tuple[str, ...]:
        """A sentence for each topic that does not exist."""
        return tuple(f"{name}: {problem}" for name, problem in self._problems.items())

    def _create(self, missing: Sequence[OwnTopic], observation: Observation) -> None:
        if self._admin is None:  # kept: a dropped client fails the calls in flight
            self._admin = AdminClient(client_settings(self._config))
        answers = self._admin.create_topics(
            [_new_topic(topic, observation) for topic in missing],
            operation_timeout=self._timeout_s,
            request_timeout=self._timeout_s,
        )
        for name, answer in answers.items():
            self._take(name, answer)

    def _take(self, name: str, answer: Future[None]) -> None:
        """Note the answer of one creation: the topic exists now, or there is a problem."""
        try:
            answer.result(timeout=self._timeout_s + 1)
            self._shown.add(name)
            self._new.add(name)
        except FutureTimeout:
            self._refuse(name, "it could not be created: no answer in time")
            return
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                lacks = "; grant CREATE on the topic or on the cluster" if error.code() in _NO_RIGHT else ""
                self._refuse(name, f"it could not be created: {error_text(error)}{lacks}")
                return
        self._ready.add(name)
        self._refused.pop(name, None)
        del self._problems[name]

    def _refuse(self, name: str, why: str) -> None:
        self._refused[name] = self._problems[name] = why


def _why_not(observation: Observation) -> str:
    """Why a topic that is not shown was not created yet: what hides it or keeps it from being created, if anything."""
    hidden = next((gap for gap in observation.gaps if gap.part is ObservationPart.TOPICS and not gap.subject), None)
    if hidden is not None:
        return f"whether it exists is unknown, because topics could not be listed: {hidden.detail}"
    if usable_brokers(observation):
        return _NOT_YET
    blind = next((gap for gap in observation.gaps if gap.part is ObservationPart.BROKERS), None)
    return f"it is not listed, and no broker that could hold it is known{f': {blind.detail}' if blind else ''}"


def usable_brokers(observation: Observation) -> tuple[RawBroker, ...]:
    """The brokers that can take a replica of a new topic."""
    return tuple(broker for broker in observation.brokers if not broker.fenced)


def least_in_sync(topic: OwnTopic, replicas: int) -> int:
    """The min.insync.replicas of a topic with so many replicas: one of them may fail without stopping the writer."""
    return max(1, min(topic.min_insync_replicas, replicas - 1))


def _new_topic(topic: OwnTopic, observation: Observation) -> NewTopic:
    placed = place_replicas(observation.brokers, topic.partitions, topic.replication_factor)
    replicas = len(placed[0])
    return NewTopic(
        topic.name,
        num_partitions=len(placed),
        replica_assignment=[list(partition) for partition in placed],
        config={
            CLEANUP_POLICY: topic.cleanup_policy,
            RETENTION_MS: str(topic.retention_ms),
            MIN_INSYNC_REPLICAS: str(least_in_sync(topic, replicas)),
            **dict(topic.configs),
        },
    )


# Replica placement by KIP-36's rule: distinct racks, then even load of brokers, then the lowest id. A broker without a
# rack counts as an unknown rack and comes last. Deterministic.


def place_replicas(
    brokers: Sequence[RawBroker], partitions: int, replication_factor: int
) -> tuple[tuple[int, ...], ...]:
    """One replica list per partition, the preferred leader first; shorter lists where there are fewer brokers."""
    usable = sorted((broker for broker in brokers if not broker.fenced), key=lambda broker: broker.id)
    load: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    placed: list[tuple[int, ...]] = []
    for _ in range(partitions):
        chosen = _one_partition(usable, min(replication_factor, len(usable)), load)
        chosen.sort(key=lambda broker: (leaders[broker], broker))
        leaders[chosen[0]] += 1
        placed.append(tuple(chosen))
    return tuple(placed)


def _one_partition(brokers: Sequence[RawBroker], replicas: int, load: Counter[int]) -> list[int]:
    chosen: list[int] = []
    racks: Counter[str | None] = Counter()
    for _ in range(replicas):
        free = (broker for broker in brokers if broker.id not in chosen)
        best = min(free, key=lambda broker: (racks[broker.rack], broker.rack is None, load[broker.id], broker.id))
        chosen.append(best.id)
        racks[best.rack] += 1
        load[best.id] += 1
    return chosen


_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000


class TopicAnnouncement(NamedTuple):
    """The announcement before the first creation."""

    sentence: str
    creates: tuple[str, ...]
    """Names of the topics that are about to be created."""
    exist: tuple[str, ...]
    """Names of those that exist and are left as they are."""
    settled: bool = True
    """False while that is not known yet, or no broker is there to hold a topic: a later look shows what is created."""


def _hides_topics(observation: Observation) -> bool:
    """Whether the list of topics is a gap."""
    return any(gap.part is ObservationPart.TOPICS and not gap.subject for gap in observation.gaps)


def _shown_topics(observation: Observation) -> set[str]:
    return {topic.name for topic in observation.topics if topic.error is None}


def announce(topics: Sequence[OwnTopic], observation: Observation, mode: str) -> TopicAnnouncement:
    """The announcement by a look; without own topics it gives the reason."""
    if not topics:
        why = "mode is observe" if mode == "observe" else "the settings publish none"
        return TopicAnnouncement(f"creates no topic: {why}", (), ())
    names = tuple(topic.name for topic in topics)
    if _hides_topics(observation):
        sentence = f"creates no topic before the brokers list topics; needs {_listed(names)}"
        return TopicAnnouncement(sentence, (), (), settled=False)
    shown = _shown_topics(observation)
    missing = [topic for topic in topics if topic.name not in shown]
    exist = tuple(name for name in names if name in shown)
    if missing and not usable_brokers(observation):
        needed = _listed(topic.name for topic in missing)
        return TopicAnnouncement(
            f"creates no topic before a broker can hold it; needs {needed}", (), exist, settled=False
        )
    parts = [f"creates {_listed(_described(topic, observation) for topic in missing)}"] if missing else []
    parts += _fewer_replicas(missing, observation)
    if exist:
        parts.append(
            f"{_listed(exist)} {'exists and stays as it is' if len(exist) == 1 else 'exist and stay as they are'}"
        )
    return TopicAnnouncement("; ".join(parts), tuple(topic.name for topic in missing), exist)


def _fewer_replicas(missing: Sequence[OwnTopic], observation: Observation) -> list[str]:
    """The lasting effect of an outage: topics with fewer replicas than configured, also after it."""
    usable = {broker.id for broker in usable_brokers(observation)}
    named = {
        replica for topic in observation.topics for partition in topic.partitions for replica in partition.replicas
    }
    away = sorted((named | {broker.id for broker in observation.brokers}) - usable)
    fewer = [topic.name for topic in missing if usable and len(usable) < topic.replication_factor]
    if not away or not fewer:
        return []
    brokers = (
        f"broker{'s' if len(away) > 1 else ''} {_listed(map(str, away))} {'are' if len(away) > 1 else 'is'} absent"
    )
    sentence = (
        f"{brokers}, so {_listed(fewer)} {'gets' if len(fewer) == 1 else 'get'} fewer replicas than "
        "topics.replication_factor, and rackwise adds none later: reassign the partitions and raise "
        "min.insync.replicas after the outage"
    )
    return [sentence]


def _described(topic: OwnTopic, observation: Observation) -> str:
    """``rackwise.telemetry (6 partitions, replication factor 3, ...)``, as it is going to be."""
    replicas = min(topic.replication_factor, len(usable_brokers(observation)))
    return (
        f"{topic.name} ({counted(topic.partitions, 'partition')}, replication factor {replicas}, "
        f"{MIN_INSYNC_REPLICAS} {least_in_sync(topic, replicas)}, {CLEANUP_POLICY} {topic.cleanup_policy}, "
        f"retention {_kept(topic.retention_ms)})"
    )


def _kept(retention_ms: int) -> str:
    if retention_ms < 0:
        return "unlimited"
    for unit, name in ((_DAY_MS, "day"), (_HOUR_MS, "hour")):
        if retention_ms % unit == 0:
            return counted(retention_ms // unit, name)
    return f"{retention_ms} ms"


def _listed(names: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
