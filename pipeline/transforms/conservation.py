"""Conservation: the bytes that the ledger books beside those that counters at both ends of an hour tell.

Counters only grow: end offsets of a topic, committed offsets of a group, the size of a replica that is copied. The
least and the greatest value of an hour tell what flowed in it, whatever the looks in between showed, and are added up
here beside the ledger, not from it. What one of them lacks or has twice is the difference.

An hour that a clock runs through twice is counted run by run (`spans.timeline`). A counter that went back (an unclean
election, offsets that were reset) tells nothing of its hour: unknown, not 0. A group that commits nothing has no
counter; that it keeps up is assumed on both sides.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipeline.exact_sums import exact_sum
from pipeline.schemas.gold import CONSERVATION
from pipeline.transforms.ledger import CATCH_UP, copies
from pipeline.transforms.mergeable_aggregate import MergeableAggregate
from pipeline.transforms.pictures import followers
from pipeline.transforms.spans import day_of, spanned
from pipeline.transforms.traffic import with_bytes

WENT_BACK = "a counter went back, so what flowed before is not known"
SIZE_UNKNOWN = "the size of records is not known"
REPLICAS_CHANGED = "the number of replicas changed within the hour"
COPIED_AGAIN = "a replica was copied more than once within the hour"
_KEY = ("cluster", "hour_ms", "topic", "path")
_FLAGS = ("went_back", "changed", "again")
_COUNTER = ("cluster", "hour_ms", "path", "group", "topic", "partition", "counter")
COUNTER_SUMS = MergeableAggregate(
    _COUNTER, {"low": F.min, "high": F.max, "went_back": F.max, "fewest": F.min, "most": F.max, "begun": F.sum}
)
"""``low`` and ``high``: least and greatest value of the counter in the hour. ``fewest`` and ``most``: followers;
``begun``: copies of a replica."""


def counter_sums(
    changes: DataFrame, readings: DataFrame, spans: DataFrame, before: DataFrame | None = None
) -> DataFrame:
    """What counters say, as `COUNTER_SUMS`, of `traffic.partition_changes` and `reads.read_changes` rows."""
    counted = reduce(DataFrame.unionByName, (_ends(changes), _commits(readings), _copied(changes)))
    base = F.col("value") - F.col("grown")
    bounds = {
        name: base + F.floor(F.col("grown") * F.col(share) + 0.5).cast("long")
        for name, share in (("low", "from_share"), ("high", "to_share"))
    }
    return COUNTER_SUMS.aggregate(spanned(counted, spans).withColumns(bounds), before)


def conservation(
    ledger: DataFrame, *, counters: DataFrame, routes: DataFrame, copied: DataFrame, sizes: DataFrame
) -> DataFrame:
    """gold.conservation of gold.ledger.

    It is compared with ``counters`` (`counter_sums`), ``routes`` (`reads.read_routes`), ``copied`` (`ledger.copy_sums`)
    and ``sizes`` (`traffic.record_sizes`).
    """
    grown = counters.withColumn("records", F.col("high") - F.col("low"))
    sized = with_bytes(grown, sizes)
    in_bytes = F.when(F.col("path") == "move", F.col("records").cast("double")).otherwise(F.col("bytes"))
    counted = sized.withColumns(
        {
            "bytes": F.when(~F.col("went_back") & (F.col("begun") <= 1), in_bytes),
            "side": F.lit("counted"),
            "changed": F.lit(False),  # noqa: FBT003
            "again": F.col("begun") > 1,
        }
    )
    copies_of_it = F.when(F.col("fewest") == F.col("most"), F.col("most"))
    replicated = counted.where(F.col("path") == "produce").withColumns(
        {"path": F.lit("replicate"), "bytes": F.col("bytes") * copies_of_it, "changed": copies_of_it.isNull()}
    )
    sides = (counted, replicated, _on_both_sides(routes), *_booked(ledger, copied))
    names = (*_KEY, "side", "bytes", *_FLAGS)
    every = reduce(
        lambda one, more: one.unionByName(more, allowMissingColumns=True), [_named(rows, names) for rows in sides]
    )
    return _compared(
        every.groupBy(*_KEY).agg(
            _sum_of("booked").alias("booked_bytes"),
            _sum_of("counted").alias("counted_bytes"),
            *(F.coalesce(F.max(name), F.lit(False)).alias(name) for name in _FLAGS),  # noqa: FBT003
        )
    )


def _ends(changes: DataFrame) -> DataFrame:
    """End offsets; a topic that was made again has a counter of its own."""
    now, was = (F.when(F.col(name).isNotNull(), F.size(followers(F.col(name)))) for name in ("now", "was"))
    both = F.array(now, F.coalesce(was, now))
    return _counted(
        changes.where(F.col("previous").isNotNull() & (F.col("records").isNotNull() | F.col("went_back"))),
        path=F.lit("produce"),
        counter=F.concat_ws("/", "topic_id", "run"),
        value=F.col("end_offset"),
        grown=F.col("records"),
        went_back=F.col("went_back"),
        fewest=F.array_min(both),
        most=F.array_max(both),
    )


def _commits(readings: DataFrame) -> DataFrame:
    """Committed offsets."""
    known = readings.where((F.col("basis") == "committed") & F.col("committed_offset").isNotNull())
    return _counted(
        known.where(F.col("read").isNotNull() | F.col("went_back")),
        path=F.lit("consume"),
        group=F.col("group"),
        counter=F.concat_ws("/", "topic_id", "run"),
        value=F.col("committed_offset"),
        grown=F.col("read"),
        went_back=F.col("went_back"),
    )


def _copied(changes: DataFrame) -> DataFrame:
    """Sizes of replicas that are copied."""
    return _counted(
        copies(changes).where(F.col("copied").isNotNull()),
        path=F.lit("move"),
        counter=F.concat_ws("/", "broker", "run"),
        value=F.col("held"),
        grown=F.col("copied"),
        begun=(F.col("held") == F.col("copied")).cast("int"),
    )


def _counted(rows: DataFrame, **told: Column) -> DataFrame:
    none = F.lit(None).cast("int")
    every = {
        "group": F.lit(""),
        "counter": F.lit(""),
        "went_back": F.lit(False),  # noqa: FBT003
        "fewest": none,
        "most": none,
        "begun": F.lit(0),
    } | told
    return rows.select(
        *("cluster", "look", "previous", "topic", "partition"), *(value.alias(name) for name, value in every.items())
    )


def _on_both_sides(routes: DataFrame) -> DataFrame:
    """What is assumed to be read, where nothing is committed."""
    by_commits = F.coalesce(F.col("by_commits") / F.nullif(F.col("records"), F.lit(0.0)), F.lit(0.0))
    rest = routes.where(by_commits < 1.0)
    assumed = F.col("bytes") * (1.0 - by_commits)
    return rest.withColumns({"path": F.lit("consume"), "side": F.lit("counted"), "bytes": assumed})


def _booked(ledger: DataFrame, copied: DataFrame) -> list[DataFrame]:
    """What is appended while a follower catches up is replicated later; what a replica has lost has no counter."""
    path = F.when(F.col("path") == CATCH_UP, "replicate").otherwise(F.col("path"))
    lost = copied.where(F.col("path") == CATCH_UP).withColumn("bytes", -F.col("bytes").cast("double"))
    return [rows.withColumns({"path": path, "side": F.lit("booked")}) for rows in (ledger, lost)]


def _named(rows: DataFrame, names: tuple[str, ...]) -> DataFrame:
    return rows.select(*(name for name in names if name in rows.columns))


def _sum_of(side: str) -> Column:
    """The bytes of a side: 0 where it has no row, null where one of its rows is unknown."""
    mine = F.col("side") == side
    known = F.coalesce(exact_sum(F.when(mine, F.col("bytes"))), F.lit(0.0))
    return F.when(F.count_if(mine & F.col("bytes").isNull()) == 0, known)


def _compared(rows: DataFrame) -> DataFrame:
    unknown = F.col("booked_bytes").isNull() | F.col("counted_bytes").isNull()
    why = (
        F.when(F.col("went_back"), WENT_BACK)
        .when(F.col("again"), COPIED_AGAIN)
        .when(F.col("changed"), REPLICAS_CHANGED)
        .when(unknown, SIZE_UNKNOWN)
    )
    difference = F.col("booked_bytes") - F.col("counted_bytes")
    return (
        rows.withColumns({"why_unknown": why, "difference_bytes": difference})
        .withColumn("difference_share", difference / F.nullif("counted_bytes", F.lit(0.0)))
        .withColumn("day", day_of(F.col("hour_ms")))
        .select(*CONSERVATION.schema.names)
    )
