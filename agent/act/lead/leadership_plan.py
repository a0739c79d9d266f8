"""Leadership settings: the journal's location, the lock topic and the time limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.execute.commands.identity import CommandSigner, CommandWitness
from agent.journal.entries import JournalKey
from agent.record.own_topics import OwnTopic
from agent.values.kafka import (
    COMPACT,
    DELETE,
    LOG_APPEND_TIME,
    MAX_MESSAGE_BYTES,
    MAX_MESSAGE_BYTES_DEFAULT,
    TIMESTAMP_TYPE,
    UNCLEAN_ELECTION,
)

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipPlan:
    """Settings of leadership; the time limits are in milliseconds."""

    config: Mapping[str, str | int] = field(repr=False)
    """confluent-kafka's configuration of the executor; it may hold secrets."""
    observer: Mapping[str, str | int] | None = field(default=None, repr=False)
    """The observer's, where it is another user's; that one is to write neither journal nor commands."""
    agent: str
    """Name of this agent among those of the cluster."""
    file: Path | None = None
    """The journal of a single host; None keeps it in Kafka."""
    spool: Path | None = None
    """Commands of a single host; ``<file>.commands`` when not given."""
    prefix: str = "rackwise"
    journal_topic: str = "rackwise.journal"
    leader_topic: str = "rackwise.leader"
    commands_topic: str = "rackwise.commands"
    replication_factor: int = 3
    min_insync_replicas: int = 2
    session_ms: int = 10_000
    deadline_ms: int = 10_000
    """Longest that one append may take."""
    keys: tuple[JournalKey, ...] = field(default=(), repr=False)
    """By which the journal in Kafka is signed: the key in force, then former ones. None: every record counts."""
    unsigned_below: int = 0
    """Offset of the journal below which records from before there was a key count."""
    cluster: str = ""
    """Id of the cluster, where it is known before anything is read."""
    signer: CommandSigner | None = field(default=None, repr=False)
    """Signer of the commands that this process sends; None: unsigned."""
    witness: CommandWitness | None = field(default=None, repr=False)
    """The agent that vouches for people who sign in at its page, where commands are sent from there."""

    @property
    def spool_directory(self) -> Path:
        """Directory of commands when the journal is a file."""
        file = self.file or Path("rackwise.journal")
        return self.spool or file.with_name(f"{file.name}.commands")

    def topics(self) -> tuple[OwnTopic, ...]:
        """The topics by which agents agree; none when the journal is a file."""
        if self.file is not None:
            return ()
        lock = OwnTopic(
            name=self.leader_topic,
            partitions=1,
            replication_factor=self.replication_factor,
            min_insync_replicas=self.min_insync_replicas,
            cleanup_policy=DELETE,
            retention_ms=_DAY_MS,
        )
        configs = (
            (UNCLEAN_ELECTION, "false"),  # a replica that is behind would cut the journal
            ("segment.bytes", "16777216"),  # only closed segments are compacted
            (MAX_MESSAGE_BYTES, str(MAX_MESSAGE_BYTES_DEFAULT)),
        )
        journal = replace(lock, name=self.journal_topic, cleanup_policy=COMPACT, retention_ms=-1, configs=configs)
        # The age of a command is then by one clock, the broker's, not its sender's.
        arrival = ((TIMESTAMP_TYPE, LOG_APPEND_TIME),)
        return journal, lock, replace(lock, name=self.commands_topic, configs=arrival)
