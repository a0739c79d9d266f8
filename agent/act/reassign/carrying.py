"""Carry out one command that changes the cluster, and say line by line what became of it.

Invariants: nothing is sent after ``begin_by``; nothing is begun, cancelled, set or deleted that is not what it was
decided for, right before and on the same connection; each line of the command has an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from agent.execute.reassign.messages import Act, Alter, Cancel, Configure, Elect, Kind, Move, Result, Run
from agent.execute.reassign.still import no_longer_to_cancel, no_longer_to_move, no_longer_to_set
from agent.values.kafka import (
    ELECTION_NOT_NEEDED,
    INVALID_REPLICATION_FACTOR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from agent.values.observation import RawTopic
from agent.values.throttles import Resource, SeenThrottle, ThrottleChange
from agent.wire.change import Answered, Fate
from agent.wire.deadline import Deadline
from agent.wire.hand import WireHand
from agent.wire.last_look import LastLook
from assignors.problem import TopicPartition

_KINDS: Mapping[str, Kind] = {
    "NO_REASSIGNMENT_IN_PROGRESS": Kind.NOT_NEEDED,
    ELECTION_NOT_NEEDED: Kind.NOT_NEEDED,
    UNKNOWN_TOPIC_OR_PARTITION: Kind.GONE,
    UNKNOWN_TOPIC_ID: Kind.GONE,
    INVALID_REPLICATION_FACTOR: Kind.REFUSED,
    "INVALID_REQUEST": Kind.REFUSED,
    "INVALID_CONFIG": Kind.REFUSED,
    "INVALID_TOPIC_EXCEPTION": Kind.REFUSED,
    "INVALID_PARTITIONS": Kind.REFUSED,
    "POLICY_VIOLATION": Kind.REFUSED,
    UNSUPPORTED_VERSION: Kind.REFUSED,
    "UNSUPPORTED": Kind.REFUSED,
}
"""What a refusal means. Any other can pass without a change of the request, a missing right and a broker that is not
registered for a moment among them: it is held and tried again."""
_UNCLEAN = frozenset({"INVALID_REPLICA_ASSIGNMENT", "INVALID_REPLICATION_ASSIGNMENT"})
"""Kafka's name of error 39 and kafka-python's."""


def carry_out(hand: WireHand, act: Act, *, begin_by: Deadline, timeout_ms: int) -> tuple[Result, ...]:
    """One result for each line of the command, sorted by subject."""
    match act:
        case Alter(moves):
            results = _alter(hand, moves, begin_by, timeout_ms)
        case Cancel(runs):
            results = _cancel(hand, runs, begin_by, timeout_ms)
        case Configure(settings):
            results = _configure(hand, settings, begin_by, timeout_ms)
        case Elect(partitions):
            told = hand.elect_preferred(partitions, timeout_ms, begin_by)
            results = [_result(subject, one, begin_by) for subject, one in told.items()]
    return tuple(sorted(results))


def _alter(hand: WireHand, moves: Iterable[Move], begin_by: Deadline, timeout_ms: int) -> list[Result]:
    """Only what is still as expected is sent."""
    left_out: dict[TopicPartition, Result] = {}
    wanted = {move.id: move for move in moves}

    def leave_out(look: LastLook) -> AbstractSet[TopicPartition]:
        for id_, move in wanted.items():
            if (why := no_longer_to_move(move, look.topics.get(id_.topic), look.running.get(id_))) is not None:
                left_out[id_] = why
        return left_out.keys()

    targets = {id_: move.target for id_, move in wanted.items()}
    told = hand.alter_placements(targets, timeout_ms, begin_by, leave_out)
    return [left_out.get(subject) or _result(subject, one, begin_by) for subject, one in told.items()]


def _cancel(hand: WireHand, runs: Iterable[Run], begin_by: Deadline, timeout_ms: int) -> list[Result]:
    """Only what still runs, and to our target, is cancelled."""
    left_out: dict[TopicPartition, Result] = {}
    wanted = {run.id: run for run in runs}

    def leave_out(look: LastLook) -> AbstractSet[TopicPartition]:
        for id_, run in wanted.items():
            if (why := no_longer_to_cancel(run, look.topics.get(id_.topic), look.running.get(id_))) is not None:
                left_out[id_] = why
        return left_out.keys()

    told = hand.alter_placements(dict.fromkeys(wanted), timeout_ms, begin_by, leave_out)
    return [left_out.get(subject) or _result(subject, one, begin_by, cancelling=True) for subject, one in told.items()]


def _configure(hand: WireHand, changes: Iterable[ThrottleChange], begin_by: Deadline, timeout_ms: int) -> list[Result]:
    left_out: dict[Resource, Result] = {}

    def leave_out(
        throttles: Mapping[ThrottleChange, SeenThrottle | None], topics: Mapping[str, RawTopic]
    ) -> AbstractSet[Resource]:
        """Called for each broker, and for all topics, on a connection and in a thread of its own."""
        others: set[Resource] = set()
        for change, seen in throttles.items():
            resource = change.resource
            if (why := no_longer_to_set(change, seen, topics.get(resource.name))) is not None:
                left_out[resource] = Result(resource, Kind.RETRY, f"not sent: {why}")
                others.add(resource)
        return others

    told = hand.change_throttles(changes, timeout_ms, begin_by, leave_out)
    return [left_out.get(resource) or _result(resource, answer, begin_by) for resource, answer in told.items()]


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
            kind = Kind.UNCLEAN if unclean else _KINDS.get(told.error or "", Kind.RETRY)
    return Result(subject, kind, told.detail)
