"""A machine with its journal and a cluster of very many partitions, driven one event after the other.

The journal is the product's own text: what is appended is written by its codec, with its bounds, and read back from
that. The cluster is that of the model checker (`tests.execute.abstract`), with its partitions in a table.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from agent.execute.reassign.machine import resume, step
from agent.execute.reassign.messages import (
    Act,
    Alter,
    Answered,
    Append,
    Appended,
    Cancel,
    Command,
    Configure,
    Elect,
    Finish,
    Kind,
    Look,
    Looked,
    May,
    Result,
    Seen,
    SeenMove,
    SeenPartition,
    Tick,
)
from agent.execute.reassign.throttles import applied as configured
from agent.journal import moves
from agent.journal.codec import Numbered, applied, numbered
from agent.values.journal import View
from agent.values.reassignment import Policy, Target
from agent.values.throttles import Resource, SeenThrottle
from assignors.problem import TopicPartition
from tests.execute.abstract import Part, _altered, a_part, cancelled, caught_up

UP = frozenset(range(1, 31))


class Killed(Exception):
    """The agent died right after an append."""


class Many:
    """A machine, its journal and its cluster; copies are whole at the second look after they began."""

    def __init__(self, targets: Iterable[Target], policy: Policy) -> None:
        self.policy = policy
        self.parts: dict[TopicPartition, Part] = {}
        self.topic_ids = {target.id.topic: target.topic_id for target in targets}
        self.shown: dict[TopicPartition, SeenPartition] = {}
        self.moving: dict[TopicPartition, Part] = {}
        """Since the latest look."""
        self.showing: dict[TopicPartition, Part] = {}
        """Those that the latest look has shown as moving."""
        self.settings: dict[tuple[Resource, str], str] = {}
        self.gone: set[str] = set()
        self.view: View = {}
        self.epoch = self.seq = 0
        self.finished: list[Finish] = []
        self.largest = 0
        self.acts = 0
        self.events = 0
        self.cpu_s = self.journal_s = 0.0
        self.plot: list[tuple[Callable[[Append], bool], Callable[[], None]]] = []
        self.queue: deque[Command] = deque()
        for target in targets:
            self.put(target.id, a_part(*target.before))
        self.epoch = 1
        self.state, _ = resume(moves.read(self.view), policy)
        self.tell(May(begin=True))

    def tell(self, event: object) -> None:
        self.carry_out(self.step(event))

    def step(self, event: object) -> tuple[Command, ...]:
        begin = time.process_time()
        self.state, commands = step(self.state, event, self.policy)
        self.cpu_s += time.process_time() - begin
        self.events += 1
        return commands

    def until(self, over: Callable[[], bool], most_ticks: int = 10_000) -> None:
        """Time passes until that holds."""
        for _ in range(most_ticks):
            if over():
                return
            self.tell(Tick(self.policy.look_ms))
        raise AssertionError("it does not come to that")

    def at(self, when: Callable[[Append], bool], do: Callable[[], None]) -> None:
        """Do that right after the first append of which that holds, once all before it was done."""
        self.plot.append((when, do))

    def die(self) -> None:
        """The agent dies."""
        raise Killed

    def say(self, event: object) -> None:
        """The machine hears of it while it awaits an answer."""
        self.queue.extend(self.step(event))

    def carry_out(self, commands: Iterable[Command]) -> None:
        """All that is asked for, and what follows from the answers."""
        self.queue.extend(commands)
        while self.queue:
            try:
                self.do(self.queue.popleft())
            except Killed:
                self.queue.clear()
                self.epoch, self.seq = self.epoch + 1, 0
                begin = time.process_time()
                self.state, following = resume(moves.read(self.view), self.policy)
                self.cpu_s += time.process_time() - begin
                self.queue.extend((*following, *self.step(May(begin=True))))

    def do(self, command: Command) -> None:
        match command:
            case Append():
                self.append(command)
                if self.plot and self.plot[0][0](command):
                    self.plot.pop(0)[1]()
                self.queue.extend(self.step(Appended()))
            case Look():
                self.queue.extend(self.step(Looked(self.seen(command))))
            case Alter() | Cancel() | Configure() | Elect():
                self.acts += 1
                self.queue.extend(self.step(self.answer(command)))
            case Finish():
                self.finished.append(command)

    def append(self, command: Append) -> None:
        begin = time.process_time()
        lines: tuple[Numbered, ...] = numbered(
            moves.changed(self.view, command.changes), at_ms=0, epoch=self.epoch, first_seq=self.seq
        )
        self.seq += len(lines)
        self.largest = max([self.largest, *(len(line.data or b"") for line in lines)])
        self.view = applied(self.view, lines)
        self.journal_s += time.process_time() - begin

    def seen(self, asked: Look) -> Seen:
        """All of the cluster that was asked for; copies that were being made are whole by then."""
        for id_, part in list(self.showing.items()):
            self.put(id_, caught_up(part, UP))
        self.showing, self.moving = self.moving, {}
        topics = set(asked.topics)
        shown = self.shown.values() if topics >= self.topic_ids.keys() else self._of(topics)
        return Seen(
            brokers=UP,
            partitions=tuple(shown),
            moves=tuple(SeenMove(id_, it.replicas, it.adding, it.removing) for id_, it in sorted(self.showing.items())),
            gone=frozenset(self.gone & topics),
            throttles=tuple(SeenThrottle(*key, value) for key, value in sorted(self.settings.items())),
        )

    def _of(self, topics: set[str]) -> list[SeenPartition]:
        return [one for id_, one in self.shown.items() if id_.topic in topics]

    def delete(self, topic: str) -> None:
        """The topic is deleted, with its settings."""
        self.gone.add(topic)
        for id_ in [id_ for id_ in self.parts if id_.topic == topic]:
            del self.parts[id_], self.shown[id_]
            self.moving.pop(id_, None)
            self.showing.pop(id_, None)
        for key in [key for key in self.settings if key[0] == Resource("topic", topic)]:
            del self.settings[key]

    def put(self, id_: TopicPartition, part: Part) -> None:
        self.parts[id_] = part
        self.shown[id_] = SeenPartition(id_, self.topic_ids[id_.topic], part.leader, part.replicas, part.isr, 1)
        self.moving.pop(id_, None)
        if part.moving:
            self.moving[id_] = part
        else:
            self.showing.pop(id_, None)

    def answer(self, act: Act) -> Answered:
        if isinstance(act, Configure):
            return self._configured(act)
        results: list[Result] = []
        ids = [move.id for move in act.moves] if isinstance(act, Alter) else act.partitions
        for index, id_ in enumerate(ids):
            part = self.parts.get(id_)
            if part is None:
                results.append(Result(id_, Kind.GONE))
                continue
            kind = Kind.OK
            if isinstance(act, Alter):
                part, kind, harm = _altered(part, act.moves[index].target, UP)
                assert not harm
            elif isinstance(act, Cancel):
                part, kind, _ = cancelled(part, UP)
            else:
                part = part._replace(leader=part.replicas[0])
            self.put(id_, part)
            results.append(Result(id_, kind))
        return Answered(tuple(results))

    def _configured(self, act: Configure) -> Answered:
        for one in act.settings:
            value = configured(self.settings.pop((one.resource, one.key), None), one)
            if value:
                self.settings[one.resource, one.key] = value
        return Answered(tuple(Result(it, Kind.OK) for it in sorted({one.resource for one in act.settings})))
