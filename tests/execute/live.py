"""A machine with an abstract cluster under it, driven by a test one event after the other."""

from __future__ import annotations

from collections.abc import Iterable

from agent.execute.reassign.machine import resume, step
from agent.execute.reassign.messages import (
    Accepted,
    Alter,
    Append,
    Appended,
    Cancel,
    Command,
    Configure,
    Elect,
    Finish,
    Look,
    Looked,
    May,
    Say,
    Tick,
)
from agent.execute.reassign.state import State, appended
from agent.values.limits import ExecuteLimits
from agent.values.reassignment import Batch, BatchState, Plan, Policy, Records, Target
from agent.values.throttles import Resource
from assignors.problem import TopicPartition
from tests.execute.abstract import Cluster, a_part, carried_out, caught_up, seen_of

P0 = TopicPartition("t", 0)
MOVE = Target(P0, "id", (1, 2), (3, 2), bytes=1000)
ORDER = Target(P0, "id", (1, 2), (2, 1))
POLICY = Policy(ExecuteLimits(throttle=10, throttle_ceiling=15))
OTHER = MOVE._replace(id=TopicPartition("t", 1))
TOPIC_T = Resource("topic", "t")


class Live:
    """A machine with an abstract cluster under it; copies are whole only when `catch_up` says so."""

    def __init__(
        self, moves: Target | Plan = MOVE, *, look_as=seen_of, answer_as=carried_out, **cluster: object
    ) -> None:
        plan = moves if isinstance(moves, Plan) else Plan("p", (moves,))
        parts = tuple(a_part(*target.before) for target in plan.targets)
        self.cluster = Cluster(parts, frozenset({1, 2, 3}))._replace(**cluster)
        self.journal = Records()
        self.said: list[Say] = []
        self.acts: list[object] = []
        self.finished: list[Finish] = []
        self.ended: list[Plan] = []
        self.closed: list[Batch] = []
        self.look_as = look_as
        self.answer_as = answer_as
        self.lead()
        self.tell(Accepted(plan))

    def lead(self) -> None:
        """Begin with nothing but the journal."""
        self.state, commands = resume(self.journal, POLICY)
        self.carry_out(commands)
        self.tell(May(begin=True))

    def tell(self, event: object) -> None:
        self.state, commands = step(self.state, event, POLICY)
        self.carry_out(commands)

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            self.tell(Tick(500))

    def carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Append():
                    self.ended += [it for it in command.changes if isinstance(it, Plan) and it.ended]
                    self.closed += [
                        it for it in command.changes if isinstance(it, Batch) and it.state is BatchState.CLOSED
                    ]
                    self.journal = appended(State(self.journal), command).records
                    self.tell(Appended())
                case Look():
                    self.tell(Looked(self.look_as(self.cluster)))
                case Alter() | Cancel() | Configure() | Elect():
                    self.acts.append(command)
                    self.cluster, answer = self.answer_as(self.cluster, command)
                    self.tell(answer)
                case Say():
                    self.said.append(command)
                case Finish():
                    self.finished.append(command)

    def catch_up(self) -> None:
        self.cluster = self.cluster._replace(parts=tuple(caught_up(it, self.cluster.up) for it in self.cluster.parts))

    def kinds(self) -> list[str]:
        return [type(act).__name__ for act in self.acts]

    def alarms(self) -> list[str]:
        return [say.sentence for say in self.said if say.alarm]

    def sentences(self) -> str:
        return "\n".join(say.sentence for say in self.said)
