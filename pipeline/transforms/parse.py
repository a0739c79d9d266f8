"""Records of rackwise's topics as bronze rows, or the reason why one cannot be read.

Each function takes records as Spark's Kafka source gives them (with headers) and returns one row per record: the
columns of its bronze table, the raw record, and ``reason``, which is null where the record could be read. Invariant: a
record is never lost and never in both: `accepted` and `quarantined` split the same rows in two. JSON is parsed once.

A field that this version does not know is kept: in ``data`` as it is, outside it in ``more``. A version that it does
not know is a reason. An event that was too large for a record comes in fragments, each with its number and their
count; one without them, or without text, can never be joined with the others. Whether all of them arrived is checked
where looks are rebuilt. Nothing here raises, for any bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.journal.entries import VERSION as JOURNAL_VERSION
from agent.telemetry.events import VERSION as TELEMETRY_VERSION
from agent.values.proposal import SCHEMA_VERSION as PROPOSAL_VERSION
from pipeline.schemas.bronze import PROPOSALS
from pipeline.schemas.table import TableSpec
from pipeline.transforms.spans import HOUR_MS, LAST_MS

MAX_VALUE_BYTES = 4 * 1024 * 1024
"""Four times what Kafka takes as one record by default; rackwise itself writes less than one."""

_TELEMETRY_FIELDS = ("v", "kind", "subject", "cluster", "look", "n", "taken_ms", "data")
_BASE = ("base", "base_taken_ms")
"""Fields of looks by changes alone."""
_JOURNAL_FIELDS = ("v", "kind", "at_ms", "epoch", "seq", "value")
# JSON as Python's reader takes it, and nothing beyond.
_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false", "allowUnquotedFieldNames": "false"}
_PLACE = ("topic", "partition", "offset", "kafka_time")
_RAW = ("raw_key", "raw_value", "raw_headers")
_KEPT = (*_PLACE, "day", *_RAW)


def telemetry(records: DataFrame) -> DataFrame:
    """Rows of ``bronze.telemetry``, `late` still null, with the raw record and the reason."""
    read = _with_fields(_with_place(records))
    names = (*_TELEMETRY_FIELDS, *_BASE)
    field = {name: F.col("fields")[name] for name in names}
    numbers = {"v": "int", "n": "int", "taken_ms": "bigint", "base_taken_ms": "bigint"}
    read = read.select(
        *_KEPT,
        *(_cast(field[name], numbers.get(name, "string"), name) for name in names),
        _more(names),
        _what_it_is("telemetry").alias("unreadable"),
    ).withColumn("piece", F.when(F.col("kind") == "fragment", piece_of(F.col("data"))))
    reason = F.coalesce(
        F.col("unreadable"),
        _version_problem(F.col("v"), TELEMETRY_VERSION),
        _missing(_TELEMETRY_FIELDS),
        F.when(~F.col("data").startswith("{"), F.lit("malformed: data is no JSON object")),
        F.when(
            F.col("base").isNull() != F.col("base_taken_ms").isNull(),
            F.lit("malformed: base and base_taken_ms do not name a full look"),
        ),
        F.when(F.col("kind") == "fragment", fragment_problem(F.col("piece"))),
    )
    identity = F.concat_ws("/", "cluster", "look", F.col("n").cast("string"))
    suffix = F.when(F.col("kind") == "fragment", fragment_suffix(F.col("piece"))).otherwise("")
    return read.select(
        *_PLACE, *_RAW, F.concat(identity, suffix).alias("event_id"), *_TELEMETRY_FIELDS, "more",
        F.lit(None).cast("boolean").alias("late"), *_BASE, "day", reason.alias("reason"),
    )  # fmt: skip


def proposals(records: DataFrame) -> DataFrame:
    """Rows of ``bronze.proposals``, with the raw record and the reason."""
    read = _with_fields(_with_place(records))
    source = F.split(_header("ce_source"), "/")
    slot = F.col("raw_key").cast("string")
    version = F.regexp_extract(_header("ce_type"), r"^rackwise\..*\.v(\d{1,9})$", 1).try_cast("int")
    is_tombstone = F.col("raw_value").isNull()
    event_id = _header("ce_id")
    written_ms = F.unix_millis(F.try_to_timestamp(_header("ce_time")))
    read = read.select(
        *_KEPT,
        event_id.alias("event_id"),
        _header("ce_type").alias("type"),
        F.try_url_decode(F.get(source, F.lit(2))).alias("cluster"),
        F.try_url_decode(F.get(source, F.lit(4))).alias("agent"),
        _header("ce_subject").alias("subject"),
        slot.alias("slot"),
        written_ms.alias("time_ms"),
        F.when(~is_tombstone, F.col("raw_value").cast("string")).alias("data"),
        version.alias("version"),
        _what_it_is("proposals", tombstones=True).alias("unreadable"),
        is_tombstone.alias("tombstone"),
    )
    reason = F.coalesce(
        F.when(F.col("slot").isNull() | ~F.is_valid_utf8("slot"), F.lit("malformed: the key is no text")),
        F.when(F.col("tombstone"), F.lit(None)).otherwise(
            F.coalesce(
                F.col("unreadable"),
                F.when(
                    F.col("event_id").isNull() | F.col("type").isNull() | F.col("cluster").isNull(),
                    F.lit("malformed: it lacks the CloudEvents headers ce_id, ce_type or ce_source"),
                ),
                F.when(
                    F.col("version").isNull(), F.concat(F.lit("malformed: rackwise writes no "), _shown(F.col("type")))
                ),
                _version_problem(F.col("version"), PROPOSAL_VERSION),
            )
        ),
    )
    names = [field.name for field in PROPOSALS.schema if field.name not in ("day", *_PLACE)]
    return read.select(*_PLACE, *_RAW, *names, "day", reason.alias("reason"))


def journal(records: DataFrame, cluster: str) -> DataFrame:
    """Rows of ``bronze.journal`` of that cluster, with the raw record and the reason."""
    read = _with_fields(_with_place(records))
    field = {name: F.col("fields")[name] for name in _JOURNAL_FIELDS}
    numbers = {"v": "int", "at_ms": "bigint", "epoch": "bigint", "seq": "bigint"}
    read = read.select(
        *_KEPT,
        *(_cast(field[name], numbers.get(name, "string"), name) for name in _JOURNAL_FIELDS),
        F.col("raw_key").cast("string").alias("key"),
        _more(_JOURNAL_FIELDS),
        _what_it_is("journal", tombstones=True).alias("unreadable"),
        F.col("raw_value").isNull().alias("tombstone"),
    )
    reason = F.coalesce(
        F.when(F.col("key").isNull() | ~F.is_valid_utf8("key"), F.lit("malformed: the key is no text")),
        F.when(F.col("tombstone"), F.lit(None)).otherwise(
            F.coalesce(
                F.col("unreadable"),
                _version_problem(F.col("v"), JOURNAL_VERSION),
                _missing(_JOURNAL_FIELDS),
                F.when(~F.col("value").startswith("{"), F.lit("malformed: value is no JSON object")),
            )
        ),
    )
    return read.select(
        *_PLACE, *_RAW, F.lit(cluster).alias("cluster"), "key", "kind", "at_ms", "epoch", "seq",
        F.col("value").alias("data"), "more", "day", reason.alias("reason"),
    )  # fmt: skip


def with_late(parsed: DataFrame, watermark_ms: int | None) -> DataFrame:
    """The telemetry rows, each with whether its hour was closed already; none is late without a watermark."""
    ended = (F.floor(F.col("taken_ms") / HOUR_MS) + 1) * HOUR_MS
    late = F.lit(False) if watermark_ms is None else ended <= F.lit(watermark_ms)  # noqa: FBT003 a literal of SQL
    return parsed.withColumn("late", late)


def accepted(parsed: DataFrame, table: TableSpec) -> DataFrame:
    """The rows that could be read, in the table's columns."""
    return parsed.where(F.col("reason").isNull()).select(*table.schema.names)


def quarantined(parsed: DataFrame) -> DataFrame:
    """The rows that could not, whole and with the reason."""
    return parsed.where(F.col("reason").isNotNull()).select(
        *_PLACE,
        F.col("raw_key").alias("key"),
        F.col("raw_value").alias("value"),
        F.to_json(
            F.transform(
                "raw_headers", lambda one: F.struct(one["key"].alias("key"), F.base64(one["value"]).alias("value"))
            )
        ).alias("headers"),
        "reason",
        "day",
    )


def _with_place(records: DataFrame) -> DataFrame:
    return records.select(
        "topic",
        "partition",
        "offset",
        F.col("timestamp").alias("kafka_time"),
        F.date_format("timestamp", "yyyy-MM-dd").alias("day"),
        F.col("key").alias("raw_key"),
        F.col("value").alias("raw_value"),
        F.col("headers").alias("raw_headers"),
    )


def _with_fields(records: DataFrame) -> DataFrame:
    """The fields of the value's JSON object as text; null where it is none. What is too large is not parsed."""
    text = F.when(
        (F.length("raw_value") <= MAX_VALUE_BYTES) & F.is_valid_utf8(F.col("raw_value").cast("string")),
        # Inside of a list, because a reader of one value would leave what comes after it unread.
        F.concat(F.lit("["), F.col("raw_value").cast("string"), F.lit("]")),
    )
    values = records.withColumn("values", F.from_json(text, "array<map<string,string>>", _STRICT))
    one = F.when(F.size("values") == 1, F.get("values", F.lit(0)))
    return values.withColumn("fields", one).drop("values")


def _cast(text: Column, kind: str, name: str) -> Column:
    """The field as that kind; null where it is none, and where a time is out of range."""
    value = text.try_cast(kind)
    return (F.when(value.between(0, LAST_MS), value) if name.endswith("_ms") else value).alias(name)


def _what_it_is(topic: str, *, tombstones: bool = False) -> Column:
    """Why the value is no JSON object of ours at all; null when it is one."""
    size = F.length("raw_value")
    too_large = F.concat(
        F.lit("oversize: "), size.cast("string"), F.lit(f" bytes, and at most {MAX_VALUE_BYTES} are read")
    )
    empty = None if tombstones else f"malformed: a record of {topic} without a value"
    return (
        F.when(F.col("raw_value").isNull(), F.lit(empty))
        .when(size > MAX_VALUE_BYTES, too_large)
        .when(~F.is_valid_utf8(F.col("raw_value").cast("string")), F.lit("malformed: the value is not UTF-8"))
        .when(F.col("fields").isNull(), F.lit("malformed: the value is no JSON object"))
    )


def _version_problem(version: Column, known: int) -> Column:
    newer = F.concat(F.lit("version: it is of version "), version.cast("string"), F.lit(f", known up to {known}"))
    return F.when(version > known, newer).when(version < 1, F.lit("malformed: there is no version below 1"))


def _missing(fields: Iterable[str]) -> Column:
    names = F.concat_ws(", ", *(F.when(F.col(name).isNull(), F.lit(name)) for name in fields))
    reason = F.concat(F.lit("malformed: missing or of another kind: "), names)
    return F.when(F.length(names) > 0, reason)


def _more(known: Iterable[str]) -> Column:
    """Fields that are not known, as a JSON object whose values are text; null for none."""
    names = list(known)
    others = F.map_filter("fields", lambda name, _: ~name.isin(names))
    return F.when(F.size(others) > 0, F.to_json(others)).alias("more")


def _header(name: str) -> Column:
    """The first header of that name as text; null when there is none, or when it is no text."""
    found = F.get(F.filter("raw_headers", lambda one: one["key"] == name), F.lit(0))["value"].cast("string")
    return F.when(F.is_valid_utf8(found), found)


def _shown(text: Column) -> Column:
    return F.substring(F.regexp_replace(text, r"[\p{Cntrl}]", " "), 1, 80)


# --- fragments ------------------------------------------------------------------------------------------------------

MAX_PARTS = 10_000
"""Four gigabytes of text; what claims more is not believed."""


def piece_of(data: Column) -> Column:
    """The fields of a fragment's data as text; null when it is no JSON object."""
    return F.from_json(data, "map<string,string>")


def fragment_problem(piece: Column) -> Column:
    """Why this is no fragment that could be put together with others; null when it is one."""
    number, parts, text = piece["part"].try_cast("int"), piece["parts"].try_cast("int"), piece["text"]
    fits = (number >= 0) & (number < parts) & (parts <= MAX_PARTS) & (F.length(text) > 0)
    return F.when(
        ~F.coalesce(fits, F.lit(False)),  # noqa: FBT003 a literal of SQL
        F.lit(f"fragment: part, parts (at most {MAX_PARTS}) and text do not make a piece of an event"),
    )


def fragment_suffix(piece: Column) -> Column:
    """Suffix of each fragment of one event: a slash and the number."""
    return F.concat(F.lit("/"), piece["part"].try_cast("int").cast("string"))
