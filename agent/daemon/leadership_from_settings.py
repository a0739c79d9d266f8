"""Cuts out of the settings where the journal stands and where commands go. Both who acts and who asks need it.

Keys are not settings: they are read from their files (`agent.act.key_files`).
"""

from __future__ import annotations

from pathlib import Path

from agent.act.lead.leadership_plan import LeadershipPlan
from config.kafka_client import KafkaClientConfig
from config.settings import Settings


def to_leadership_plan(settings: Settings, kafka: KafkaClientConfig, agent: str) -> LeadershipPlan:
    """With whose connection, and under which name: an agent acts as the executor, a person asks as who they are."""
    execute, topics = settings.execute, settings.topics
    return LeadershipPlan(
        config=kafka.confluent(),
        observer=settings.kafka.confluent() if settings.execute.kafka.root and kafka is not settings.kafka else None,
        agent=agent,
        file=Path(execute.journal_file) if execute.journal_file is not None else None,
        spool=Path(execute.commands_dir) if execute.commands_dir is not None else None,
        prefix=topics.prefix,
        journal_topic=settings.journal_topic,
        leader_topic=settings.leader_topic,
        commands_topic=settings.commands_topic,
        replication_factor=topics.replication_factor,
        min_insync_replicas=topics.min_insync_replicas,
        unsigned_below=execute.journal_unsigned_below,
    )
