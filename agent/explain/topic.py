"""Explains a topic: why each replica stays or moves, and why to that broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent.plan.placements import left_out
from agent.plan.plan_context import PlanContext
from agent.values.finding import FindingReason, SubjectId
from agent.values.number_format import counted, in_full
from agent.values.plan import ExplainedRule, Plan, RuleAnswer, yes_or_no
from agent.values.proposal import PlacementChange
from agent.values.snapshot import BrokerState, PartitionState, RackState, TopicState
from agent.values.throttles import RackRoom, Replicas, crowding, original_replicas, rack_room, target_replicas


def about_topic(name: str, partition: int | None, context: PlanContext, plan: Plan) -> list[ExplainedRule]:
    """Rules by partition; with one partition named, also every broker against every rule."""
    topic = context.snapshot.topics.get(name)
    if topic is None:
        return []
    room = rack_room(context.snapshot.brokers, context.held)
    changes = {change.id: (p.leaders_only, change) for p in plan.placements for change in p.changes if p.topic == name}
    rows = [_included(topic, len(changes), context)]
    for state in topic.partitions:
        if partition is not None and state.id.partition != partition:
            continue
        leaders_only, change = changes.get(state.id, (False, None))
        target = target_replicas(state, context.snapshot.reassignments.get(state.id))
        rows += [_spread(state, target, room), *_movable(state, target, context)]
        rows.append(_planned(state, change, leaders_only=leaders_only))
        if partition is not None:
            for broker in context.snapshot.brokers:
                rows += _broker(state, target, broker, room, context, change)
    return rows


def _included(topic: TopicState, planned: int, context: PlanContext) -> ExplainedRule:
    if left_out(topic, context.limits):
        why = "rackwise's own topic, left out unless asked for" if topic.own else "excluded by the settings"
        return ExplainedRule(f"topic/{topic.name}", "not excluded by settings", RuleAnswer.NO, why)
    if not topic.partitions:  # it is being created
        sentence = "the topic has no partitions yet, so there is nothing to place"
    else:
        of = counted(len(topic.partitions), "partition")
        sentence = f"planning includes the topic, and changes {planned:,} of {of}"
    return ExplainedRule(f"topic/{topic.name}", "not excluded by settings", RuleAnswer.YES, sentence)


def _spread(state: PartitionState, target: Replicas, room: RackRoom) -> ExplainedRule:
    at = ", ".join(f"{broker} (rack {room.rack_of.get(broker, 'unknown')})" for broker in target)
    crowded = crowding(target, room)
    are = "are" if target == state.replicas else "will be, after the reassignment in progress,"
    if crowded is None:
        sentence = f"its replicas {are} on brokers {at}; no rack holds more of them than it must"
        return ExplainedRule(str(state.id), "spread over racks", RuleAnswer.YES, sentence)
    sentence = (
        f"its replicas {are} on brokers {at}: {len(crowded.replicas)} in rack {crowded.rack}, "
        f"while {_racks(crowded.free)} could take one"
    )
    return ExplainedRule(str(state.id), "spread over racks", RuleAnswer.NO, sentence)


def _movable(state: PartitionState, target: Replicas, context: PlanContext) -> list[ExplainedRule]:
    about = str(state.id)
    rows: list[ExplainedRule] = []
    running = context.snapshot.reassignments.get(state.id)
    if running is not None:
        changes = [f"adds brokers {_brokers(running.adding)}"] if running.adding else []
        changes += [f"removes brokers {_brokers(running.removing)}"] if running.removing else []
        sentence = f"a reassignment in progress {' and '.join(changes) or 'reorders its replicas'}; nothing is planned"
        sentence += " for it until that has ended"
        rows.append(ExplainedRule(about, "no reassignment runs", RuleAnswer.WAIT, sentence))
    states = {broker.id: broker for broker in context.snapshot.brokers}
    unknown = [b for b in target if b not in states or states[b].rack.state is not RackState.KNOWN]
    if unknown:
        sentence = f"the rack of broker {unknown[0]} is not known, so no move is sure to help"
        rows.append(ExplainedRule(about, "all racks known", RuleAnswer.NO, sentence))
    away = [broker for broker in target if broker in states and not states[broker].alive]
    for broker in away:
        answer = RuleAnswer.WAIT if broker in context.held else RuleAnswer.NO
        rows.append(ExplainedRule(about, "broker is there", answer, _absent(broker, context)))
    held = [broker for broker in target if broker in context.held and broker not in away]
    if held:
        sentence = f"the rack of broker {held[0]} has not been stable for long enough"
        rows.append(ExplainedRule(about, "all racks stable", RuleAnswer.WAIT, sentence))
    return rows


def _absent(broker: int, context: PlanContext) -> str:
    """The sentence about an absent broker."""
    findings = context.found.about(FindingReason.BROKER_ABSENT, SubjectId("broker", str(broker)))
    return findings[0].sentence if findings else "not registered, as far as the brokers answered"


def _planned(state: PartitionState, change: PlacementChange | None, *, leaders_only: bool) -> ExplainedRule:
    if change is None:
        return ExplainedRule(str(state.id), "planned", RuleAnswer.NO, "nothing is planned for it")
    what = "only the preferred leader changes, no data moves" if leaders_only else "replicas move"
    sentence = f"brokers {_brokers(change.before)} -> {_brokers(change.after)}: {what}"
    return ExplainedRule(str(state.id), "planned", RuleAnswer.YES, sentence)


def _broker(  # noqa: PLR0917 (a partition, a broker, and the cluster)
    state: PartitionState,
    target: Replicas,
    broker: BrokerState,
    room: RackRoom,
    context: PlanContext,
    change: PlacementChange | None,
) -> list[ExplainedRule]:
    """One broker as a place for a replica of one partition, rule by rule."""
    about = f"{state.id} on broker {broker.id}"
    rack = room.rack_of.get(broker.id)
    before = original_replicas(state, context.snapshot.reassignments.get(state.id))
    source = f" by {broker.rack.source}" if broker.rack.source else ""
    label = (broker.rack.name or f"its rack is {broker.rack.state.value}") + source
    there = f"broker {broker.id} is registered" if broker.alive else _absent(broker.id, context)
    rows = [
        ExplainedRule(about, "holds it", yes_or_no(broker.id in state.replicas), _held(broker.id, target, before)),
        ExplainedRule(about, "alive", yes_or_no(broker.alive), there),
        ExplainedRule(about, "rack known", yes_or_no(rack is not None), f"it is in rack {label}" if rack else label),
    ]
    if broker.fenced:
        rows.append(ExplainedRule(about, "unfenced", RuleAnswer.WAIT, "it is fenced: it may be starting or stopping"))
    if broker.cordoned:
        rows.append(
            ExplainedRule(about, "not cordoned", RuleAnswer.NO, "all its log directories are cordoned (KIP-1066)")
        )
    if broker.id in context.held and broker.alive:
        rows.append(
            ExplainedRule(about, "rack stable", RuleAnswer.WAIT, "its rack has not been stable for long enough")
        )
    if rack is not None:
        rows.append(_room(state, target, broker, rack, room))
    rows.append(_chosen(about, broker.id, target, change, context))
    return rows


def _held(broker: int, target: Replicas, before: Replicas) -> str:
    """Whether it has a replica, by the lists before and after a running reassignment."""
    if (broker in before) == (broker in target):
        return "it has a replica now" if broker in before else "it has no replica now"
    if broker in target:
        return "the reassignment that runs adds a replica"
    return "it has a replica now, and the reassignment that runs removes it"


def _room(state: PartitionState, target: Replicas, broker: BrokerState, rack: str, room: RackRoom) -> ExplainedRule:
    held = Counter(room.rack_of[b] for b in target if b in room.rack_of)
    fullest = max(held.values(), default=0)
    in_rack = held[rack]
    about = f"{state.id} on broker {broker.id}"
    if broker.id in target:
        answer = yes_or_no(in_rack < fullest or crowding(target, room) is None)
        return ExplainedRule(about, "rack has room", answer, f"{_holds(rack, in_rack)}, the fullest rack {fullest}")
    better = fullest - in_rack >= 2
    helps = "helps" if better else "would not help"
    sentence = f"{_holds(rack, in_rack)}, the fullest rack {fullest}: one more {helps}"
    return ExplainedRule(about, "rack has room", yes_or_no(better), sentence)


def _chosen(
    about: str, broker: int, target: Replicas, change: PlacementChange | None, context: PlanContext
) -> ExplainedRule:
    load = sum(broker in other.replicas for topic in context.snapshot.topics.values() for other in topic.partitions)
    before, after = broker in target, broker in (change.after if change is not None else target)
    if before == after:
        verb = "keeps its replica" if before else "gets no replica"
    else:
        verb = "gives its replica away" if before else "gets a replica"
    return ExplainedRule(about, "chosen", yes_or_no(after), f"it {verb}; it holds {counted(load, 'replica')} in all")


def _holds(rack: str, number: int) -> str:
    return f"rack {rack} holds {counted(number, 'replica')} of it"


def _brokers(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))


def _racks(names: Iterable[str]) -> str:
    of = list(names)
    return f"rack{'' if len(of) == 1 else 's'} {in_full(of)}"
