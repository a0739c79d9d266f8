"""A journal in Kafka before it is opened: where it stands, how its clients are set, and whether it can be believed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.act.journal_topic import Bounds, Told, forgot
from agent.errors import BadInput
from agent.journal.leader import Leader, check_cluster

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

    @property
    def transactional_id(self) -> str:
        """The one id of everybody who writes this cluster's journal."""
        return f"{self.prefix}-exec-{self.leader.cluster}"


def check(plan: KafkaJournalPlan, bounds: Bounds, told: Told, least_epoch: int) -> None:
    """Raises BadInput, WrongCluster for a journal that must not be gone on with."""
    if bounds.first > 0:
        raise forgot(plan.topic, f"its offsets below {bounds.first} are gone")
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
    if told.newest_epoch < least_epoch:
        raise forgot(plan.topic, f"it ends with epoch {told.newest_epoch}, but epoch {least_epoch} has begun before")


def writer_settings(plan: KafkaJournalPlan) -> dict[str, str | int | logging.Logger]:
    """What the writer's client has beside the settings of its connection."""
    return {
        "logger": _SILENT,  # a fenced writer is told of by our own error, not by a line between ours
        "transactional.id": plan.transactional_id,
        "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
        "message.timeout.ms": _TRANSACTION_TIMEOUT_MS,  # an append that takes too long is aborted, which ends it sooner
        "linger.ms": 0,
        "retry.backoff.ms": 20,  # the transaction before may still be writing its markers
        "compression.type": "lz4",
    }
