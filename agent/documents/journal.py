"""Rows of the journal: plans with their progress, throttles, commands, and triggered rebalances. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, ProposalApproval, approvals
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, history, pause_in
from agent.journal.entries import JournalState
from agent.journal.plan_entries import MoveOwner
from agent.journal.record_trust import confirmed_ms, leader_in
from agent.journal.triggers import triggers
from agent.values.observation import RawReassignment
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
    attempt,
    of_plan,
    rolled_back_plan,
    taken_back_by,
)
from assignors.problem import TopicPartition

if TYPE_CHECKING:
    from agent.documents.proposals import (
        CopyRow,
        HistoryRow,
        LeaderRow,
        MoveRow,
        PauseRow,
        PlanPartition,
        PlanRow,
        ReassignStatus,
        ThrottleRow,
        VerifyRow,
    )
    from agent.values.plan import ReplicaProgress


def plan_rows(view: JournalState) -> list[PlanRow]:
    """One row per plan, the latest last."""
    plans = plan_entries.plans(view)
    return [plan_row(plan, plan_entries.batches(view, plan.proposal_id), plans) for plan in plans]


def plan_row(plan: ReassignmentPlan, batches: Iterable[Batch], plans: tuple[ReassignmentPlan, ...] = ()) -> PlanRow:
    """A plan, and how far it is; partitions that it took back itself count as not done.

    ``plans``: those of the journal; one of them may take it back.
    """
    rollback = taken_back_by(plans, plan.proposal_id)
    own = tuple(batches)
    ends = {end.id: end.end for batch in own if not batch.back for end in batch.ends}
    back = {end.id for batch in own if batch.back for end in batch.ends if end.end is PartitionEndReason.DONE}
    done = {one for one, end in ends.items() if end is PartitionEndReason.DONE} - back
    running = [batch for batch in own if batch.state is not BatchState.CLOSED]
    others = {end for end in ends.values() if end is not PartitionEndReason.DONE}
    return {
        "plan": plan.proposal_id,
        "attempt": of_plan(plan).number,
        "state": plan.state.value,
        "paused": plan.paused,
        "partitions": plan.partitions,
        "done": len(done),
        "moving": sum(len(batch.targets) - len(batch.ends) for batch in running),
        "batches": len(own),
        "rate_bytes_per_s": running[-1].rate_bytes_per_s if running else None,
        "approved_by": plan.approved_by,
        "reason": plan.reason,
        "sentence": plan.sentence,
        "taken_back_by": None if rollback is None else rollback.proposal_id,
        "ends": {end.value: sum(one is end for one in ends.values()) for end in sorted(others)},
        "targets": [_planned(target, ends.get(target.id)) for target in plan.targets],
    }


def _planned(target: ReassignmentTarget, end: PartitionEndReason | None) -> PlanPartition:
    return {
        "topic": target.id.topic,
        "partition": target.id.partition,
        "before": list(target.before),
        "after": list(target.after),
        "end": None if end is None else end.value,
    }


def copy_row(copy: ReplicaProgress, *, ours: bool | None) -> CopyRow:
    """One copy that is being made."""
    share = None if copy.bytes is None or not copy.of_bytes else round(copy.bytes / copy.of_bytes, 4)
    return {
        "partition": str(copy.id),
        "to_broker": copy.broker,
        "bytes": copy.bytes,
        "of_bytes": copy.of_bytes,
        "copied_share": share,
        "bytes_per_s": None if copy.bytes_per_s is None else round(copy.bytes_per_s),
        "seconds_left": None if copy.seconds_left is None else round(copy.seconds_left),
        "ours": ours,
    }


def leader_row(view: JournalState) -> LeaderRow | None:
    """The agent that led last; None where none ever did."""
    if (leader := leader_in(view)) is None:
        return None
    return {
        "agent": leader.agent,
        "host": leader.host,
        "since_ms": leader.since_ms,
        "confirmed_ms": confirmed_ms(view, leader),
    }


def pause_row(view: JournalState) -> PauseRow | None:
    """Since when acting is paused; None where it is not."""
    pause = pause_in(view)
    return None if pause is None else {"by": pause.who, "since_ms": pause.since_ms, "reason": pause.reason}


def throttle_rows(view: JournalState) -> list[ThrottleRow]:
    """Throttle settings of rackwise, one row each."""
    return [throttle_row(debt) for debt in plan_entries.throttle_debts(view)]


def throttle_row(debt: ThrottleDebt) -> ThrottleRow:
    """A throttle that rackwise set and is going to remove: a rate, or the replicas that it is for."""
    return {
        "resource_kind": debt.resource.kind,
        "resource": debt.resource.name,
        "key": debt.key,
        "rate_bytes_per_s": debt.ours if isinstance(debt.ours, int) else None,
        "replicas": None if isinstance(debt.ours, int) else list(debt.ours),
        "plan": debt.proposal_id,
    }


def move_row(move: RawReassignment, owner: MoveOwner) -> MoveRow:
    """A reassignment in progress as the brokers report it; without a journal none is rackwise's own."""
    return {
        "partition": str(move.id),
        "adding": list(move.adding),
        "removing": list(move.removing),
        "replicas": list(move.replicas),
        "ours": owner.plan is not None if owner.known else None,
        "by": (owner.plan or "another tool") if owner.known else None,
    }


def history_rows(view: JournalState) -> list[HistoryRow]:
    """Everything that was said and done in every attempt, as far as the journal has it, by when it was last written.

    An approval that is as the command left it is the row of that command.
    """
    return [row for _, row in _history(view)]


def history_of_plan(view: JournalState, name: str) -> list[HistoryRow]:
    """The rows of that plan alone, the latest last."""
    return [row for plan, row in _history(view) if plan == name]


def history_of_proposal(view: JournalState, proposal_id: str) -> list[HistoryRow]:
    """The rows of every attempt at a proposal, and of the plans that roll one back, the latest last."""
    return [row for plan, row in _history(view) if plan is not None and proposal_of(plan) == proposal_id]


def proposal_of(name: str) -> str:
    """The proposal that a plan of this name carries out, or rolls back: `p-1` of `p-1.2` and of `p-1-back.2`."""
    while (of := rolled_back_plan(name)) is not None:
        name = of
    return attempt(name).of


def _history(view: JournalState) -> list[tuple[str | None, HistoryRow]]:
    """Each row with the plan, or the proposal, that it is about."""
    answers = history(view)
    rows = [
        _row(approval.at_ms, "approval", approval.plan, approval.by, _approval_end(approval))
        for approval in approvals(view)
        if not any(_left(approval, command, answer) for command, answer in answers)
    ]
    rows += [
        _row(answer.at_ms, asked.verb.value, answer.plan or asked.proposal_id, asked.who, _command_end(asked, answer))
        for asked, answer in answers
    ]
    rows += [
        _row(at_ms, "plan", plan.proposal_id, plan.approved_by, _plan_end(plan))
        for plan, at_ms in plan_entries.dated_plans(view)
    ]
    for one in triggers(view):
        state = one.effect.value if one.effect is not None else "asked"
        if one.judgement is not None:
            state = one.judgement.verdict.value
        sentence = one.judgement.sentence if one.judgement is not None else one.sentence
        plan, row = _row(one.intended_ms, "trigger", one.proposal_id, None, RowEnd(state, sentence))
        rows.append((plan, {**row, "about": f"{plan} of group {one.group_id}"}))
    return sorted(rows, key=lambda of: (of[1]["at_ms"], of[1]["what"]))


def _left(approval: ProposalApproval, command: OperatorCommand, answer: LeaderAnswer) -> bool:
    """Whether the approval is as this command left it."""
    gives_approval = answer.done and command.verb in (CommandVerb.APPROVE, CommandVerb.APPLY)
    same = (answer.plan, command.who, answer.at_ms) == (approval.plan, approval.by, approval.at_ms)
    return gives_approval and same and approval.state is not ApprovalState.VOID


def _row(at_ms: int, what: str, plan: str | None, who: str | None, end: RowEnd) -> tuple[str | None, HistoryRow]:
    return plan, {
        "at_ms": at_ms,
        "what": what,
        "about": plan,
        "who": who,
        "state": end.state,
        "sentence": end.sentence,
        "reason": end.reason or None,
        "plan_hash": end.plan_hash,
    }


class RowEnd(NamedTuple):
    """How an entry of the journal ends, and what was given with it."""

    state: str
    sentence: str
    reason: str = ""
    plan_hash: str | None = None


def _approval_end(approval: ProposalApproval) -> RowEnd:
    return RowEnd(approval.word, approval.sentence, approval.reason, approval.plan_hash)


def _command_end(command: OperatorCommand, answer: LeaderAnswer) -> RowEnd:
    return RowEnd("done" if answer.done else "refused", answer.sentence, command.reason, command.plan_hash)


def _plan_end(plan: ReassignmentPlan) -> RowEnd:
    return RowEnd(plan.state.value, plan.sentence, plan.reason)


class JournalRecords(NamedTuple):
    """What the journal holds."""

    view: JournalState
    journal: str
    """Where it is, or why there is nothing to read."""
    known: bool = True
    """False when there may be one that could not be read: then it is unknown what is rackwise's own."""
    why: str = ""
    """Why there is nothing to read; empty where there is."""

    def owners(self, look: ReportedMoves) -> Mapping[TopicPartition, MoveOwner]:
        """Partition -> whose its reassignment is."""
        owners = plan_entries.move_owners(self.view, look.moves, look.taken_ms)
        return owners if self.known else {one: MoveOwner(None, known=False) for one in owners}


class ReportedMoves(NamedTuple):
    """What the brokers reported in one look."""

    taken_ms: int
    """Epoch milliseconds at which the look began."""
    moves: tuple[RawReassignment, ...] = ()
    copies: tuple[ReplicaProgress, ...] = ()

    def of(self, partitions: Collection[TopicPartition]) -> ReportedMoves:
        """Of these partitions alone."""
        moves = tuple(one for one in self.moves if one.id in partitions)
        return ReportedMoves(self.taken_ms, moves, tuple(one for one in self.copies if one.id in partitions))


def running_moves(records: JournalRecords, look: ReportedMoves) -> ReportedMoves:
    """Those that have not ended since by the journal, so that both are of one state."""
    return look.of({one for one, owner in records.owners(look).items() if not owner.ended})


def reassign_status(
    records: JournalRecords, look: ReportedMoves, *, named: ReassignmentPlan | None = None, plan: str | None = None
) -> ReassignStatus:
    """Plans by the journal, and the reassignments and copies that the brokers report.

    ``named``: only moves of this plan's partitions; ``plan``: only rows of the plan, or of the attempts at a proposal.
    """
    view, owners = records.view, records.owners(look)
    shown = look if named is None else look.of({target.id for target in named.targets})
    moves = [move_row(one, owners[one.id]) for one in shown.moves]
    ours = {row["partition"]: row["ours"] for row in moves}
    return {
        "leader": leader_row(view),
        "paused": pause_row(view),
        "throttles": throttle_rows(view),
        "journal": records.journal,
        "plans": [row for row in plan_rows(view) if plan is None or plan in (row["plan"], attempt(row["plan"]).of)],
        "reassignments": moves,
        "copies": [copy_row(one, ours=ours.get(str(one.id))) for one in shown.copies],
    }


# Planned replicas beside those that partitions have. A plan is its row of ``reassign status``.

Placements = Mapping[TopicPartition, tuple[int, ...]]


class PlannedReplicas(NamedTuple):
    """What is to be compared."""

    wanted: Placements
    before: Placements
    """Replicas of partitions that a plan in progress has yet to move."""
    waits: str = ""
    """Why those are as before."""


class PresentReplicas(NamedTuple):
    """What the brokers reported."""

    replicas: Placements
    moves: Mapping[TopicPartition, str]
    """Partition -> its reassignment in a few words."""
    unseen: Collection[str]
    """Parts that did not answer."""
    hidden: Collection[str] = ()
    """Topics that are not there, or that the look leaves out."""


def planned_by(row: PlanRow) -> PlannedReplicas:
    """What a plan is to bring about."""
    targets = {TopicPartition(one["topic"], one["partition"]): one for one in row["targets"]}
    wanted = {id_: tuple(one["after"]) for id_, one in targets.items()}
    if row["state"] != PlanState.OPEN.value:
        return PlannedReplicas(wanted, {})
    waits = f"not begun: it has its replicas from before, and the plan is {'paused' if row['paused'] else 'open'}"
    before = {id_: tuple(one["before"]) for id_, one in targets.items() if one["end"] is None}
    return PlannedReplicas(wanted, before, waits)


def verify_rows(planned: PlannedReplicas, present: PresentReplicas) -> list[VerifyRow]:
    """Each planned partition with what became of it."""
    return [_verified(one, wanted, planned, present) for one, wanted in sorted(planned.wanted.items())]


def _verified(
    one: TopicPartition, wanted: tuple[int, ...], planned: PlannedReplicas, present: PresentReplicas
) -> VerifyRow:
    found, move = present.replicas.get(one), present.moves.get(one)
    state: Literal["done", "moving", "waiting", "other", "gone", "unknown"]
    if "reassignments" in present.unseen or (found is None and present.unseen):
        state, sentence = "unknown", "the brokers did not report it"
    elif found is None and one.topic in present.hidden:
        state, sentence = "unknown", "the topic does not exist, or the agent's settings leave it out"
    elif found is None:
        state, sentence = "gone", "the partition does not exist"
    elif move is not None:
        state, sentence = "moving", move
    elif found == wanted:
        state, sentence = "done", "moved as planned"
    elif found == planned.before.get(one):
        state, sentence = "waiting", planned.waits
    else:
        state, sentence = "other", "no reassignment is in progress, and its replicas are not the planned ones"
    replicas = None if found is None else list(found)
    return {"partition": str(one), "state": state, "replicas": replicas, "planned": list(wanted), "sentence": sentence}
