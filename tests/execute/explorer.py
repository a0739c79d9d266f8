"""Every interleaving of agents, faults, late requests and other people, over the very functions that run live.

A system is a cluster, a journal, at most two agents and the requests on their way. Agents run `step` and `resume`; what
the shell does between them is here: it appends in a transaction that a newer epoch fences off, begins a request only
while the append before it is fresh, and gives an answer or loses it. A request on its way takes effect once, late or
never, but only within the request timeout; the machine waits for twice that.

What is not among the interleavings is the one hole that cannot be closed: someone else beginning, or setting, something
in the instant between our look and the arrival of our request. (The protocol has no compare-and-set.)

Breadth first, so that the way to a violation is the shortest one. Parts of a system are numbered once, and what a part
becomes is worked out once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from agent.execute import machine
from agent.execute.judging import view_of
from agent.execute.messages import (
    Accepted,
    Act,
    Alter,
    Answered,
    Append,
    Appended,
    Cancel,
    Configure,
    Elect,
    Event,
    Fenced,
    Kind,
    Look,
    Looked,
    May,
    Op,
    Result,
    Said,
    Tick,
    Word,
)
from agent.execute.state import State, appended
from agent.execute.values import (
    FOLLOWER_RATE,
    LEADER_RATE,
    Batch,
    BatchState,
    End,
    Plan,
    PlanState,
    Policy,
    Records,
    Resource,
)
from assignors.problem import TopicPartition
from tests.execute.abstract import Cluster, Part, back_up, begun, carried_out, caught_up, lost, seen_of

POLICY = Policy(
    batch_partitions=2,
    throttle_bytes_per_s=1,
    throttle_ceiling_bytes_per_s=2,
    stuck_after_ms=2,
    grace_ms=1,
    request_timeout_ms=1,
    look_ms=1,
    idle_look_ms=1,
    max_sendings=3,
    max_elections=2,
)
LATEST = POLICY.request_timeout_ms


class Agent(NamedTuple):
    """An agent with its shell."""

    state: State
    epoch: int
    frozen: bool = False
    missed_ms: int = 0
    durable: bool = False
    """What it appends is written, and it does not know yet."""
    stale: bool = False
    """Time passed since it began to append."""
    sent: int = 0
    """The number of the request whose answer it awaits; 0: none."""
    wrote: Records | None = None
    """The journal right after its latest append."""


class Request(NamedTuple):
    """A request on its way."""

    act: Act
    epoch: int
    number: int
    """Among those of its agent that are on their way."""
    age_ms: int = 0


class Left(NamedTuple):
    """How often each may still happen."""

    crashes: int = 0
    freezes: int = 0
    losses: int = 0
    """Answers lost, requests late, looks failed, controllers that say not now."""
    brokers: int = 0
    foreign: int = 0
    """Moves of others."""
    throttles: int = 0
    """Throttles that others set."""
    deletions: int = 0
    min_isr: int = 0
    delays: int = 0
    """Time passes although somebody has something to do."""
    words: frozenset[Word] = frozenset()


class System(NamedTuple):
    """All of it."""

    cluster: Cluster
    journal: Records
    epoch: int
    agents: tuple[Agent, ...]
    wire: tuple[Request, ...]
    left: Left
    ended: str = ""
    """The state in which the plan ended."""
    harm: str = ""


class Scenario(NamedTuple):
    """Where it starts, and what may happen."""

    plan: Plan
    cluster: Cluster
    left: Left
    shell_checks_freshness: bool = True
    policy: Policy = POLICY


class Found(NamedTuple):
    """What an exploration found."""

    states: int
    complete: bool
    """False when the bound on states was reached."""
    violation: str = ""
    trace: tuple[str, ...] = ()


def explore(scenario: Scenario, most: int, *, walks: bool = True) -> Found:
    """Look at up to that many states; with ``walks`` also whether each of them leads to an end once faults stop."""
    world = World(scenario)
    start = world.start()
    parents: dict[Packed, tuple[Packed | None, str]] = {world.pack(start): (None, "start")}
    queue = deque(parents)
    ending: set[Packed] = set()
    while queue:
        packed = queue.popleft()
        system = world.unpack(packed)
        broken = world.broken(system) or (world.walk(packed, ending) if walks else "")
        if broken:
            return Found(len(parents), complete=False, violation=broken, trace=_trace(parents, packed))
        if len(parents) >= most:
            continue
        for label, following in world.following(system):
            key = world.pack(following)
            if key not in parents:
                parents[key] = (packed, label)
                queue.append(key)
    return Found(len(parents), complete=len(parents) < most)


Packed = tuple[int, ...]


def _trace(parents: dict[Packed, tuple[Packed | None, str]], packed: Packed) -> tuple[str, ...]:
    labels: list[str] = []
    at: Packed | None = packed
    while at is not None:
        at, label = parents[at]
        labels.append(label)
    return tuple(reversed(labels))


class Numbers:
    """Values <-> small numbers, so that a system is a short tuple of them."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._values: list[object] = []

    def number(self, value: object) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
        return number

    def value(self, number: int) -> object:
        return self._values[number]


class World:
    """The transitions of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.policy = scenario.policy
        self.sizes = {len(target.before) for target in scenario.plan.targets}
        self.foreign_settings = scenario.cluster.settings
        self._numbers = Numbers()
        self._steps: dict[tuple[State, Event], tuple[State, tuple[object, ...]]] = {}
        self._looks: dict[Cluster, Looked] = {}

    # --- packing

    def pack(self, system: System) -> Packed:
        number = self._numbers.number
        return (
            number(system.cluster),
            number(system.journal),
            system.epoch,
            number(system.wire),
            number(system.left),
            number(system.ended + "|" + system.harm),
            *(number(agent) for agent in system.agents),
        )

    def unpack(self, packed: Packed) -> System:
        value = self._numbers.value
        ended, harm = value(packed[5]).split("|")  # type: ignore[attr-defined]
        agents = tuple(value(number) for number in packed[6:])
        cluster, journal, wire, left = (value(packed[index]) for index in (0, 1, 3, 4))
        return System(cluster, journal, packed[2], agents, wire, left, ended, harm)  # type: ignore[arg-type]

    # --- the start

    def start(self) -> System:
        system = System(self.scenario.cluster, Records(), 0, (), (), self.scenario.left)
        return self.led(system)

    def led(self, system: System) -> System:
        """A new agent takes over."""
        epoch = system.epoch + 1
        state, _ = machine.resume(system.journal, self.policy)
        agent = Agent(state, epoch)
        agent, _ = self.told(agent, May(begin=True))
        if self.scenario.plan.proposal_id not in system.journal.known:
            agent, _ = self.told(agent, Accepted(self.scenario.plan))
        return system._replace(epoch=epoch, agents=(*system.agents, agent))

    def told(self, agent: Agent, event: Event) -> tuple[Agent, tuple[object, ...]]:
        """The agent after an event, and its commands."""
        key = (agent.state, event)
        known = self._steps.get(key)
        if known is None:
            known = self._steps[key] = machine.step(agent.state, event, self.policy)
        return agent._replace(state=known[0]), known[1]

    # --- what may happen next

    def following(self, system: System) -> Iterator[tuple[str, System]]:
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
        yield from self._cluster(system)
        yield from self._others(system)

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
            yield f"{who} is killed, another takes over", self.led(gone)
        if left.freezes and newest and len(system.agents) == 1:
            frozen = self.put(system, index, agent._replace(frozen=True))
            frozen = frozen._replace(left=left._replace(freezes=left.freezes - 1))
            yield f"{who} freezes, another takes over", self.led(frozen)
        yield from ((f"{who} {label}", after) for label, after in self.shell(system, index, agent))
        if isinstance(agent.state.waiting, Look) and left.losses:
            after, _ = self.told(agent, Looked(None))
            yield f"{who} cannot look", self.put(self.lossy(system), index, after)
        if agent.sent and left.losses:
            after, _ = self.told(agent._replace(sent=0), Answered(()))
            yield f"{who} gets no answer", self.put(self.lossy(system), index, after)
        for word in sorted(left.words) if newest else ():
            after, _ = self.told(agent, Said(word, self.scenario.plan.proposal_id))
            yield (
                f"operator: {word}",
                self.put(system, index, after)._replace(left=left._replace(words=left.words - {word})),
            )

    def shell(self, system: System, index: int, agent: Agent) -> Iterator[tuple[str, System]]:
        """What the shell does with the command that is awaited."""
        waiting = agent.state.waiting
        if isinstance(waiting, Look):
            looked = self._looks.get(system.cluster)
            if looked is None:
                looked = self._looks[system.cluster] = Looked(seen_of(system.cluster))
            after, commands = self.told(agent, looked)
            weak = any(isinstance(it, Append) for it in commands) and self.weak(agent.state, looked.seen)
            system = self.put(system, index, after)
            yield "looks", self.judged(system, weak, commands)
        elif isinstance(waiting, Append):
            if agent.durable:
                yield "learns that it is written", self.learned(system, index, agent)
            elif agent.epoch != system.epoch:
                yield "is fenced", self.put(system, index, self.told(agent, Fenced())[0])
            else:
                yield "writes", self.written(system, index, agent, waiting)

    def weak(self, state: State, seen: object) -> bool:
        view = view_of(state, seen, self.policy)  # type: ignore[arg-type]
        return view.plan is not None and view.weak(view.plan.targets) is not None

    def judged(self, system: System, weak: bool, commands: tuple[object, ...]) -> System:
        for command in commands:
            if isinstance(command, Append) and weak:
                for change in command.changes:
                    if isinstance(change, Batch) and isinstance(command.then, Alter) and not change.cancelling:
                        return system._replace(harm="a batch began while a partition was under its min ISR")
        return system

    def written(self, system: System, index: int, agent: Agent, append: Append) -> System:
        journal = appended(State(system.journal), append).records
        ended = next((it.state.value for it in append.changes if isinstance(it, Plan) and it.ended), system.ended)
        system = system._replace(journal=journal, ended=ended)
        return self.put(system, index, agent._replace(durable=True, stale=False, wrote=journal))

    def learned(self, system: System, index: int, agent: Agent) -> System:
        after, commands = self.told(agent._replace(durable=False), Appended())
        act = next((it for it in commands if isinstance(it, Alter | Cancel | Configure | Elect)), None)
        if act is None:
            return self.put(system, index, after)
        return self.send(system, index, after, act)

    def send(self, system: System, index: int, agent: Agent, act: Act) -> System:
        if agent.stale and self.scenario.shell_checks_freshness:
            results = tuple(Result(it, Kind.NOT_SENT) for it in subjects(act))
            return self.put(system, index, self.told(agent, Answered(results))[0])
        harm = system.harm
        if agent.stale and agent.epoch != system.epoch:
            harm = "an agent acted after its fence"
        harm = harm or unlogged(act, agent.wrote)
        taken = {request.number for request in system.wire if request.epoch == agent.epoch}
        number = min(set(range(1, len(taken) + 2)) - taken)
        system = self.put(system, index, agent._replace(sent=number))
        return system._replace(wire=in_order(*system.wire, Request(act, agent.epoch, number)), harm=harm)

    def _wire(self, system: System) -> Iterator[tuple[str, System]]:
        for request in system.wire:
            yield (
                f"request of agent {request.epoch} arrives: {type(request.act).__name__}",
                self.arrived(system, request),
            )
            if self.waiting_for(system, request) is None:
                yield f"request of agent {request.epoch} is lost", self.off_wire(system, request)
            elif system.left.losses and isinstance(request.act, Alter | Configure):
                results = tuple(Result(it, Kind.RETRY) for it in subjects(request.act))
                after = self.answered(self.off_wire(system, request), request, Answered(results))
                yield f"controller is busy for agent {request.epoch}", self.lossy(after)

    def arrived(self, system: System, request: Request) -> System:
        cluster, answer = carried_out(system.cluster, request.act)
        harm = system.harm or cluster.harm
        system = self.off_wire(system, request)._replace(cluster=cluster._replace(harm=""), harm=harm)
        return self.answered(system, request, answer)

    def answered(self, system: System, request: Request, answer: Answered) -> System:
        index = self.waiting_for(system, request)
        if index is None:
            return system  # a frozen one finds out later that there was no answer
        return self.put(system, index, self.told(system.agents[index]._replace(sent=0), answer)[0])

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
            if agent.frozen:
                agents.append(agent._replace(missed_ms=min(POLICY.settle_ms, agent.missed_ms + 1), stale=True))
            else:
                aged = agent._replace(stale=isinstance(agent.state.waiting, Append))
                agents.append(self.told(aged, Tick(1))[0])
        wire = in_order(*(it._replace(age_ms=it.age_ms + 1) for it in system.wire))
        return system._replace(agents=tuple(agents), wire=wire)

    def thawed(self, system: System, index: int) -> System:
        agent = system.agents[index]
        after, _ = self.told(agent._replace(frozen=False, missed_ms=0), Tick(agent.missed_ms))
        system = self.put(system, index, after)
        if after.sent and (after.epoch, after.sent) not in {(it.epoch, it.number) for it in system.wire}:
            return self.put(system, index, self.told(after._replace(sent=0), Answered(()))[0])
        return system

    # --- brokers and other people

    def _cluster(self, system: System) -> Iterator[tuple[str, System]]:
        cluster, left = system.cluster, system.left
        for index, part in enumerate(cluster.parts):
            after = caught_up(part, cluster.up)
            if after != part:
                yield f"t-{index} catches up", system._replace(cluster=with_part(cluster, index, after))
        if left.brokers:
            for broker in sorted(cluster.up):
                yield (
                    f"broker {broker} is killed",
                    system._replace(cluster=lost(cluster, broker), left=left._replace(brokers=left.brokers - 1)),
                )
        for broker in self.down(cluster):
            yield f"broker {broker} is back", system._replace(cluster=back_up(cluster, broker))
        if left.min_isr:
            yield (
                "min ISR is raised",
                system._replace(cluster=cluster._replace(min_isr=3), left=left._replace(min_isr=left.min_isr - 1)),
            )
        if cluster.min_isr != 1:
            yield "min ISR is lowered", system._replace(cluster=cluster._replace(min_isr=1))

    def _others(self, system: System) -> Iterator[tuple[str, System]]:
        """Other people, but never in the instant between a look of ours and what follows from it."""
        if system.wire or any(isinstance(agent.state.waiting, Append) for agent in system.agents):
            return
        cluster, left = system.cluster, system.left
        if left.foreign:
            for index, part in enumerate(cluster.parts):
                target = part.target[1:] + tuple(sorted(self.scenario.cluster.up - set(part.replicas)))[:1]
                if len(target) == len(part.target):
                    after = begun(part, target, foreign=True, up=cluster.up)
                    yield (
                        f"someone else moves t-{index}",
                        system._replace(
                            cluster=with_part(cluster, index, after), left=left._replace(foreign=left.foreign - 1)
                        ),
                    )
        if left.deletions and cluster.parts:
            gone = left._replace(deletions=left.deletions - 1)
            settings = tuple(it for it in cluster.settings if it[0].kind != "topic")
            yield "t is deleted", system._replace(cluster=cluster._replace(parts=(), settings=settings), left=gone)
            anew = tuple(it._replace(topic_id="other") for it in self.scenario.cluster.parts)
            yield "t is made anew", system._replace(cluster=cluster._replace(parts=anew, settings=settings), left=gone)
        if left.throttles:
            for resource, key, value in ((Resource("broker", "1"), LEADER_RATE, "7"),):
                settings = {(it[0], it[1]): it[2] for it in cluster.settings} | {(resource, key): value}
                yield (
                    "someone else sets a rate",
                    system._replace(
                        cluster=cluster._replace(
                            settings=tuple(sorted((*it, value) for it, value in settings.items()))
                        ),
                        left=left._replace(throttles=left.throttles - 1),
                    ),
                )

    def down(self, cluster: Cluster) -> list[int]:
        return sorted(self.scenario.cluster.up - cluster.up)

    # --- what must hold

    def broken(self, system: System) -> str:
        """The invariant that is broken here."""
        if system.harm:
            return system.harm
        for part in system.cluster.parts:
            if len(part.target) not in self.sizes:
                return "the number of replicas changed"
        journal = system.journal
        at_rest = not system.wire and not journal.plans and not journal.debts and system.ended
        return self.at_rest(system) if at_rest else ""

    def at_rest(self, system: System) -> str:
        """What must hold once the plan has ended and nothing is on its way."""
        theirs = dict(((resource, key), value) for resource, key, value in self.foreign_settings)
        for resource, key, value in system.cluster.settings:
            foreign = theirs.get((resource, key))
            set_by_others = value == "7" or value == foreign
            if not set_by_others:
                return f"a throttle was left: {key} of {resource.name} is {value}"
        now = {(it[0], it[1]): it[2] for it in system.cluster.settings}
        for (resource, key), value in theirs.items():
            topic_is_there = system.cluster.parts and all(it.topic_id == "id" for it in system.cluster.parts)
            if (resource.kind == "broker" or topic_is_there) and now.get((resource, key)) not in (value, "7"):
                return f"a throttle of someone else was changed: {key} of {resource.name}"
        touched = self.scenario.left.foreign != system.left.foreign
        for target in self.scenario.plan.targets:
            if not system.cluster.parts or touched:
                break
            part = system.cluster.parts[target.id.partition]
            if part.topic_id != "id":
                continue
            if part.moving:
                return f"{target.id} still moves after its plan ended"
            if part.replicas not in (target.before, target.after):
                return f"{target.id} has replicas that nobody planned: {part.replicas}"
            if system.ended == PlanState.DONE and part.replicas != target.after:
                return f"{target.id} is said to be done and is not"
            if system.ended == PlanState.ROLLED_BACK and part.replicas != target.before:
                return f"{target.id} is said to be rolled back and is not"
        return ""

    # --- termination

    def walk(self, packed: Packed, ending: set[Packed]) -> str:
        """Empty when this leads to an end once faults stop and everybody gets their turn."""
        path: list[Packed] = []
        on_path: set[Packed] = set()
        while packed not in ending:
            if packed in on_path:
                return "it never ends"
            path.append(packed)
            on_path.add(packed)
            system = self.unpack(packed)
            if broken := self.broken(system):
                return broken
            following = self.fair(system)
            if following is None:
                break
            packed = self.pack(following)
        ending.update(path)
        return ""

    def fair(self, system: System) -> System | None:
        """The one thing that happens next when nothing goes wrong any more; None at the end."""
        for broker in self.down(system.cluster):
            return system._replace(cluster=back_up(system.cluster, broker))
        if system.cluster.min_isr != 1:
            return system._replace(cluster=system.cluster._replace(min_isr=1))
        for request in system.wire:
            return self.arrived(system, request)
        for index, agent in enumerate(system.agents):
            if agent.frozen:
                return self.thawed(system, index)
            if agent.state.fenced:
                return self.without(system, index)
            if agent.sent:
                return self.put(system, index, self.told(agent._replace(sent=0), Answered(()))[0])
            for _, after in self.shell(system, index, agent):
                return after
        newest = next((it for it in system.agents if it.epoch == system.epoch), None)
        if newest is None:
            return self.led(system)
        for index, part in enumerate(system.cluster.parts):
            after_part = caught_up(part, system.cluster.up)
            if after_part != part:
                return system._replace(cluster=with_part(system.cluster, index, after_part))
        if newest.state.idle:
            return None
        if newest.state.plan is not None and newest.state.plan.paused and not newest.state.words:
            said = self.told(newest, Said(Word.RESUME, self.scenario.plan.proposal_id))[0]
            return self.put(system, system.agents.index(newest), said)
        return self.ticked(system)

    # --- small changes

    def put(self, system: System, index: int, agent: Agent) -> System:
        return system._replace(agents=(*system.agents[:index], agent, *system.agents[index + 1 :]))

    def without(self, system: System, index: int) -> System:
        return system._replace(agents=(*system.agents[:index], *system.agents[index + 1 :]))

    def lossy(self, system: System) -> System:
        return system._replace(left=system.left._replace(losses=system.left.losses - 1))


def in_order(*requests: Request) -> tuple[Request, ...]:
    return tuple(sorted(requests, key=lambda it: (it.epoch, it.number)))


def with_part(cluster: Cluster, index: int, part: Part) -> Cluster:
    return cluster._replace(parts=(*cluster.parts[:index], part, *cluster.parts[index + 1 :]))


def subjects(act: Act) -> list[TopicPartition | Resource]:
    if isinstance(act, Alter):
        return [move.id for move in act.moves]
    if isinstance(act, Configure):
        return sorted({setting.resource for setting in act.settings})
    return list(act.partitions)


def unlogged(act: Act, journal: Records | None) -> str:
    """Whether the journal said it before it was done."""
    if journal is None:
        return "an act without a journal"
    batch = next((it for it in journal.batches if it.state is not BatchState.CLOSED), None)
    if isinstance(act, Configure):
        debts = {(debt.resource, debt.key): debt for debt in journal.debts}
        for setting in act.settings:
            debt = debts.get((setting.resource, setting.key))
            if debt is None or (setting.op in (Op.SET, Op.APPEND) and setting.value not in (debt.ours, debt.before)):
                return f"an unlogged throttle: {setting}"
        return ""
    if isinstance(act, Elect):
        return "" if any(plan.elections for plan in journal.plans) else "an unlogged election"
    if batch is None:
        return f"an unlogged {type(act).__name__}"
    if isinstance(act, Cancel):
        return "" if set(act.partitions) <= set(batch.cancelling) else "an unlogged cancel"
    if batch.state is BatchState.INTENT:
        return "a request was not announced"
    logged = {(it.id, it.after) for it in batch.targets} | {
        (it.id, it.before) for it in batch.targets if it.id in batch.cancelling
    }
    ended = {end.id for end in batch.ends if end.end is not End.DONE}
    moves = {(move.id, move.target) for move in act.moves}
    return "" if moves <= logged and not ended & {move.id for move in act.moves} else "an unlogged move"


Mutation = Callable[[], None]
RATES = (LEADER_RATE, FOLLOWER_RATE)
