"""Which command prints which document: the one table that schemas, their tests and docs/operations.md are made from."""

from __future__ import annotations

from typing import Any, NamedTuple

from agent.cli.documents import (
    acting,
    assigning,
    backtest,
    cluster,
    configuring,
    doctor,
    groups,
    planning,
    racks,
    simulating,
    status,
    topics,
)
from agent.propose.codec import ProposalDocument


class Document(NamedTuple):
    """What one or several commands print in the forms json, jsonl and yaml."""

    name: str
    """Of its schema: docs/schemas/command-NAME.v1.json."""
    kind: Any
    """A TypedDict: the document, or one of its rows."""
    commands: tuple[str, ...]
    """As they are typed after ``rackwise``, with the option or the ARGUMENT that makes them print this."""
    about: str
    rows: bool = True
    """A list of rows, of which jsonl prints one a line; else one object."""
    version: int = 1
    """Fields may be added within a version."""


_ANSWERED = (
    "proposals approve", "proposals apply", "proposals cancel", "pause", "resume", "reassign cancel",
    "reassign rollback",
)  # fmt: skip

DOCUMENTS: tuple[Document, ...] = (
    Document(
        "status", status.StatusDocument, ("status",), "What is there, what crosses racks, all findings.", rows=False
    ),
    Document("racks", racks.RackDocument, ("racks",), "Racks, one row each."),
    Document("groups", groups.GroupDocument, ("groups",), "Groups, costliest first."),
    Document(
        "group", groups.GroupDetailsDocument, ("groups GROUP",), "One group with its members, tasks and topics.",
        rows=False,
    ),
    Document("topics", topics.TopicDocument, ("topics",), "Topics, costliest first."),
    Document(
        "topic", topics.TopicDetailsDocument, ("topics TOPIC",), "One topic, its readers and partitions.", rows=False
    ),
    Document("top", topics.TopDocument, ("top",), "One look after the other, one line each.", rows=False),
    Document("doctor", doctor.CheckDocument, ("doctor",), "Checks, one row each."),
    Document("plan", ProposalDocument, ("plan", "proposals", "proposals list"), "Proposals, one row each."),
    Document("plan-groups", planning.PlanGroup, ("plan --groups",), "Groups: now, by their own assignors, at best."),
    Document(
        "plan-new-partitions", planning.NewPlacementRow, ("plan --new-topic", "plan --add-partitions"),
        "Two placements of new partitions: by Kafka's own placer, and the best one.",
    ),
    Document("explain", planning.ExplainedRow, ("explain",), "Rules with their answers, one row each."),
    Document("proposals-history", acting.HistoryRow, ("proposals history",), "The journal, the latest entry last."),
    Document("answer", acting.CommandAnswer, _ANSWERED, "The answer of the leading agent.", rows=False),
    Document(
        "reassign-status", acting.ReassignStatus, ("reassign status",),
        "Plans, throttles, and the copies that brokers are making.", rows=False,
    ),
    Document("reassign-verify", acting.VerifyRow, ("reassign verify",), "Partitions of a plan, one row each."),
    Document(
        "simulate", simulating.Simulation, ("simulate",),
        "Groups, findings, proposals and losses after the changes.", rows=False,
    ),
    Document("assign", assigning.Assigned, ("assign",), "The output of Kafka's own classes for each case.", rows=False),
    Document("optimize", assigning.Optimized, ("optimize",), "The assignment of tasks that costs least.", rows=False),
    Document("config-show", configuring.SettingRow, ("config show",), "Settings in force, one row each."),
    Document(
        "config-check", configuring.CheckedSettings, ("config check",), "That the settings can be used.", rows=False
    ),
    Document("cluster", cluster.LocalCluster, ("cluster up", "cluster status"), "Clusters on this machine."),
    Document(
        "spark-backtest", backtest.BacktestRow, ("spark backtest",), "Strategies by how well they did, one row each."
    ),
)  # fmt: skip

NOT_YET: tuple[str, ...] = ()
"""Commands whose documents have no schema yet."""

SCHEMA_OF_SETTINGS = "config schema"
"""The one command that prints a JSON Schema."""


def command_name(typed: str) -> str:
    """The words of the command itself, as in ``proposals history``; without ``--options`` and ARGUMENTS."""
    return " ".join(word for word in typed.split() if not word.startswith("--") and not word.isupper())
