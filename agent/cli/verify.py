"""``reassign verify``: planned replicas beside those that partitions have, by the brokers or by a running agent.

A plan is its row of ``reassign status``, so both ways compare the same documents with the same function.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agent.cli import agent_api, ask, session
from agent.errors import BadInput, JournalUnavailable, reason
from assignors.problem import TopicPartition

if TYPE_CHECKING:
    from agent.documents.proposals import PlanRow, VerifyRow
    from config.load import LoadedSettings

Placements = Mapping[TopicPartition, tuple[int, ...]]


class CheckedReplicas(NamedTuple):
    """What is to be shown."""

    rows: list[VerifyRow]
    throttles: list[str]
    """Throttles of rackwise that are still set, one line each."""


class _PlannedReplicas(NamedTuple):
    """What is to be compared."""

    wanted: Placements
    before: Placements
    """Replicas of partitions that a plan in progress has yet to move."""
    waits: str = ""
    """Why those are as before."""


class _PresentReplicas(NamedTuple):
    """What the brokers reported."""

    replicas: Placements
    moves: Mapping[TopicPartition, str]
    """Partition -> its reassignment in a few words."""
    unseen: Collection[str]
    """Parts that did not answer."""
    hidden: Collection[str] = ()
    """Topics that are not there, or that the look leaves out."""


def of_brokers(loaded: LoadedSettings, what: str) -> CheckedReplicas:
    """By what the brokers report now. Raises BadInput, and what observing and reading the journal raise."""
    from agent.cli.follow import ReassignmentWatcher

    if _is_file(what):
        planned, left = _of_file(what), []
    else:
        from agent.documents.journal import plan_rows, throttle_rows

        view = ask.journal(ask.plan_of(loaded))
        planned, left = _of_plan(plan_rows(view), what), _throttles(throttle_rows(view))
    with ReassignmentWatcher(loaded).open() as watcher:
        observation = watcher.look(tuple(sorted({one.topic for one in planned.wanted})))
    replicas = {
        TopicPartition(topic.name, partition.partition): tuple(partition.replicas)
        for topic in observation.topics
        for partition in topic.partitions
    }
    moves = {one.id: _move_words(one.adding, one.removing) for one in observation.reassignments}
    unseen = {gap.part.value for gap in observation.gaps}
    return CheckedReplicas(_rows(planned, _PresentReplicas(replicas, moves, unseen)), left)


def of_an_agent(what: str) -> CheckedReplicas:
    """By the last look of the agent that ``--agent`` names. Raises BadInput, JournalUnavailable, and as asking does."""
    planned, left = (_of_file(what), []) if _is_file(what) else (None, [])
    topics = {one.topic for one in planned.wanted} if planned is not None else set()
    search = {"q": topics.pop()} if len(topics) == 1 else {}
    (partitions, status), look = agent_api.answers(("/partitions", search), ("/reassignments", {}))
    if planned is None:
        if not look["journal"]["known"]:
            raise JournalUnavailable(
                "The agent cannot read the journal", why=look["journal"]["why"] or "", todo="Ask again."
            )
        planned, left = _of_plan(status["plans"], what), _throttles(status["throttles"])
    replicas = {TopicPartition(row["topic"], row["partition"]): tuple(row["replicas"]) for row in partitions}
    moves = {
        TopicPartition(*_parted(row["partition"])): _move_words(row["adding"], row["removing"])
        for row in status["reassignments"]
    }
    unseen = {gap.part.value for gap in session.gaps_in(look)} & {"topics", "reassignments"}
    hidden = {one.topic for one in planned.wanted} - {one.topic for one in replicas}
    return CheckedReplicas(_rows(planned, _PresentReplicas(replicas, moves, unseen, hidden)), left)


def no_plan(name: str) -> BadInput:
    """The error for a plan that the journal does not have."""
    return BadInput(
        f"The journal has no plan {name}",
        why="it has not begun, or it has expired from the journal",
        todo="List the plans: rackwise reassign status",
    )


def _is_file(what: str) -> bool:
    return Path(what).suffix == ".json" or Path(what).exists()


def _of_file(path: str) -> _PlannedReplicas:
    from agent.propose.codec import MOST_BYTES, BadReassignmentFile, read_reassignment_json
    from config.plain_file import read_plain

    try:
        return _PlannedReplicas(read_reassignment_json(read_plain(path, MOST_BYTES)), {})
    except (OSError, BadReassignmentFile) as error:
        raise BadInput(
            f"{path} is not a file of kafka-reassign-partitions",
            why=reason(error),
            todo="Name a plan, or a JSON file of that tool.",
        ) from error


def _of_plan(rows: list[PlanRow], name: str) -> _PlannedReplicas:
    """The plan of that name, or the newest attempt at that proposal. Raises BadInput."""
    from agent.values.reassignment import PlanState, attempt

    tried = [row for row in rows if attempt(row["plan"]).of == name] or [row for row in rows if row["plan"] == name]
    if not tried:
        raise no_plan(name)
    row = max(tried, key=lambda one: one["attempt"])
    targets = {TopicPartition(one["topic"], one["partition"]): one for one in row["targets"]}
    wanted = {id_: tuple(one["after"]) for id_, one in targets.items()}
    if row["state"] != PlanState.OPEN.value:
        return _PlannedReplicas(wanted, {})
    waits = f"not begun: it has its replicas from before, and the plan is {'paused' if row['paused'] else 'open'}"
    before = {id_: tuple(one["before"]) for id_, one in targets.items() if one["end"] is None}
    return _PlannedReplicas(wanted, before, waits)


def _throttles(rows: list[Any]) -> list[str]:
    from agent.cli.records import throttle_line

    return [throttle_line(row) for row in rows]


def _parted(partition: str) -> tuple[str, int]:
    topic, _, number = partition.rpartition("-")
    return topic, int(number)


def _move_words(adding: Collection[int], removing: Collection[int]) -> str:
    return f"adds {list(adding)}, removes {list(removing)}"


def _rows(planned: _PlannedReplicas, present: _PresentReplicas) -> list[VerifyRow]:
    return [_row(one, wanted, planned, present) for one, wanted in sorted(planned.wanted.items())]


def _row(
    one: TopicPartition, wanted: tuple[int, ...], planned: _PlannedReplicas, present: _PresentReplicas
) -> VerifyRow:
    found, move = present.replicas.get(one), present.moves.get(one)
    state: Literal["done", "moving", "waiting", "other", "gone", "unknown"]
    if "reassignments" in present.unseen or (found is None and present.unseen):
        state, sentence = "unknown", "the brokers did not report it"
    elif found is None and one.topic in present.hidden:
        state, sentence = "unknown", "the topic does not exist, or the agent's settings leave it out"
    elif found is None:
        state, sentence = "gone", "the partition does not exist"
    elif move is not None:
        state, sentence = "moving", move
    elif found == wanted:
        state, sentence = "done", "moved as planned"
    elif found == planned.before.get(one):
        state, sentence = "waiting", planned.waits
    else:
        state, sentence = "other", "no reassignment is in progress, and its replicas are not the planned ones"
    replicas = None if found is None else list(found)
    return {"partition": str(one), "state": state, "replicas": replicas, "planned": list(wanted), "sentence": sentence}
