"""What may happen next in a system: agents and their shells, and requests on their way.

Agents run `step` and `resume`; what the shell does between them is here: it appends in a transaction that a newer epoch
fences off, begins a request only while the append before it is fresh and its lease is sure, and gives an answer or
loses it. A request on its way takes effect once, late or never, but only within the landing time; the machine waits for
twice that.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.execute.reassign import machine
from agent.execute.reassign.messages import (
    AlterReassignments,
    AlterThrottles,
    AppendJournal,
    BatchPermission,
    CancelReassignments,
    ClusterChange,
    ClusterRead,
    ClusterView,
    CommandReceived,
    ElectLeaders,
    JournalAppended,
    LeaderFenced,
    MachineEvent,
    PartitionView,
    PlanAccepted,
    PlanCommand,
    ReadCluster,
    RequestDone,
    RequestFate,
    RequestResult,
    TimePassed,
    valid_ms,
)
from agent.execute.reassign.state import MachineState, appended
from agent.values.reassignment import Batch, ReassignmentPlan, ReassignmentRecords, attempt
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import Cluster, Part, back_up, blinded, carried_out, caught_up, last_look, view_of
from tests.execute.invariants import begun_badly, unlogged, unthrottled, weak, weakened
from tests.execute.model_environment import broker_steps, down, steps_of_others, with_part
from tests.execute.model_system import LATEST, POLICY, Agent, Request, Scenario, System, in_order, subjects

YES = BatchPermission(begin=True)
LONGEST = 2 * POLICY.limits.request_timeout_ms + 1
"""An append that took this long is too old, however much longer it took."""


class Transitions:
    """The transitions of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.policy = scenario.policy
        self._steps: dict[tuple[MachineState, MachineEvent], tuple[MachineState, tuple[object, ...]]] = {}
        self._looks: dict[Cluster, ClusterRead] = {}

    # --- the start

    def start(self) -> System:
        system = System(self.scenario.cluster, ReassignmentRecords(), 0, (), (), self.scenario.left)
        return self.with_new_leader(system)

    def with_new_leader(self, system: System) -> System:
        """A new agent takes over."""
        epoch = system.epoch + 1
        state, _ = machine.resume(system.journal, self.policy)
        agent = Agent(state, epoch)
        agent, _ = self.stepped(agent, YES)
        for plan in self.scenario.plans:
            if plan.proposal_id not in system.journal.known:
                agent, _ = self.stepped(agent, PlanAccepted(plan))
        return system._replace(epoch=epoch, agents=(*system.agents, agent))

    def stepped(self, agent: Agent, event: MachineEvent) -> tuple[Agent, tuple[object, ...]]:
        """The agent after an event, and its commands."""
        key = (agent.state, event)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = machine.step(agent.state, event, self.policy)
        return agent._replace(state=known[0]), known[1]

    # --- what may happen next

    def following(self, system: System) -> Iterator[tuple[str, System]]:
        for label, after in self._following(system):
            if after.left.lags and after.cluster.parts != system.cluster.parts:
                yield label, after._replace(former=system.former or system.cluster.parts)
            else:
                yield label, after

    def _following(self, system: System) -> Iterator[tuple[str, System]]:
        if system.harm:
            return
        for index, agent in enumerate(system.agents):
            yield from self._agent(system, index, agent)
        yield from self._wire(system)
        if all(request.age_ms < LATEST for request in system.wire):
            left = system.left
            if not any(self.busy(agent) for agent in system.agents):
                yield "time passes", self.ticked(system)
            elif left.delays:
                yield "time passes meanwhile", self.ticked(system._replace(left=left._replace(delays=left.delays - 1)))
        yield from broker_steps(self.scenario, system)
        yield from steps_of_others(self.scenario, system)

    def _agent(self, system: System, index: int, agent: Agent) -> Iterator[tuple[str, System]]:
        left, who = system.left, f"agent {agent.epoch}"
        if agent.frozen:
            yield f"{who} thaws", self.thawed(system, index)
            return
        if agent.state.fenced:
            yield f"{who} exits", self.without(system, index)
            return
        newest = agent.epoch == system.epoch
        if left.crashes and newest:
            gone = self.without(system, index)._replace(left=left._replace(crashes=left.crashes - 1))
            yield f"{who} is killed, another takes over", self.with_new_leader(gone)
        if left.freezes and newest and len(system.agents) == 1:
            frozen = self.put(system, index, agent._replace(frozen=True))
            frozen = frozen._replace(left=left._replace(freezes=left.freezes - 1))
            yield f"{who} freezes, another takes over", self.with_new_leader(frozen)
        yield from ((f"{who} {label}", after) for label, after in self.shell(system, index, agent))
        if isinstance(agent.state.waiting, ReadCluster):
            yield from ((f"{who} {label}", after) for label, after in self._odd_looks(system, index, agent))
        if isinstance(agent.state.waiting, ReadCluster) and left.losses:
            after, _ = self.stepped(agent, ClusterRead(None))
            yield f"{who} cannot look", self.put(self.lossy(system), index, after)
            after, _ = self.stepped(agent, ClusterRead(None, silent=True))
            yield f"{who} finds no controller", self.put(self.lossy(system), index, after)
        if agent.sent and left.losses:
            after, _ = self.stepped(agent._replace(sent=0), RequestDone(()))
            yield f"{who} gets no answer", self.put(self.lossy(system), index, after)
        if left.again and newest:
            this, following = self.attempts(system.journal)
            for plan in (this, following) if self.proposed(system.cluster) else (this,):
                after, _ = self.stepped(agent, PlanAccepted(plan))
                again = self.put(system, index, after)._replace(left=left._replace(again=left.again - 1))
                yield f"{plan.proposal_id} is handed over again", again
        if newest:
            yield from self._people(system, index, agent)

    def _people(self, system: System, index: int, agent: Agent) -> Iterator[tuple[str, System]]:
        """Operators, and the guard, which lets begin what it held whenever it likes."""
        left = system.left
        for command in sorted(set(left.commands)):
            after, _ = self.stepped(agent, CommandReceived(command, self.newest(system.journal)))
            left_over = list(left.commands)
            left_over.remove(command)
            yield (
                f"operator: {command}",
                self.put(system, index, after)._replace(left=left._replace(commands=tuple(left_over))),
            )
        name = self.scenario.plan.proposal_id
        for may in holds_of(name) if left.holds and agent.state.may == YES else ():
            after, _ = self.stepped(agent, may)
            held = self.put(system, index, after)._replace(left=left._replace(holds=left.holds - 1))
            yield f"the guard holds: {may}", held
        if agent.state.may != YES:
            after, _ = self.stepped(agent, YES)
            yield "the guard lets begin", self.put(system, index, after)

    def _odd_looks(self, system: System, index: int, agent: Agent) -> Iterator[tuple[str, System]]:
        """Looks that show less than there is, or what was there before."""
        left, seen = system.left, view_of(system.cluster)
        for what, blind in blinded(seen) if left.unread else ():
            after, commands = self.stepped(agent, ClusterRead(blind))
            put = self.put(system, index, after)._replace(left=left._replace(unread=left.unread - 1))
            unread = [it for it in _begun(commands) if blind.unread or _row(blind, it) != _row(seen, it)]
            harm = "a batch was sent while something of it was unread" if unread else ""
            yield f"does not see {what}", put._replace(harm=put.harm or harm)
        if left.lags and system.former is not None:
            after, commands = self.stepped(agent, ClusterRead(view_of(system.cluster, system.former)))
            put = self.put(system, index, after)._replace(left=left._replace(lags=left.lags - 1), former=None)
            yield "sees what was before", self.judged(put, agent, commands, system.former)

    def shell(self, system: System, index: int, agent: Agent) -> Iterator[tuple[str, System]]:
        """What the shell does with the command that is awaited."""
        waiting = agent.state.waiting
        if isinstance(waiting, ReadCluster):
            looked = self._looks.get(system.cluster)
            if looked is None:
                looked = self._looks[system.cluster] = ClusterRead(view_of(system.cluster))
            after, commands = self.stepped(agent, looked)
            yield "looks", self.judged(self.put(system, index, after), agent, commands, system.cluster.parts)
        elif isinstance(waiting, AppendJournal):
            if agent.durable:
                yield "learns that it is written", self.learned(system, index, agent)
                if system.left.losses and waiting.then is not None:
                    yield "is too late", self.unsent(self.lossy(system), index, agent)
            elif agent.epoch != system.epoch:
                yield "is fenced", self.put(system, index, self.stepped(agent, LeaderFenced())[0])
            else:
                yield "writes", self.written(system, index, agent, waiting)

    def attempts(self, journal: ReassignmentRecords) -> tuple[ReassignmentPlan, ...]:
        """The newest attempt that is known, and the one after it: what a guard may hand over that is late or hasty."""
        plan = self.scenario.plan
        own = [one for one in map(attempt, journal.known) if one.of == attempt(plan.proposal_id).of]
        newest = max(own, default=attempt(plan.proposal_id))
        both = (newest, newest._replace(number=newest.number + 1))
        return tuple(plan._replace(proposal_id=str(one), attempt=one.number) for one in both)

    def proposed(self, cluster: Cluster) -> bool:
        """Whether the same plan can be proposed again: its partitions have the replicas that it is to change."""
        pairs = zip(cluster.parts, self.scenario.plan.targets, strict=False)
        return bool(cluster.parts) and all(it.replicas == target.before and not it.moving for it, target in pairs)

    def newest(self, journal: ReassignmentRecords) -> str:
        """The attempt that an operator's word is about."""
        return self.attempts(journal)[0].proposal_id

    def judged(self, system: System, agent: Agent, commands: tuple[object, ...], shown: tuple[Part, ...]) -> System:
        """The system after a look that shows these partitions, and what the agent decided about it."""
        begun = _begun(commands)
        if not begun:
            return system
        if weak(system.cluster._replace(parts=shown)):
            return system._replace(harm="a batch began while a partition was under its min ISR")
        if weakened(shown, system.cluster.min_isr, begun):
            return system._replace(harm="a batch was sent that left a partition under its min ISR")
        plan = agent.state.plan
        if plan is not None and (plan.paused or agent.state.may.of(plan.proposal_id) or agent.state.over(plan)):
            return system._replace(harm="a batch was sent although nothing might begin")
        return system

    def written(self, system: System, index: int, agent: Agent, append: AppendJournal) -> System:
        journal = appended(MachineState(system.journal), append).records
        plans = [it for it in append.changes if isinstance(it, ReassignmentPlan)]
        names = {attempt(it.proposal_id).of for it in plans}
        others = (it for it in system.ended if attempt(it.proposal_id).of not in names)
        ended = tuple(sorted((*others, *(it for it in plans if it.ended)), key=lambda it: it.proposal_id))
        harm = system.harm or begun_badly(plans, system.journal, journal)
        system = system._replace(journal=journal, ended=ended, harm=harm)
        return self.put(system, index, agent._replace(durable=True, away=False, wrote=journal))

    def learned(self, system: System, index: int, agent: Agent) -> System:
        if self.late(agent):
            return self.unsent(system, index, agent)
        after, act = self.knowing(agent)
        return self.put(system, index, after) if act is None else self.send(system, index, after, act)

    def late(self, agent: Agent) -> bool:
        """Whether the shell begins no request any more."""
        took_ms = agent.appending_ms
        good_ms = valid_ms(
            took_ms,
            least_ms=self.policy.limits.intent_valid_ms,
            request_timeout_ms=self.policy.limits.request_timeout_ms,
        )
        stale = self.scenario.shell_checks_freshness and took_ms > good_ms
        return stale or (self.scenario.shell_checks_lease and agent.away)

    def unsent(self, system: System, index: int, agent: Agent) -> System:
        """It knows that its append is written, and finds that it is too late for what should follow."""
        after, act = self.knowing(agent)
        if act is not None:
            after, _ = self.stepped(
                after, RequestDone(tuple(RequestResult(it, RequestFate.NOT_SENT) for it in subjects(act)))
            )
        return self.put(system, index, after)

    def knowing(self, agent: Agent) -> tuple[Agent, ClusterChange | None]:
        """The agent that knows that its append is written, and what it asks for then."""
        after, commands = self.stepped(agent._replace(durable=False, appending_ms=0), JournalAppended())
        return after, next(
            (
                it
                for it in commands
                if isinstance(it, AlterReassignments | CancelReassignments | AlterThrottles | ElectLeaders)
            ),
            None,
        )

    def send(self, system: System, index: int, agent: Agent, act: ClusterChange) -> System:
        harm = system.harm
        if agent.away and agent.epoch != system.epoch:
            harm = "an agent acted after its fence"
        harm = harm or ("" if subjects(act) else "a request asks for nothing") or unlogged(act, agent.wrote)
        harm = harm or self.twice(system, act)
        act, left_out = last_look(system.cluster, act) if self.scenario.shell_looks_last else (act, ())
        if not subjects(act):
            after, _ = self.stepped(agent._replace(sent=0), RequestDone(left_out))
            return self.put(system, index, after)._replace(harm=harm)
        harm = harm or unthrottled(act, system.cluster)
        taken = {request.number for request in system.wire if request.epoch == agent.epoch}
        number = min(set(range(1, len(taken) + 2)) - taken)
        system = self.put(system, index, agent._replace(sent=number))
        request = Request(act, agent.epoch, number, left_out=left_out)
        return system._replace(wire=in_order(*system.wire, request), harm=harm)

    def twice(self, system: System, act: ClusterChange) -> str:
        """A cancel that is asked for while one of the same may be under way; empty if there is none."""
        under_way = {id_ for it in system.wire if isinstance(it.act, CancelReassignments) for id_ in it.act.partitions}
        again = isinstance(act, CancelReassignments) and not under_way.isdisjoint(act.partitions)
        return "a cancel was asked for twice" if again else ""

    def _wire(self, system: System) -> Iterator[tuple[str, System]]:
        for request in system.wire:
            yield (
                f"request of agent {request.epoch} arrives: {type(request.act).__name__}",
                self.arrived(system, request),
            )
            if system.left.losses and isinstance(request.act, AlterReassignments) and len(request.act.moves) > 1:
                yield f"controller takes the first move of agent {request.epoch}", self.half_arrived(system, request)
            if self.waiting_for(system, request) is None:
                yield f"request of agent {request.epoch} is lost", self.off_wire(system, request)
            elif system.left.losses and isinstance(request.act, AlterReassignments | AlterThrottles):
                results = tuple(RequestResult(it, RequestFate.RETRY) for it in subjects(request.act))
                answer = RequestDone((*request.left_out, *results))
                after = self.answered(self.off_wire(system, request), request, answer)
                yield f"controller is busy for agent {request.epoch}", self.lossy(after)

    def arrived(self, system: System, request: Request) -> System:
        cluster, answer = carried_out(system.cluster, request.act)
        harm = system.harm or cluster.harm
        system = self.off_wire(system, request)._replace(cluster=cluster._replace(harm=""), harm=harm)
        return self.answered(system, request, RequestDone((*request.left_out, *answer.results)))

    def half_arrived(self, system: System, request: Request) -> System:
        """The first move begins, of the others it is said: not now."""
        assert isinstance(request.act, AlterReassignments)
        first, *others = request.act.moves
        later = tuple(RequestResult(move.id, RequestFate.RETRY) for move in others)
        half = request._replace(act=AlterReassignments((first,)), left_out=(*request.left_out, *later))
        system = system._replace(wire=in_order(*self.off_wire(system, request).wire, half))
        return self.arrived(self.lossy(system), half)

    def answered(self, system: System, request: Request, answer: RequestDone) -> System:
        index = self.waiting_for(system, request)
        if index is None:
            return system  # a frozen one finds out later that there was no answer
        return self.put(system, index, self.stepped(system.agents[index]._replace(sent=0), answer)[0])

    def waiting_for(self, system: System, request: Request) -> int | None:
        """Which agent awaits its answer."""
        waiting = (
            index
            for index, agent in enumerate(system.agents)
            if not agent.frozen and (agent.epoch, agent.sent) == (request.epoch, request.number)
        )
        return next(waiting, None)

    def off_wire(self, system: System, request: Request) -> System:
        wire = list(system.wire)
        wire.remove(request)
        return system._replace(wire=tuple(wire))

    def busy(self, agent: Agent) -> bool:
        """True when it has something to do that needs no time."""
        return not agent.frozen and not agent.state.fenced and agent.state.waiting is not None

    def ticked(self, system: System) -> System:
        agents = []
        for agent in system.agents:
            writing = isinstance(agent.state.waiting, AppendJournal)
            aged = agent._replace(appending_ms=min(agent.appending_ms + 1, LONGEST) if writing else 0)
            if agent.frozen:
                agents.append(aged._replace(missed_ms=min(POLICY.settle_ms, agent.missed_ms + 1), away=True))
            else:
                agents.append(self.stepped(aged, TimePassed(1))[0])
        wire = in_order(*(it._replace(age_ms=it.age_ms + 1) for it in system.wire))
        # Brokers are late by less than a request may take.
        return system._replace(agents=tuple(agents), wire=wire, former=None)

    def thawed(self, system: System, index: int) -> System:
        agent = system.agents[index]
        after, _ = self.stepped(agent._replace(frozen=False, missed_ms=0), TimePassed(agent.missed_ms))
        system = self.put(system, index, after)
        if after.sent and (after.epoch, after.sent) not in {(it.epoch, it.number) for it in system.wire}:
            return self.put(system, index, self.stepped(after._replace(sent=0), RequestDone(()))[0])
        return system

    # --- fairness

    def fair(self, system: System) -> Iterator[System]:
        """What happens next, the first of these, when nothing goes wrong any more; nothing at the end."""
        for broker in down(self.scenario, system.cluster):
            yield system._replace(cluster=back_up(system.cluster, broker))
        if system.cluster.min_isr != 1:
            yield system._replace(cluster=system.cluster._replace(min_isr=1))
        for request in system.wire:
            yield self.arrived(system, request)
        for index, agent in enumerate(system.agents):
            if agent.frozen:
                yield self.thawed(system, index)
            if agent.state.fenced:
                yield self.without(system, index)
            if agent.sent:
                yield self.put(system, index, self.stepped(agent._replace(sent=0), RequestDone(()))[0])
            yield from (after for _, after in self.shell(system, index, agent))
        for index, part in enumerate(system.cluster.parts):
            if (after_part := caught_up(part, system.cluster.up)) != part:
                yield system._replace(cluster=with_part(system.cluster, index, after_part))
        newest, last = system.agents[-1], len(system.agents) - 1
        if newest.state.may != YES:
            yield self.put(system, last, self.stepped(newest, YES)[0])
        for plan in newest.state.records.plans:
            if plan.paused and not newest.state.commands:
                yield self.put(
                    system, last, self.stepped(newest, CommandReceived(PlanCommand.RESUME, plan.proposal_id))[0]
                )
        if not newest.state.idle:
            yield self.ticked(system)

    # --- small changes

    def put(self, system: System, index: int, agent: Agent) -> System:
        return system._replace(agents=(*system.agents[:index], agent, *system.agents[index + 1 :]))

    def without(self, system: System, index: int) -> System:
        return system._replace(agents=(*system.agents[:index], *system.agents[index + 1 :]))

    def lossy(self, system: System) -> System:
        return system._replace(left=system.left._replace(losses=system.left.losses - 1))


def holds_of(name: str) -> tuple[BatchPermission, ...]:
    """What a guard may say of a plan, or of all."""
    return (
        BatchPermission(begin=False, sentence="acting is paused"),
        BatchPermission(begin=True, held=((name, "its window closed"),)),
        BatchPermission(begin=True, lapsed=((name, "its approval ended"),)),
    )


def _begun(commands: tuple[object, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    """Partition -> its replicas, where it will be asked to move next; not those put back as a cancel left them."""
    return {
        move.id: move.target
        for it in commands
        if isinstance(it, AppendJournal) and isinstance(it.then, AlterReassignments)
        if any(isinstance(change, Batch) and not change.cancelling for change in it.changes)
        for move in it.then.moves
    }


def _row(seen: ClusterView, partition: TopicPartition) -> PartitionView | None:
    return next((it for it in seen.partitions if it.id == partition), None)
