"""A machine with an abstract cluster under it, driven by a test one event after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent.execute.reassign.machine import resume, step
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    AppendJournal,
    BatchPermission,
    CancelReassignments,
    ClusterRead,
    ElectLeaders,
    FinishPlan,
    JournalAppended,
    MachineCommand,
    NotifyOperator,
    PlanAccepted,
    ReadCluster,
    TimePassed,
)
from agent.execute.reassign.state import MachineState, appended
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import (
    Batch,
    BatchState,
    ReassignmentPlan,
    ReassignmentPolicy,
    ReassignmentRecords,
    ReassignmentTarget,
)
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import Cluster, a_part, carried_out, caught_up, view_of

P0 = TopicPartition("t", 0)
MOVE = ReassignmentTarget(P0, "id", (1, 2), (3, 2), bytes=1000)
ORDER = ReassignmentTarget(P0, "id", (1, 2), (2, 1))
POLICY = ReassignmentPolicy(ExecuteLimits(throttle=10, throttle_ceiling=15, max_bytes_in_flight=None))
OTHER = MOVE._replace(id=TopicPartition("t", 1))
TOPIC_T = ThrottleResource(topic="t")


class Live:
    """A machine with an abstract cluster under it; copies are whole only when `catch_up` says so."""

    def __init__(
        self,
        moves: ReassignmentTarget | ReassignmentPlan = MOVE,
        *,
        look_as=view_of,
        answer_as=carried_out,
        **cluster: object,
    ) -> None:
        plan = moves if isinstance(moves, ReassignmentPlan) else ReassignmentPlan("p", (moves,))
        parts = tuple(a_part(*target.before) for target in plan.targets)
        self.cluster = Cluster(parts, frozenset({1, 2, 3}))._replace(**cluster)
        self.journal = ReassignmentRecords()
        self.notices: list[NotifyOperator] = []
        self.acts: list[Any] = []
        self.finished: list[FinishPlan] = []
        self.ended: list[ReassignmentPlan] = []
        self.closed: list[Batch] = []
        self.look_as = look_as
        self.answer_as = answer_as
        self.lead()
        self.tell(PlanAccepted(plan))

    def lead(self) -> None:
        """Begin with nothing but the journal."""
        self.state, commands = resume(self.journal, POLICY)
        self.carry_out(commands)
        self.tell(BatchPermission(begin=True))

    def tell(self, event: object) -> None:
        self.state, commands = step(self.state, event, POLICY)
        self.carry_out(commands)

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.tell(TimePassed(500))

    def carry_out(self, commands: Iterable[MachineCommand]) -> None:
        for command in commands:
            match command:
                case AppendJournal():
                    self.ended += [it for it in command.changes if isinstance(it, ReassignmentPlan) and it.ended]
                    self.closed += [
                        it for it in command.changes if isinstance(it, Batch) and it.state is BatchState.CLOSED
                    ]
                    self.journal = appended(MachineState(self.journal), command).records
                    self.tell(JournalAppended())
                case ReadCluster():
                    self.tell(ClusterRead(self.look_as(self.cluster)))
                case AlterReassignments() | CancelReassignments() | AlterThrottles() | ElectLeaders():
                    self.acts.append(command)
                    self.cluster, answer = self.answer_as(self.cluster, command)
                    self.tell(answer)
                case NotifyOperator():
                    self.notices.append(command)
                case FinishPlan():
                    self.finished.append(command)

    def catch_up(self) -> None:
        self.cluster = self.cluster._replace(parts=tuple(caught_up(it, self.cluster.up) for it in self.cluster.parts))

    def kinds(self) -> list[str]:
        return [type(act).__name__ for act in self.acts]

    def alarms(self) -> list[str]:
        return [say.sentence for say in self.notices if say.alarm]

    def sentences(self) -> str:
        return "\n".join(say.sentence for say in self.notices)
