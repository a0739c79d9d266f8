"""The progress of a plan or trigger: its state from the journal, the copied bytes from the brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from agent.cli import running_agents
from agent.cli.output import say
from agent.errors import JournalUnavailable, RetryableFailure
from agent.values.number_format import counted

if TYPE_CHECKING:
    from agent.journal.entries import JournalState
    from agent.journal.triggers import TriggerEntry
    from agent.observe.context import ObserverClients, ObserveScope
    from agent.values.observation import Observation, ObservationPart
    from agent.values.plan import ReplicaProgress
    from agent.values.reassignment import ReassignmentPlan
    from config.load import LoadedSettings

POLL_S = 2.0
_SHOWN_AGAIN_S = 30.0
DETACHED = 130
_sleep = time.sleep


class ReassignmentWatcher:
    """Looks at reassignments and sizes again and again, with one connection."""

    def __init__(self, loaded: LoadedSettings) -> None:
        from agent.execute.reassign.throttles import CopyRates
        from agent.observe.context import ObserverState

        self._loaded = loaded
        self._rates = CopyRates()
        self._recall = ObserverState()
        self._clients: ObserverClients | None = None

    @contextmanager
    def open(self) -> Iterator[ReassignmentWatcher]:
        """Connected until the end of the block."""
        from agent.observe.context import ObserverClients as Connected

        with Connected.open(self._loaded.settings.kafka) as clients:
            self._clients = clients
            yield self

    def look(self, topics: tuple[str, ...] = ()) -> Observation:
        """Reassignments, replicas and sizes of these topics, or of all. Raises what `observe` raises."""
        from agent.daemon.limits_from_settings import to_scope
        from agent.execute.reassign.throttles import cluster_view
        from agent.observe.observe_cluster import observe
        from agent.values.clock import system_clock
        from agent.values.observation import ObservationPart as Asked

        if self._clients is None:
            raise RuntimeError("the watcher is not open")
        parts = frozenset({Asked.TOPICS, Asked.REASSIGNMENTS, Asked.LOG_DIRS})
        whole = to_scope(self._loaded.settings)
        scope = _narrowed(whole, topics, parts)
        observation = observe(self._clients, system_clock, scope, self._recall)
        self._rates.looked(cluster_view(observation), observation.monotonic_ms / 1_000)
        return observation

    def copies(self, observation: Observation, plan: ReassignmentPlan | None = None) -> tuple[ReplicaProgress, ...]:
        """The copies that are being made, of a plan's partitions or of all."""
        wanted = {target.id for target in plan.targets} if plan is not None else None
        return self._rates.of(one.id for one in observation.reassignments if wanted is None or one.id in wanted)


def follow(loaded: LoadedSettings, proposal_id: str, plan: str | None = None) -> int:
    """Show progress until it ends; the exit code: 0 done, 1 ended otherwise, 130 after Ctrl-C.

    ``plan`` names the attempt that was approved; None: the first.
    """
    try:
        return _follow(loaded, plan or proposal_id)
    except KeyboardInterrupt:
        say(
            f"{proposal_id} continues, only its progress is no longer shown; show it with: rackwise reassign status; "
            f"cancel it with: rackwise proposals cancel {proposal_id}"
        )
        return DETACHED


class ProposalStatus(NamedTuple):
    """Status of one proposal in the journal."""

    code: int | None
    """Exit code once it has ended."""
    sentence: str
    plan: ReassignmentPlan | None = None


def state_of(view: JournalState, name: str) -> ProposalStatus:
    """How far an attempt at a proposal is, by the journal; ``name`` is that of the attempt's plan."""
    from agent.journal import plan_entries
    from agent.journal.approvals import ApprovalState, approval_of
    from agent.journal.triggers import triggers
    from agent.values.reassignment import attempt

    plan = next((one for one in plan_entries.plans(view) if one.proposal_id == name), None)
    if plan is not None:
        return _plan_state(plan, view)
    approval = approval_of(view, name)
    since_ms = approval.at_ms if approval is not None and approval.rule is None else 0
    trigger = next((one for one in reversed(triggers(view)) if one.proposal_id == name), None)
    if trigger is not None and trigger.intended_ms >= since_ms:
        return _trigger_state(trigger)
    if approval is not None and approval.state is not ApprovalState.APPROVED:
        void = approval.state is ApprovalState.VOID
        return ProposalStatus(1, f"{approval.word}: {approval.sentence}" if void else approval.sentence)
    return ProposalStatus(None, f"approved, not begun yet; its checks: rackwise explain {attempt(name).of}")


def _plan_state(plan: ReassignmentPlan, view: JournalState) -> ProposalStatus:
    from agent.documents.journal import plan_row
    from agent.journal import plan_entries
    from agent.values.reassignment import PlanState

    row = plan_row(plan, plan_entries.batches(view, plan.proposal_id))
    sentence = (
        f"{plan.state.value}: {row['done']} of {counted(row['partitions'], 'partition')} done, {row['moving']} moving"
    )
    if not plan.ended:
        return ProposalStatus(None, sentence, plan)
    return ProposalStatus(
        int(plan.state is not PlanState.DONE), f"{sentence}{f'; {plan.sentence}' if plan.sentence else ''}", plan
    )


def _trigger_state(trigger: TriggerEntry) -> ProposalStatus:
    from agent.journal.triggers import TriggerVerdict

    judged = trigger.judgement
    if judged is None:
        return ProposalStatus(None, f"triggered: {trigger.effect.value if trigger.effect is not None else 'asked'}")
    good = judged.verdict in (TriggerVerdict.AS_PREDICTED, TriggerVerdict.PARTLY)
    return ProposalStatus(int(not good), f"{judged.verdict.value}: {judged.sentence}")


def _follow(loaded: LoadedSettings, name: str) -> int:
    plan = running_agents.plan_of(loaded)
    shown, shown_at = "", 0.0
    with ReassignmentWatcher(loaded).open() as watcher:
        while True:
            try:
                state = state_of(running_agents.journal(plan), name)
                line = state.sentence + _pace(watcher, state)
            except JournalUnavailable as error:
                state, line = ProposalStatus(None, ""), f"the journal cannot be read now: {error.why or error.what}"
            if line != shown or time.monotonic() - shown_at > _SHOWN_AGAIN_S:
                say(line)
                shown, shown_at = line, time.monotonic()
            if state.code is not None:
                return state.code
            _sleep(POLL_S)


def _pace(watcher: ReassignmentWatcher, state: ProposalStatus) -> str:
    """Copied bytes, rate and time left; nothing where the brokers show no copy."""
    if state.plan is None or state.plan.ended:
        return ""
    try:
        observation = watcher.look(tuple(sorted({target.id.topic for target in state.plan.targets})))
    except RetryableFailure as error:
        return f" (progress unknown: {error.what})"
    from agent.values.number_format import lasted, sized

    copies = watcher.copies(observation, state.plan)
    if not copies:
        return ""
    lefts = [one.seconds_left for one in copies]
    left = max((one for one in lefts if one is not None), default=None) if None not in lefts else None
    ends = "time left unknown" if left is None else f"{lasted(1_000 * left)} left"
    amount = whole_plan(state.plan, observation, copies)
    if amount is None:
        return _moving_now(copies, ends)
    there, wanted = amount
    return f"; {sized(there)} of {sized(wanted)} copied{_rate(copies)}, {ends} for the partitions that move now"


def _moving_now(copies: Sequence[ReplicaProgress], ends: str) -> str:
    """Copied bytes of the partitions that move now, where those of the whole plan are unknown."""
    from agent.values.number_format import sized

    known = [(one.bytes, one.of_bytes) for one in copies if one.bytes is not None and one.of_bytes is not None]
    unknown = counted(len(copies) - len(known), "copy", "copies")
    if not known:
        return f"; moving now: {unknown} of unknown size{_rate(copies)}, {ends} for these"
    more = f" and {unknown} of unknown size" if len(known) < len(copies) else ""
    there, wanted = sum(size for size, _ in known), sum(of for _, of in known)
    return f"; moving now: {sized(there)} of {sized(wanted)} copied{more}{_rate(copies)}, {ends} for these"


def _rate(copies: Sequence[ReplicaProgress]) -> str:
    """`` at 50 MB/s``; from a second look on, so at first it is unknown."""
    from agent.values.number_format import sized

    known = [one.bytes_per_s for one in copies if one.bytes_per_s is not None]
    if not known:
        return ", rate unknown"
    return f" at {sized(sum(known))}/s{'' if len(known) == len(copies) else ' or more'}"


def whole_plan(
    plan: ReassignmentPlan, observation: Observation, copies: Sequence[ReplicaProgress]
) -> tuple[int, int] | None:
    """Copied bytes, and all that a plan copies: done, moving and waiting partitions alike.

    None where a size is unknown, and while a plan is taken back: then its copies are others than planned.
    """
    from agent.values.observation import ObservationPart as Dirs

    moving = {(one.id, one.broker): one for one in copies}
    sizes = observation.replica_bytes
    planned = {(target.id, broker) for target in plan.targets for broker in target.adding}
    unread = any(gap.part is Dirs.LOG_DIRS for gap in observation.gaps)
    if unread or moving.keys() - planned:
        return None
    there, wanted = 0, 0
    for target in plan.targets:
        old = [sizes.get((broker, target.id)) for broker in (*target.before, *target.after)]
        whole = max((size for size in old if size is not None), default=None)
        if whole is None:
            return None
        for broker in target.adding:
            if (copy := moving.get((target.id, broker))) is not None and copy.bytes is None:
                return None
            there, wanted = there + min(sizes.get((broker, target.id), 0), whole), wanted + whole
    return there, wanted


def _narrowed(whole: ObserveScope, topics: tuple[str, ...], parts: frozenset[ObservationPart]) -> ObserveScope:
    """No groups and no configs; sizes are asked each time, as they are what is followed."""
    from dataclasses import replace

    refresh = {part: age for part, age in whole.refresh_ms.items() if part not in parts}
    return replace(whole, parts=parts, refresh_ms=refresh, include_topics=topics or whole.include_topics)
