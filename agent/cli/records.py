"""Rows of the journal: plans with their progress, throttles, commands, and triggered rebalances. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING, Any

from agent.journal import plan_entries
from agent.journal.approvals import ProposalApproval, approvals
from agent.journal.commands import CommandVerb, LeaderAnswer, OperatorCommand, history, pause_in
from agent.journal.leader import leader_in
from agent.journal.triggers import triggers
from agent.values.journal import JournalState, under
from agent.values.kafka import FOLLOWER_RATE, LEADER_RATE
from agent.values.number_format import counted, lasted, sized
from agent.values.observation import RawReassignment
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEndReason,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
    of_plan,
)

if TYPE_CHECKING:
    from agent.cli.documents.proposals import (
        CopyRow,
        HistoryRow,
        LeaderRow,
        MoveRow,
        PauseRow,
        PlanPartition,
        PlanRow,
        ThrottleRow,
    )
    from agent.values.progress import ReplicaProgress

JournalRow = dict[str, Any]


def plan_rows(view: JournalState) -> list[PlanRow]:
    """One row per plan, the latest last. Raises UnreadableError where a newer rackwise wrote them."""
    return [plan_row(plan, plan_entries.batches(view, plan.proposal_id)) for plan in plan_entries.plans(view)]


def plan_row(plan: ReassignmentPlan, batches: Iterable[Batch]) -> PlanRow:
    """A plan, and how far it is; partitions that were taken back count as not done."""
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


def plan_cells(row: PlanRow) -> JournalRow:
    """The same for a table."""
    rate = row["rate_bytes_per_s"]
    return {
        **row,
        "state": f"{row['state']}{', paused' if row['paused'] else ''}",
        "throttle": None if rate is None else f"{sized(rate)}/s",
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


def copy_cells(row: CopyRow) -> JournalRow:
    """The same for a table."""
    share, rate, left = row["copied_share"], row["bytes_per_s"], row["seconds_left"]
    return {
        **row,
        "copied": None if row["bytes"] is None else sized(row["bytes"]),
        "of": None if row["of_bytes"] is None else sized(row["of_bytes"]),
        "share": None if share is None else f"{floor(100 * share)} %",  # all is said only of all
        "rate": None if rate is None else f"{sized(rate)}/s",
        "time left": None if left is None else lasted(1_000 * left),
    }


def leader_row(view: JournalState) -> LeaderRow | None:
    """The agent that leads; None where none ever did."""
    leader = leader_in(view)
    return None if leader is None else {"agent": leader.agent, "host": leader.host, "since_ms": leader.since_ms}


def pause_row(view: JournalState) -> PauseRow | None:
    """Since when acting is paused; None where it is not."""
    pause = pause_in(view)
    return None if pause is None else {"by": pause.who, "since_ms": pause.since_ms, "reason": pause.reason}


def throttle_rows(view: JournalState) -> list[ThrottleRow]:
    """Throttle settings of rackwise, one row each."""
    return [throttle_row(debt) for debt in plan_entries.throttle_debts(view)]


def throttle_row(debt: ThrottleDebt) -> ThrottleRow:
    """A throttle that rackwise set and is going to remove: a rate, or the replicas that it is for."""
    rate = int(debt.ours) if debt.key in (LEADER_RATE, FOLLOWER_RATE) and debt.ours.isdecimal() else None
    return {
        "resource_kind": debt.resource.kind,
        "resource": debt.resource.name,
        "key": debt.key,
        "rate_bytes_per_s": rate,
        "replicas": [one for one in debt.ours.split(",") if one] if rate is None else None,
        "plan": debt.proposal_id,
    }


def throttle_line(row: ThrottleRow) -> str:
    """``broker 1: leader.replication.throttled.rate 50.0 MB/s (rackwise)``."""
    rate, replicas = row["rate_bytes_per_s"], row["replicas"] or []
    value = f"for {counted(len(replicas), 'replica')}" if rate is None else f"{sized(rate)}/s"
    return f"{row['resource_kind']} {row['resource']}: {row['key']} {value} (rackwise)"


def head_row(view: JournalState) -> JournalRow:
    """For a table: which agent leads, and whether acting is paused."""
    leader, pause = leader_in(view), pause_in(view)
    return {
        "leader": None if leader is None else f"{leader.agent} on {leader.host}",
        "paused": None
        if pause is None
        else f"by {pause.who} since {_time(pause.since_ms)}: {pause.reason or 'no reason given'}",
    }


def move_row(move: RawReassignment, plan: str | None, *, known: bool) -> MoveRow:
    """A reassignment in progress as the brokers report it; without a journal none is rackwise's own."""
    return {
        "partition": str(move.id),
        "adding": list(move.adding),
        "removing": list(move.removing),
        "replicas": list(move.replicas),
        "ours": plan is not None if known else None,
        "by": (plan or "another tool") if known else None,
    }


def history_rows(view: JournalState) -> list[HistoryRow]:
    """Everything that was said and done in every attempt, as far as the journal has it, by when it was last written.

    An approval that is as the command left it is the row of that command.
    """
    rows: list[HistoryRow] = []
    answers = history(view)
    rows += [
        _row(approval.at_ms, "approval", approval.plan, approval.by, _approval(approval), approval.sentence)
        for approval in approvals(view)
        if not any(_left(approval, command, answer) for command, answer in answers)
    ]
    rows += [
        _row(
            answer.at_ms, command.verb.value, _about(command, answer), command.who, _done(answer.done), answer.sentence
        )
        for command, answer in answers
    ]
    at = {entry.key.removeprefix("plan/"): entry.at_ms for entry in under(view, "plan")}
    rows += [
        _row(at[plan.proposal_id], "plan", plan.proposal_id, plan.approved_by, plan.state.value, plan.sentence)
        for plan in plan_entries.plans(view)
    ]
    for one in triggers(view):
        state = one.effect.value if one.effect is not None else "asked"
        if one.judgement is not None:
            state = one.judgement.verdict.value
        sentence = one.judgement.sentence if one.judgement is not None else one.sentence
        rows.append(
            _row(one.intended_ms, "trigger", f"{one.proposal_id} of group {one.group_id}", None, state, sentence)
        )
    return sorted(rows, key=lambda row: (row["at_ms"], row["what"]))


def history_cells(row: HistoryRow) -> JournalRow:
    """The same for a table."""
    return {**row, "at": _time(row["at_ms"]), "about": row["about"] or "everything", "who": row["who"] or "-"}


def _left(approval: ProposalApproval, command: OperatorCommand, answer: LeaderAnswer) -> bool:
    """Whether the answer to a command has all that the approval says."""
    agreed = answer.done and command.verb in (CommandVerb.APPROVE, CommandVerb.APPLY) and answer.plan == approval.plan
    return agreed and bool(approval.sentence) and answer.sentence.startswith(approval.sentence)


def _row(at_ms: int, what: str, about: str | None, who: str | None, state: str, sentence: str) -> HistoryRow:
    """One row; its sentence does not begin with its state once more."""
    return {
        "at_ms": at_ms,
        "what": what,
        "about": about,
        "who": who,
        "state": state,
        "sentence": sentence.removeprefix(f"{state}: "),
    }


def _approval(approval: ProposalApproval) -> str:
    return "used" if approval.used else approval.state.value


def _about(command: OperatorCommand, answer: LeaderAnswer) -> str | None:
    return answer.plan or command.proposal_id


def _done(done: bool) -> str:
    return "done" if done else "refused"


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
