"""Predicted assignments of groups by their own assignors: after the next rebalance and when settled.

Pure: a what-if is a changed snapshot or changed limits. Assumptions are in the notes; where Kafka is not deterministic,
or the leader may not be Java, the certainty is ``cost-equal only``. A group without a prediction has a reason; one over
``limits.plan.predict_limit`` (partitions or tasks, times members) is not predicted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import NamedTuple

from agent.predict.applications import (
    AssignorInput,
    Lags,
    RackSets,
    StreamsRebalancePath,
    assignor_name,
    broker_racks,
    lags_of,
    predict_application,
    with_bytes,
)
from agent.predict.broker_groups import (
    BROKER_ASSIGNORS,
    CLASSIC_ASSIGNORS,
    BrokerAssignorSettings,
    broker_facts,
    predict_classic,
    predict_consumer,
    predict_plugin,
    predict_streams,
    registered_racks,
)
from agent.values.limits import GroupLimits, Limits
from agent.values.memo import Memo, each
from agent.values.plan import NotPredicted, Prediction
from agent.values.snapshot import (
    PLUGIN_ASSIGNOR,
    ConsumerGroup,
    Group,
    GroupKind,
    ReaderGroup,
    Snapshot,
    StreamsGroup,
    TopicState,
    runs_plugin,
)

PREDICTED_ASSIGNORS: Mapping[GroupKind, Collection[str]] = {
    GroupKind.CLASSIC_CONSUMER: CLASSIC_ASSIGNORS,
    GroupKind.CONSUMER: (*BROKER_ASSIGNORS, PLUGIN_ASSIGNOR),
}
"""The assignors that can be predicted of each kind of consumer group."""
_ID = itemgetter(0)
_GROUP_ID = attrgetter("group.id")
_BROKER_FACTS_NOT_ASKED = BrokerAssignorSettings(None, None)


class _Row(NamedTuple):
    group: Group
    topics: tuple[TopicState | None, ...]
    settings: GroupLimits
    facts: BrokerAssignorSettings
    lags: Lags


def predict(group: Group, snapshot: Snapshot, limits: Limits) -> Prediction:
    """The assignment by the group's own assignor; never raises for any snapshot."""
    return predict_groups((group,), snapshot, limits, Memo())[group.id]


def predict_groups(groups: Iterable[Group], snapshot: Snapshot, limits: Limits, memo: Memo) -> Mapping[str, Prediction]:
    """Predictions of several groups by id in their order, reused while their input is the same."""
    groups = tuple(groups)
    names = each(memo, "predict topics", groups, _ID, _topics)
    known = snapshot.topics
    topics = each(
        memo,
        "predict states",
        list(zip(map(_ID, groups), names, strict=True)),
        _ID,
        lambda row: tuple(map(known.get, row[1])),
        context=(known,),
    )
    settings = map(limits.groups.get, map(_ID, groups), repeat(limits.default_group))
    rows = [
        _Row(group, read, own, _BROKER_FACTS_NOT_ASKED, ())
        if isinstance(group, ConsumerGroup)
        else _row_of_application(group, read, own, snapshot, limits)
        for group, read, own in zip(groups, topics, settings, strict=True)
    ]
    racks = memo.of(("predict racks",), (snapshot.brokers,), lambda: broker_racks(snapshot.brokers))
    sets = memo.of(("predict rack sets",), (racks,), lambda: RackSets(racks))
    registered = memo.of(("registered racks",), (snapshot.brokers,), lambda: registered_racks(snapshot.brokers))
    inputs = AssignorInput({}, racks, sets, memo.of(("registered sets",), (registered,), lambda: RackSets(registered)))
    most = limits.plan.predict_limit
    made = each(memo, "predict", rows, _GROUP_ID, partial(_predict, inputs, most), context=(racks, registered, most))
    return {
        row.group.id: prediction if path is None else _finished(row, prediction, path, snapshot)
        for row, (prediction, path) in zip(rows, made, strict=True)
    }


def _row_of_application(
    group: Group, topics: tuple[TopicState | None, ...], settings: GroupLimits, snapshot: Snapshot, limits: Limits
) -> _Row:
    facts = _BROKER_FACTS_NOT_ASKED
    lags: Lags = ()
    if group.kind is GroupKind.STREAMS:
        facts = broker_facts(group.id, snapshot.broker_configs, snapshot.group_configs)
    elif isinstance(group, StreamsGroup) and _size(group) <= limits.plan.predict_limit:
        copies = snapshot.copies.get(group.id, ())
        lags = lags_of(group, copies, snapshot.end_offsets, settings.acceptable_recovery_lag)
    return _Row(group, topics, settings, facts, lags)


def _predict(cluster: AssignorInput, most: int, row: _Row) -> tuple[Prediction, StreamsRebalancePath | None]:
    """``cluster``: without topics."""
    group = row.group
    why = _why_not(group)
    if why is None and _size(group, row.topics) > most:
        why = NotPredicted.TOO_LARGE
    if why is not None:
        return Prediction(group_id=group.id, assignor=_assignor(row), why_not=why), None
    inputs = cluster._replace(topics={topic.name: topic for topic in row.topics if topic is not None})
    try:
        return _asked(row, inputs)
    except ValueError as refused:  # BadProblem, or an id that Kafka would refuse
        return Prediction(
            group_id=group.id, assignor=_assignor(row), why_not=NotPredicted.REFUSED, notes=(str(refused),)
        ), None


def _asked(row: _Row, inputs: AssignorInput) -> tuple[Prediction, StreamsRebalancePath | None]:
    match row.group:
        case ConsumerGroup() as group if runs_plugin(group):
            return predict_plugin(group, inputs.topics, inputs.registered), None
        case ConsumerGroup() as group if group.kind is GroupKind.CONSUMER:
            return predict_consumer(group, inputs), None
        case ConsumerGroup() as group if group.kind is GroupKind.CLASSIC_CONSUMER:
            return predict_classic(group, inputs, row.settings), None
        case StreamsGroup(topology=topology) as group if topology is not None and group.kind is GroupKind.STREAMS:
            return predict_streams(group, topology, row.facts), None
        case StreamsGroup(topology=topology) as group if (
            topology is not None and group.kind is GroupKind.CLASSIC_STREAMS
        ):
            return predict_application(group, topology, inputs, row.settings, row.lags)
        case _:
            return Prediction(group_id=row.group.id, why_not=NotPredicted.UNKNOWN_ASSIGNOR), None


def _why_not(group: Group) -> NotPredicted | None:
    if not isinstance(group, ReaderGroup):
        return NotPredicted.OTHER_KIND
    if group.hidden or not group.members:
        return NotPredicted.HIDDEN if group.hidden else NotPredicted.EMPTY
    defects = [defect.what for member in group.members for defect in member.defects]
    if isinstance(group, StreamsGroup):
        if defects:
            return NotPredicted.UNDECODABLE
        return NotPredicted.TOPOLOGY_UNKNOWN if group.topology is None or not group.processes else None
    if "subscription" in defects or "assignment" in defects:
        return NotPredicted.UNDECODABLE
    return NotPredicted.HIDDEN if any(member.assigned is None for member in group.members) else None


def _finished(row: _Row, prediction: Prediction, path: StreamsRebalancePath, snapshot: Snapshot) -> Prediction:
    if not isinstance(row.group, StreamsGroup) or row.group.topology is None:
        return prediction
    return with_bytes(prediction, path, row.group.topology, snapshot.size_bytes)


def _assignor(row: _Row) -> str | None:
    group = row.group
    return assignor_name(group.kind, group.assignor, row.settings) if isinstance(group, ReaderGroup) else None


def _size(group: Group, topics: Iterable[TopicState | None] = ()) -> int:
    if isinstance(group, StreamsGroup):
        return len(group.topology.tasks) * len(group.processes) if group.topology is not None else 0
    if isinstance(group, ConsumerGroup):
        return sum(len(topic.partitions) for topic in topics if topic is not None) * len(group.members)
    return 0


def _topics(group: Group) -> tuple[str, ...]:
    names: set[str] = set()
    if isinstance(group, ConsumerGroup):
        for member in group.members:
            names.update(member.topics)
            names.update([topic for topic, _ in (*(member.assigned or ()), *(member.target or ()))])
    elif isinstance(group, StreamsGroup) and group.topology is not None:
        names.update([tp.topic for task in group.topology.tasks for tp in (*task.sources, *task.changelogs)])
    return tuple(sorted(names))
