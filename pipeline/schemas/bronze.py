"""Bronze: every record of the topics as it came, once, with its topic, partition and offset."""

from __future__ import annotations

from pyspark.sql import types as t

from pipeline.schemas.table import BINARY, BOOLEAN, INT, LONG, STRING, TIMESTAMP, TableSpec, column, columns

_PLACE = (
    column("topic", STRING, "Topic that the record came from.", required=True),
    column("partition", INT, "Its partition there.", required=True),
    column("offset", LONG, "Its offset there.", required=True),
    column("kafka_time", TIMESTAMP, "Timestamp of the record.", required=True),
)
_DAY = column("day", STRING, "UTC day of kafka_time, yyyy-mm-dd.", required=True)


def _table(name: str, comment: str, *fields: t.StructField) -> TableSpec:
    return TableSpec(
        f"bronze.{name}", comment, columns(*_PLACE, *fields, _DAY), ("topic", "partition", "offset"), ("day",)
    )


TELEMETRY = _table(
    "telemetry",
    "Telemetry events, fragments among them, as JSON.",
    column("event_id", STRING, "cluster/look/n, for a fragment with /part: the same event twice has the same id."),
    column("v", INT, "Version of the event."),
    column("kind", STRING, "Kind of the event's data."),
    column("subject", STRING, "kind/name."),
    column("cluster", STRING, "Cluster id."),
    column("look", STRING, "Id of the look."),
    column("n", INT, "Number among the events of the look."),
    column("taken_ms", LONG, "When the look began, epoch milliseconds."),
    column("data", STRING, "The event's data, as JSON."),
    column("more", STRING, "Fields beside these that this version does not know, as JSON; null for none."),
    column("late", BOOLEAN, "Whether it came after its hour had been closed."),
    column("base", STRING, "Id of the full look on which a look by changes stands; null of one in full."),
    column("base_taken_ms", LONG, "When that one began, epoch milliseconds."),
)

PROPOSALS = _table(
    "proposals",
    "Records of the proposals topic: proposals and the changes of their state.",
    column("event_id", STRING, "CloudEvents id; null for a tombstone."),
    column("type", STRING, "CloudEvents type; null for a tombstone."),
    column("cluster", STRING, "Cluster id, out of the CloudEvents source."),
    column("agent", STRING, "Name of the agent, out of the CloudEvents source."),
    column("subject", STRING, "CloudEvents subject, kind/name."),
    column("slot", STRING, "Key of the record: subject, kind and reason."),
    column("time_ms", LONG, "CloudEvents time, epoch milliseconds."),
    column("data", STRING, "The document, as JSON; null for a tombstone."),
)

JOURNAL = _table(
    "journal",
    "Entries of the journal, committed ones only.",
    column("cluster", STRING, "Cluster id of the cluster that the topic is read from."),
    column("key", STRING, "Key of the entry."),
    column("kind", STRING, "Kind of the entry; null for a deletion."),
    column("at_ms", LONG, "The writer's clock, epoch milliseconds."),
    column("epoch", LONG, "Which leadership wrote it."),
    column("seq", LONG, "Number within the epoch."),
    column("data", STRING, "The entry, as JSON; null for a deletion."),
    column("more", STRING, "Fields beside these that this version does not know, as JSON; null for none."),
)

QUARANTINE = _table(
    "quarantine",
    "Records that could not be read, whole, with the reason.",
    column("key", BINARY, "The record's key."),
    column("value", BINARY, "The record's value."),
    column("headers", STRING, "The record's headers as JSON, values in base64."),
    column("reason", STRING, "Why it could not be read: a word, a colon, a sentence.", required=True),
)

BRONZE = (TELEMETRY, PROPOSALS, JOURNAL, QUARANTINE)
