"""Rebalance trigger: one clean rebalance of one classic group, with its intent and outcome in the journal.

The order: describe the group and check it; describe its members' transactions; make the probe's bytes; write the
intent; describe again; probe; write the outcome. The probe needs a durable and fresh intent (`messages`) and a valid
lease. Later looks judge the result (`agent.execute.trigger_judgement`). One trigger at a time; every call has
a deadline.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple, Protocol

from agent.act.probe import CALL_MS, SESSION_TIMEOUT_MS, CoordinatorPort, RebalanceProbe, StaleGroupError
from agent.errors import BadInput, JournalUnavailable, NoBrokersYet
from agent.execute.probe_bytes import ProbeRefusal, probe_bytes
from agent.execute.reassign.messages import valid_ms
from agent.execute.trigger_judgement import (
    GroupView,
    expected,
    group_view,
    offsets_partition,
    raw_group_view,
    transactional,
    transactions_of,
)
from agent.execute.trigger_refusals import description_refusal
from agent.journal.entries import JournalPort, JournalWrite
from agent.journal.triggers import (
    TriggerEffect,
    TriggerEntry,
    TriggerPath,
    intent,
    learned_of,
    outcome,
    path_at,
    path_learned,
    with_earlier,
)
from agent.values.clock import Clock
from agent.values.limits import Limits, TriState
from agent.values.observation import GapCause, RawClassicGroup
from agent.values.proposal import Outcome, Proposal
from agent.values.snapshot import GroupKind, Snapshot
from agent.wire.admin_client import JoinRequest, RawTransaction
from agent.wire.failure import CallFailed
from assignors.problem import TopicPartition

_OFFSETS = "__consumer_offsets"
_TRANSACTIONS = "__transaction_state"
_OFFSETS_PARTITIONS = 50
"""``offsets.topic.num.partitions`` where the topic is not shown."""


class GroupAdminPort(Protocol):
    """What a trigger needs of `agent.wire.admin_client.WireAdminClient`."""

    def group_line(self, group_id: str, deadline_ms: int) -> CoordinatorPort:
        """A connection of its own to the group's coordinator. Raises CallFailed."""

    def list_transactions(self, deadline_ms: int) -> tuple[tuple[RawTransaction, ...], dict[int, CallFailed]]:
        """Transactional ids that may be seen. Raises CallFailed, NoBrokersYet."""

    def describe_transactions(
        self, transactions: Sequence[RawTransaction], deadline_ms: int
    ) -> dict[str, tuple[TopicPartition, ...]]:
        """Transactional id -> partitions of its ongoing transaction; an id whose partitions are unknown is left out."""


class _NotDoneError(Exception):
    """The trigger is not to be carried out; nothing was asked."""


class _Ready(NamedTuple):
    """All that is decided before anything is asked."""

    group: RawClassicGroup
    description: GroupView
    metadata: bytes
    fingerprint: str


class RebalanceTrigger:
    """Triggers groups; safe to call from any thread, one at a time."""

    def __init__(
        self,
        admin: GroupAdminPort,
        journal: JournalPort,
        clock: Clock,
        limits: Limits,
        *,
        leads_for_s: Callable[[], float] = lambda: inf,
        on_step: Callable[[str], None] = lambda _step: None,
    ) -> None:
        """``leads_for_s``: seconds for which this agent surely leads; ``on_step`` is called with each step."""
        self._admin = admin
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._leads_for_s = leads_for_s
        self._on_step = on_step
        self._one_at_a_time = threading.Lock()

    def carry_out(self, proposal: Proposal, snapshot: Snapshot) -> Outcome:
        """Trigger the group of the proposal, which was made of that snapshot. Raises FencedOut."""
        with self._one_at_a_time:
            try:
                return self._carry_out(proposal, snapshot)
            except _NotDoneError as why:
                return Outcome(proposal.id, done=False, sentence=f"not done: {why}")

    def _carry_out(self, proposal: Proposal, snapshot: Snapshot) -> Outcome:
        group_id = proposal.subject.name
        ready = self._make_ready(group_id, snapshot)
        began_ms = self._clock().monotonic_ms
        entry = self._write_intent(proposal, snapshot)
        limits, took_ms = self._limits.execute, self._clock().monotonic_ms - began_ms
        good_ms = valid_ms(took_ms, least_ms=limits.intent_valid_ms, request_timeout_ms=limits.request_timeout_ms)
        self._on_step("intended")
        path = path_at(self._journal.view(), ready.fingerprint) or TriggerPath.PENDING_LEAVE
        ask = JoinRequest(
            protocol=ready.group.protocol,
            metadata=ready.metadata,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=SESSION_TIMEOUT_MS,
            reason=f"rackwise asks for one rebalance ({proposal.id})",
        )

        def same(now: RawClassicGroup) -> str | None:
            age_ms = self._clock().monotonic_ms - began_ms
            if age_ms > good_ms:
                return f"the intent in the journal is {age_ms} ms old, and it is valid for {good_ms:.0f} ms"
            if self._leads_for_s() <= 0:
                return "this agent's leadership is no longer certain"
            return self._unfit(now, ready.description)

        prober = RebalanceProbe(lambda: self._line(group_id), ask, same, on_step=self._on_step)
        entry = self._probe(prober, path, entry)
        return self._write_outcome(entry, ready.fingerprint)

    # --- before -------------------------------------------------------------------------------------------------

    def _make_ready(self, group_id: str, snapshot: Snapshot) -> _Ready:
        try:
            line = self._line(group_id)
            try:
                group, fingerprint = line.describe(CALL_MS), line.fingerprint
            finally:
                line.close()
        except CallFailed as failure:
            what = (
                "the coordinator has no classic group of this id"
                if failure.cause is GapCause.VANISHED
                else "the group could not be described"
            )
            raise _NotDoneError(f"{what} ({failure.detail})") from failure
        description = raw_group_view(group)
        why = self._unfit(group, group_view(snapshot.groups.get(group_id)))
        if why is not None:
            raise _NotDoneError(why)
        self._check_transactions(description, snapshot)
        metadata = probe_bytes(group)
        if isinstance(metadata, ProbeRefusal):
            raise _NotDoneError(f"no harmless JoinGroup can be built for it: {metadata.sentence}")
        return _Ready(group, description, metadata, fingerprint)

    def _unfit(self, group: RawClassicGroup, meant: GroupView | None) -> str | None:
        """Why the group as described now is not to be triggered; None when it may be."""
        description = raw_group_view(group)
        why = description_refusal(description, self._limits.trigger_of(group.group_id))
        if why is not None:
            return f"{why.sentence} ({why.known_by})"
        if meant is None or description.members != meant.members:
            return "members joined or left since the proposal"
        if description.generation != meant.generation:
            return "the group has rebalanced since the proposal"
        return None

    def _check_transactions(self, description: GroupView, snapshot: Snapshot) -> None:
        """Learn whether members write in transactions, where the user leaves it to what is seen."""
        allowed = self._limits.trigger_of(description.group_id)
        if allowed.allow_transactional or allowed.transactional is not TriState.UNKNOWN:
            return
        try:
            listed, failed = self._admin.list_transactions(CALL_MS)
        except (CallFailed, NoBrokersYet) as failure:
            raise _unknown_transactions("ListTransactions failed", str(failure)) from failure
        ongoing = [row for row in listed if row.state in ("Ongoing", "PrepareCommit", "PrepareAbort")]
        touched = self._admin.describe_transactions(ongoing, CALL_MS) if ongoing else {}
        offsets = snapshot.topics.get(_OFFSETS)
        partition = offsets_partition(description.group_id, len(offsets.partitions) if offsets else _OFFSETS_PARTITIONS)
        streams = description.kind is GroupKind.CLASSIC_STREAMS
        ids = [row.transactional_id for row in listed]
        how = transactions_of(description.group_id, ids, touched, TopicPartition(_OFFSETS, partition), streams=streams)
        if how is not None:
            view = self._journal.view()
            self._append_late(transactional(learned_of(view, description.group_id), description.group_id, how))
            raise _NotDoneError(f"{how} (learned from ListTransactions)")
        _check_all_answered(failed, [row.transactional_id for row in ongoing if row.transactional_id not in touched])
        _check_coordinators(snapshot)

    # --- around the act -----------------------------------------------------------------------------------------

    def _write_intent(self, proposal: Proposal, snapshot: Snapshot) -> TriggerEntry:
        group_id = proposal.subject.name
        entry = TriggerEntry(
            group_id=group_id,
            proposal_id=proposal.id,
            reason=proposal.reason.name,
            intended_ms=self._clock().wall_ms,
            expected=expected(proposal, snapshot.groups.get(group_id)),
        )
        entry = with_earlier(entry, self._journal.view())
        try:
            self._journal.append(intent(entry))
        except (JournalUnavailable, BadInput) as error:
            raise _NotDoneError(f"the intent could not be written to the journal ({error})") from error
        return entry

    def _probe(self, prober: RebalanceProbe, path: TriggerPath, entry: TriggerEntry) -> TriggerEntry:
        try:
            with prober:
                probed = prober.run(path)
        except StaleGroupError as stale:
            return replace(entry, effect=TriggerEffect.NOT_SENT, sentence=str(stale))
        except CallFailed as failure:
            effect = TriggerEffect.UNKNOWN if prober.asked else TriggerEffect.NOT_SENT
            return replace(entry, effect=effect, acted_ms=self._clock().wall_ms, sentence=failure.detail)
        return replace(
            entry, effect=probed.effect, path=probed.path, acted_ms=self._clock().wall_ms, sentence=probed.sentence
        )

    def _write_outcome(self, entry: TriggerEntry, fingerprint: str) -> Outcome:
        writes = [outcome(entry)]
        done = entry.effect is TriggerEffect.REBALANCING
        way = _learned_way(entry)
        if way is not None and path_at(self._journal.view(), fingerprint) is not way:
            writes.append(path_learned(fingerprint, way, self._clock().wall_ms))
        unwritten = self._append_late(*writes)
        head = "done" if done else "not done" if entry.effect is not TriggerEffect.UNKNOWN else "unknown"
        return Outcome(entry.proposal_id, done=done, sentence=f"{head}: {entry.sentence}{unwritten}")

    def _append_late(self, *writes: JournalWrite) -> str:
        """Write what is known already; where that fails the intent is enough, and later looks close it."""
        try:
            self._journal.append(*writes)
        except JournalUnavailable as error:
            return f" (not written to the journal: {error})"
        return ""

    def _line(self, group_id: str) -> CoordinatorPort:
        return self._admin.group_line(group_id, CALL_MS)


def _check_all_answered(failed: Mapping[int, CallFailed], undescribed: Sequence[str]) -> None:
    """Raises _NotDoneError where a broker did not list, or an ongoing transaction was not described.

    What was not seen may be the group's: a failed question is no "no".
    """
    if failed:
        brokers = ", ".join(str(broker) for broker in sorted(failed))
        first = failed[min(failed)]
        raise _unknown_transactions(
            f"ListTransactions failed on broker{'' if len(failed) == 1 else 's'} {brokers}", first.detail
        )
    if undescribed:
        more = f" and {len(undescribed) - 1} more" if len(undescribed) > 1 else ""
        raise _unknown_transactions("DescribeTransactions failed", f"{min(undescribed)}{more}")


def _check_coordinators(snapshot: Snapshot) -> None:
    """Raises _NotDoneError while transactional ids have no coordinator: no broker lists those then."""
    log = snapshot.topics.get(_TRANSACTIONS)
    leaderless = [row.id for row in log.partitions if row.leader is None] if log is not None else []
    if leaderless:
        raise _unknown_transactions("transactional ids have no coordinator", f"{leaderless[0]} has no leader")


def _unknown_transactions(what: str, why: str) -> _NotDoneError:
    return _NotDoneError(f"{what}, so it is unknown whether its members write in transactions ({why})")


def _learned_way(entry: TriggerEntry) -> TriggerPath | None:
    """Which way to try first the next time at a broker of that release; None where this trigger does not show it."""
    if entry.effect is TriggerEffect.REBALANCING:
        return entry.path
    # Too slow for both ways at once: the other one comes first then.
    return (
        TriggerPath.PHANTOM_JOIN
        if (entry.effect, entry.path) == (TriggerEffect.NOTHING, TriggerPath.PENDING_LEAVE)
        else None
    )
