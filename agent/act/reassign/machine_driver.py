"""Runs the reassignment machine's commands (place, cancel, throttle, elect), one at a time, in the caller's thread.

Invariants: the machine decides; each command is answered before the next begins. An interruption between two commands
(signal, fence, journal failure) equals a crash there: the journal holds all that is needed to continue.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from math import inf
from typing import Protocol

from agent.act.reassign.cluster_view import LookFailedError, TrafficReader, no_traffic, read_cluster
from agent.errors import BadInput, FencedOut
from agent.execute.reassign.executor_view import no_longer_to_cancel, no_longer_to_move, no_longer_to_set
from agent.execute.reassign.machine import begins, resume, step
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    AppendJournal,
    BatchPermission,
    CancelReassignments,
    ClusterChange,
    ClusterRead,
    ClusterView,
    ElectLeaders,
    FinishPlan,
    JournalAppended,
    LeaderFenced,
    MachineCommand,
    MachineEvent,
    NewPartitionReassignment,
    NotifyOperator,
    OwnReassignment,
    PlanAccepted,
    PlansKnown,
    ReadCluster,
    RequestDone,
    RequestFate,
    RequestResult,
    TimePassed,
    valid_ms,
)
from agent.execute.reassign.state import MachineState
from agent.journal import plan_entries
from agent.journal.entries import JournalPort, JournalState, JournalWrite
from agent.journal.targets import no_room_reason, plan_size
from agent.values.clock import elapsed_s
from agent.values.kafka import (
    ELECTION_NOT_NEEDED,
    INVALID_REPLICATION_FACTOR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from agent.values.observation import RawTopic
from agent.values.reassignment import ReassignmentEntry, ReassignmentPlan, ReassignmentPolicy
from agent.values.throttles import SeenThrottle, ThrottleChange, ThrottleResource
from agent.values.typed_json import UnreadableError
from agent.wire.admin_client import WireAdminClient
from agent.wire.changes import ChangeResult, Fate, RequestPrecheck
from agent.wire.failure import Deadline
from assignors.problem import TopicPartition

# Nothing is sent after ``begin_by``; every line is checked against its decision right before, on the same connection,
# and has an answer.

_KINDS: Mapping[str, RequestFate] = {
    "NO_REASSIGNMENT_IN_PROGRESS": RequestFate.NOT_NEEDED,
    ELECTION_NOT_NEEDED: RequestFate.NOT_NEEDED,
    UNKNOWN_TOPIC_OR_PARTITION: RequestFate.GONE,
    UNKNOWN_TOPIC_ID: RequestFate.GONE,
    INVALID_REPLICATION_FACTOR: RequestFate.REFUSED,
    "INVALID_REQUEST": RequestFate.REFUSED,
    "INVALID_CONFIG": RequestFate.REFUSED,
    "INVALID_TOPIC_EXCEPTION": RequestFate.REFUSED,
    "INVALID_PARTITIONS": RequestFate.REFUSED,
    "POLICY_VIOLATION": RequestFate.REFUSED,
    UNSUPPORTED_VERSION: RequestFate.REFUSED,
    "UNSUPPORTED": RequestFate.REFUSED,
}
"""What a refusal means. Any other can pass without a change of the request, a missing right and a broker that is not
registered for a moment among them: it is held and tried again."""
_UNCLEAN = frozenset({"INVALID_REPLICA_ASSIGNMENT", "INVALID_REPLICATION_ASSIGNMENT"})
"""Kafka's name of error 39 and kafka-python's."""


def carry_out(
    admin: WireAdminClient, act: ClusterChange, *, begin_by: Deadline, timeout_ms: int
) -> tuple[RequestResult, ...]:
    """One result for each line of the command, sorted by subject."""
    match act:
        case AlterReassignments(moves):
            results = _alter(admin, moves, begin_by, timeout_ms)
        case CancelReassignments(runs):
            results = _cancel(admin, runs, begin_by, timeout_ms)
        case AlterThrottles(settings):
            results = _configure(admin, settings, begin_by, timeout_ms)
        case ElectLeaders(partitions):
            fates = admin.elect_preferred(partitions, timeout_ms, begin_by)
            results = [_result(subject, one, begin_by) for subject, one in fates.items()]
    return tuple(sorted(results))


def _alter(
    admin: WireAdminClient, moves: Iterable[NewPartitionReassignment], begin_by: Deadline, timeout_ms: int
) -> list[RequestResult]:
    """Only what is still as expected is sent."""
    left_out: dict[TopicPartition, RequestResult] = {}
    wanted = {move.id: move for move in moves}

    def leave_out(look: RequestPrecheck) -> AbstractSet[TopicPartition]:
        for id_, move in wanted.items():
            if (why := no_longer_to_move(move, look.topics.get(id_.topic), look.running.get(id_))) is not None:
                left_out[id_] = why
        return left_out.keys()

    targets = {id_: move.target for id_, move in wanted.items()}
    fates = admin.alter_placements(targets, timeout_ms, begin_by, leave_out)
    return [left_out.get(subject) or _result(subject, one, begin_by) for subject, one in fates.items()]


def _cancel(
    admin: WireAdminClient, runs: Iterable[OwnReassignment], begin_by: Deadline, timeout_ms: int
) -> list[RequestResult]:
    """Only what still runs, and to our target, is cancelled."""
    left_out: dict[TopicPartition, RequestResult] = {}
    wanted = {run.id: run for run in runs}

    def leave_out(look: RequestPrecheck) -> AbstractSet[TopicPartition]:
        for id_, run in wanted.items():
            if (why := no_longer_to_cancel(run, look.topics.get(id_.topic), look.running.get(id_))) is not None:
                left_out[id_] = why
        return left_out.keys()

    fates = admin.alter_placements(dict.fromkeys(wanted), timeout_ms, begin_by, leave_out)
    return [left_out.get(subject) or _result(subject, one, begin_by, cancelling=True) for subject, one in fates.items()]


def _configure(
    admin: WireAdminClient, changes: Iterable[ThrottleChange], begin_by: Deadline, timeout_ms: int
) -> list[RequestResult]:
    left_out: dict[ThrottleResource, RequestResult] = {}

    def leave_out(
        throttles: Mapping[ThrottleChange, SeenThrottle | None], topics: Mapping[str, RawTopic]
    ) -> AbstractSet[ThrottleResource]:
        """Called for each broker, and for all topics, on a connection and in a thread of its own."""
        others: set[ThrottleResource] = set()
        for change, found in throttles.items():
            resource = change.resource
            if (why := no_longer_to_set(change, found, topics.get(resource.topic or ""))) is not None:
                left_out[resource] = RequestResult(resource, RequestFate.RETRY, f"not sent: {why}")
                others.add(resource)
        return others

    fates = admin.change_throttles(changes, timeout_ms, begin_by, leave_out)
    return [left_out.get(resource) or _result(resource, answer, begin_by) for resource, answer in fates.items()]


def _result(
    subject: TopicPartition | ThrottleResource, answer: ChangeResult, begin_by: Deadline, *, cancelling: bool = False
) -> RequestResult:
    match answer.fate:
        case Fate.DONE:
            kind = RequestFate.OK
        case Fate.UNKNOWN:
            kind = RequestFate.UNKNOWN
        case Fate.NOT_SENT:
            kind = RequestFate.NOT_SENT if begin_by.over else RequestFate.RETRY
        case Fate.REFUSED:
            unclean = cancelling and answer.error in _UNCLEAN
            kind = RequestFate.UNCLEAN if unclean else _KINDS.get(answer.error or "", RequestFate.RETRY)
    return RequestResult(subject, kind, answer.detail)


class ExecutorListener(Protocol):
    """Called with what happens; none of these may take long or raise."""

    def cluster_read(self, cluster: ClusterView) -> None:
        """A look has succeeded."""

    def look_failed(self, sentence: str) -> None:
        """The look failed, for this reason."""

    def answered(self, act: ClusterChange, results: tuple[RequestResult, ...]) -> None:
        """A request has these results; one without an answer is UNKNOWN."""

    def noticed(self, notice: NotifyOperator) -> None:
        """The machine notifies the operator."""

    def finished(self, finish: FinishPlan) -> None:
        """A plan has ended."""


class MachineDriver:
    """The machine with its clients; not safe to use from several threads, but for `stop` and `held`."""

    def __init__(
        self,
        journal: JournalPort,
        admin: WireAdminClient,
        policy: ReassignmentPolicy,
        listener: ExecutorListener,
        *,
        may: Callable[[], BatchPermission],
        traffic: TrafficReader = no_traffic,
        leads_for_s: Callable[[], float] = lambda: inf,
    ) -> None:
        """``may`` is asked before each look, so that nothing begins on an older permission than what was seen.

        ``leads_for_s``: seconds for which this agent surely leads; no request is begun after that.
        """
        self._journal = journal
        self._admin = admin
        self._policy = policy
        self._listener = listener
        self._may = may
        self._traffic = traffic
        self._leads_for_s = leads_for_s
        self._stopped = threading.Event()
        self._state: MachineState | None = None
        self._ticked_at = elapsed_s()
        self._good_until = float("-inf")
        """Until when the request of the latest append may be begun, on the clock of `elapsed_s`."""
        self.last_may: BatchPermission | None = None
        """What the machine was last given; None when it was given nothing since it was resumed."""

    def resume(self) -> None:
        """Forget what was known, and go on from the journal's state.

        Raises FencedOut, JournalUnavailable, and BadInput when the journal is not understood.
        """
        try:
            records = plan_entries.open_records(self._journal.view())
        except UnreadableError as error:
            raise BadInput(
                "The moves in the journal cannot be read",
                why=str(error),
                todo="Nothing is moved until the rackwise that wrote it, or a newer one, leads.",
            ) from error
        self.last_may = None
        self._state, commands = resume(records, self._policy)
        self._ticked_at = elapsed_s()
        self._work_off(commands)

    def handle(self, event: MachineEvent | None = None) -> None:
        """Give the machine the passed time and, then, the event; carry out its commands.

        Raises FencedOut, after which nothing may be done any more, and JournalUnavailable, after which it must be
        resumed.
        """
        self._work_off(self._step(self._tick()))
        if isinstance(event, PlanAccepted):
            # A plan that the journal has dropped since may be an attempt of the same name now.
            self._step(PlansKnown(plan_entries.known(self._journal.view())))
        if event is not None:
            self._work_off(self._step(self._tick(), event))

    @property
    def held(self) -> Mapping[str, str]:
        """Plan -> what keeps it from going on, as the machine found it. Callable from any thread."""
        state = self._state
        return {} if state is None else state.held

    @property
    def idle(self) -> bool:
        """True when no plan is open and no throttle of ours is set."""
        return self._state is not None and self._state.idle

    def stop(self) -> None:
        """Begin no further command; the one under way ends by its own deadline. Callable from any thread."""
        self._stopped.set()

    def _work_off(self, commands: Iterable[MachineCommand]) -> None:
        queue = deque(commands)
        while queue and not self._stopped.is_set():
            answer = self._do(queue.popleft())
            if answer is not None:
                queue.extend(self._step(self._tick(), answer))

    def _do(self, command: MachineCommand) -> MachineEvent | None:
        match command:
            case AppendJournal():
                return self._append(command)
            case ReadCluster():
                return self._look(command)
            case AlterReassignments() | CancelReassignments() | AlterThrottles() | ElectLeaders():
                return self._act(command)
            case NotifyOperator():
                self._listener.noticed(command)
            case FinishPlan():
                self._listener.finished(command)
                self._write(plan_entries.compaction_writes)
        return None

    def _append(self, command: AppendJournal) -> JournalAppended:
        began = elapsed_s()
        self._write(lambda view: _lines(view, command.changes))
        took_ms = (elapsed_s() - began) * 1000
        limits = self._policy.limits
        good_ms = valid_ms(took_ms, least_ms=limits.intent_valid_ms, request_timeout_ms=limits.request_timeout_ms)
        self._good_until = began + good_ms / 1000
        return JournalAppended()

    def _write(self, lines: Callable[[JournalState], tuple[JournalWrite, ...]]) -> None:
        try:
            if writes := lines(self._journal.view()):
                self._journal.append(*writes)
        except FencedOut:
            self._step(LeaderFenced())
            self._stopped.set()
            raise

    def _ask_may(self) -> BatchPermission:
        """Whether a new batch may begin; the machine gets each change."""
        if (may := self._may()) != self.last_may:
            self._step(may)
            self.last_may = may
        return may

    def _look(self, command: ReadCluster) -> ClusterRead:
        self._ask_may()
        try:
            cluster = read_cluster(self._admin, command, self._policy.limits.request_timeout_ms, self._traffic)
        except LookFailedError as error:
            self._listener.look_failed(str(error))
            return ClusterRead(None, error.silent)
        self._listener.cluster_read(cluster)
        return ClusterRead(cluster)

    def _act(self, act: ClusterChange) -> RequestDone:
        if isinstance(act, AlterReassignments | ElectLeaders) and self._state is not None and begins(self._state, act):
            # Asked again: a pause may have been answered since the look.
            plan = self._state.plan
            why = self._ask_may().of(plan.proposal_id if plan is not None else "")
            if why is not None:
                subjects = act.partitions if isinstance(act, ElectLeaders) else [move.id for move in act.moves]
                return RequestDone(tuple(RequestResult(one, RequestFate.NOT_SENT, why) for one in subjects))
        begin_by = Deadline(min(self._good_until, elapsed_s() + self._leads_for_s()))
        results = carry_out(self._admin, act, begin_by=begin_by, timeout_ms=self._policy.limits.request_timeout_ms)
        self._listener.answered(act, results)
        return RequestDone(results)

    def _tick(self) -> TimePassed:
        now = elapsed_s()
        elapsed_ms = int((now - self._ticked_at) * 1000)
        # What is cut off here counts the next time.
        self._ticked_at += elapsed_ms / 1000
        return TimePassed(elapsed_ms)

    def _step(self, *events: MachineEvent) -> list[MachineCommand]:
        commands: list[MachineCommand] = []
        for event in events:
            if self._state is None:
                raise RuntimeError("the machine was not resumed")
            self._state, more = step(self._state, event, self._policy)
            commands += more
        return commands


def _lines(view: JournalState, changes: tuple[ReassignmentEntry, ...]) -> tuple[JournalWrite, ...]:
    """What to write. Raises BadInput for a plan beside which there is no room: others were accepted since it was let.

    Without it the journal could outgrow what any agent reads, and no agent could lead.
    """
    names = plan_entries.known(view)
    new = [
        one for one in changes if isinstance(one, ReassignmentPlan) and not one.ended and one.proposal_id not in names
    ]
    for plan in new:
        try:
            why = no_room_reason(view, plan_size(plan))
        except UnreadableError as error:
            why = str(error)
        if why is not None:
            raise BadInput(f"Plan {plan.proposal_id} cannot begin now", why=why)
    return plan_entries.changed(view, changes)
