"""Carry out one command that changes the cluster, and say line by line what became of it.

Invariants: nothing is sent after ``begin_by``; a reassignment is only sent for partitions that are, right before, the
very topics with the very replicas that were expected; each line of the command has an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.execute.messages import Act, Alter, Cancel, Configure, Elect, Kind, Move, Op, Result, Setting
from agent.execute.values import Resource
from agent.observation import RawTopic
from agent.wire.change import Answered, Fate
from agent.wire.config_changes import Holder, Operation, ThrottleChange
from agent.wire.config_changes import Setting as WireSetting
from agent.wire.deadline import Deadline
from agent.wire.failure import CallFailed
from agent.wire.hand import WireHand
from assignors.problem import TopicPartition

_CHECK_SHARE = 0.9
"""Of the time in which a move may be begun: beginning it takes none."""
_HOLDERS = {"topic": Holder.TOPIC, "broker": Holder.BROKER}
_OPERATIONS = {
    Op.SET: Operation.SET,
    Op.DELETE: Operation.DELETE,
    Op.APPEND: Operation.APPEND,
    Op.SUBTRACT: Operation.SUBTRACT,
}
_KINDS: Mapping[str, Kind] = {
    "NO_REASSIGNMENT_IN_PROGRESS": Kind.NOT_NEEDED,
    "ELECTION_NOT_NEEDED": Kind.NOT_NEEDED,
    "UNKNOWN_TOPIC_OR_PARTITION": Kind.GONE,
    "UNKNOWN_TOPIC_ID": Kind.GONE,
    "THROTTLING_QUOTA_EXCEEDED": Kind.RETRY,
    "PREFERRED_LEADER_NOT_AVAILABLE": Kind.RETRY,
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": Kind.RETRY,
    "LEADER_NOT_AVAILABLE": Kind.RETRY,
    "BROKER_NOT_AVAILABLE": Kind.RETRY,
}
"""What a refusal means; any other is for good."""
_UNCLEAN = frozenset({"INVALID_REPLICA_ASSIGNMENT", "INVALID_REPLICATION_ASSIGNMENT"})
"""Kafka's name of error 39 and kafka-python's."""


def carry_out(hand: WireHand, act: Act, *, begin_by: Deadline, timeout_ms: int) -> tuple[Result, ...]:
    """One result for each line of the command, sorted by subject."""
    match act:
        case Alter(moves):
            results = _alter(hand, moves, begin_by, timeout_ms)
        case Cancel(partitions):
            told = hand.alter_placements(dict.fromkeys(partitions), timeout_ms, begin_by)
            results = [_result(subject, one, begin_by, cancelling=True) for subject, one in told.items()]
        case Configure(settings):
            results = _configure(hand, settings, begin_by, timeout_ms)
        case Elect(partitions):
            told = hand.elect_preferred(partitions, timeout_ms, begin_by)
            results = [_result(subject, one, begin_by) for subject, one in told.items()]
    return tuple(sorted(results))


def _alter(hand: WireHand, moves: Iterable[Move], begin_by: Deadline, timeout_ms: int) -> list[Result]:
    """Only what is still as expected is sent."""
    wanted = {move.id: move for move in moves}
    if begin_by.over:  # a look without time would only be held against the brokers that it asks
        return [
            Result(
                partition, Kind.NOT_SENT, "not sent: the time for the request was over before the topics were described"
            )
            for partition in wanted
        ]
    topics = sorted({partition.topic for partition in wanted})
    try:
        answer = hand.describe_topics(max(1, int(begin_by.left_s * 1000 * _CHECK_SHARE)), names=topics)
    except CallFailed as failure:
        late = Kind.NOT_SENT if begin_by.over else Kind.RETRY
        sentence = f"not sent: the topics could not be described right before the request: {failure.detail}"
        return [Result(partition, late, sentence) for partition in wanted]
    seen = {topic.name: topic for topic in answer.topics}
    refused = [result for move in wanted.values() if (result := _otherwise(move, seen.get(move.id.topic))) is not None]
    for result in refused:
        del wanted[_partition(result)]
    if not wanted:
        return refused
    told = hand.alter_placements({one: move.target for one, move in wanted.items()}, timeout_ms, begin_by)
    return refused + [_result(subject, one, begin_by) for subject, one in told.items()]


def _otherwise(move: Move, topic: RawTopic | None) -> Result | None:
    """Why the move must not be sent: the partition is not, or no longer, what the move was decided for."""
    if topic is None or topic.error == "UNKNOWN_TOPIC_OR_PARTITION":
        return Result(move.id, Kind.GONE, f"topic {move.id.topic} no longer exists")
    if topic.error is not None:
        return Result(move.id, Kind.RETRY, f"topic {move.id.topic} could not be seen: {topic.error}")
    if topic.topic_id != move.topic_id:
        return Result(move.id, Kind.REFUSED, f"topic {move.id.topic} was deleted and created again")
    replicas = next((row.replicas for row in topic.partitions if row.partition == move.id.partition), None)
    if replicas is None:
        return Result(move.id, Kind.RETRY, f"{move.id} could not be seen")
    if replicas != move.expected:
        sentence = (
            f"{move.id} has replicas {_listed(replicas)}, not {_listed(move.expected)} as when the move was decided"
        )
        return Result(move.id, Kind.REFUSED, sentence)
    return None


def _configure(hand: WireHand, settings: Iterable[Setting], begin_by: Deadline, timeout_ms: int) -> list[Result]:
    changes = [
        ThrottleChange(
            WireSetting(_HOLDERS[one.resource.kind], one.resource.name, one.key), _OPERATIONS[one.op], one.value
        )
        for one in settings
    ]
    told = hand.change_throttles(changes, timeout_ms, begin_by)
    # The keys of one resource share their fate.
    fates = {
        Resource("topic" if setting.holder is Holder.TOPIC else "broker", setting.name): answer
        for setting, answer in told.items()
    }
    return [_result(resource, answer, begin_by) for resource, answer in fates.items()]


def _result(
    subject: TopicPartition | Resource, told: Answered, begin_by: Deadline, *, cancelling: bool = False
) -> Result:
    match told.fate:
        case Fate.DONE:
            kind = Kind.OK
        case Fate.UNKNOWN:
            kind = Kind.UNKNOWN
        case Fate.NOT_SENT:
            kind = Kind.NOT_SENT if begin_by.over else Kind.RETRY
        case Fate.REFUSED:
            unclean = cancelling and told.error in _UNCLEAN
            kind = Kind.UNCLEAN if unclean else _KINDS.get(told.error or "", Kind.REFUSED)
    return Result(subject, kind, told.detail)


def _partition(result: Result) -> TopicPartition:
    if not isinstance(result.subject, TopicPartition):
        raise TypeError(f"{result.subject} is no partition")
    return result.subject


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
