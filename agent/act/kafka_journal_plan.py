"""A journal in Kafka before it is opened: where it stands, how its clients are set, and whether it can be believed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.act.journal_reading import Told, forgot
from agent.act.journal_topic import Bounds
from agent.errors import BadInput
from agent.journal.leader import Leader, check_cluster
from agent.journal.trust import Doubt, JournalKey, Trust, distinct_ids
from agent.values.kafka import COMPRESSION_TYPE, LINGER_MS, MESSAGE_TIMEOUT_MS
from agent.values.words import counted

_TRANSACTION_TIMEOUT_MS = 60_000
_SILENT = logging.getLogger("rackwise.kafka-journal")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaJournalPlan:
    """Where the journal stands, and who writes it."""

    config: Mapping[str, str | int] = field(repr=False)
    """confluent-kafka's configuration of the executor; it may hold secrets."""
    leader: Leader
    """Who writes, and for which cluster."""
    prefix: str = "rackwise"
    topic: str = "rackwise.journal"
    deadline_ms: int = 10_000
    """Longest that one append may take; a part of the opening may take three times as long."""
    keys: tuple[JournalKey, ...] = ()
    """By which records are signed and checked; the first is in force, the others are former ones."""
    unsigned_below: int = 0
    """Offset below which records from before there was a key count."""

    @property
    def transactional_id(self) -> str:
        """The one id of every writer of this cluster's journal."""
        return f"{self.prefix}-exec-{self.leader.cluster}"

    @property
    def trust(self) -> Trust:
        """What makes a record of the topic count."""
        return Trust(self.keys, self.leader.cluster, self.unsigned_below)


class Witness(NamedTuple):
    """How far the journal is known to have come, by what is kept outside of it."""

    epoch: int = 0
    end: int = 0
    """An offset that its high watermark has reached."""


def check(plan: KafkaJournalPlan, bounds: Bounds, told: Told, witness: Witness) -> None:
    """Raises BadInput, WrongCluster for a journal that must not be gone on with."""
    if bounds.first > 0:
        raise forgot(plan.topic, f"its offsets below {bounds.first} are gone")
    if bounds.end < witness.end:
        raise forgot(plan.topic, f"it ends at offset {bounds.end}, and offset {witness.end} was reached before")
    _check_signed(plan, bounds, told)
    if told.newer:
        raise BadInput(
            f"The journal {plan.topic} is only read, not written, and nothing is done",
            why=f"a newer rackwise wrote it ({told.newer[0]})",
            todo="Upgrade this agent to the same version.",
        )
    if told.unreadable:
        raise BadInput(
            f"The journal {plan.topic} cannot be continued",
            why=f"{len(told.unreadable)} of its keys hold no valid entries: {told.unreadable[0]}",
            todo="Check the ACLs of the topic, and delete these keys: only rackwise may write it.",
        )
    check_cluster(told.view, plan.leader.cluster, plan.topic)
    if told.newest_epoch < witness.epoch:
        raise forgot(plan.topic, f"it ends with epoch {told.newest_epoch}, but epoch {witness.epoch} has begun before")


def _check_signed(plan: KafkaJournalPlan, bounds: Bounds, told: Told) -> None:
    """Raises BadInput where no record, or not every one, can be told from a forged one."""
    if not plan.keys:
        if told.signed:
            raise BadInput(
                f"The journal {plan.topic} is signed, and this agent has no key",
                why="execute.journal_key_file is not set",
                todo="Set it to a file with the key of the other agents.",
            )
        return
    if told.believed or not told.doubted:
        return
    if ids := distinct_ids(one for one in told.doubted if one.doubt is Doubt.OTHER_KEY):
        raise BadInput(
            f"The journal {plan.topic} is signed with another key",
            why=f"its records name key {', '.join(ids[:3])}, and this agent has {', '.join(k.id for k in plan.keys)}",
            todo="Set execute.journal_key_file to the key of the other agents; a former key goes into its second line.",
        )
    raise BadInput(
        f"No record of the journal {plan.topic} is signed with this agent's key",
        why=f"{counted(told.doubted_count, 'record')}, first {told.doubted[0].key!r}: {told.doubted[0].doubt.value}",
        todo=(
            "If they are from before the key was set (see: rackwise proposals history), accept them once with"
            f" --set execute.journal_unsigned_below={bounds.end}"
        ),
    )


def writer_settings(plan: KafkaJournalPlan) -> dict[str, str | int | logging.Logger]:
    """What the writer's client has beside the settings of its connection."""
    return {
        "logger": _SILENT,  # our own error names a fenced writer, not a line between ours
        "transactional.id": plan.transactional_id,
        "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
        MESSAGE_TIMEOUT_MS: _TRANSACTION_TIMEOUT_MS,  # an append that takes too long is aborted, which ends it sooner
        LINGER_MS: 0,
        "retry.backoff.ms": 20,  # the transaction before may still be writing its markers
        COMPRESSION_TYPE: "lz4",
    }
