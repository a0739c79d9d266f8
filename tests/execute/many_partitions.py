"""A machine with its journal and a cluster of very many partitions, driven one event after the other.

The journal is the product's own text: what is appended is written by its codec, with its bounds, and read back from
that. The cluster is that of the model checker (`tests.execute.abstract_cluster`), with its partitions in a table.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from agent.execute.reassign.machine import resume, step
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
    MachineCommand,
    PartitionView,
    ReadCluster,
    ReassignmentView,
    RequestDone,
    RequestFate,
    RequestResult,
    TimePassed,
)
from agent.journal import plan_entries
from agent.journal.entries import EncodedWrite, JournalState, applied, numbered
from agent.values.reassignment import ReassignmentPolicy, ReassignmentTarget
from agent.values.throttles import SeenThrottle, ThrottleResource
from assignors.problem import TopicPartition
from tests.execute.abstract_cluster import Part, _altered, a_part, cancelled, caught_up
from tests.execute.abstract_cluster import applied as configured

UP = frozenset(range(1, 31))


class Killed(Exception):
    """The agent died right after an append."""


class Many:
    """A machine, its journal and its cluster; copies are whole at the second look after they began."""

    def __init__(self, targets: Iterable[ReassignmentTarget], policy: ReassignmentPolicy) -> None:
        self.policy = policy
        self.parts: dict[TopicPartition, Part] = {}
        self.topic_ids = {target.id.topic: target.topic_id for target in targets}
        self.shown: dict[TopicPartition, PartitionView] = {}
        self.moving: dict[TopicPartition, Part] = {}
        """Since the latest look."""
        self.showing: dict[TopicPartition, Part] = {}
        """Those that the latest look has shown as moving."""
        self.settings: dict[tuple[ThrottleResource, str], str] = {}
        self.gone: set[str] = set()
        self.view: JournalState = {}
        self.epoch = self.seq = 0
        self.finished: list[FinishPlan] = []
        self.largest = 0
        self.acts = 0
        self.events = 0
        self.cpu_s = self.journal_s = 0.0
        self.plot: list[tuple[Callable[[AppendJournal], bool], Callable[[], None]]] = []
        self.queue: deque[MachineCommand] = deque()
        for target in targets:
            self.put(target.id, a_part(*target.before))
        self.epoch = 1
        self.state, _ = resume(plan_entries.open_records(self.view), policy)
        self.tell(BatchPermission(begin=True))

    def tell(self, event: object) -> None:
        self.carry_out(self.step(event))

    def step(self, event: object) -> tuple[MachineCommand, ...]:
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
            self.tell(TimePassed(self.policy.look_ms))
        raise AssertionError("it does not come to that")

    def at(self, when: Callable[[AppendJournal], bool], do: Callable[[], None]) -> None:
        """Do that right after the first append of which that holds, once all before it was done."""
        self.plot.append((when, do))

    def die(self) -> None:
        """The agent dies."""
        raise Killed

    def say(self, event: object) -> None:
        """The machine hears of it while it awaits an answer."""
        self.queue.extend(self.step(event))

    def carry_out(self, commands: Iterable[MachineCommand]) -> None:
        """All that is asked for, and what follows from the answers."""
        self.queue.extend(commands)
        while self.queue:
            try:
                self.do(self.queue.popleft())
            except Killed:
                self.queue.clear()
                self.epoch, self.seq = self.epoch + 1, 0
                begin = time.process_time()
                self.state, following = resume(plan_entries.open_records(self.view), self.policy)
                self.cpu_s += time.process_time() - begin
                self.queue.extend((*following, *self.step(BatchPermission(begin=True))))

    def do(self, command: MachineCommand) -> None:
        match command:
            case AppendJournal():
                self.append(command)
                if self.plot and self.plot[0][0](command):
                    self.plot.pop(0)[1]()
                self.queue.extend(self.step(JournalAppended()))
            case ReadCluster():
                self.queue.extend(self.step(ClusterRead(self.seen(command))))
            case AlterReassignments() | CancelReassignments() | AlterThrottles() | ElectLeaders():
                self.acts += 1
                self.queue.extend(self.step(self.answer(command)))
            case FinishPlan():
                self.finished.append(command)

    def append(self, command: AppendJournal) -> None:
        begin = time.process_time()
        lines: tuple[EncodedWrite, ...] = numbered(
            plan_entries.changed(self.view, command.changes), at_ms=0, epoch=self.epoch, first_seq=self.seq
        )
        self.seq += len(lines)
        self.largest = max([self.largest, *(len(line.data or b"") for line in lines)])
        self.view = applied(self.view, lines)
        self.journal_s += time.process_time() - begin

    def seen(self, asked: ReadCluster) -> ClusterView:
        """All of the cluster that was asked for; copies that were being made are whole by then."""
        for id_, part in list(self.showing.items()):
            self.put(id_, caught_up(part, UP))
        self.showing, self.moving = self.moving, {}
        topics = set(asked.topics)
        shown = self.shown.values() if topics >= self.topic_ids.keys() else self._of(topics)
        return ClusterView(
            brokers=UP,
            partitions=tuple(shown),
            moves=tuple(
                ReassignmentView(id_, it.replicas, it.adding, it.removing) for id_, it in sorted(self.showing.items())
            ),
            gone=frozenset(self.gone & topics),
            throttles=tuple(SeenThrottle(*key, value) for key, value in sorted(self.settings.items())),
        )

    def _of(self, topics: set[str]) -> list[PartitionView]:
        return [one for id_, one in self.shown.items() if id_.topic in topics]

    def delete(self, topic: str) -> None:
        """The topic is deleted, with its settings."""
        self.gone.add(topic)
        for id_ in [id_ for id_ in self.parts if id_.topic == topic]:
            del self.parts[id_], self.shown[id_]
            self.moving.pop(id_, None)
            self.showing.pop(id_, None)
        for key in [key for key in self.settings if key[0] == ThrottleResource(topic=topic)]:
            del self.settings[key]

    def put(self, id_: TopicPartition, part: Part) -> None:
        self.parts[id_] = part
        self.shown[id_] = PartitionView(id_, self.topic_ids[id_.topic], part.leader, part.replicas, part.isr, 1)
        self.moving.pop(id_, None)
        if part.moving:
            self.moving[id_] = part
        else:
            self.showing.pop(id_, None)

    def answer(self, act: ClusterChange) -> RequestDone:
        if isinstance(act, AlterThrottles):
            return self._configured(act)
        results: list[RequestResult] = []
        ids = [move.id for move in act.moves] if isinstance(act, AlterReassignments) else act.partitions
        for index, id_ in enumerate(ids):
            part = self.parts.get(id_)
            if part is None:
                results.append(RequestResult(id_, RequestFate.GONE))
                continue
            kind = RequestFate.OK
            if isinstance(act, AlterReassignments):
                part, kind, harm = _altered(part, act.moves[index].target, UP)
                assert not harm
            elif isinstance(act, CancelReassignments):
                part, kind, _ = cancelled(part, UP)
            else:
                part = part._replace(leader=part.replicas[0])
            self.put(id_, part)
            results.append(RequestResult(id_, kind))
        return RequestDone(tuple(results))

    def _configured(self, act: AlterThrottles) -> RequestDone:
        for one in act.settings:
            value = configured(self.settings.pop((one.resource, one.key), None), one)
            if value:
                self.settings[one.resource, one.key] = value
        return RequestDone(
            tuple(RequestResult(it, RequestFate.OK) for it in sorted({one.resource for one in act.settings}))
        )
