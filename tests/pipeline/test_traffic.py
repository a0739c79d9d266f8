"""What partitions took in, by hand: sizes that teach and that do not, topics made anew, offsets that went back."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas.gold import PARTITION_TRAFFIC
from pipeline.transforms.spans import by_hour, pairs, timeline
from pipeline.transforms.traffic import partition_changes, partition_traffic, traffic_sums
from tests.pipeline.silver_rows import CLUSTER, DAY, HOUR_MS, Row, frame, look, looks, partition, partitions

LOOKS = [look("i", number, second=second) for number, second in enumerate((0, 60, 120), 1)]


def story(topic: str, ends: tuple[int, int, int], sizes: tuple[int | None, ...], **more: object) -> list[Row]:
    """A topic at the three looks."""
    return [partition(of, topic, end, size, **more) for of, end, size in zip(LOOKS, ends, sizes, strict=True)]


def took(
    topic: str, seconds: float, records: int, size: float | None, confidence: str, *, number: int = 0, hour: int = 0
) -> Row:
    known = 0.0 if records == 0 else None if size is None else records * size
    return {
        "cluster": CLUSTER, "hour_ms": HOUR_MS + hour, "topic": topic, "partition": number, "seconds": seconds,
        "records": records, "bytes": known, "records_per_s": records / seconds,
        "bytes_per_s": None if known is None else known / seconds, "bytes_per_record": size, "confidence": confidence,
        "gap_seconds": 0.0, "gap_records": 0, "gap_bytes": 0.0, "day": DAY,
    }  # fmt: skip


def test_what_partitions_took_in(spark: SparkSession) -> None:
    again = story("again", (500, 10, 70), (50_000, 1_000, 7_000))
    again[0]["topic_id"] = "another"
    rows = [
        *story("orders", (1_000, 1_600, 2_200), (100_000, 160_000, 220_000)),
        *again,
        *story("back", (500, 100, 160), (50_000, 10_000, 16_000)),
        *story("idle", (5, 5, 5), (700, 700, 700)),
        *story("cut", (1_000, 1_600, 2_200), (100_000, 160_000, 170_000)),
        *story("compact", (0, 60, 120), (0, 9_000, 100), compacted=True, learned_bytes_per_record=50.0),
        *story("blind", (0, 60, 120), (None, None, None)),
        *story("two", (0, 60, 120), (0, 6_000, 12_000)),
        *story("two", (0, 30, 90), (None, None, None), partition=1),
    ]
    times = looks(spark, *LOOKS)
    changes = partition_changes(partitions(spark, *rows), timeline(times))
    expected = [
        took("orders", 120.0, 1_200, 100.0, "measured"),
        # It was deleted and made again between the first two looks: the ten records that it has then are new.
        took("again", 120.0, 70, 100.0, "measured"),
        # An unclean election took records away: what came then is not known.
        took("back", 60.0, 60, 100.0, "measured"),
        took("idle", 120.0, 0, None, "none"),
        # 600 records grew by 10,000 bytes: a segment was deleted meanwhile.
        took("cut", 120.0, 1_200, 100.0, "measured"),
        took("compact", 120.0, 120, 50.0, "remembered"),
        took("blind", 120.0, 120, None, "none"),
        took("two", 120.0, 120, 100.0, "measured"),
        took("two", 120.0, 90, 100.0, "topic", number=1),
    ]
    found = partition_traffic(traffic_sums(changes, by_hour(pairs(times))))
    assertDataFrameEqual(found, frame(spark, PARTITION_TRAFFIC, *expected))


def test_looks_that_take_as_long_as_the_time_between_them_show_no_deletion(spark: SparkSession) -> None:
    """What such looks a second apart saw: sizes lag behind offsets, and the next look has what was missing."""
    grown = {
        "rack": ((87, 28_435), (140, 176_612), (92, 110_655), (126, 112_676), (103, 118_849), (213, 96_531),
                 (152, 273_923), (132, 113_801), (114, 130_013), (44, 59_836)),
        "late": ((103, 28_435), (123, 175_603), (93, 111_665), (126, 112_673), (102, 126_982), (214, 87_390),
                 (152, 274_932), (132, 112_792), (114, 131_015), (44, 59_837)),
        "leader": ((103, 18_284), (124, 186_763), (93, 110_654), (125, 112_673), (103, 127_990), (213, 87_390),
                   (152, 273_918), (133, 130_006), (113, 113_805), (44, 59_836)),
        # Segments of 60 kB were deleted twice; records differ in size by a tenth.
        "deleted": ((100, 100_000), (100, 30_000), (100, 110_000), (100, 95_000), (100, 105_000), (100, 100_000),
                    (100, 40_000), (100, 90_000), (100, 105_000), (100, 95_000)),
    }  # fmt: skip
    there = [look("i", number, second=number) for number in range(11)]
    rows = []
    for topic, intervals in grown.items():
        end = size = 0
        for of, (records, bytes_) in zip(there, ((0, 0), *intervals), strict=True):
            end, size = end + records, size + bytes_
            rows.append(partition(of, topic, end, size))
    times = looks(spark, *there)
    changes = partition_changes(partitions(spark, *rows), timeline(times))
    found = partition_traffic(traffic_sums(changes, by_hour(pairs(times)))).select("topic", "bytes").collect()
    whole = {topic: float(sum(bytes_ for _, bytes_ in intervals)) for topic, intervals in grown.items()}
    assert {row.topic: round(row.bytes) for row in found} == whole | {"deleted": 1_000_000.0}


def test_a_gap_is_booked_by_the_offsets_on_both_sides_beside_what_looks_cover(spark: SparkSession) -> None:
    """A restart, twenty minutes without a look, and a full look each twenty minutes from then on."""
    there = [look("i", 1, second=0), look("i", 2, second=60), look("j", 1, second=180)]
    there += [look("j", number, second=180 + 1_200 * (number - 1)) for number in (2, 3)]
    rows = [partition(of, "orders", end, end * 100) for of, end in zip(there, (0, 60, 200, 1_400, 2_000), strict=True)]
    rows += [partition(there[2], "new", 30), partition(there[3], "new", 90)]
    times = looks(spark, *there)
    found = partition_traffic(
        traffic_sums(partition_changes(partitions(spark, *rows), timeline(times)), by_hour(pairs(times)))
    )
    gap = {"gap_seconds": 2_520.0, "gap_records": 1_940, "gap_bytes": 194_000.0}
    unsized = took("new", 1.0, 0, None, "none") | {"seconds": 0.0, "records_per_s": None, "bytes_per_s": None}
    expected = [
        took("orders", 60.0, 60, 100.0, "measured") | gap,
        unsized | {"gap_seconds": 1_200.0, "gap_records": 60, "gap_bytes": None},
    ]
    assertDataFrameEqual(found, frame(spark, PARTITION_TRAFFIC, *expected))


def test_records_are_shared_out_over_the_border_of_an_hour_and_add_up(spark: SparkSession) -> None:
    ends = [look("i", 1, second=-20), look("i", 2, second=40)]
    rows = [partition(ends[0], "orders", 0, 0), partition(ends[1], "orders", 100, 10_000)]
    times = looks(spark, *ends)
    found = partition_traffic(
        traffic_sums(partition_changes(partitions(spark, *rows), timeline(times)), by_hour(pairs(times)))
    )
    expected = [
        took("orders", 20.0, 33, 100.0, "measured", hour=-3_600_000),
        took("orders", 40.0, 67, 100.0, "measured"),
    ]
    assertDataFrameEqual(found, frame(spark, PARTITION_TRAFFIC, *expected))
