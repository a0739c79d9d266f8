"""Every document that a command prints, made by the command itself without a broker: the world, and what is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from typer.main import get_command

from agent.act.journal.file_journal import FileJournal
from agent.cli.app import full_application
from agent.journal import plan_entries
from agent.journal.record_trust import LeaderEntry
from agent.values.proposal import SCHEMA_ID
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ThrottleDebt,
)
from agent.values.throttles import ThrottleResource as Owed
from tests.assignors.kafka.golden import FOLDER as GOLDEN
from tests.assignors.problem_files import FOLDER as PROBLEMS
from tests.builders import Answers, an_observation, consumer, instance, reader
from tests.cli.execute.file_agent import MOVE, TARGETS
from tests.docs.document_schemas import CommandDocument, document_schema
from tests.docs.schemas import proposal_schema
from tests.snapshots import tp

STRUCTURED = ("json", "jsonl", "yaml")
_REGISTRY: Registry[Any] = Registry().with_resource(
    SCHEMA_ID, Resource.from_contents(proposal_schema(), default_specification=DRAFT202012)
)


def a_cluster() -> Answers:
    """Faults of many kinds, groups of all kinds, and a reassignment that runs."""
    answers = an_observation(a=(1, 4), b=(2,), c=(3,))
    answers.topic("t", (1, 4), (2, 3), min_insync_replicas="1")
    answers.topic("orders", (1, 2), (1, 2), (2, 1), (2, 1))
    answers.topic("clicks", (1, 2, 3), (2, 3, 1), (3, 1, 2), topic_id="AAAAAAAAAAAAAAAAAAAAAQ")
    answers.topic("app-store-changelog", (1, 2), (2, 3), (3, 1), ends=[1_000_000] * 3, cleanup_policy="compact")
    answers.moving("t-1", (3, 2), (3,), ())
    answers.group(
        "billing", reader("consumer-1", "b", "orders-0 orders-1"), reader("consumer-2", "c", "orders-2 orders-3")
    )
    answers.group("mailer", reader("mail-1", None, "t-0 t-1"))
    answers.kip848("search", consumer("m1", "a", "clicks-0 clicks-1"), consumer("m2", "b", "clicks-2"))
    for broker in (1, 2, 3, 4):
        answers.sizes[broker, tp("t-0")] = 5_000_000
    return answers.streams(
        "app",
        instance(1, "a", {"0_0": "clicks-0", "0_1": "clicks-1"}, sums={"0_0": -2, "0_1": -2}),
        instance(2, "b", {"0_2": "clicks-2"}, sums={"0_2": -2}),
    )


def journal_of(path: Path) -> None:
    """A journal with a plan, a batch, and throttles of both kinds."""
    journal = FileJournal.open(path, LeaderEntry("rw-1", "here", 1, "cluster", 7_000))
    done = Batch(MOVE.id, 1, TARGETS[:1], BatchState.CLOSED, ends=(PartitionEnd(tp("t-0"), PartitionEndReason.BACK),))
    runs = Batch(MOVE.id, 2, TARGETS[1:], BatchState.ACKED, rate_bytes_per_s=7_000_000)
    rate = ThrottleDebt(Owed(broker=1), "leader.replication.throttled.rate", 7_000_000, None, MOVE.id, 2)
    copies = ThrottleDebt(Owed(topic="t"), "follower.replication.throttled.replicas", ("0:1", "0:2"), None, MOVE.id, 2)
    given = (ReassignmentPlan(MOVE.id, TARGETS, PlanState.OPEN, approved_by="ann@desk"), done, runs, rate, copies)
    journal.append(*(line for change in given for line in plan_entries.change_writes(change)))
    journal.close()


NEW_TOPIC = ("--new-topic", "payments", "--partitions", "3", "--replication-factor", "2")
LOOKS: dict[str, tuple[str, ...]] = {
    "status": ("status",),
    "racks": ("racks",),
    "groups": ("groups",),
    "groups GROUP": ("groups", "app"),
    "topics": ("topics",),
    "topics TOPIC": ("topics", "orders"),
    "top": ("top",),
    "doctor": ("doctor",),
    "plan": ("plan",),
    "plan --groups": ("plan", "--groups"),
    "plan --new-topic": ("plan", *NEW_TOPIC),
    "plan --add-partitions": ("plan", "--add-partitions", "orders=6"),
    "simulate": ("simulate", "--remove-rack", "b", "--standbys", "app=1", "--remove-member", "billing=consumer-1"),
}
"""Commands that take ``--replay``, as they are typed in the catalogue."""
ASKS: dict[str, tuple[str, ...]] = {
    "explain": ("explain", "topic/t"),
    "proposals": ("proposals",),
    "proposals list": ("proposals", "list"),
    "proposals history": ("proposals", "history"),
    "reassign status": ("reassign", "status"),
    "reassign verify": ("reassign", "verify", MOVE.id),
}
"""Commands that ask a cluster or read the journal."""
TELLS: dict[str, tuple[tuple[str, ...], ...]] = {
    "proposals approve": (("proposals", "approve", MOVE.id, "--yes"),),
    "proposals apply": (("proposals", "apply", MOVE.id, "--yes"),),
    "proposals cancel": (("proposals", "approve", MOVE.id, "--yes"), ("proposals", "cancel", MOVE.id, "--yes")),
    "pause": (("pause", "--reason", "sale"),),
    "resume": (("pause",), ("resume",)),
    "reassign cancel": (("reassign", "cancel", MOVE.id, "--yes"),),
    "reassign rollback": (("reassign", "rollback", MOVE.id, "--yes"),),
}
"""Commands that an agent answers: what is typed, the last one being the command itself."""
ALONE: dict[str, tuple[str, ...]] = {
    "config show": ("config", "show", "--origin"),
    "config check": ("config", "check"),
    "notify test": ("notify", "test", "--set", "notify.targets.ops.url=json://127.0.0.1:1/x"),
    "cluster status": ("cluster", "status"),
    "cluster up": ("cluster", "up"),
}
"""Commands that need nothing but this machine."""
FILES: dict[str, tuple[str, ...]] = {
    "assign": ("assign", str(GOLDEN / "group.range.json.gz")),
    "optimize": ("optimize", str(PROBLEMS / "t100c10.json.gz")),
}
"""Commands whose ``-o`` is a file of JSON."""
ELSEWHERE = frozenset({"spark backtest", "spark status", "plugin jar"})
"""Printed by a test of its own."""
REPORTS = frozenset({"spark report"})
"""Commands whose ``--output`` names the forms of a report: Markdown, HTML and CSV."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that can be typed, by its words after ``rackwise``; a group that is a command too among them."""

    def below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        if hasattr(command, "commands"):
            if words and command.invoke_without_command:
                yield " ".join(words), command
            for name, one in command.commands.items():
                yield from below(one, (*words, name))
        else:
            yield " ".join(words), command

    yield from below(get_command(full_application(loaded=True)), ())


def answering() -> list[str]:
    """Commands with ``--output``: those that print a document."""
    return [
        name
        for name, command in commands()
        if name not in REPORTS and any("--output" in one.opts for one in command.params)
    ]


def validate(document: CommandDocument, printed: Any, form: str = "json") -> None:
    """Raises where what was printed is not as its schema says; a line of jsonl is one of the rows."""
    schema = document_schema(document)
    if form == "jsonl" and document.rows:
        printed = [printed]
    jsonschema.Draft202012Validator(schema, registry=_REGISTRY).validate(printed)


# --- numbers that are texts -------------------------------------------------------------------------------------

_NUMBER = r"[-+]?\$?\d[\d,]*(?:\.\d+)?"
_UNIT = r"(?:%|[kMGTP]?i?B(?:/s)?|bytes(?:/s)?|records(?:/s)?|ms|s|min|h|d|days?|USD)"
_TOLD = rf"{_NUMBER} ?{_UNIT}?"
_FORMATTED = re.compile(rf"(?:[<>~] ?)?{_TOLD}(?: ?(?:of|to|->|-|/) ?{_TOLD})?(?: \(.*\))?")
NAMES = frozenset(
    {
        "resource", "version", "name", "subject", "source", "target", "key", "kind", "group", "topic", "rack", "value",
        "line", "host", "member", "command", "replica_assignment", "id", "partition",
    }
)  # fmt: skip
"""Fields that hold names or values of others, which may look like anything."""


def formatted_numbers(printed: Any, names: frozenset[str] = NAMES, where: str = "") -> Iterator[str]:
    """Every text that is a number with thousands separators, a unit or a range, where a number belongs."""
    match printed:
        case dict():
            for name, value in printed.items():
                if name not in names or isinstance(value, dict | list):
                    yield from formatted_numbers(value, names, f"{where}.{name}")
        case list():
            for value in printed:
                yield from formatted_numbers(value, names, f"{where}[]")
        case str() if _FORMATTED.fullmatch(printed):
            yield f"{where}: {printed!r}"
