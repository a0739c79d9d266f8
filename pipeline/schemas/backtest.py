"""Backtest: history cut by group, and what strategies made of each stretch of it. Times are epoch milliseconds."""

from __future__ import annotations

from pyspark.sql import types as t

from pipeline.schemas.table import BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING, STRINGS, TableSpec, column, columns

_PART = (
    column("cluster", STRING, "Cluster id.", required=True),
    column("stretch_ms", LONG, "Begin of the stretch of history that it belongs to.", required=True),
    column("bucket", INT, "Part of the cluster's groups; -1 for all of them, in whole looks.", required=True),
)
_TEXTS, _NUMBERS = STRINGS, t.ArrayType(DOUBLE)

SLICES = TableSpec(
    "backtest.slices",
    "Groups in looks, with the topics that they read; what seldom changes is written once in each stretch.",
    columns(
        *_PART,
        column("taken_ms", LONG, "When the look began.", required=True),
        column("look", STRING, "Id of the look.", required=True),
        column("kind", INT, "0 for what all groups of the look have in common, 1 for a group.", required=True),
        column("subject", STRING, "Group id; empty for kind 0.", required=True),
        column("group_digest", LONG, "Digest of the group's state.", required=True),
        column("topics_digest", LONG, "Digest of its topics' state.", required=True),
        column("group_body", BINARY, "What group_digest stands for, as JSON, where it comes first; kind 0: the world."),
        column(
            "topics_body", BINARY, "What topics_digest stands for, as JSON, where it comes first in the group's rows."
        ),
        column("moving", BINARY, "Copies of tasks and what was remembered of the group, as JSON."),
        column("weights_digest", LONG, "Which weights of the pipeline; 0 for none.", required=True),
        column(
            "weights_body", BINARY, "What weights_digest stands for, as JSON, where it comes first in the group's rows."
        ),
        column("rates", BINARY, "Bytes per second by topic and partition: 32-bit floats, little end first."),
        column("input", STRING, "Digest of the events that the stretch was cut from.", required=True),
    ),
    key=("cluster", "stretch_ms", "bucket", "look", "kind", "subject"),
    partitioned_by=("stretch_ms",),
)

ACT = columns(
    column("look", STRING, "Look after which it was done."),
    column("at_ms", LONG, "When."),
    column("proposal", STRING, "Id of the proposal."),
    column("kind", STRING, "Its kind."),
    column("reason", STRING, "Its reason."),
    column("subject", STRING, "kind/name."),
    column("moves", INT, "Its moves."),
    column("ended", STRING, "Why its effect ended."),
    column("ended_ms", LONG, "When its effect ended, epoch milliseconds."),
    column("saved_partition_s", DOUBLE, "Reads that stayed in their rack because of it, times seconds."),
    column("saved_bytes", DOUBLE, "Bytes of these reads, where rates are known."),
    column("saved_usd", DOUBLE, "Price of these bytes, USD."),
    column("false_trigger", BOOLEAN, "Whether the trigger had no use; null where that is unknown."),
    column("document", STRING, "The proposal, as its topic has it."),
)
SAID = columns(
    column("look", STRING, "Look that it was made from."),
    column("at_ms", LONG, "When."),
    column("slot", STRING, "Key of its record."),
    column("proposal", STRING, "Id."),
    column("document", STRING, "The proposal, byte for byte as the live agent would publish it."),
)

UNITS = TableSpec(
    "backtest.units",
    "Results of one strategy on one stretch of one part of a cluster; equal input is computed once.",
    columns(
        column("unit", STRING, "Digest of strategy, settings and input.", required=True),
        column("strategy", STRING, "Name of the strategy.", required=True),
        column("settings", STRING, "Digest of what it changes.", required=True),
        column("by", STRING, "looks or groups: whole looks were lived through, or groups apart.", required=True),
        *_PART,
        column("looks", INT, "Looks.", required=True),
        column("snapshots", LONG, "Groups of all looks.", required=True),
        column("fresh", LONG, "Of these, those that were not as in the look before; the others were worked out once."),
        column("unusable", INT, "Looks that were left out.", required=True),
        column("problems", _TEXTS, "The first few reasons.", required=True),
        column("seconds", DOUBLE, "Seconds that looks cover.", required=True),
        column("unseen_s", DOUBLE, "Seconds without a look.", required=True),
        column("read_partition_s", DOUBLE, "Reads across racks, times seconds.", required=True),
        column("unknown_partition_s", DOUBLE, "Reads for which it is unknown whether they cross, times seconds."),
        column("read_bytes", DOUBLE, "Bytes read across racks, where rates are known.", required=True),
        column("read_usd", DOUBLE, "Price of these bytes, USD.", required=True),
        column("dark_group_s", DOUBLE, "Groups whose bytes are not known in full, times seconds.", required=True),
        column("copied_bytes", DOUBLE, "Bytes copied by moves.", required=True),
        column("copied_usd", DOUBLE, "Price of these bytes, USD.", required=True),
        column("replication_bytes", DOUBLE, "Change of the bytes that followers fetch across racks.", required=True),
        column("replication_usd", DOUBLE, "Price of these bytes, USD.", required=True),
        column("moves", LONG, "Partitions, tasks and replicas moved.", required=True),
        column("placements", INT, "Reassignments and changes of leaders.", required=True),
        column("triggers", INT, "Rebalances triggered.", required=True),
        column("false_triggers", INT, "Triggers without use.", required=True),
        column("unjudged_triggers", INT, "Triggers whose effect no look shows.", required=True),
        column("violation_minutes", DOUBLE, "Broken rules, times minutes.", required=True),
        column(
            "balanced_s", _NUMBERS, "Seconds for which groups were worse than their optimum, until they reached it."
        ),
        column(
            "unbalanced_s",
            _NUMBERS,
            "Seconds for which groups were worse than their optimum and did not reach it by the end.",
        ),
        column("acts", t.ArrayType(ACT), "Effects of the strategy's acts."),
        column("said", t.ArrayType(SAID), "Proposals of as-recorded looks."),
    ),
    key=("unit",),
)
