"""What may be explained, and what was meant by a subject that there is not? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from agent.errors import BadInput, PartialAnswer
from agent.values.observation import Gap, Part
from agent.values.snapshot import Snapshot, TopicState
from agent.values.words import counted, few

FORMS = "topic/NAME, topic/NAME/PARTITION, group/NAME, broker/ID, or the id of a proposal"
PROPOSAL = re.compile(r"p-[0-9a-f]{12}(\.[0-9]+)?")
BEGINNING = re.compile(r"p-[0-9a-f]{0,11}")
"""An id of a proposal that was cut short."""
PROPOSALS = "proposal"
_MOST_BROKERS = 20
_PARTS = {"topic": (Part.TOPICS,), "group": (Part.GROUPS,), "broker": (Part.BROKERS,)}
_CLOSE = 0.6
_CLOSER = 0.7
"""For a name of another kind: short names are soon half alike."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean NAME? `` with the nearest name there is, to begin a remedy with; empty where none is near."""
    near = get_close_matches(name, tuple(known), n=1, cutoff=_CLOSE)
    return f"Did you mean {near[0]}? " if near else ""


def unknown_topic(
    name: str, snapshot: Snapshot, todo: str = "List all topics: rackwise topics"
) -> BadInput | PartialAnswer:
    """The error for a topic that is not in the look: it does not exist, or its name may not have been read."""
    return _unknown("topic", name, snapshot.topics, snapshot, todo)


def unknown_group(name: str, snapshot: Snapshot) -> BadInput | PartialAnswer:
    """The error for a group that is not in the look, in the same way."""
    return _unknown("group", name, snapshot.groups, snapshot, "List all groups: rackwise groups --all")


def _unknown(kind: str, name: str, known: Iterable[str], snapshot: Snapshot, todo: str) -> BadInput | PartialAnswer:
    todo = f"{did_you_mean(name, known)}{todo}"
    gap = gap_for(kind, snapshot)
    if gap is None:
        return BadInput(f"there is no {kind} {name!r}", why="no broker lists it", todo=todo)
    return perhaps_unread(f"{kind} {name!r}", gap, todo)


def gap_for(kind: str, snapshot: Snapshot) -> Gap | None:
    """The gap in which there may be a subject of this kind; None when all names of the kind were read.

    A proposal may rest on anything, so that any gap may be why it is not made.
    """
    missed = [gap for gap in snapshot.gaps if gap.is_missed]
    if kind == PROPOSALS:
        return missed[0] if missed else None
    parts = _PARTS.get(kind, ())
    of_rights = (gap for gap in missed if gap.part is Part.RIGHTS and gap.subject == Part.GROUPS.value)
    listed = next((gap for gap in missed if gap.part in parts), None)
    return listed or (next(of_rights, None) if kind == "group" else None)


def perhaps_unread(subject: str, gap: Gap, todo: str) -> PartialAnswer:
    """The error for a name that was not found in a look without all names: it may exist all the same."""
    why = f"not all {gap.part.value} could be read ({gap.cause.value}), so it may exist"
    return PartialAnswer(f"{subject} was not found", why=why, todo=todo)


def subjects(snapshot: Snapshot, proposals: Iterable[str]) -> tuple[str, ...]:
    """All that can be explained, in their forms."""
    return (
        *(f"topic/{name}" for name in snapshot.topics),
        *(f"group/{name}" for name in snapshot.groups),
        *(f"broker/{broker.id}" for broker in snapshot.brokers),
        *proposals,
    )


def why_unknown(subject: str, snapshot: Snapshot, known: Iterable[str]) -> str | None:
    """Why there is nothing to explain, as one clause; None when there is."""
    if subject in known:
        return None
    kind, _, name = subject.partition("/")
    topic, _, number = name.rpartition("/")
    if kind == "topic" and topic in snapshot.topics:
        return _no_partition(snapshot.topics[topic], number)
    if kind == "broker":
        return f"there is no broker {name}{_brokers(snapshot)}"
    if kind in {"topic", "group"}:
        return f"there is no {kind} {name}"
    return _no_proposal(subject)


def _no_proposal(subject: str) -> str:
    if BEGINNING.fullmatch(subject):
        return "the id of a proposal is p- and 12 hex digits"
    if PROPOSAL.fullmatch(subject):
        return "no proposal has this id now; other moves of the same subject are a proposal with another id"
    return "it is no subject"


def _brokers(snapshot: Snapshot) -> str:
    """``; brokers: 1, 2, 3``."""
    every = [str(broker.id) for broker in snapshot.brokers]
    return f"; brokers: {few(every, _MOST_BROKERS)}" if every else ""


def begun_by(beginning: str, proposals: Iterable[str]) -> tuple[str, ...]:
    """The ids of proposals that begin with an id that was cut short; none for anything else."""
    if BEGINNING.fullmatch(beginning) is None or beginning == "p-":
        return ()
    return tuple(one for one in proposals if one.startswith(beginning))


def _no_partition(topic: TopicState, number: str) -> str | None:
    if number.isdecimal() and any(state.id.partition == int(number) for state in topic.partitions):
        return None
    return f"topic {topic.name} has {counted(len(topic.partitions), 'partition')}, and no partition {number}"


def meant(subject: str, known: Iterable[str]) -> str | None:
    """The nearest subject that there is; None when none is near. Ids of proposals are hashes: none is near another."""
    every = tuple(one for one in known if PROPOSAL.fullmatch(one) is None)
    if PROPOSAL.fullmatch(subject) or BEGINNING.fullmatch(subject):
        return None
    kind, _, name = subject.partition("/")
    exact = next((one for one in every if one.partition("/")[2] in {subject, name} and name in one), None)
    if exact is not None and exact != subject:
        return exact
    same_kind = [one for one in every if one.startswith(f"{kind}/")]
    # Of the same kind first: what they have in common would else make all topics look alike.
    names = {one.partition("/")[2]: one for one in same_kind}
    near = get_close_matches(name, names, n=1, cutoff=_CLOSE)
    if near:
        return names[near[0]]
    anything = {one.partition("/")[2] or one: one for one in every}
    near = get_close_matches(name or subject, anything, n=1, cutoff=_CLOSER)
    return anything[near[0]] if near else None
