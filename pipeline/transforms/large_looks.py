"""Large looks: parts for several tasks to share, and the parts put together again.

What is about the cluster is read once and goes to every part; each topic and group goes to one. The rows of a look are
used when all its events are among the parts and each part could be read; else it is one row that says why, as ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from agent.telemetry.events import APPLICATION_SHAPES, EventKind
from pipeline.local_relation import local_relation
from pipeline.schemas.silver import LOOKS
from pipeline.schemas.table import LONG, STRING, column, columns
from pipeline.transforms.look_parts import APPLICATION, GROUP, TOPIC
from pipeline.transforms.spans import instance_of_look

PART_BYTES = 8_000_000
"""About a tenth of a look of 100,000 partitions, and a second or two of work."""
_LOOK = ["cluster", "look"]
_OF = columns(
    column("cluster", STRING, "Cluster id."), column("look", STRING, "Id of the look."), column("of", LONG, "Parts.")
)
_MOST_TASKS = 1_000


def data_bytes() -> Column:
    """Data of the events of a look, as ``bytes``."""
    return F.sum(F.octet_length("data")).alias("bytes")


def parts_of(look_bytes: int) -> int:
    """Into how many parts a look of so much data is divided; 0 for none."""
    return -(-look_bytes // PART_BYTES) if look_bytes > 2 * PART_BYTES else 0


def of_parts(telemetry: DataFrame, large: Mapping[tuple[str, str], int]) -> DataFrame:
    """The large looks' parts: cluster, look, of."""
    rows = [(*look, of) for look, of in sorted(large.items())]
    return local_relation(telemetry.sparkSession, rows, _OF)


def with_parts(telemetry: DataFrame, about_the_cluster: DataFrame, of: DataFrame, large: int) -> DataFrame:
    """The events of each part (``number`` of ``of``), part by part in order, ``large`` parts in all.

    ``telemetry`` has topics and groups, ``about_the_cluster`` what is about the cluster. Where applications are among
    the groups, each part has the topics of all parts, its own among them.
    """
    divided = telemetry.where(_is(TOPIC) | _is(GROUP)).join(F.broadcast(of), _LOOK)
    has = divided.where(_may_be_application()).select(*_LOOK, F.lit(True).alias("has")).distinct()  # noqa: FBT003 a literal of SQL
    own = F.pmod(F.crc32(F.encode("subject", "UTF-8")), F.col("of")) + 1
    every = F.when(_is(TOPIC) & F.col("has"), F.sequence(F.lit(1).cast("long"), "of")).otherwise(F.array(own))
    shared = about_the_cluster.join(F.broadcast(of), _LOOK).withColumn(
        "numbers", F.sequence(F.lit(0).cast("long"), "of")
    )
    placed = divided.join(F.broadcast(has), _LOOK, "left").withColumn("numbers", every).drop("has").unionByName(shared)
    tasks = min(large, _MOST_TASKS)
    task = F.pmod(F.crc32(F.encode("look", "UTF-8")) + F.col("number"), F.lit(tasks)).cast("int")
    order = F.when(_is(TOPIC), 2).when(_is(GROUP), 1).otherwise(0)
    return (
        placed.withColumn("number", F.explode("numbers"))
        .drop("numbers")
        .repartitionById(tasks, task)
        .sortWithinPartitions(*_LOOK, "number", order, "n")
    )


def about_the_cluster(telemetry: DataFrame, of: DataFrame) -> DataFrame:
    """What is about the cluster, look by look in order."""
    rows = telemetry.where(~(_is(TOPIC) | _is(GROUP))).join(F.broadcast(of), _LOOK, "left_semi")
    return rows.repartition(*_LOOK).sortWithinPartitions(*_LOOK, "n")


def put_together(parts: DataFrame) -> DataFrame:
    """The rows of whole looks out of those of their parts (with ``part``), which are read three times."""
    looks = _looks(parts)
    bad = looks.where(F.col("looks.problem").isNotNull()).select(*_LOOK)
    rows = parts.where("part IS NULL AND looks IS NULL").join(F.broadcast(bad), _LOOK, "left_anti").drop("part")
    # A broker that only replicas name is found by each part that has one of them.
    brokers = rows.where("brokers IS NOT NULL").dropDuplicates([*_LOOK, "brokers"])
    return looks.unionByName(rows.where("brokers IS NULL")).unionByName(brokers)


def _looks(parts: DataFrame) -> DataFrame:
    """A row for each look: as part 0 has it, with the numbers of all parts, or with what is wrong."""
    fields = [LOOKS.schema[name] for name in parts.select("looks.*").columns]
    told = parts.where("part IS NOT NULL OR looks IS NOT NULL").groupBy(*_LOOK)
    found = told.agg(
        F.min("taken_ms").alias("taken_ms"),
        F.min("day").alias("day"),
        F.first("looks", ignorenulls=True).alias("there"),
        F.sum("part.topics").alias("topics"),
        F.sum("part.groups").alias("groups"),
        F.sum("part.events").alias("events"),
        (F.count("part.events") == F.max("part.of") + 1).alias("counted"),
        F.max("part.expected").alias("expected"),
        F.min(F.when(F.col("part.problem").isNotNull(), F.struct("part.number", "part.problem"))).alias("first"),
    )
    lacks = F.format_string(
        "look %s lacks %d of its %s events", "look", F.col("expected") - F.col("events"), F.format_number("expected", 0)
    )
    problem = F.when(F.col("counted") & (F.col("expected") > F.col("events")), lacks).otherwise(F.col("first.problem"))
    own: dict[str, Column] = {"topics": F.col("topics").cast("int"), "groups": F.col("groups").cast("int")}
    names = [field.name for field in fields]
    good = F.struct(*(own.get(name, F.col(f"there.{name}")).alias(name) for name in names))
    wrong = {"complete": F.lit(False), "problem": F.col("problem"), "instance": instance_of_look()}  # noqa: FBT003
    bad = F.struct(*(wrong.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in fields))
    whole = F.when(F.col("problem").isNull(), good).otherwise(bad)
    empty = [F.lit(None).cast(field.dataType).alias(field.name) for field in parts.schema if field.name not in _OWN]
    return found.withColumn("problem", problem).select(*_LOOK, "taken_ms", "day", whole.alias("looks"), *empty)


_OWN = frozenset((*_LOOK, "taken_ms", "day", "looks", "part"))


def _is(prefix: str) -> Column:
    return F.startswith("subject", F.lit(prefix))


def _may_be_application() -> Column:
    kind = F.col("kind")
    fragment = (kind == EventKind.FRAGMENT.value) & _is(GROUP)
    classic = (kind == EventKind.GROUP.value) & F.contains("data", F.lit(APPLICATION))
    return kind.isin([one.value for one in APPLICATION_SHAPES]) | classic | fragment
