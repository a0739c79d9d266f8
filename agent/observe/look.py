"""One look at the cluster: who it is, then everything else side by side, each part with its own deadline and failure.

Three waves, as some questions need the answers of others: topics, groups, configs of brokers, reassignments, log dirs
and the lags that applications tell; then the groups' insides, configs, and names that vanished; end offsets last.
Committed offsets come before end offsets: read later, a lag could be negative.

Invariant: a field that is empty because no broker answered, or the rights are missing, is named by a gap.
"""

from __future__ import annotations

from dataclasses import replace

from agent.observe.assemble import Answers, Judgements, asked_whole, assemble, judge_names
from agent.observe.context import Clients, Context, Recall
from agent.observe.insides import ask_ends, ask_insides
from agent.observe.intern import interned_observation
from agent.observe.knock import who_answers, wrong_cluster
from agent.observe.scope import Scope
from agent.observe.world import ask_world
from agent.values.clock import Clock
from agent.values.observation import Observation
from agent.wire.cluster_calls import ClusterAnswer
from agent.wire.deadline import Deadline


def observe(clients: Clients, clock: Clock, scope: Scope | None = None, recall: Recall | None = None) -> Observation:
    """Everything the brokers tell now, with a gap for each thing that they do not.

    ``recall`` is what the last look left behind, and is updated; without one nothing is carried and nothing doubted.
    Raises ClusterUnreachable, NoBrokersYet, AuthenticationFailed, TlsFailed or UnsupportedCluster when nothing
    answered, and WrongCluster when the brokers are not those of the expected cluster, or of the last look.
    """
    scope = scope or Scope()
    recall = recall or Recall()
    began = clock()
    deadline = Deadline.after_ms(scope.deadline_ms)
    context = Context(
        clients=clients,
        scope=scope,
        recall=recall,
        began=began,
        cluster=_who_is_there(clients, scope, recall),
        deadline=deadline,
    )
    world = ask_world(context)
    insides = ask_insides(context, world)
    answers = Answers(world, insides, ask_ends(context, world))
    judged = judge_names(context, answers)
    observation = interned_observation(assemble(context, answers, judged), recall.last)
    observation = replace(observation, took_ms=clock().monotonic_ms - began.monotonic_ms)
    _remember(context, observation, answers, judged)
    return observation


def _who_is_there(clients: Clients, scope: Scope, recall: Recall) -> ClusterAnswer:
    cluster = who_answers(clients, scope.call_timeout_ms)
    last_id = recall.last.cluster_id if recall.last else None
    expected = scope.expected_cluster_id or last_id or cluster.cluster_id
    if cluster.cluster_id != expected:
        raise wrong_cluster(cluster.cluster_id, expected)
    return cluster


def _remember(context: Context, observation: Observation, answers: Answers, judged: Judgements) -> None:
    """Leave behind what the next look compares with. A part that did not answer leaves what was known."""
    recall = context.recall
    recall.last = observation
    if answers.world.topics is not None:
        recall.known_topics = frozenset(topic.name for topic in observation.topics) | judged.topics.hidden
    if answers.world.groups is not None:
        recall.known_groups = frozenset(group.group_id for group in observation.listed_groups) | judged.groups.hidden
    for part in asked_whole(answers):
        recall.taken_ms[part] = context.now_ms
