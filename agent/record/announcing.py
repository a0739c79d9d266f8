"""Which topics of its own the agent is about to create, and which exist, as it says at its start. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.record.own_topics import OwnTopic, least_in_sync, usable_brokers
from agent.values.observation import Observation, Part
from agent.values.words import counted

_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000


class Announcement(NamedTuple):
    """What is said before anything is created."""

    sentence: str
    creates: tuple[str, ...]
    """Names of the topics that are about to be created."""
    exist: tuple[str, ...]
    """Names of those that exist and are left as they are."""
    settled: bool = True
    """False while that is not known yet, or no broker is there to hold a topic: a later look tells what is created."""


def announce(topics: Sequence[OwnTopic], observation: Observation, mode: str) -> Announcement:
    """By the first look; without topics to be written it says that none is created, and why."""
    if not topics:
        why = "mode is observe" if mode == "observe" else "the settings publish none"
        return Announcement(f"creates no topic: {why}", (), ())
    names = tuple(topic.name for topic in topics)
    if any(gap.part is Part.TOPICS and not gap.subject for gap in observation.gaps):
        sentence = f"creates no topic before the brokers list topics; needs {_listed(names)}"
        return Announcement(sentence, (), (), settled=False)
    shown = {topic.name for topic in observation.topics if topic.error is None}
    missing = [topic for topic in topics if topic.name not in shown]
    exist = tuple(name for name in names if name in shown)
    if missing and not usable_brokers(observation):
        needed = _listed(topic.name for topic in missing)
        return Announcement(f"creates no topic before a broker can hold it; needs {needed}", (), exist, settled=False)
    parts = [f"creates {_listed(_described(topic, observation) for topic in missing)}"] if missing else []
    parts += _fewer_replicas(missing, observation)
    if exist:
        parts.append(
            f"{_listed(exist)} {'exists and stays as it is' if len(exist) == 1 else 'exist and stay as they are'}"
        )
    return Announcement("; ".join(parts), tuple(topic.name for topic in missing), exist)


def _fewer_replicas(missing: Sequence[OwnTopic], observation: Observation) -> list[str]:
    """What an outage does to the topics for good: they have fewer replicas than the settings say, also after it."""
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
    told = (
        f"{brokers}, so {_listed(fewer)} {'gets' if len(fewer) == 1 else 'get'} fewer replicas than "
        "topics.replication_factor, and rackwise adds none later: reassign the partitions and raise "
        "min.insync.replicas after the outage"
    )
    return [told]


def _described(topic: OwnTopic, observation: Observation) -> str:
    """``rackwise.telemetry (6 partitions, replication factor 3, ...)``, as it is going to be."""
    replicas = min(topic.replication_factor, len(usable_brokers(observation)))
    return (
        f"{topic.name} ({counted(topic.partitions, 'partition')}, replication factor {replicas}, "
        f"min.insync.replicas {least_in_sync(topic, replicas)}, cleanup.policy {topic.cleanup_policy}, "
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
