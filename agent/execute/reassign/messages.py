"""Events and commands of the reassignment executor, and `ClusterView`: what it sees of the cluster.

The driver carries out one asking command at a time (`AppendJournal`, `ReadCluster`, `AlterReassignments`,
`CancelReassignments`, `AlterThrottles`, `ElectLeaders`) and returns its answer as an event; `NotifyOperator` and
`FinishPlan` need none. `TimePassed` (monotonic clock) precedes each event. A request begins while its intent is fresh
and the lease valid, or is `RequestFate.NOT_SENT`. Equal named tuples compare equal whatever their type: types that
could be confused are dataclasses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agent.values.reassignment import PlanState, ReassignmentEntry, ReassignmentPlan
from agent.values.throttles import SeenThrottle, ThrottleChange, ThrottleResource
from assignors.problem import TopicPartition


class PartitionView(NamedTuple):
    """A partition in topic metadata."""

    id: TopicPartition
    topic_id: str
    leader: int | None
    replicas: tuple[int, ...]
    """While it moves: the union, targets first."""
    isr: frozenset[int]
    min_isr: int | None = None
    """``min.insync.replicas`` of its topic, also where that is above its number of replicas; None: did not answer."""
    leader_known: bool = True
    """False where two brokers report different leaders: then there is one, and it is not known which."""

    @property
    def under_min_isr(self) -> bool:
        """As the broker counts: it never needs more in-sync replicas than it has. False while that is unknown."""
        return self.min_isr is not None and len(self.isr) < min(self.min_isr, len(self.replicas))


class ReassignmentView(NamedTuple):
    """A row of the controller's list of reassignments."""

    id: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that it is to end with, in order."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)


class ClusterView(NamedTuple):
    """One look, everything sorted.

    The list of reassignments is read before topic metadata, so that what no longer moves has its end there; where two
    brokers report different replicas the look has failed.
    """

    brokers: frozenset[int]
    """Brokers that are up."""
    partitions: tuple[PartitionView, ...]
    """Of the topics that were asked for; one that is missing could not be seen."""
    moves: tuple[ReassignmentView, ...] = ()
    """All reassignments of the cluster."""
    gone: frozenset[str] = frozenset()
    """Topics that two brokers report as absent."""
    throttles: tuple[SeenThrottle, ...] = ()
    """Of the resources asked for; a key without any value is left out."""
    unread: frozenset[ThrottleResource] = frozenset()
    """Resources whose settings did not answer; those of brokers that are down are not among them."""
    traffic: tuple[tuple[int, float], ...] = ()
    """Broker -> bytes/s written to its replicas, by the agent's last look; one that is missing is unknown."""
    bytes: tuple[tuple[TopicPartition, int, int], ...] = ()
    """(partition, broker, bytes on its disk), where log dirs answered."""
    racks: tuple[tuple[int, str | None], ...] = ()
    """Broker -> its rack; reported only, decides nothing."""


class TimePassed(NamedTuple):
    """Time that has passed since the last event, on the monotonic clock."""

    elapsed_ms: int


class ClusterRead(NamedTuple):
    """The answer to `ReadCluster`; None: it failed."""

    cluster: ClusterView | None
    silent: bool = False
    """True when it failed because no broker answered, perhaps for want of a controller: brokers wait for one."""


@dataclass(frozen=True, slots=True)
class JournalAppended:
    """The answer to `AppendJournal`: it is durable. When that is not certain, forget the state and `resume`."""


class RequestFate(StrEnum):
    """Fate of one line of a request."""

    OK = "done"
    NOT_NEEDED = "nothing to do"
    """NO_REASSIGNMENT_IN_PROGRESS, ELECTION_NOT_NEEDED."""
    REFUSED = "refused"
    """Refused for good: the same request would be refused again."""
    RETRY = "not now"
    """Certainly not done (NOT_CONTROLLER and the like): tried again later."""
    UNCLEAN = "needs an unclean election"
    """A cancel that would leave no replica in sync."""
    GONE = "no such topic"
    UNKNOWN = "unknown"
    """No answer: it may have been done, or be done later."""
    NOT_SENT = "not sent"
    """Too long after the append, or the lease is not sure any more."""


class RequestResult(NamedTuple):
    """The answer for one partition or one resource."""

    subject: TopicPartition | ThrottleResource
    kind: RequestFate
    sentence: str = ""


class RequestDone(NamedTuple):
    """The answer to a request of `ClusterChange`; a subject that is missing is `RequestFate.UNKNOWN`."""

    results: tuple[RequestResult, ...]


class PlanCommand(StrEnum):
    """Commands of an operator about a plan."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    ROLLBACK = "rollback"


class CommandReceived(NamedTuple):
    """An operator's command about a plan."""

    command: PlanCommand
    proposal_id: str
    who: str = ""
    id: str = ""
    """That of the operator's command, so that one that is repeated counts once; empty: always counts."""


class PlanAccepted(NamedTuple):
    """A proposal was approved and the guard lets it begin."""

    plan: ReassignmentPlan


class PlansKnown(NamedTuple):
    """Every plan that the journal names by now. One that it has dropped was never accepted: its name is free again."""

    plans: frozenset[str]


class BatchPermission(NamedTuple):
    """Whether a new batch may begin now (mode, global pause, budgets), and of which plans none may. At first: no."""

    begin: bool
    sentence: str = ""
    """Why no batch may begin; empty when one may."""
    held: tuple[tuple[str, str], ...] = ()
    """(plan, why no new batch of it may begin now): its windows, topics that are excluded, racks that changed."""
    lapsed: tuple[tuple[str, str], ...] = ()
    """(plan, why it is over unless a batch of it was sent): its approval has ended."""

    def of(self, plan: str) -> str | None:
        """Why no new batch of that plan may begin; None when one may. `lapsed` counts before a batch was sent only."""
        return dict(self.held).get(plan) if self.begin else self.sentence


@dataclass(frozen=True, slots=True)
class LeaderFenced:
    """Another agent leads: do nothing more, ever."""


MachineEvent = (
    TimePassed
    | ClusterRead
    | JournalAppended
    | RequestDone
    | CommandReceived
    | PlanAccepted
    | PlansKnown
    | BatchPermission
    | LeaderFenced
)


class ReadCluster(NamedTuple):
    """Look at these topics and at the settings of these brokers and topics; the list of reassignments is whole."""

    topics: tuple[str, ...]
    resources: tuple[ThrottleResource, ...]


class NewPartitionReassignment(NamedTuple):
    """One line of a reassignment. Refused by ourselves when the partition differs from ``expected`` right before."""

    id: TopicPartition
    topic_id: str
    expected: tuple[int, ...]
    target: tuple[int, ...]


class AlterReassignments(NamedTuple):
    """Reassign, with ``AllowReplicationFactorChange`` off; where the broker has no such field, compare first.

    What is not as expected right before (`precheck`) is left out, as of `CancelReassignments` and `AlterThrottles`.
    """

    moves: tuple[NewPartitionReassignment, ...]


class OwnReassignment(NamedTuple):
    """A reassignment of ours that is under way. Not cancelled when, right before, it has another target."""

    id: TopicPartition
    topic_id: str
    target: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CancelReassignments:
    """Cancel reassignments of ours."""

    runs: tuple[OwnReassignment, ...]

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Partitions whose reassignments are cancelled."""
        return tuple(run.id for run in self.runs)


class AlterThrottles(NamedTuple):
    """Change throttle settings; the answer is per resource."""

    settings: tuple[ThrottleChange, ...]


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Elect preferred leaders."""

    partitions: tuple[TopicPartition, ...]


ClusterChange = AlterReassignments | CancelReassignments | AlterThrottles | ElectLeaders


class AppendJournal(NamedTuple):
    """Write all of it in one transaction."""

    changes: tuple[ReassignmentEntry, ...]
    then: ClusterChange | None = None
    """What comes next when it is durable; the shell leaves it to the machine."""


class NotifyOperator(NamedTuple):
    """Log a sentence for operators."""

    alarm: bool
    sentence: str
    proposal_id: str = ""
    """The plan that it is about; empty where it is about none or several."""
    hold: bool = False
    """True where this keeps the plan from going on: what moves, and what settles by itself, holds nothing."""


class FinishPlan(NamedTuple):
    """A plan has ended."""

    proposal_id: str
    state: PlanState
    sentence: str


AwaitedCommand = AppendJournal | ReadCluster | AlterReassignments | CancelReassignments | AlterThrottles | ElectLeaders
MachineCommand = AwaitedCommand | NotifyOperator | FinishPlan


# Freshness counts from the begin of the append, which proves the newest writer only for some moment after it; an append
# that took long leaves less time. Bounded, because a former leader's request may take effect so much later; the lease
# bounds it more tightly.

_TIMES = 3
"""An append is two or three requests one after the other; a last look, or a line to a coordinator, is as many."""


def valid_ms(took_ms: float, *, least_ms: int, request_timeout_ms: int) -> float:
    """Milliseconds from the begin of an append that took so long; over already where it took longer than it may."""
    return min(max(least_ms, _TIMES * took_ms), 2 * request_timeout_ms)
