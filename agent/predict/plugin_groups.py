"""Predicted assignments of KIP-848 groups by rackwise's plug-in for brokers (docs/plugin.md).

Its figures are those of `assignors.optimal_consumer`: balance, then racks, then stickiness. Which of several members
with the same racks gets a partition is its own choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.predict.assignor_input import RackSets, has_holes
from agent.predict.broker_groups import predicted_target, regex_notes, subscribed_topics, target_of
from agent.values.plan import NotPredicted, PredictedAssignment, Prediction
from agent.values.snapshot import BrokerState, ConsumerGroup, TopicState
from assignors.optimal import optimal_consumer
from assignors.problem import ConsumerMember, ConsumerProblem

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
