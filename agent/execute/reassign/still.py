"""Is it still, right before the request, what the request was decided for? What is not is left out, and looked at anew.

Nothing is decided here: the answer for what was left out is that it was not asked for, and the next look tells why. So
a move that another tool began since is neither replaced nor cancelled, and a rate that another tool set since is
neither overwritten nor deleted. Pure.
"""

from __future__ import annotations

from agent.execute.reassign.messages import Kind, Move, Result, Run
from agent.values.kafka import UNKNOWN_TOPIC_OR_PARTITION
from agent.values.observation import RawReassignment, RawTopic
from agent.values.throttles import SeenThrottle, ThrottleChange


def no_longer_to_move(move: Move, topic: RawTopic | None, running: RawReassignment | None) -> Result | None:
    """Why the move is not to be sent; None when it is as it was."""
    other = _another_topic(move, topic)
    if other is not None or topic is None:
        return other
    replicas = next((row.replicas for row in topic.partitions if row.partition == move.id.partition), None)
    if replicas is None:
        return Result(move.id, Kind.RETRY, f"{move.id} could not be seen")
    if running is not None:
        return Result(move.id, Kind.RETRY, f"{move.id} is being moved to {_listed(_target(running))}")
    if replicas != move.expected:
        sentence = (
            f"{move.id} has replicas {_listed(replicas)}, not {_listed(move.expected)} as when the move was decided"
        )
        return Result(move.id, Kind.RETRY, sentence)
    return None


def no_longer_to_cancel(run: Run, topic: RawTopic | None, running: RawReassignment | None) -> Result | None:
    """Why the move is not to be cancelled; None when it runs as it was."""
    other = _another_topic(run, topic)
    if other is not None:
        return other
    if running is None:
        return Result(run.id, Kind.NOT_NEEDED, f"{run.id} is no longer being moved")
    if _target(running) != run.target:
        sentence = f"{run.id} is being moved to {_listed(_target(running))}, which is not a move of this plan"
        return Result(run.id, Kind.RETRY, sentence)
    return None


def no_longer_to_set(change: ThrottleChange, seen: SeenThrottle | None, topic: RawTopic | None = None) -> str | None:
    """Why the throttle is not to be changed; None when it is as it was."""
    if change.topic_id is not None and (topic is None or topic.topic_id != change.topic_id):
        return f"topic {change.resource.name} could not be seen, or was deleted and created again"
    if change.expected is None:
        return None
    what = f"{change.key} of {change.resource.kind} {change.resource.name}"
    if seen is None:
        return f"{what} could not be read"
    if seen.own not in change.expected:
        return f"{what} is {seen.own or 'not set'}, which is not as when the change was decided"
    if change.alone and seen.default is not None:
        return f"{what} is {seen.default} by default, which rackwise did not set"
    return None


def _another_topic(of: Move | Run, topic: RawTopic | None) -> Result | None:
    name = of.id.topic
    if topic is None:
        return Result(of.id, Kind.RETRY, f"topic {name} could not be seen")
    if topic.error == UNKNOWN_TOPIC_OR_PARTITION:
        return Result(of.id, Kind.GONE, f"topic {name} no longer exists")
    if topic.error is not None:
        return Result(of.id, Kind.RETRY, f"topic {name} could not be seen: {topic.error}")
    if topic.topic_id != of.topic_id:
        return Result(of.id, Kind.RETRY, f"topic {name} was deleted and created again")
    return None


def _target(running: RawReassignment) -> tuple[int, ...]:
    return tuple(broker for broker in running.replicas if broker not in running.removing)


def _listed(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
