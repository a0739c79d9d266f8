"""Backtest: history cut by group, and what strategies made of each stretch of it. Times are epoch milliseconds."""

from __future__ import annotations

from pyspark.sql import types as t

from pipeline.schemas.table import BINARY, BOOLEAN, DOUBLE, INT, LONG, STRING, STRINGS, Table, column, columns

_PART = (
    column("cluster", STRING, "Cluster id.", required=True),
    column("stretch_ms", LONG, "Begin of the stretch of history that it belongs to.", required=True),
    column("bucket", INT, "Part of the cluster's groups; -1 for all of them, in whole looks.", required=True),
)
_TEXTS, _NUMBERS = STRINGS, t.ArrayType(DOUBLE)

SLICES = Table(
    "backtest.slices",
    "Groups in looks, with the topics that they read; what seldom changes is written once in each stretch.",
    columns(
        *_PART,
        column("taken_ms", LONG, "When the look began.", required=True),
        column("look", STRING, "Id of the look.", required=True),
        column("kind", INT, "0 for what all groups of the look have in common, 1 for a group.", required=True),
        column("subject", STRING, "Group id; empty for kind 0.", required=True),
        column("group_digest", LONG, "Which group, as it stands.", required=True),
        column("topics_digest", LONG, "Which topics, as they stand.", required=True),
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
    column("ended", STRING, "Why history shows no more of it."),
    column("ended_ms", LONG, "Since when."),
    column("saved_partition_s", DOUBLE, "Reads that did not cross racks because of it, times seconds."),
    column("saved_bytes", DOUBLE, "Bytes of these, where rates are known."),
    column("saved_usd", DOUBLE, "Their price."),
    column("false_trigger", BOOLEAN, "Whether it brought nothing; null where that is not known."),
    column("document", STRING, "The proposal, as the topic would have it."),
)
SAID = columns(
    column("look", STRING, "Look of which it was made."),
    column("at_ms", LONG, "When."),
    column("slot", STRING, "Key of its record."),
    column("proposal", STRING, "Id."),
    column("document", STRING, "The proposal, byte for byte as the live agent would publish it."),
)

UNITS = Table(
    "backtest.units",
    "What one strategy made of one stretch of one part of a cluster; never worked out twice for equal input.",
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
        column("problems", _TEXTS, "Why: the first few.", required=True),
        column("seconds", DOUBLE, "Time that looks stand for.", required=True),
        column("unseen_s", DOUBLE, "Time for which no look stands.", required=True),
        column("read_partition_s", DOUBLE, "Reads across racks, times seconds.", required=True),
        column("unknown_partition_s", DOUBLE, "Reads of which it is not known whether they cross, times seconds."),
        column("read_bytes", DOUBLE, "Bytes read across racks, where rates are known.", required=True),
        column("read_usd", DOUBLE, "Their price.", required=True),
        column("dark_group_s", DOUBLE, "Groups whose bytes are not known in full, times seconds.", required=True),
        column("copied_bytes", DOUBLE, "Bytes copied by moves.", required=True),
        column("copied_usd", DOUBLE, "Their price.", required=True),
        column("replication_bytes", DOUBLE, "By how much moves changed what followers fetch.", required=True),
        column("replication_usd", DOUBLE, "Its price.", required=True),
        column("moves", LONG, "Partitions, tasks and replicas moved.", required=True),
        column("placements", INT, "Reassignments and changes of leaders.", required=True),
        column("triggers", INT, "Rebalances asked for.", required=True),
        column("false_triggers", INT, "Of these, those that brought nothing.", required=True),
        column("unjudged_triggers", INT, "Of these, those of which no look shows what came.", required=True),
        column("violation_minutes", DOUBLE, "Rules that were broken, times minutes.", required=True),
        column("balanced_s", _NUMBERS, "How long groups were worse than they could be, until they were not."),
        column("unbalanced_s", _NUMBERS, "...and those that were to the end, by then."),
        column("acts", t.ArrayType(ACT), "What the strategy did."),
        column("said", t.ArrayType(SAID), "Proposals of as-recorded looks."),
    ),
    key=("unit",),
)

BACKTEST = (SLICES, UNITS)
