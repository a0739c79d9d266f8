"""Gold: hours, histories and lessons that people and the agent read. Hours are UTC, written as epoch milliseconds."""

from __future__ import annotations

from pyspark.sql import types as t

from pipeline.schemas.table import BOOLEAN, DOUBLE, INT, LONG, STRING, STRINGS, TableSpec, column, columns
from pipeline.schemas.zones import CROSS_ZONE, SAME_ZONE, UNKNOWN_ZONE

_CLUSTER = column("cluster", STRING, "Cluster id.", required=True)
_HOUR = column("hour_ms", LONG, "Begin of the UTC hour, epoch milliseconds.", required=True)
_DAY = column("day", STRING, "UTC day of the hour or of the begin, yyyy-mm-dd.", required=True)
_TP = (column("topic", STRING, "Topic.", required=True), column("partition", INT, "Partition.", required=True))
_GROUP = column("group", STRING, "Group id.", required=True)
_GAPS = (
    column("gap_seconds", DOUBLE, "Seconds of the hour in gaps between looks, with offsets on both sides."),
    column("gap_records", LONG, "Records of these gaps, by the offsets on both sides, beside those above."),
    column("gap_bytes", DOUBLE, "Their bytes."),
)
_BY_DAY = ("day", "cluster")
"""Not by hour, though every batch replaces one: a month of ten clusters would be 7,200 files that can never be one."""


def _hourly(name: str, comment: str, key: tuple[str, ...], *fields: t.StructField) -> TableSpec:
    schema = columns(_CLUSTER, _HOUR, *fields, _DAY)
    return TableSpec(f"gold.{name}", comment, schema, ("cluster", "hour_ms", *key), _BY_DAY)


def _history(name: str, comment: str, key: tuple[str, ...], *fields: t.StructField) -> TableSpec:
    return TableSpec(f"gold.{name}", comment, columns(_CLUSTER, *fields, _DAY), ("cluster", *key), ("day",))


PARTITION_TRAFFIC = _hourly(
    "partition_traffic",
    "Bytes and records written to each partition.",
    ("topic", "partition"),
    *_TP,
    column("seconds", DOUBLE, "Seconds of the hour that looks cover; the rest is a gap, not zero.", required=True),
    column("records", LONG, "Records appended in these seconds."),
    column("bytes", DOUBLE, "Bytes appended in these seconds; null where the size of a record is unknown."),
    column("records_per_s", DOUBLE, "Over the seconds covered."),
    column("bytes_per_s", DOUBLE, "Over the seconds covered."),
    column("bytes_per_record", DOUBLE, "Size of a record as it lies on disk, which is how it travels."),
    column("confidence", STRING, "measured, topic, remembered or none: where bytes_per_record comes from."),
    *_GAPS,
)

READ_TRAFFIC = _hourly(
    "read_traffic",
    "Bytes and records that each group read of each partition.",
    ("group", "topic", "partition"),
    _GROUP,
    *_TP,
    column("seconds", DOUBLE, "Seconds of the hour that looks cover.", required=True),
    column("records", LONG, "Records read: by committed offsets, else by end offsets."),
    column("bytes", DOUBLE, "Bytes read."),
    column("bytes_per_s", DOUBLE, "Over the seconds covered."),
    column("basis", STRING, "committed (offsets that the group committed) or tail (assumed to keep up)."),
    column(
        "catching_up",
        BOOLEAN,
        "Whether it read older records than those appended in the hour; bytes are less certain then.",
    ),
    *_GAPS,
)

LEDGER = _hourly(
    "ledger",
    "Bytes from rack to rack by path, and their price.",
    ("path", "group", "topic", "source_rack", "target_rack", "why_unknown"),
    column("path", STRING, "produce, replicate, catch-up, consume or move.", required=True),
    column("group", STRING, "The group that consumes; empty for the other paths.", required=True),
    column("topic", STRING, "Topic.", required=True),
    column("source_rack", STRING, "Rack that the bytes left; empty where unknown.", required=True),
    column("target_rack", STRING, "Rack that they reached; empty where unknown.", required=True),
    column("zone", STRING, f"{SAME_ZONE}, {CROSS_ZONE} or {UNKNOWN_ZONE}.", required=True),
    column("bytes", DOUBLE, "Bytes; null where the size of records is unknown."),
    column(
        "unavoidable_bytes",
        DOUBLE,
        "Part of them that no placement avoids at this replication factor; null while that is unknown. Of move it "
        "is 0; yet of move and catch-up nothing counts as avoidable: both are paid once.",
    ),
    column("usd", DOUBLE, "Price; null where the pair has none or the racks are unknown; 0 within a rack."),
    column(
        "price_date",
        STRING,
        "Date of the price that was applied; null for a price without a date, and where none applies.",
    ),
    column("why_unknown", STRING, "Why the zone is UNKNOWN; null otherwise."),
    column("seconds", DOUBLE, "Seconds of the hour that looks cover."),
    column(
        "gap_bytes",
        DOUBLE,
        "Part of the bytes that flowed in gaps between looks: offsets on both sides tell how many, not when.",
    ),
    column("confidence", STRING, "seen, or counted where a part flowed in gaps between looks."),
)

CONSERVATION = _hourly(
    "conservation",
    "The ledger beside counters: what the least and the greatest offsets and sizes of the hour tell.",
    ("topic", "path"),
    column("topic", STRING, "Topic.", required=True),
    column("path", STRING, "produce, replicate (with what followers catch up), consume or move.", required=True),
    column("booked_bytes", DOUBLE, "Bytes of the ledger, those of unknown racks included; null while one is unknown."),
    column("counted_bytes", DOUBLE, "Bytes by counters; null while they are unknown."),
    column("difference_bytes", DOUBLE, "Booked less counted."),
    column("difference_share", DOUBLE, "The difference as a share of what is counted; null where that is nothing."),
    column("why_unknown", STRING, "Why the difference is unknown; null otherwise."),
)

LAGS = _hourly(
    "lags",
    "Lag of consumers by hour.",
    ("group", "topic"),
    _GROUP,
    column("topic", STRING, "Topic.", required=True),
    column("looks", INT, "Looks in which the lag is known."),
    column(
        "unknown_looks",
        INT,
        "Looks in which it is unknown, as of one partition at least no commit or no end offset is known.",
    ),
    column("lag_min", LONG, "Records behind over all partitions, least."),
    column("lag_mean", DOUBLE, "Mean over the looks."),
    column("lag_max", LONG, "Most."),
    column("lag_last", LONG, "At the hour's last look."),
)

WARMUPS = _history(
    "warmups",
    "Every warm-up: when it began, how it went, how it ended.",
    ("group", "process", "task", "began_ms"),
    _GROUP,
    column("process", STRING, "Process id.", required=True),
    column("task", STRING, "Task.", required=True),
    column("began_ms", LONG, "First look that saw it.", required=True),
    column("last_ms", LONG, "Last look that saw it."),
    column("ready_ms", LONG, "First look at which it had caught up for certain; null while it has not."),
    column("outcome", STRING, "promoted, given up, running, or unknown (looks are missing)."),
    column("lag_first", DOUBLE, "Records behind at first sight."),
    column("lag_last", DOUBLE, "Records behind at last sight."),
    column("records", DOUBLE, "Records restored meanwhile."),
    column("seconds", DOUBLE, "From first sight to ready, or to last sight."),
    column("waited_s", DOUBLE, "From ready to promoted: the wait for a rebalance."),
    column("stalled_s", DOUBLE, "Time in which the lag did not shrink."),
    column("stalled_rebalancing_s", DOUBLE, "Part of it in which the group was not Stable."),
    column("stalled_sharing_s", DOUBLE, "Part of the rest in which another copy of the process restored."),
    column("changelogs", STRINGS, "Changelog topics of the task; null where unknown."),
    _HOUR,
)

RESTORE_RATES = TableSpec(
    "gold.restore_rates",
    "How fast applications restore, by store.",
    columns(
        _CLUSTER,
        _GROUP,
        column("subtopology", INT, "Subtopology whose state it is.", required=True),
        column("changelogs", STRINGS, "Its changelog topics; empty where unknown."),
        column("samples", INT, "Restores measured.", required=True),
        column("low", DOUBLE, "Records per second, tenth percentile."),
        column("median", DOUBLE, "Records per second, median."),
        column("high", DOUBLE, "Records per second, ninetieth percentile."),
        column("stalled_share", DOUBLE, "Share of the time in which the lag did not shrink."),
        column("stalls_when", STRING, "What went with the stalls: a word and a sentence; null when it never stalled."),
        column("until_ms", LONG, "Last restore that counted, epoch milliseconds."),
    ),
    ("cluster", "group", "subtopology"),
)

REBALANCES = _history(
    "rebalances",
    "Every rebalance that looks show.",
    ("group", "rebalance"),
    _GROUP,
    column("rebalance", STRING, "Tells it from others.", required=True),
    column("after_ms", LONG, "Last look before it."),
    column("seen_ms", LONG, "First look after it.", required=True),
    column("seconds_most", DOUBLE, "How long the group was out of Stable at most, as far as looks can tell."),
    column("members_before", INT, "Members before."),
    column("members_after", INT, "Members after."),
    column("moved", INT, "Partitions that changed their reader; null where unknown."),
    column("cause", STRING, "triggered, members joined, left or changed, new partitions, probing, unknown."),
    column("trigger", STRING, "Id of the proposal that triggered it; null otherwise."),
    _HOUR,
)

RACK_DRIFT = _history(
    "rack_drift",
    "When racks of brokers and replicas were not what they had been, how long, and who caused it.",
    ("subject", "partition", "began_ms"),
    column("subject", STRING, "broker/id or topic/name.", required=True),
    column("partition", INT, "Partition; null for a broker."),
    column("began_ms", LONG, "First look that saw it.", required=True),
    column("ended_ms", LONG, "First look with other racks again; null while it lasts."),
    column("lasted_s", DOUBLE, "How long so far."),
    column("before", STRINGS, "Racks before, sorted."),
    column("after", STRINGS, "Racks after, sorted."),
    column("shares_rack", BOOLEAN, "Whether replicas share a rack while another is free."),
    column(
        "cause", STRING, "relabelled, reassigned by us or by others, new partitions, created blind, recreated, unknown."
    ),
    _HOUR,
)

LOCALITY = _hourly(
    "locality",
    "Locality of every group over time, by the rack of its readers.",
    ("group", "rack"),
    _GROUP,
    column("rack", STRING, "Rack of the readers; empty where unknown.", required=True),
    column("local", DOUBLE, "Partition-looks read within the rack."),
    column("total", DOUBLE, "Partition-looks assigned to readers of the rack."),
    column("unknown", DOUBLE, "Of these, those of unknown rack."),
    column("local_bytes", DOUBLE, "Bytes read within the rack; null where unknown."),
    column("total_bytes", DOUBLE, "Bytes read by readers of the rack; null where unknown."),
)

OUTCOMES = _history(
    "proposal_outcomes",
    "Proposals: predicted and measured results.",
    ("proposal",),
    column("proposal", STRING, "Id.", required=True),
    column("kind", STRING, "Kind.", required=True),
    column("reason", STRING, "Reason."),
    column("subject", STRING, "kind/name."),
    column("created_ms", LONG, "When it was first published."),
    column("state", STRING, "standing, void, expired, running, done, cancelled, failed, unknown.", required=True),
    column("applied_ms", LONG, "When its execution began; null if it did not."),
    column("done_ms", LONG, "When it ended."),
    column("predicted_moves", INT, "Moves."),
    column("measured_moves", INT, "Moves that looks show."),
    column("predicted_move_bytes", DOUBLE, "Bytes to copy."),
    column("measured_move_bytes", DOUBLE, "Bytes copied."),
    column("predicted_seconds", DOUBLE, "How long it takes."),
    column("measured_seconds", DOUBLE, "How long it took."),
    column("predicted_bytes_per_s", DOUBLE, "Cross-rack bytes per second afterwards."),
    column("measured_bytes_per_s", DOUBLE, "The same, measured afterwards."),
    column("before_bytes_per_s", DOUBLE, "The same, measured before."),
    column("predicted_usd_per_day", DOUBLE, "Gain in dollars a day."),
    column("measured_usd_per_day", DOUBLE, "The same, measured."),
    column("error_share", DOUBLE, "(measured - predicted) / predicted of cross-rack bytes per second."),
)

GOLD = (
    PARTITION_TRAFFIC,
    READ_TRAFFIC,
    LEDGER,
    CONSERVATION,
    LAGS,
    WARMUPS,
    RESTORE_RATES,
    REBALANCES,
    RACK_DRIFT,
    LOCALITY,
    OUTCOMES,
)

OWNERS = TableSpec(
    "gold.owners",
    "Owners of topics and groups: the rules of the file that spark.owners names.",
    columns(
        column("rank", INT, "Place of the rule in the file; the first that fits counts.", required=True),
        column("kind", STRING, "topic or group.", required=True),
        column("pattern", STRING, "Pattern of the name, as the file has it.", required=True),
        column("matches", STRING, "The pattern as a regular expression (RLIKE) of the whole name.", required=True),
        column("team", STRING, "Team that owns it.", required=True),
        column("cost_centre", STRING, "Its cost centre; null where the file has none."),
    ),
    ("rank",),
)

DIMENSIONS = (OWNERS,)
"""What settings give, and no topic."""
