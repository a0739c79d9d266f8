"""What probing says of an application, as one line of an explanation: also while there is nothing to propose yet."""

from __future__ import annotations

from collections.abc import Sequence

from agent.probing.decide import Ground, decide
from agent.probing.values import Off, Past, TriggerNow
from agent.values.explained import Answer, Explained
from agent.values.snapshot import GroupKind, StreamsGroup

RULE = "probing"


def about_probing(group_id: str, ground: Ground, past: Sequence[Past] = ()) -> tuple[Explained, ...]:
    """Whether its warm-ups are worth a rebalance now; nothing for groups that have none by their kind."""
    group = ground.snapshot.groups.get(group_id)
    if not isinstance(group, StreamsGroup) or group.kind is not GroupKind.CLASSIC_STREAMS:
        return ()
    decision = decide(group_id, ground, past)
    match decision:
        case TriggerNow():
            answer = Answer.YES
        case Off():
            answer = Answer.NO
        case _:
            answer = Answer.WAIT
    return (Explained(f"group/{group_id}", RULE, answer, decision.sentence),)
