"""A group's partitions or tasks as tiles by rack and reader: now, under each assignor, and at the optimum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agent.plan.gain_thresholds import assessed_locality
from agent.plan.plugin_gain import PluginQuestion, plugin_answer, plugin_sentence
from agent.values.assessment import UNKNOWN, Assessment, GroupLocality
from agent.values.memo import Memo
from agent.values.number_format import counted
from agent.values.plan import PredictedAssignment, Prediction, PredictionBasis
from agent.values.snapshot import (
    ConsumerGroup,
    Member,
    RackState,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    StreamsProcess,
    TaskRole,
)
from agent.web.page.environment import short_client, short_name, short_process
from assignors.problem import ConsumerResult, TaskId, TaskResult, TopicPartition

MOST_TILES = 360
"""Tiles of one column; the table below has every partition or task."""
COLUMNS = {"now": "Now", "own": "Its own assignor", "plugin": "With the plug-in", "optimum": "Optimum"}
"""Key -> title of every column."""
_KEYS = 12
"""Colours of racks; further racks have letters alone."""


class RackKey(NamedTuple):
    """The sign of a rack: a letter, and a colour of the style sheet."""

    rack: str
    letter: str
    colour: int | None


class TileShown(NamedTuple):
    """A partition or a copy of a task at a reader."""

    words: str
    state: str
    """``local``, ``crossing`` or ``unknown`` by Kafka's measure; ``standby`` and ``warmup`` copies read no source."""
    key: RackKey | None
    """The rack of its leader; None where it is unknown or, for a task of several partitions, not the same."""
    hint: str


class ReaderTiles(NamedTuple):
    """A member or process with what it has."""

    name: str
    tiles: Sequence[TileShown]


class RackTiles(NamedTuple):
    """The readers of one rack."""

    rack: str | None
    """None: not known."""
    key: RackKey | None
    readers: Sequence[ReaderTiles]


class ColumnShown(NamedTuple):
    """One of the columns."""

    key: str
    """Its name in the comparison: now, own, plugin or optimum."""
    title: str
    note: str
    racks: Sequence[RackTiles]
    left_out: int
    why_not: str
    """Why there is nothing to show; empty where there is."""
    standbys: str = ""
    """Why it has no standbys, although the group has or will have some; empty where it has them, or needs none."""


class AssignmentRow(NamedTuple):
    """A partition or task, and its readers in each of the columns."""

    name: str
    role: str
    """``active``, or ``standby or warm-up``."""
    leader_rack: str | None
    readers: Mapping[str, tuple[str, ...]]
    """Key of a column -> ids of its members or processes."""


Held = Mapping[str, Sequence[tuple[str, Any]]]
"""Reader -> (role, partition or task); the role is active, standby or warmup."""


class GroupTiles:
    """The tiles of one group of a snapshot."""

    def __init__(
        self,
        group: ReaderGroup,
        assessment: Assessment | None,
        prediction: Prediction | None,
        snapshot: Snapshot,
        plugin: PluginQuestion | None = None,
    ) -> None:
        """``plugin``: None for a group that the plug-in for brokers does not concern."""
        self._group, self._assessment, self._prediction = group, assessment, prediction
        self._plugin, answer = plugin, None if plugin is None else plugin_answer(plugin)
        self._with_plugin = None if answer is None else answer.given
        self._locality: GroupLocality = assessed_locality(group, assessment, snapshot, Memo())
        racks = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN}
        topics = [snapshot.topics[name] for name in self._locality.masks]
        self._leaders = {
            state.id: racks.get(state.leader) if state.leader is not None else None
            for topic in topics
            for state in topic.partitions
        }
        names = sorted({name for name in racks.values() if name} | {r.rack.name for r in group.readers if r.rack.name})
        self.keys = [_key(name, index) for index, name in enumerate(names)]
        self._key_of = {key.rack: key for key in self.keys}
        self._sources = _sources(group)
        self._roles = {(copy.process_id, copy.task): copy.role for copy in snapshot.copies.get(group.id, ())}
        self._many_topics = len(self._locality.masks) > 1

    def columns(self) -> list[ColumnShown]:
        """Now, by its own assignor, with the plug-in where it concerns the group, at the optimum."""
        prediction, assessment = self._prediction, self._assessment
        own = None if prediction is None else prediction.settled
        why_own = (
            "no prediction was asked for" if prediction is None else prediction.why_not and prediction.why_not.value
        )
        result = None if assessment is None else assessment.result
        why_best = "it was not assessed" if assessment is None else assessment.why_not and assessment.why_not.value
        name = (prediction.assignor if prediction is not None else None) or "its own assignor"
        best = "" if result is None else "proven" if result.optimal else "the best that was found"
        optimal = _optimal(result)
        if optimal is None and not why_best:
            optimal, best = self._now(), "as it is now: none is better"
        hidden = "members are hidden while the group rebalances"
        columns = [
            self._column("now", self._group.state, self._now(), hidden),
            self._column("own", name, _predicted(own), str(why_own or "nothing is predicted")),
            self._column("optimum", best, optimal, str(why_best or hidden)),
        ]
        columns[1:] = [one._replace(standbys=self._why_no_standbys(one)) for one in columns[1:]]
        if self._plugin is not None:
            given = _predicted(self._with_plugin)
            columns.insert(2, self._column("plugin", "on the brokers", given, plugin_sentence(self._plugin)))
        return columns

    def _why_no_standbys(self, column: ColumnShown) -> str:
        if column.why_not or not isinstance(self._group, StreamsGroup):
            return ""
        own = _predicted(self._prediction.settled) if self._prediction is not None else None
        if not any(role == "standby" for held in (self._now(), own) for of in (held or {}).values() for role, _ in of):
            return ""
        if any(tile.state == "standby" for rack in column.racks for reader in rack.readers for tile in reader.tiles):
            return ""
        if column.key == "optimum":
            return "Standbys are not computed: the optimum is of active tasks alone."
        if self._prediction is None or self._prediction.basis is PredictionBasis.ASSUMED:
            return "Standbys are not computed: num.standby.replicas is unknown, and Kafka's default of 0 is assumed."
        return "No standbys: num.standby.replicas is 0."

    def rows(self) -> list[AssignmentRow]:
        """One row for each partition or task, the active ones first."""
        held = {"now": self._now(), "own": _predicted(self._prediction.settled if self._prediction else None)}
        held["plugin"] = _predicted(self._with_plugin)
        held["optimum"] = _optimal(self._assessment.result if self._assessment else None)
        readers: dict[tuple[bool, tuple[Any, ...]], dict[str, tuple[str, ...]]] = {}
        items: dict[tuple[bool, tuple[Any, ...]], Any] = {}
        for column, of in held.items():
            for reader, its in (of or {}).items():
                for role, item in its:
                    key = (role != "active", tuple(item))
                    items[key] = item
                    found = readers.setdefault(key, dict.fromkeys(COLUMNS, ()))
                    found[column] = (*found[column], reader)
        return [
            AssignmentRow(
                str(items[key]), "standby or warm-up" if key[0] else "active", self._leader(items[key]), readers[key]
            )
            for key in sorted(readers)
        ]

    def rack_of(self, reader: str) -> str | None:
        """The rack of a reader; None where it is not known."""
        return next((one.rack.name for one in self._group.readers if one.id == reader), None)

    def _now(self) -> Held | None:
        group = self._group
        if isinstance(group, ConsumerGroup):
            if all(member.assigned is None for member in group.members):
                return None
            return {m.id: [("active", partition) for partition in m.assigned or ()] for m in group.members}
        if group.hidden:
            return None
        return {
            p.id: [(self._role(p.id, *one), one[1]) for one in _roles(p.active, p.standby, p.warmup)]
            for p in group.processes
        }

    def _role(self, process: str, role: str, task: TaskId) -> str:
        """The classic protocol sends a warm-up as a standby; lags tell the two apart."""
        return "warmup" if role == "standby" and self._roles.get((process, task)) is TaskRole.WARMUP else role

    def _column(self, key: str, note: str, held: Held | None, why_not: str) -> ColumnShown:
        if held is None:
            return ColumnShown(key, COLUMNS[key], note, (), 0, why_not)
        total = sum(map(len, held.values()))
        room = MOST_TILES
        racks: dict[str | None, list[ReaderTiles]] = {}
        for reader in self._group.readers:
            items = held.get(reader.id, ())
            tiles = [self._tile(role, item, reader) for role, item in items[: max(room, 0)]]
            room -= len(items)
            racks.setdefault(reader.rack.name, []).append(ReaderTiles(_reader_name(reader), tiles))
        shown = [
            RackTiles(name, self._key_of.get(name) if name else None, racks[name])
            for name in sorted(racks, key=lambda name: (name is None, name or ""))
        ]
        return ColumnShown(key, COLUMNS[key], note, shown, max(0, total - MOST_TILES), "")

    def _tile(self, role: str, item: Any, reader: Member | StreamsProcess) -> TileShown:
        leader = self._leader(item)
        state = self._state(item, reader) if role == "active" else role
        words = str(item) if isinstance(item, TaskId) or self._many_topics else str(item.partition)
        where = f"leader in {leader}" if leader is not None else "leader in an unknown rack, or in several"
        named = {"standby": "standby", "warmup": "warm-up"}.get(state, _STATES.get(state, state))
        return TileShown(short_name(words, 16), state, self._key_of.get(leader or ""), f"{item}: {named}, {where}")

    def _leader(self, item: Any) -> str | None:
        found = {self._leaders.get(partition) for partition in self._partitions(item)}
        return next(iter(found)) if len(found) == 1 else None

    def _partitions(self, item: Any) -> Sequence[TopicPartition]:
        return (item,) if isinstance(item, TopicPartition) else self._sources.get(item, ())

    def _state(self, item: Any, reader: Member | StreamsProcess) -> str:
        """By Kafka's measure: local where a replica of every partition is in the reader's rack."""
        bit, states = self._locality.bits.reader(reader.rack), set()
        for topic, number in self._partitions(item):
            masks = self._locality.masks.get(topic)
            mask = masks.kafka[number] if masks is not None and 0 <= number < len(masks.kafka) else UNKNOWN
            states.add("local" if bit and mask & bit else "unknown" if not bit or mask & UNKNOWN else "crossing")
        return "crossing" if "crossing" in states else "unknown" if "unknown" in states or not states else "local"


_STATES = {"local": "read in the rack", "crossing": "read across racks", "unknown": "unknown whether read in the rack"}


def _key(name: str, index: int) -> RackKey:
    letter = chr(ord("A") + index) if index < 26 else f"{index + 1}"
    return RackKey(name, letter, index if index < _KEYS else None)


def _sources(group: ReaderGroup) -> Mapping[TaskId, tuple[TopicPartition, ...]]:
    topology = group.topology if isinstance(group, StreamsGroup) else None
    return {} if topology is None else {task.id: task.sources for task in topology.tasks}


def _roles(active: Iterable[Any], standby: Iterable[Any], warmup: Iterable[Any] = ()) -> list[tuple[str, Any]]:
    return [
        *(("active", one) for one in active),
        *(("standby", one) for one in standby),
        *(("warmup", one) for one in warmup),
    ]


def _predicted(given: PredictedAssignment | None) -> Held | None:
    if given is None:
        return None
    if not given.active:
        return {reader: [("active", one) for one in reads] for reader, reads in given.reads.items()}
    return {
        reader: _roles(tasks, given.standby.get(reader, ()), given.warmup.get(reader, ()))
        for reader, tasks in given.active.items()
    }


def _optimal(result: ConsumerResult | TaskResult | None) -> Held | None:
    match result:
        case ConsumerResult():
            return {reader: [("active", one) for one in held] for reader, held in result.assignment.items()}
        case TaskResult():
            return {reader: _roles(of, result.standby.get(reader, ())) for reader, of in result.active.items()}
        case _:
            return None


def _reader_name(reader: Member | StreamsProcess) -> str:
    if isinstance(reader, Member):
        return short_client(reader.client_id or reader.id, 40)
    client = next(iter(reader.client_ids), reader.id)
    return f"{short_process(client, 34)} · {counted(reader.capacity, 'thread')}"
