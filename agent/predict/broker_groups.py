"""Predicted assignments of KIP-848, KIP-1071 and classic consumer groups by Kafka's assignors.

Of KIP-848 groups also by rackwise's plug-in for brokers (docs/plugin.md).
The brokers' assignors ignore racks; their members come in hash map order and topics in the order of their ids. The
plug-in's figures are those of `assignors.optimal_consumer`: balance, then racks, then stickiness; which of several
members with the same racks gets a partition is its own choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from enum import StrEnum
from typing import NamedTuple

from agent.predict.applications import SHARED_BUCKET, AssignorInput, RackSets, has_holes, share_a_bucket
from agent.values.kafka import (
    COOPERATIVE_STICKY,
    GROUP_STANDBYS,
    GROUP_STANDBYS_DEFAULT,
    RANGE,
    ROUND_ROBIN,
    STICKY,
    STREAMS_INITIAL_DELAY,
    UNIFORM,
)
from agent.values.limits import GroupLimits
from agent.values.plan import NotPredicted, PredictedAssignment, Prediction, PredictionBasis, PredictionCertainty
from agent.values.snapshot import BrokerState, ConsumerGroup, Member, StreamsGroup, StreamsTopology, TopicState
from assignors.kafka.consumer_problem import ClassicMember, ClassicProblem, GroupAssignment, leader_order
from assignors.kafka.cooperative_sticky import MOST_FOLLOW_UPS, SettledAssignment, cooperative_sticky_settled
from assignors.kafka.group_problem import GroupMember, GroupProblem, broker_order
from assignors.kafka.group_range import assign_group_range
from assignors.kafka.group_uniform import assign_group_uniform
from assignors.kafka.java import halves_hash, hash_order, topic_id_halves
from assignors.kafka.range import range_assign
from assignors.kafka.roundrobin import roundrobin_assign
from assignors.kafka.sticky import sticky_assign
from assignors.kafka.streams_group_problem import ConfiguredSubtopology, StreamsGroupProblem, StreamsMember
from assignors.kafka.streams_group_sticky import streams_group_sticky
from assignors.kafka.streams_group_sticky_41 import streams_group_sticky_41
from assignors.optimal import optimal_consumer
from assignors.problem import ConsumerMember, ConsumerProblem, TaskId, TopicPartition

BROKER_ASSIGNORS = {UNIFORM: assign_group_uniform, RANGE: assign_group_range}
REGEX_NOTE = "topics that a regular-expression subscription matches are inferred from the group's assignment"


class BrokerAssignorSettings(NamedTuple):
    """Assignor settings of the brokers; None where configs are hidden."""

    deterministic: bool | None
    """KIP-1071: True for the assignor of Kafka 4.2 and later; None where configs are hidden."""
    num_standby_replicas: int | None
    """KIP-1071: of the group, else the brokers' default; None where neither is shown."""


def broker_facts(
    group_id: str, broker_configs: Mapping[int, Mapping[str, str]], group_configs: Mapping[str, Mapping[str, str]]
) -> BrokerAssignorSettings:
    """Assignor of one group with its settings."""
    rows = [row for row in broker_configs.values() if row]
    values = [group_configs.get(group_id, {}).get(GROUP_STANDBYS), *(row.get(GROUP_STANDBYS_DEFAULT) for row in rows)]
    standbys = next((int(value) for value in values if value is not None and value.isdecimal()), None)
    return BrokerAssignorSettings(all(STREAMS_INITIAL_DELAY in row for row in rows) if rows else None, standbys)


def predict_consumer(group: ConsumerGroup, inputs: AssignorInput) -> Prediction:
    """The next target by the brokers' ``UniformAssignor`` or ``RangeAssignor`` (KIP-848)."""
    assign = BROKER_ASSIGNORS.get(group.assignor or "")
    if assign is None:
        return Prediction(group_id=group.id, assignor=group.assignor, why_not=NotPredicted.UNKNOWN_ASSIGNOR)
    subscribed = {member.id: subscribed_topics(member, group) for member in group.members}
    names = sorted({name for topics in subscribed.values() for name in topics if name in inputs.topics})
    ids = {name: inputs.topics[name].topic_id for name in names}
    known = {name: topic_id for name, topic_id in ids.items() if topic_id is not None}
    if len(known) < len(ids):
        return Prediction(group_id=group.id, assignor=group.assignor, why_not=NotPredicted.TOPICS_UNKNOWN)
    by_id = {member.id: member for member in group.members}
    problem = GroupProblem(
        members=tuple(_member(by_id[name], subscribed[name], known) for name in broker_order(sorted(by_id))),
        partitions={topic_id: len(inputs.topics[name].partitions) for name, topic_id in known.items()},
        homogeneous=len({frozenset(topics) for topics in subscribed.values()}) == 1,
    )
    answer = assign(problem)
    name_of = {topic_id: name for name, topic_id in known.items()}
    target = PredictedAssignment(
        {
            member: tuple(
                sorted(TopicPartition(name_of[t], p) for t, numbers in answer.get(member, {}).items() for p in numbers)
            )
            for member in sorted(by_id)
        }
    )
    shared = group.assignor == UNIFORM and share_a_bucket(by_id)
    return predicted_target(group, target, (*regex_notes(group), *((SHARED_BUCKET,) if shared else ())))


def regex_notes(group: ConsumerGroup) -> tuple[str, ...]:
    """The note on topics that are inferred; empty where no member subscribes by a regular expression."""
    return (REGEX_NOTE,) if any(member.topic_regex for member in group.members) else ()


def predicted_target(group: ConsumerGroup, target: PredictedAssignment, notes: tuple[str, ...]) -> Prediction:
    """The prediction of a target that the coordinator sets at once. ``notes``: why another target costs the same."""
    return Prediction(
        group_id=group.id,
        assignor=group.assignor,
        certainty=PredictionCertainty.COST_EQUAL if notes else PredictionCertainty.EXACT,
        first=target,
        settled=target,
        rebalances=1,
        notes=notes,
    )


def subscribed_topics(member: Member, group: ConsumerGroup) -> tuple[str, ...]:
    """Its topics; of a pattern those that members with the same pattern have in their targets."""
    if not member.topic_regex:
        return member.topics
    held = {tp.topic for one in group.members if one.topic_regex == member.topic_regex for tp in target_of(one)}
    return tuple(sorted({*member.topics, *held}))


def target_of(member: Member) -> tuple[TopicPartition, ...]:
    """Partitions that the coordinator gives it; where that is not shown, those that it has."""
    return member.target if member.target is not None else member.assigned or ()


def _member(member: Member, topics: tuple[str, ...], ids: Mapping[str, str]) -> GroupMember:
    held: dict[str, list[int]] = {}
    for topic, partition in sorted(target_of(member)):
        if topic in ids:
            held.setdefault(ids[topic], []).append(partition)
    return GroupMember(
        id=member.id,
        instance_id=member.instance_id,
        topics=tuple([ids[topic] for topic in topics if topic in ids]),
        assigned={topic: tuple(held[topic]) for topic in hash_order(held, _topic_hash)},
    )


def _topic_hash(topic_id: str) -> int:
    return halves_hash(topic_id_halves(topic_id))


def predict_streams(group: StreamsGroup, topology: StreamsTopology, facts: BrokerAssignorSettings) -> Prediction:
    """The next target by the coordinator's ``StickyTaskAssignor`` (KIP-1071); members as processes."""
    process_of = {member: process.id for process in group.processes for member in process.member_ids}
    standbys = facts.num_standby_replicas
    problem = _streams_problem(group, topology, process_of, standbys or 0)
    old = facts.deterministic is False
    result = (streams_group_sticky_41 if old else streams_group_sticky)(problem)
    task_of = {(str(task.id.subtopology), task.id.partition): task.id for task in topology.tasks}
    active = _by_process(result.active, process_of, task_of)
    sources = {task.id: task.sources for task in topology.tasks}
    target = PredictedAssignment(
        reads={name: tuple(sorted(tp for task in tasks for tp in sources[task])) for name, tasks in active.items()},
        active=active,
        standby=_by_process(result.standby, process_of, task_of),
    )
    shared = share_a_bucket(process_of)
    return Prediction(
        group_id=group.id,
        assignor=STICKY,
        settings=f"{GROUP_STANDBYS} {standbys or 0}",
        basis=PredictionBasis.ASSUMED if standbys is None or facts.deterministic is None else PredictionBasis.READ,
        certainty=PredictionCertainty.COST_EQUAL if old or shared else PredictionCertainty.EXACT,
        first=target,
        settled=target,
        rebalances=1,
        notes=(*result.warnings, *_streams_notes(facts, shared=shared)),
    )


def _streams_problem(
    group: StreamsGroup, topology: StreamsTopology, process_of: Mapping[str, str], standbys: int
) -> StreamsGroupProblem:
    targets = {target.member_id: target for target in group.targets}
    sizes: dict[str, int] = {}
    stateful: set[str] = set()
    for task in topology.tasks:
        name = str(task.id.subtopology)
        sizes[name] = max(sizes.get(name, 0), task.id.partition + 1)
        if task.changelogs:
            stateful.add(name)
    members = []
    for name in broker_order(sorted(process_of)):
        target = targets.get(name)
        members.append(
            StreamsMember(
                id=name,
                process_id=process_of[name],
                active=_by_subtopology(target.active if target else ()),
                standby=_by_subtopology(target.standby if target else ()),
            )
        )
    return StreamsGroupProblem(
        subtopologies=tuple(
            ConfiguredSubtopology(id=name, partitions=sizes[name], stateful=name in stateful) for name in sorted(sizes)
        ),
        members=tuple(members),
        num_standby_replicas=standbys,
    )


def _streams_notes(facts: BrokerAssignorSettings, *, shared: bool) -> Iterator[str]:
    if facts.deterministic is False:
        yield "the brokers are older than 4.2, whose ties between equally loaded members are broken anew each time"
    if shared:
        yield SHARED_BUCKET
    if facts.deterministic is None:
        yield "the brokers' release is unknown; 4.2 or later is assumed"
    if facts.num_standby_replicas is None:
        yield "the number of standbys is unknown; Kafka's default of 0 is assumed"


def _by_subtopology(tasks: tuple[TaskId, ...]) -> dict[str, tuple[int, ...]]:
    numbers: dict[str, list[int]] = {}
    for task in tasks:
        numbers.setdefault(str(task.subtopology), []).append(task.partition)
    return {name: tuple(sorted(numbers[name])) for name in sorted(numbers)}


def _by_process(
    targets: Mapping[str, tuple[TaskId, ...]], process_of: Mapping[str, str], task_of: Mapping[tuple[str, int], TaskId]
) -> dict[str, tuple[TaskId, ...]]:
    by_process: dict[str, list[TaskId]] = {process: [] for process in sorted(set(process_of.values()))}
    for member, tasks in targets.items():
        by_process[process_of[member]] += [task_of[str(task.subtopology), task.partition] for task in tasks]
    return {process: tuple(sorted(tasks, key=_order)) for process, tasks in by_process.items()}


def _order(task: TaskId) -> tuple[bool, TaskId]:
    """Numbers before names, as the model sorts tasks."""
    return isinstance(task.subtopology, str), task


# Classic consumer groups: members in a Java leader's order, with the subscriptions, racks and ownership of their next
# join. Members of a settled group share a generation, so its number decides nothing.

EAGER: Mapping[str, Callable[[ClassicProblem], GroupAssignment]] = {
    RANGE: range_assign,
    ROUND_ROBIN: roundrobin_assign,
    STICKY: sticky_assign,
}
"""Protocol name -> Kafka's assignor, where one rebalance does it all."""
CLASSIC_ASSIGNORS = frozenset({*EAGER, COOPERATIVE_STICKY})
"""Protocol names with a prediction."""
ORDERED = frozenset({STICKY, COOPERATIVE_STICKY})
"""Assignors that depend on the order of the members, unless all subscribe to the same."""
GENERATION = 1


def predict_classic(group: ConsumerGroup, inputs: AssignorInput, settings: GroupLimits) -> Prediction:
    """The first rebalance and the state in which the group settles. Raises BadProblem where Kafka's would throw."""
    assignor = group.assignor or ""
    if assignor not in CLASSIC_ASSIGNORS:
        return Prediction(
            group_id=group.id, assignor=group.assignor, why_not=NotPredicted.UNKNOWN_ASSIGNOR,
            notes=(f"its protocol name is {group.assignor or 'unknown'}",),
        )  # fmt: skip
    racks = {}
    for topic in sorted({topic for member in group.members for topic in member.topics}):
        of_topic = inputs.rack_sets(topic)
        if of_topic is not None:
            racks[topic] = of_topic
        elif topic in inputs.topics:
            return Prediction(group_id=group.id, assignor=group.assignor, why_not=NotPredicted.TOPICS_UNKNOWN)
    leader = leader_of(group, settings.client_software_name)
    looks_at_racks = leader is not LeaderClient.PYTHON
    members = tuple([_classic_member(member, looks_at_racks=looks_at_racks) for member in group.members])
    if group.assignor in ORDERED and len({member.topics for member in members}) > 1:
        members = leader_order(members)
    unordered = leader is LeaderClient.JAVA and _order_counts(group, racks) and share_a_bucket([m.id for m in members])
    settled = _settled(ClassicProblem(members=members, racks=racks), assignor)
    notes = [*_about(leader), *settled.first.warnings, *([SHARED_BUCKET] if unordered else [])]
    if settled.still_moving:
        notes.append(f"it does not converge within {MOST_FOLLOW_UPS} rebalances")
    return Prediction(
        group_id=group.id,
        assignor=group.assignor,
        basis=PredictionBasis.READ,
        certainty=PredictionCertainty.EXACT
        if leader is LeaderClient.JAVA and not unordered
        else PredictionCertainty.COST_EQUAL,
        first=(first := _assignment(settled.first)),
        settled=first if settled.last is settled.first else _assignment(settled.last),
        rebalances=settled.rebalances,
        notes=tuple(dict.fromkeys(notes)),
    )


def _order_counts(group: ConsumerGroup, racks: Mapping[str, Sized]) -> bool:
    """True when the order of the members decides the assignment."""
    alike = len({member.topics for member in group.members}) == 1
    uneven = sum(map(len, racks.values())) % len(group.members)
    return group.assignor in ORDERED and (bool(uneven) or not alike)


def _classic_member(member: Member, *, looks_at_racks: bool) -> ClassicMember:
    return ClassicMember(
        id=member.id,
        topics=member.topics,
        rack=member.rack.rack_id if looks_at_racks else None,
        instance_id=member.instance_id,
        owned=member.assigned or (),
        generation=GENERATION,
        subscription_generation=GENERATION,
    )


def _settled(problem: ClassicProblem, assignor: str) -> SettledAssignment:
    """``CooperativeStickyAssignor`` assigns partitions only after they are revoked, so another rebalance follows."""
    if assignor == COOPERATIVE_STICKY:
        return cooperative_sticky_settled(problem)
    result = EAGER[assignor](problem)
    return SettledAssignment(result, result, 1, still_moving=False)


def _assignment(result: GroupAssignment) -> PredictedAssignment:
    return PredictedAssignment(
        {
            member: partitions if len(partitions) < 2 else tuple(sorted(partitions))
            for member, partitions in sorted(result.assignment.items())
        }
    )


def _about(leader: LeaderClient) -> list[str]:
    match leader:
        case LeaderClient.JAVA:
            return []
        case LeaderClient.UNKNOWN:
            return ["the client that leads the group is unknown; Java's assignor is predicted"]
        case LeaderClient.PYTHON:
            return ["a Python client leads the group; its assignor ignores racks and breaks ties in its own way"]
        case LeaderClient.LIBRDKAFKA:
            return ["librdkafka leads the group and breaks ties in its own way"]


# Brokers do not report the leader of a classic group: it is known only when all members run the same client, by the
# settings of the group, else by the clients' default client ids.


class LeaderClient(StrEnum):
    """The client software of a group's leader."""

    JAVA = "Java"
    LIBRDKAFKA = "librdkafka"
    PYTHON = "a Python client"
    UNKNOWN = "unknown"


_BY_SOFTWARE = (
    (re.compile(r"(?i)kafka-python|aiokafka"), LeaderClient.PYTHON),
    (re.compile(r"(?i)librdkafka|confluent-kafka|rdkafka"), LeaderClient.LIBRDKAFKA),
    (re.compile(r"(?i)java"), LeaderClient.JAVA),
)
"""Names as clients send them in ``client.software.name`` (KIP-511)."""
_BY_CLIENT_ID = (
    (re.compile(r"consumer-.+-\d+"), LeaderClient.JAVA),
    (re.compile(r"rdkafka"), LeaderClient.LIBRDKAFKA),
    (re.compile(r"kafka-python-.+|aiokafka-.+"), LeaderClient.PYTHON),
)
"""Default client ids."""


def leader_of(group: ConsumerGroup, software: str | None) -> LeaderClient:
    """The client software of the leader; UNKNOWN where members differ or have ids of their own."""
    if software is not None:
        return next((leader for name, leader in _BY_SOFTWARE if name.search(software)), LeaderClient.UNKNOWN)
    first = _by_client_id(group.members[0].client_id) if group.members else LeaderClient.UNKNOWN
    others = () if first is LeaderClient.UNKNOWN else group.members[1:]
    return first if all(_by_client_id(member.client_id) is first for member in others) else LeaderClient.UNKNOWN


def _by_client_id(client_id: str) -> LeaderClient:
    return next((leader for name, leader in _BY_CLIENT_ID if name.fullmatch(client_id)), LeaderClient.UNKNOWN)


OWN_CHOICE = "among assignments with these figures the plug-in may choose another"
NO_LIMITS = "its settings are not read from the brokers; no limit of rackwise.assignor is assumed"


def registered_racks(brokers: Iterable[BrokerState]) -> dict[int, str]:
    """Broker -> ``broker.rack`` as the coordinator has it: a broker that is stopped stays registered."""
    return {broker.id: broker.rack.rack_id for broker in brokers if broker.rack.rack_id}


def plugin_problem(
    group: ConsumerGroup, topics: Mapping[str, TopicState], sets: RackSets
) -> ConsumerProblem | NotPredicted:
    """The group as the plug-in sees it, or why that is unknown. ``sets``: of `registered_racks`."""
    subscribed = [subscribed_topics(member, group) for member in group.members]
    held = {partition.topic for member in group.members for partition in target_of(member)}
    if held - topics.keys():
        return NotPredicted.TOPICS_UNKNOWN
    states = [topics[name] for name in sorted(set().union(*subscribed)) if name in topics]
    if any(has_holes(state) for state in states):
        return NotPredicted.TOPICS_UNKNOWN
    return ConsumerProblem(
        members=tuple(
            ConsumerMember(id=member.id, rack=member.rack.rack_id, topics=names, owned=target_of(member))
            for member, names in zip(group.members, subscribed, strict=True)
        ),
        racks={state.name: tuple([sets[one.replicas] for one in state.partitions]) for state in states},
    )


def predict_plugin(group: ConsumerGroup, topics: Mapping[str, TopicState], sets: RackSets) -> Prediction:
    """The plug-in's next target. Raises BadProblem for a group that contradicts itself."""
    problem = plugin_problem(group, topics, sets)
    if isinstance(problem, NotPredicted):
        return Prediction(group_id=group.id, assignor=group.assignor, why_not=problem)
    answer = optimal_consumer(problem).assignment
    keeps = all(tuple(sorted(member.owned)) == answer[member.id] for member in problem.members)
    target = PredictedAssignment({name: answer[name] for name in sorted(answer)})
    chosen = () if keeps else (OWN_CHOICE, NO_LIMITS)
    return predicted_target(group, target, (*chosen, *regex_notes(group)))
