"""Execute mode: leadership, operators' commands, reassignments and triggers around the observation cycle.

A thread of its own follows the leadership, starts and stops the executors with the journal, and answers operators
between looks. Invariants: without a valid lease there is no open journal and no action; every action is written to the
journal first. A fenced agent ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from types import MappingProxyType
from typing import Any

import structlog

from agent.act.inbox import MOST_AT_ONCE, InboxCommand
from agent.act.leadership_term import CommandBacklog, LeadershipPort, LeadershipTerm, NoticeLog, defect, now_of
from agent.act.reassign.reassignment_executor import ReassignmentExecutor
from agent.act.trigger import RebalanceTrigger
from agent.errors import ACTING, FatalFailure, JournalUnavailable, RackwiseError, thread
from agent.execute.commands.apply import CommandEffects, apply_commands, replay_undelivered, stops_something
from agent.execute.commands.command_context import ExpectedVerdict, OperatorKeys
from agent.execute.probing_decision import ProbingContext, decisions
from agent.execute.probing_values import NO_ANCHORS, past_triggers
from agent.execute.reassign.messages import BatchPermission
from agent.execute.trigger_judgement import judge, learn
from agent.guard.execute_checks import may_begin, may_begin_plan, next_look_ms
from agent.guard.guard_context import GuardJournal
from agent.guard.judge import foreseen, guard, preconditions_hold, recheck
from agent.journal import plan_entries
from agent.journal.approvals import (
    ProposalApproval,
    approval_cleanup,
    approval_of,
    approvals,
    by_rule,
    plan_hash,
    replacing_approval,
    written,
)
from agent.journal.entries import JournalKey, JournalPort, JournalState, JournalWrite
from agent.journal.plan_entries import BatchKey, remembered
from agent.journal.record_trust import corrections, in_past
from agent.journal.targets import plan_size, too_large_reason
from agent.values.clock import Clock
from agent.values.cycle import Cycle
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.number_format import counted
from agent.values.observation import Observation
from agent.values.plan import ExecuteState
from agent.values.proposal import Allow, Outcome, Proposal, ProposalKind, Refuse
from agent.values.reassignment import InvalidProposalError, ReassignmentPlan, ReassignmentPolicy, plan_of, traffic_of
from agent.values.snapshot import Snapshot
from agent.values.typed_json import UnreadableError
from agent.wire.admin_client import WireAdminClient


class ApprovedProposals:
    """Remembers approved proposals from planning to planning; a new leader has only those of its own plannings."""

    def __init__(self) -> None:
        self._by_hash: Mapping[str, Proposal] = {}

    def planned(self, view: JournalState, proposals: Iterable[Proposal]) -> None:
        """Take the proposals of a planning, and drop those without an approval."""
        wanted = {one.plan_hash for one in approvals(view)}
        every = {plan_hash(one): one for one in (*self._by_hash.values(), *proposals)}
        self._by_hash = {digest: one for digest, one in every.items() if digest in wanted}

    def may_hold(self, approval: ProposalApproval, snapshot: Snapshot) -> bool:
        """Whether the preconditions of an approved proposal may hold in this snapshot; True for an unknown proposal."""
        proposal = self._by_hash.get(approval.plan_hash)
        return proposal is None or preconditions_hold(proposal, snapshot)


def hand_over(
    executor: ReassignmentExecutor, proposal: Proposal, allow: Allow, fresh: Snapshot, begin_by_ms: int
) -> Outcome:
    """Submit the plan, to begin no later than ``begin_by_ms`` (ms since 1970). Raises InvalidProposalError."""
    plan = plan_of(
        proposal,
        fresh,
        approved_by=allow.by,
        reason=allow.reason,
        throttle_bytes_per_s=allow.throttle_bytes_per_s,
        max_moves=allow.max_moves,
        begin_by_ms=begin_by_ms,
        begins=allow.attempt,
    )
    if (why := too_large_reason(plan_size(plan))) is not None:
        raise InvalidProposalError(f"{proposal.id}: {why}")
    executor.accept(plan)
    sentence = f"begun: {counted(len(plan.targets), 'partition')}, approved by {allow.by}"
    return Outcome(proposal.id, done=True, sentence=sentence)


_TICK_S = 0.5
_ANSWER_S = 5.0
_NOT_LEADING = "not done: this agent no longer leads"


class ExecuteMode:
    """Acts for one agent, from `start` to `close`."""

    def __init__(
        self,
        *,
        leadership: LeadershipPort,
        arguments: Mapping[str, Any],
        limits: Limits,
        clock: Clock,
        people: OperatorKeys = MappingProxyType({}),
        witnesses: Sequence[JournalKey] = (),
        look_now: Callable[[], None] = lambda: None,
        on_fatal: Callable[[FatalFailure], None] = lambda _: None,
    ) -> None:
        """``arguments`` are kafka-python's, of the executor's connection; ``people`` and ``witnesses`` prove commands.

        ``look_now`` requests a look with a planning, ``on_fatal`` gets what ends the agent; both from a thread.
        """
        self._leadership = leadership
        self._arguments = arguments
        self._limits, self._clock = limits, clock
        self._people, self._witnesses = people, witnesses
        self.look_now = look_now
        self.on_fatal = on_fatal
        self._stop = threading.Event()
        self._lock = threading.RLock()
        self._term: LeadershipTerm | None = None
        self._former: ReassignmentExecutor | None = None
        """Executor of the previous term; a request of it may still be in flight."""
        self._seen: JournalState = {}
        self._records = GuardJournal(self._seen)
        """The view that `_may` read last, as the guard's records; only the executor's thread uses both."""
        self._standing: Sequence[Proposal] | None = None
        self._snapshot: Snapshot | None = None
        self._memory = Memory()
        """The memory from which that snapshot was made."""
        self._approved = ApprovedProposals()
        self._closed: AbstractSet[BatchKey] | None = None
        """The batches that were closed at the last look."""
        self._anchors = NO_ANCHORS
        self._notices = NoticeLog()
        self._log = structlog.get_logger("rackwise")
        self._thread = thread(ACTING, self._run)

    def start(self) -> None:
        """Join the election, and act while this agent leads."""
        self._leadership.start()
        self._thread.start()

    def wait_to_lead(self, within_s: float) -> bool:
        """Whether this agent leads within that time; for one that is to act once."""
        until = time.monotonic() + within_s
        while not self._leadership.may_act() and time.monotonic() < until and not self._stop.wait(_TICK_S / 5):
            pass
        return self._leadership.may_act()

    def wait_until_done(self) -> None:
        """Until every plan has ended, or this agent leads no longer. Raises what ends the agent."""
        while (term := self._term) is not None and self._leadership.may_act():
            term.check()
            if not term.executor.busy or self._stop.wait(_TICK_S):
                return

    def close(self) -> None:
        """Begin nothing more, and leave the election so that another agent leads at once."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_TICK_S * 4)
        with self._lock:
            self._retire()
        self._leadership.close()

    def now(self) -> ExecuteState:
        """State of mode execute now: leadership, open plans, faults and notices. Callable from any thread."""
        return now_of(self._leadership, self._term)

    # --- around a cycle -----------------------------------------------------------------------------------------

    def begin(self, observation: Observation, memory: Memory) -> Memory:
        """After the look of a cycle: the memory, knowing what the journal knows. Raises what ends the agent."""
        self._leadership.observed(observation)
        with self._lock:
            self._follow()
        view = self.view()
        if view is None:
            return memory
        memory, self._closed = remembered(
            memory,
            view,
            known_closed=self._closed,
            taken_ms=observation.taken_ms,
            monotonic_ms=observation.monotonic_ms,
        )
        return memory

    def view(self) -> JournalState | None:
        """The journal's state, for the guard; None while this agent does not lead."""
        term = self._term
        return term.journal.view() if term is not None and self._leadership.may_act() else None

    def carry_out(self, proposal: Proposal, fresh: Snapshot) -> Outcome:
        """Do what the guard allowed, if it still allows it by the journal's present state. Raises FencedOut.

        Operators are answered before or after it, never meanwhile: what was begun is in progress when a pause is
        answered, and nothing is begun after it.
        """
        with self._lock:
            term, view = self._term, self.view()
            if term is None or view is None:
                return Outcome(proposal.id, done=False, sentence=_NOT_LEADING)
            if (why := self._answer_earlier(term)) is not None:
                return Outcome(proposal.id, done=False, sentence=f"not done: {why}")
            view = term.journal.view()
            now = recheck(proposal, fresh, self._limits, view, self._clock().wall_ms)
            if not isinstance(now, Allow):
                return Outcome(proposal.id, done=False, sentence=f"not done: {now.why}")
            try:
                self._write_rule(term.journal, proposal, now)
                if proposal.kind is ProposalKind.TRIGGER:
                    return term.trigger.carry_out(proposal, fresh)
                begin_by_ms = now.until_ms or self._clock().wall_ms + self._limits.approve.valid_ms
                return hand_over(term.executor, proposal, now, fresh, begin_by_ms)
            except (JournalUnavailable, InvalidProposalError) as error:
                return Outcome(proposal.id, done=False, sentence=f"not done: {error}")

    def end(self, cycle: Cycle, *, poll_ms: int) -> int | None:
        """After a cycle: judge and learn from what it saw. Milliseconds until the next look, if it should come early.

        Raises what ends the agent.
        """
        self._snapshot, self._memory = cycle.snapshot, cycle.before
        if cycle.planned:
            self._standing = cycle.proposals
        term, view = self._term, self.view()
        if term is None or view is None:
            return None
        term.check()
        with self._lock:  # no operator's command is answered between what is read here and what is written
            self._write(term.journal, self._learned(term.journal.view(), cycle))
        past, self._anchors = past_triggers(
            term.journal.view(),
            self._anchors,
            taken_ms=cycle.snapshot.taken_ms,
            monotonic_ms=cycle.snapshot.monotonic_ms,
        )
        decided = decisions(ProbingContext(cycle.snapshot, cycle.before, self._limits), past)
        triggered = {proposal.id for proposal in cycle.proposals if proposal.kind is ProposalKind.TRIGGER}
        acted = any(outcome.done and outcome.proposal_id in triggered for outcome in cycle.outcomes)
        # What changed between the two looks is looked at again as soon as what was triggered.
        acted = acted or any(isinstance(one, Refuse) and one.proposal_id in triggered for one in cycle.verdicts)
        return next_look_ms(
            decided.values(), cycle.snapshot.monotonic_ms, poll_ms=poll_ms, took_ms=cycle.took_ms, acted=acted
        )

    def _learned(self, view: JournalState, cycle: Cycle) -> tuple[JournalWrite, ...]:
        now_ms = self._clock().wall_ms
        writes = corrections(view, now_ms)
        view = in_past(view, now_ms)
        writes = (*writes, *judge(view, cycle.snapshot), *learn(view, cycle.snapshot, cycle.before, cycle.proposals))
        try:
            writes = (*writes, *plan_entries.compaction_writes(view))
            begun = frozenset(plan.proposal_id for plan in plan_entries.plans(view))
        except UnreadableError as error:
            self._notices.log_problem(f"the plans in the journal cannot be read, so no plan is carried out: {error}")
            return writes
        if cycle.planned:
            self._approved.planned(view, cycle.proposals)
            holds = partial(self._approved.may_hold, snapshot=cycle.snapshot)
            writes = (*writes, *approval_cleanup(view, cycle.proposals, begun, now_ms, holds))
        return writes

    def _write_rule(self, journal: JournalPort, proposal: Proposal, allow: Allow) -> None:
        """By which rule it is done, before it is."""
        if allow.rule is not None:
            valid_ms = self._limits.approve.valid_ms
            approval = by_rule(proposal, allow.rule, allow.reason, now_ms=self._clock().wall_ms, valid_ms=valid_ms)
            journal.append(written(replacing_approval(approval_of(journal.view(), approval.plan), approval)))

    def _write(self, journal: JournalPort, writes: tuple[JournalWrite, ...]) -> None:
        if not writes:
            return
        try:
            journal.append(*writes)
        except JournalUnavailable as error:
            self._notices.log_problem(f"learned facts could not be written to the journal: {error}")

    # --- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        more = False
        while not self._stop.wait(0 if more else _TICK_S):
            more = False
            try:
                with self._lock:
                    self._follow()
                    if self._term is not None:
                        self._notices.notice(self._leadership)
                        self._term.check()
                        self._pass_on(self._term)
                        more = self._answer(self._term)
            except FatalFailure as error:
                self.on_fatal(error)
                return
            except (RackwiseError, UnreadableError) as error:
                self._notices.log_problem(str(error))
            except Exception as error:  # noqa: BLE001 an agent that leads and reads no command must end, with the reason
                self.on_fatal(defect(error))
                return

    def _follow(self) -> None:
        """Begin a term where the leadership has a journal, and end the term whose journal is gone or another."""
        journal = self._leadership.journal()
        if self._term is not None and self._term.journal is journal:
            return
        self._retire()
        if journal is None or self._stop.is_set():
            self._notices.log_problem(self._leadership.problem())
            return
        if self._former is not None and not self._former.ended:
            return  # wait until the previous executor's last request has finished
        self._notices.log_problem(None)
        self._term = self._take_over(journal)
        self._log.info("leading", epoch=journal.epoch, sentence=f"this agent leads now, in epoch {journal.epoch}")
        self.look_now()  # the verdicts of the last planning say that this agent does not lead

    def _take_over(self, journal: JournalPort) -> LeadershipTerm:
        admin, backlog = WireAdminClient(self._arguments), CommandBacklog()
        trigger = RebalanceTrigger(admin, journal, self._clock, self._limits, leads_for_s=self._leadership.leads_for_s)
        executor = ReassignmentExecutor(
            journal=journal,
            admin=admin,
            policy=ReassignmentPolicy(self._limits.execute),
            may=lambda: self._may(journal, backlog),
            traffic=self._traffic,
            leads_for_s=self._leadership.leads_for_s,
            tick_ms=self._limits.execute.tick_ms,
        )
        executor.start()
        return LeadershipTerm(journal, admin, trigger, executor, backlog)

    def _retire(self) -> None:
        term, self._term = self._term, None
        if term is not None:
            term.close()
            self._former = term.executor
            self._log.info(
                "leadership_ended",
                epoch=term.journal.epoch,
                sentence=f"epoch {term.journal.epoch} has ended for this agent",
            )

    def _may(self, journal: JournalPort, backlog: CommandBacklog) -> BatchPermission:
        if not self._leadership.may_act():
            return BatchPermission(begin=False, sentence="it is not certain that this agent leads")
        if (why := self._unanswered(backlog, batch=True)) is not None:
            return BatchPermission(begin=False, sentence=why)
        view, now_ms = journal.view(), self._clock().wall_ms
        if self._seen is not view:  # read once for each thing that is written, not once for each look
            self._records, self._seen = GuardJournal(in_past(view, now_ms)), view
        return may_begin(self._records, self._limits, now_ms, self._racks())

    def _answer_earlier(self, term: LeadershipTerm) -> str | None:
        """Answer what waits since before this agent led; why nothing may begin all the same."""
        until = time.monotonic() + _ANSWER_S
        while (why := self._unanswered(term.backlog)) and time.monotonic() < until and not self._stop.is_set():
            try:
                more = self._answer(term)
            except (JournalUnavailable, UnreadableError) as error:
                return str(error)
            if term.backlog.for_planning:
                return self._unanswered(term.backlog)
            time.sleep(0 if more else _TICK_S / 10)
        return why

    def _unanswered(self, backlog: CommandBacklog, *, batch: bool = False) -> str | None:
        return backlog.why_not(self._leadership.inbox(), batch=batch)

    def _racks(self) -> Mapping[int, str | None] | None:
        """Broker that is up -> its rack, by the last look; None before the first."""
        snapshot = self._snapshot
        if snapshot is None:
            return None
        return {broker.id: broker.rack.name for broker in snapshot.brokers if broker.alive}

    def _traffic(self) -> Mapping[int, float]:
        """Broker -> bytes per second that its replicas take in, by the last look."""
        return {} if self._snapshot is None else traffic_of(self._snapshot)

    def _pass_on(self, term: LeadershipTerm) -> None:
        """Pass the journal's commands on to the executor until its plans show them."""
        view = term.journal.view()
        if view is not term.passed_on:
            term.pass_on(replay_undelivered(view, self._limits.approve.valid_ms))
            term.passed_on = view

    def _answer(self, term: LeadershipTerm) -> bool:
        """Answer operators' commands; True when more may wait. Before the first planning nothing can be approved."""
        inbox = self._leadership.inbox()
        if inbox is None:
            return False
        waiting = inbox.read(term.journal.view())
        full = len(waiting) >= MOST_AT_ONCE
        self._notices.log_problem(inbox.problem())
        term.backlog.reads(inbox, unanswered=stops_something(waiting), some=bool(waiting))
        effects = self._apply(term, waiting, full=full)
        term.backlog.answered(inbox, unanswered=effects.unanswered, holds_plans=effects.holds_plans, full=full)
        return full

    def _apply(self, term: LeadershipTerm, waiting: Sequence[InboxCommand], *, full: bool) -> CommandEffects:
        """Append the answers to the journal, and pass the commands on to the executor."""
        view, now_ms, witnesses = term.journal.view(), self._clock().wall_ms, self._witnesses
        proven = partial(apply_commands, people=self._people, witnesses=witnesses, full=full)
        effects = proven(waiting, view, self._standing, self._limits, now_ms, self._foresee, self._begins)
        if effects.writes:
            term.journal.append(*effects.writes)
            term.passed_on = term.journal.view()
        term.pass_on(effects.commands)
        if effects.look_now:
            self.look_now()
        return effects

    def _foresee(self, proposal: Proposal, view: JournalState) -> ExpectedVerdict | None:
        """The guard's verdict on a proposal by the last look, with this journal."""
        if (snapshot := self._snapshot) is None:
            return None
        (verdict,) = guard([proposal], snapshot, self._memory, self._limits, view, self._clock().wall_ms)
        return foreseen(verdict)

    def _begins(self, plan: ReassignmentPlan, view: JournalState) -> BatchPermission:
        """Whether a new batch of that plan may begin, as its executor asks before each look."""
        return may_begin_plan(plan, GuardJournal(view), self._limits, self._clock().wall_ms, self._racks())
