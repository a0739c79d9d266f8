"""Topology of Streams applications: source partitions and changelogs of each task.

A KIP-1071 group declares it. Of a classic group it is inferred, and marked so: sources from active and standby tasks;
state from offset sums and standbys; changelogs by the name ``<application>-<store>-changelog`` and the number of tasks,
where ``<application>-<store>-repartition`` decides between several. A subtopology with unknown changelogs is UNKNOWN,
never stateless; state without a changelog topic is taken to be an optimised KTable if it has one source topic. Hints of
the settings go before everything inferred.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from agent.values.limits import TopologyHint
from agent.values.observation import RawSubtopology
from agent.values.snapshot import NO_CHANGELOG_SEEN, StreamsTopology, TaskState, TaskStatefulness
from assignors.problem import TaskId, TopicPartition

CHANGELOG_SUFFIX = "-changelog"
REPARTITION_SUFFIX = "-repartition"

SEVERAL_OWNERS = "several subtopologies could own {topics}"
SEVERAL_SOURCES = "it has state but no changelog topic, and not just one source topic that could serve as one"
TOPICS_NOT_SHOWN = "it has state, but not all topics are visible, so its changelog is unknown"
TAKEN_FOR_CHANGELOG = "it has state but no changelog topic, so its source topic is assumed to be the changelog"

_Subtopology = int | str


class TopologyEvidence(NamedTuple):
    """Evidence in members' bytes about the tasks of a classic group."""

    sources: Mapping[TaskId, frozenset[TopicPartition]]
    """Task -> source partitions, for every task that some member runs or holds as standby."""
    stateful: frozenset[TaskId]
    """Tasks with an offset sum, or with a standby."""
    unlogged: frozenset[TaskId]
    """Tasks that some member owned at its last join without an offset sum."""


class ApplicationTopics(NamedTuple):
    """Topics of one application."""

    partitions_of: Mapping[str, int]
    """Partition counts of source topics and candidates."""
    changelogs: tuple[str, ...]
    """Topics named as changelogs of this application, sorted."""
    complete: bool = True
    """False when not all topics answered."""


class _Shape(NamedTuple):
    reads: set[str]
    size: int


class _Verdict(NamedTuple):
    statefulness: TaskStatefulness
    changelogs: tuple[str, ...]
    note: str = ""


def inferred_topology(
    application: str, evidence: TopologyEvidence, topics: ApplicationTopics, hint: TopologyHint
) -> StreamsTopology | None:
    """The topology of a classic group; None when no member shows a task."""
    reads: dict[_Subtopology, set[str]] = {}
    highest: dict[_Subtopology, int] = {}
    for task, sources in evidence.sources.items():
        reads.setdefault(task.subtopology, set()).update(tp.topic for tp in sources)
        highest[task.subtopology] = max(task.partition, highest.get(task.subtopology, -1))
    if not reads:
        return None
    partitions_of = topics.partitions_of
    sizes = {
        name: max([highest[name] + 1, *(partitions_of.get(topic, 0) for topic in sources)])
        for name, sources in reads.items()
    }
    owners = _owners(application, evidence, {name: _Shape(reads[name], sizes[name]) for name in reads}, topics, hint)
    tasks = [
        task
        for name in sorted(reads, key=_order)
        for task in _tasks(
            name, sizes[name], reads[name], partitions_of, _hinted(name, reads[name], owners, hint) or owners[name]
        )
    ]
    return StreamsTopology(tuple(tasks), source="hint" if hint != TopologyHint() else "inferred")


def declared_topology(
    subtopologies: Iterable[RawSubtopology], partitions_of: Mapping[str, int], hint: TopologyHint
) -> StreamsTopology:
    """The topology that a KIP-1071 group declared."""
    tasks: list[TaskState] = []
    for raw in sorted(subtopologies, key=lambda raw: _order(_as_number(raw.id))):
        reads = {*raw.source_topics, *raw.repartition_source_topics}
        own = tuple(sorted(raw.changelog_topics))
        if not own:
            verdict = _Verdict(TaskStatefulness.UNKNOWN, (), NO_CHANGELOG_SEEN)
        elif reads.issuperset(own):
            verdict = _Verdict(TaskStatefulness.SOURCE_CHANGELOG, own)
        else:
            verdict = _Verdict(TaskStatefulness.CHANGELOG, own)
        verdict = _hinted(raw.id, reads, {raw.id: verdict}, hint) or verdict
        size = max((partitions_of.get(topic, 0) for topic in reads), default=0)
        tasks.extend(_tasks(raw.id, size, reads, partitions_of, verdict))
    return StreamsTopology(tuple(tasks), source="hint" if hint != TopologyHint() else "declared")


def _owners(
    application: str,
    evidence: TopologyEvidence,
    shapes: Mapping[_Subtopology, _Shape],
    topics: ApplicationTopics,
    hint: TopologyHint,
) -> dict[_Subtopology, _Verdict]:
    """The state of each subtopology, without the user's hints on changelogs."""
    stateful = {task.subtopology for task in evidence.stateful}
    unlogged = {task.subtopology for task in evidence.unlogged} - stateful if stateful else set()
    closed = {*hint.stateless_subtopologies, *hint.no_changelog_subtopologies, *hint.changelogs}
    open_to = {name for name in shapes if name not in unlogged and str(name) not in closed}
    hinted = {topic for topics in hint.changelogs.values() for topic in topics}
    own: dict[_Subtopology, list[str]] = {name: [] for name in shapes}
    disputed: dict[_Subtopology, list[str]] = {name: [] for name in shapes}
    for topic in sorted(set(topics.changelogs) - hinted):
        fits = [name for name in open_to if shapes[name].size == topics.partitions_of.get(topic)]
        store = topic.removesuffix(CHANGELOG_SUFFIX)
        by_name = [name for name in fits if store + REPARTITION_SUFFIX in shapes[name].reads]
        for name in by_name if len(by_name) == 1 else fits:
            (own if len(by_name) == 1 or len(fits) == 1 else disputed)[name].append(topic)
    verdicts = {}
    for name in shapes:
        if disputed[name]:
            note = SEVERAL_OWNERS.format(topics=", ".join(disputed[name]))
            verdicts[name] = _Verdict(TaskStatefulness.UNKNOWN, (), note)
        elif own[name]:
            verdicts[name] = _Verdict(TaskStatefulness.CHANGELOG, tuple(own[name]))
        elif name not in stateful:
            verdicts[name] = _Verdict(TaskStatefulness.UNKNOWN, (), NO_CHANGELOG_SEEN)
        elif not topics.complete:
            verdicts[name] = _Verdict(TaskStatefulness.UNKNOWN, (), TOPICS_NOT_SHOWN)
        else:
            verdicts[name] = _source_changelog(application, shapes[name].reads)
    return verdicts


def _source_changelog(application: str, reads: Collection[str]) -> _Verdict:
    """State without a changelog topic: an optimised KTable restores from the topic that it reads."""
    internal = f"{application}-"
    tables = [topic for topic in reads if not (topic.startswith(internal) and topic.endswith(REPARTITION_SUFFIX))]
    if len(tables) == 1:
        return _Verdict(TaskStatefulness.SOURCE_CHANGELOG, tuple(tables), TAKEN_FOR_CHANGELOG)
    return _Verdict(TaskStatefulness.UNKNOWN, (), SEVERAL_SOURCES)


def _hinted(
    name: _Subtopology, reads: Collection[str], verdicts: Mapping[_Subtopology, _Verdict], hint: TopologyHint
) -> _Verdict | None:
    """The user's hint for a subtopology; None without one."""
    text = str(name)
    if text in hint.stateless_subtopologies:
        return _Verdict(TaskStatefulness.STATELESS, ())
    if text in hint.no_changelog_subtopologies:
        return _Verdict(TaskStatefulness.NO_CHANGELOG, ())
    tables = tuple(sorted(set(reads) & set(hint.source_changelogs)))
    topics = tuple(hint.changelogs.get(text, ()))
    if topics:
        return _Verdict(TaskStatefulness.CHANGELOG, tuple(sorted({*topics, *tables})))
    if not tables:
        return None
    if verdicts[name].statefulness is TaskStatefulness.CHANGELOG:
        return _Verdict(TaskStatefulness.CHANGELOG, tuple(sorted({*verdicts[name].changelogs, *tables})))
    return _Verdict(TaskStatefulness.SOURCE_CHANGELOG, tables)


def _tasks(
    name: _Subtopology, size: int, reads: Iterable[str], partitions_of: Mapping[str, int], verdict: _Verdict
) -> Iterable[TaskState]:
    topics = sorted(reads)
    for partition in range(size):
        sources = tuple(TopicPartition(t, partition) for t in topics if partition < partitions_of.get(t, size))
        changelogs = tuple(TopicPartition(topic, partition) for topic in verdict.changelogs)
        yield TaskState(TaskId(name, partition), sources, changelogs, verdict.statefulness, verdict.note)


def _as_number(name: str) -> _Subtopology:
    return int(name) if name.isascii() and name.isdecimal() else name


def _order(name: _Subtopology) -> tuple[int, int, str]:
    return (0, name, "") if isinstance(name, int) else (1, 0, name)
