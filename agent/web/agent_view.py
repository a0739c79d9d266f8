"""The running agent as API and page read it: the loop's state, the last finished look, verdicts, and the journal.

Invariants: the loop's state is one frozen value that is replaced as a whole, in which unknown is None, not zero. No
request asks a broker, but for the journal, which is read at most once a second and once a look. Documents of one cycle
are made once, and dropped with the next cycle.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, NamedTuple, TypeVar, cast

from agent.act.journal.journal_topic import NoJournalError
from agent.documents.journal import JournalRecords, ReportedMoves
from agent.errors import RackwiseError
from agent.execute.reassign.throttles import CopyRates, cluster_view
from agent.journal.entries import JournalState
from agent.record.newest_look import AgentRun, agent_document
from agent.record.recorder import RecordingResult
from agent.simulate.evaluation import StageEvaluation
from agent.values.clock import ClockReading
from agent.values.cycle import AgentIdentity, Cycle
from agent.values.last_known import LastKnown, is_failed
from agent.values.number_format import lasted
from agent.values.plan import AgentDocument, AgentsDocument, ExecuteState
from agent.values.proposal import Hold, HoldReason, Verdict
from agent.values.rates import RateMeasurement, RateSource, judged
from agent.web.cycle_history import CycleSummary, EndedProposal, failed_summary, summary_of, with_ended, with_summary
from agent.web.what_if_answers import WhatIfAnswers
from config.load import LoadedSettings


class CycleFailure(NamedTuple):
    """A cycle that ended without a result."""

    cycle: int
    sentence: str
    at_ms: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """The loop at one instant. Durations are taken from the monotonic clock."""

    started: ClockReading
    cycle: Cycle | None = None
    """The last one that succeeded."""
    planned: Cycle | None = None
    """The last one that planned, and saw what there is: without topics or groups nothing would be proposed."""
    known: LastKnown | None = None
    """Counts and findings as looks last confirmed them."""
    recording: RecordingResult | None = None
    last_end: ClockReading | None = None
    """When a cycle last ended, in whatever way."""
    last_success: ClockReading | None = None
    running_since: ClockReading | None = None
    """When the cycle that is running began; None while none is."""
    failure: CycleFailure | None = None
    """The last failure; None once a cycle has succeeded again."""
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    """Looks that were due while one was running."""
    overran: int = 0
    """Cycles that took longer than the time between two looks."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Stage -> seconds spent in it since the start."""
    acts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(kind of proposal, done or not done) -> how often since the start."""
    acting: ExecuteState | None = None
    """None outside of mode execute."""
    notifications: Mapping[str, int] = field(default_factory=dict)
    """Outcome -> number since the start; empty without a target of notifications."""
    past: tuple[CycleSummary, ...] = ()
    """A row a minute for the last day, the newest last."""
    ended_proposals: tuple[EndedProposal, ...] = ()
    """Those that are made no more, the newest last."""
    stopping: bool = False


class LoopMonitor:
    """Holds the state of a running loop; the loop's thread writes, any thread reads."""

    def __init__(self, started: ClockReading) -> None:
        self._lock = threading.Lock()
        self._state = LoopState(started=started)

    @property
    def state(self) -> LoopState:
        """The state now."""
        return self._state

    def began(self, at: ClockReading) -> None:
        """A cycle has begun."""
        self._update(running_since=at)

    def succeeded(self, cycle: Cycle, recording: RecordingResult, at: ClockReading) -> None:
        """A cycle has ended with a result."""
        before = self._state
        spent = {stage: before.seconds.get(stage, 0.0) + ms / 1_000 for stage, ms in cycle.stages_ms.items()}
        self._update(
            cycle=cycle,
            planned=cycle if cycle.planned and not is_failed(cycle.snapshot) else before.planned,
            known=cycle.known,
            recording=recording,
            last_end=at,
            last_success=at,
            running_since=None,
            failure=None,
            succeeded=before.succeeded + 1,
            seconds={**before.seconds, **spent},
            acts=_added(before.acts, cycle),
            past=with_summary(before.past, summary_of(cycle, before.cycle, before.planned)),
            ended_proposals=with_ended(before.ended_proposals, cycle, before.planned),
        )

    def failed(self, failure: CycleFailure, at: ClockReading) -> None:
        """A cycle has ended without a result."""
        before = self._state
        past = with_summary(before.past, failed_summary(failure.at_ms, failure.sentence))
        self._update(failure=failure, last_end=at, running_since=None, failed=before.failed + 1, past=past)

    def skipped(self) -> None:
        """A look was due while one was running."""
        self._update(skipped=self._state.skipped + 1)

    def overran(self) -> None:
        """A cycle took longer than the time between two looks."""
        self._update(overran=self._state.overran + 1)

    def notified(self, counts: Mapping[str, int]) -> None:
        """Notifications were sent, or were not."""
        self._update(notifications=counts)

    def stopping(self) -> None:
        """The process is about to end."""
        self._update(stopping=True)

    def _update(self, **changes: object) -> None:
        with self._lock:
            self._state = replace(self._state, **changes)  # type: ignore[arg-type] # the callers above name fields


def _added(acts: Mapping[tuple[str, str], int], cycle: Cycle) -> Mapping[tuple[str, str], int]:
    if not cycle.outcomes:
        return acts
    kinds = {proposal.id: proposal.kind.value for proposal in cycle.proposals}
    new = Counter((kinds[one.proposal_id], "done" if one.done else "not done") for one in cycle.outcomes)
    return Counter(acts) + new


class HealthStatus(NamedTuple):
    """Whether the agent is well, with every reason against it."""

    well: bool
    reasons: tuple[str, ...]


def live(state: LoopState, now: ClockReading, stall_ms: int) -> HealthStatus:
    """Whether cycles end, with any result, within ``stall_ms``. An agent that is not live should be restarted."""
    silent_ms = now.monotonic_ms - (state.last_end or state.started).monotonic_ms
    if silent_ms <= stall_ms:
        return HealthStatus(well=True, reasons=())
    return HealthStatus(well=False, reasons=(f"no cycle has ended for {silent_ms // 1_000} s",))


def ready(state: LoopState, now: ClockReading, fresh_ms: int) -> HealthStatus:
    """Whether the last look succeeded within ``fresh_ms`` and, in mode execute, this agent can lead and act.

    A standby agent is ready.
    """
    reasons: list[str] = []
    if state.stopping:
        reasons.append("the agent is stopping")
    if state.failure is not None:
        reasons.append(state.failure.sentence)
    if state.last_success is None:
        reasons.append("no look has succeeded yet")
    elif (age_ms := now.monotonic_ms - state.last_success.monotonic_ms) > fresh_ms:
        reasons.append(f"the last successful look was {lasted(age_ms)} ago")
    if state.acting is not None:
        reasons += state.acting.reasons
    return HealthStatus(well=not reasons, reasons=tuple(reasons))


Made = TypeVar("Made")
JOURNAL_S = 1.0
"""How long a journal that was read is shown."""
_FAILED_S = 10.0
"""How long a journal that could not be read, or that does not exist, is not asked for again."""
_AGENTS_S = 30.0
"""How long reports of agents that were read are shown."""
_MOST_MADE = 512
"""Documents that are kept of one cycle; the least used ones are made again."""


class FinishedLook(NamedTuple):
    """The last finished look with every stage's answer for it."""

    cycle: int
    """Number of its cycle since the start of the process, from 1."""
    look: str
    """Id of the look."""
    taken_ms: int
    """Epoch milliseconds."""
    evaluation: StageEvaluation
    """The proposals are those of the last planning, which may be of an earlier look."""
    verdicts: Mapping[str, Verdict]
    """Id of a proposal -> what the guard said of it."""
    planned_ms: int | None
    """Epoch milliseconds of the look that was planned on; None before the first planning."""
    moves: ReportedMoves = ReportedMoves(0)
    """Reassignments that the brokers reported in it, and their copies; rates are known from a second look on."""


class AgentView:
    """One running agent, for any thread. ``read_journal`` raises what `agent.act.leadership.read_journal` does."""

    def __init__(
        self,
        *,
        state: Callable[[], LoopState],
        settings: LoadedSettings,
        read_journal: Callable[[], JournalState],
        journal_name: str,
        acting: Callable[[], ExecuteState | None] = lambda: None,
        identity: AgentIdentity | None = None,
        read_agents: Callable[[], tuple[AgentRun, ...] | str] = lambda: "no telemetry is read",
        clock_s: Callable[[], float] = monotonic,
    ) -> None:
        self.settings = settings
        """Settings in force; `config.load.effective` shows them with their secrets as stars."""
        self.what_if = WhatIfAnswers()
        """Answers to simulated changes."""
        self._state, self._acting = state, acting
        self._read_journal, self._journal_name = read_journal, journal_name
        self._identity = identity or AgentIdentity()
        self._clock_s = clock_s
        self._lock = threading.RLock()
        self._reading, self._asking = threading.Lock(), threading.Lock()
        self._look: tuple[Cycle, Cycle | None, FinishedLook] | None = None
        self._copies = CopyRates()
        self._made_of = 0
        self._made: OrderedDict[Hashable, object] = OrderedDict()
        self._journal: tuple[float, Cycle | None, JournalRecords] | None = None
        self._read_agents = read_agents
        self._agents: tuple[float, tuple[AgentRun, ...] | str] | None = None

    @property
    def state(self) -> LoopState:
        """The loop now; a lost leadership shows before the next look."""
        state = self._state()
        return replace(state, acting=self._acting() or state.acting)

    def look(self) -> FinishedLook | None:
        """The last finished look; None before the first one."""
        state = self._state()
        if state.cycle is None:
            return None
        with self._lock:
            if self._look is None or self._look[0] is not state.cycle or self._look[1] is not state.planned:
                if self._look is None or self._look[0] is not state.cycle:
                    observation = state.cycle.observation
                    self._copies.looked(cluster_view(observation), observation.monotonic_ms / 1_000)
                self._look = (state.cycle, state.planned, self._finished(state.cycle, state.planned))
            return self._look[2]

    def evaluation(self) -> StageEvaluation | None:
        """The stages' answers for the last finished look; None before the first one."""
        look = self.look()
        return None if look is None else look.evaluation

    def verdicts(self, look: FinishedLook | None = None) -> Mapping[str, Verdict]:
        """Id of a proposal -> what the guard said of it at the last planning of this look, by default the last one.

        The verdicts of a standby agent are left out once it leads: the guard has not judged these proposals since.
        """
        look = look or self.look()
        if look is None:
            return {}
        acting = self._acting()
        if acting is None or not acting.leads:
            return look.verdicts
        return {name: one for name, one in look.verdicts.items() if not _of_standby(one)}

    def journal(self) -> JournalRecords:
        """The journal, at most `JOURNAL_S` old and read after the last finished look: a move of ours in it is known.

        Where there is none or it cannot be read, why, as a sentence.
        """
        cycle = self._state().cycle
        with self._reading:
            if self._journal is not None:
                until, of, records = self._journal
                if self._clock_s() < until and (records.why or of is cycle):
                    return records
            records = self._records()
            keeps_s = _FAILED_S if records.why else JOURNAL_S
            self._journal = (self._clock_s() + keeps_s, cycle, records)
            return records

    def made(self, key: Hashable, maker: Callable[[StageEvaluation], Made]) -> Made:
        """A document of the last finished look, made once and kept until the next. Raises LookupError before the first.

        ``key`` names the document with all that it depends on but the look.
        """
        with self._lock:
            look = self.look()
            if look is None:
                raise LookupError("no look has succeeded yet")
            if self._made_of != look.cycle:
                self._made_of = look.cycle
                self._made.clear()
            if key not in self._made:
                self._made[key] = maker(look.evaluation)
                if len(self._made) > _MOST_MADE:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return cast("Made", self._made[key])

    def agents(self) -> AgentsDocument | None:
        """This agent, and those of the telemetry topic at most `_AGENTS_S` ago; None before the first look."""
        look = self.look()
        if look is None or look.evaluation.agent is None:
            return None
        with self._asking:
            if self._agents is None or self._clock_s() >= self._agents[0]:
                found = self._read_agents()
                self._agents = (self._clock_s() + _AGENTS_S, found)
            found = self._agents[1]
        cluster = look.evaluation.snapshot.cluster_id
        reported = None if isinstance(found, str) else agent_document(found, cluster, look.taken_ms)
        none = "no agent of this cluster reports in the telemetry topic" if reported is None else None
        return {
            "this": look.evaluation.agent,
            "reported": reported,
            "why_not": found if isinstance(found, str) else none,
        }

    def _finished(self, cycle: Cycle, planned: Cycle | None) -> FinishedLook:
        proposals, moves = () if planned is None else planned.proposals, cycle.observation.reassignments
        evaluation = StageEvaluation(
            limits=cycle.limits,
            before=cycle.before,
            snapshot=cycle.snapshot,
            detection=cycle.detection,
            plan=None if planned is None else planned.plan,
            proposals=proposals,
            took_ms=cycle.took_ms,
            rates=_rates(cycle),
            agent=self._report(cycle),
        )
        return FinishedLook(
            cycle=cycle.number,
            look=cycle.look,
            taken_ms=cycle.snapshot.taken_ms,
            evaluation=evaluation,
            verdicts={} if planned is None else {one.proposal_id: one for one in planned.verdicts},
            planned_ms=None if planned is None else planned.snapshot.taken_ms,
            moves=ReportedMoves(cycle.snapshot.taken_ms, moves, self._copies.of(one.id for one in moves)),
        )

    def _report(self, cycle: Cycle) -> AgentDocument:
        """What this agent says of itself, as its telemetry does."""
        agent, acting = self._identity, cycle.acting
        return {
            "name": agent.agent,
            "host": agent.host,
            "mode": cycle.limits.mode.value,
            "leads": None if acting is None else acting.leads,
            "acting": [] if acting is None else [*acting.reasons, *filter(None, (acting.waits,)), *acting.notices],
            "age_ms": 0,
            "pid": agent.pid,
            "stopped": False,
            "others": [],
        }

    def _records(self) -> JournalRecords:
        try:
            return JournalRecords(self._read_journal(), self._journal_name)
        except NoJournalError as error:
            return JournalRecords({}, "none", why=f"{error.what}; no agent in mode execute has run here")
        except RackwiseError as error:
            return JournalRecords({}, "not readable", known=False, why=f"{error.what}: {error.why}")


def _of_standby(verdict: Verdict) -> bool:
    return isinstance(verdict, Hold) and verdict.reason is HoldReason.NOT_LEADING


def _rates(cycle: Cycle) -> RateMeasurement:
    """This agent measured them, between its looks."""
    bases: tuple[Any, ...] = cycle.before.rate_bases
    seconds = (cycle.snapshot.monotonic_ms - bases[0].monotonic_ms) / 1_000 if bases else None
    measured = RateMeasurement(RateSource.AGENT, seconds, cycle.look, 0, remedy="the next look measures them")
    return judged(measured, cycle.snapshot)
