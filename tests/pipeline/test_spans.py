"""Which time looks cover: gaps, restarts, clocks that jump, two agents at once, borders of hours."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from pipeline.schemas.table import day_of as day_of_look
from pipeline.transforms.spans import by_hour, by_window, day_of, pairs, timeline, touched_hours
from tests.pipeline.silver_rows import CLUSTER, HOUR_MS, Row, look, looks

SPAN = (
    "cluster string, look string, previous string, seen boolean, hour_ms long, from_share double, to_share double, "
    "ms long"
)


Span = tuple[object, ...]


def span(
    now: str, before: str, ms: int, first: float = 0.0, last: float = 1.0, *, hour: int = 0, seen: bool = True
) -> tuple[object, ...]:
    return CLUSTER, now, before, seen, HOUR_MS + hour * 3_600_000, first, last, ms


COVERED: dict[str, tuple[list[Row], list[Span]]] = {
    "looks of one agent, one of them not in full, cover the time between them": (
        [look("i", 1, second=0), look("i", 2, second=60), look("i", 4, second=180)],
        [span("i-2", "i-1", 60_000), span("i-4", "i-2", 120_000)],
    ),
    "what lies on both sides of an hour's border is shared out": (
        [look("i", 1, second=-20), look("i", 2, second=60)],
        [span("i-2", "i-1", 20_000, 0.0, 0.25, hour=-1), span("i-2", "i-1", 60_000, 0.25, 1.0)],
    ),
    "over a restart of the agent its last look and the first one of the next are compared": (
        [look("i", 1, second=0), look("j", 1, second=60), look("j", 2, second=120)],
        [span("j-1", "i-1", 60_000, seen=False), span("j-2", "j-1", 60_000)],
    ),
    "looks that are missing for more than a quarter of an hour are a gap, with looks on both sides": (
        [look("i", 1, second=0), look("i", 2, second=901), look("i", 3, second=961)],
        [span("i-2", "i-1", 901_000, seen=False), span("i-3", "i-2", 60_000)],
    ),
    "a gap over hours is shared out over all of them": (
        [look("i", 1, second=-900), look("j", 1, second=4_500)],
        [
            span("j-1", "i-1", 900_000, 0.0, 900 / 5400, hour=-1, seen=False),
            span("j-1", "i-1", 3_600_000, 900 / 5400, 4500 / 5400, seen=False),
            span("j-1", "i-1", 900_000, 4500 / 5400, 1.0, hour=1, seen=False),
        ],
    ),
    "a gap of more than a day is booked nowhere": (
        [look("i", 1, second=0), look("j", 1, second=86_401), look("j", 2, second=86_461)],
        [span("j-2", "j-1", 60_000, hour=24)],
    ),
    "in the gap of one agent another one looks": (
        [
            look("i", 1, second=0),
            look("i", 2, second=1_800),
            look("j", 1, second=600),
            look("j", 2, second=660),
        ],
        [
            span("j-1", "i-1", 600_000, seen=False),
            span("j-2", "j-1", 60_000),
            span("i-2", "j-2", 1_140_000, seen=False),
        ],
    ),
    "a machine that slept for an hour": (
        [look("i", 1, second=0, monotonic=0), look("i", 2, second=3_540, monotonic=60)],
        [span("i-2", "i-1", 3_540_000, seen=False)],
    ),
    "a look that did not arrive whole is passed over": (
        [look("i", 1, second=0), look("i", 2, second=60, complete=False), look("i", 3, second=120)],
        [span("i-3", "i-1", 120_000)],
    ),
    "a clock that was set back by five minutes makes nothing longer or shorter": (
        [
            look("i", 1, second=600, monotonic=0),
            look("i", 2, second=660, monotonic=60),
            look("i", 3, second=420, monotonic=120),
        ],
        [span("i-2", "i-1", 60_000), span("i-3", "i-2", 60_000)],
    ),
    "a clock that is set back by two hours ends a stretch": (
        [
            look("i", 1, second=7200, monotonic=0),
            look("i", 2, second=60, monotonic=60),
            look("i", 3, second=120, monotonic=120),
        ],
        [span("i-2", "i-1", 60_000, seen=False), span("i-3", "i-2", 60_000)],
    ),
    "two agents that look at once tell each minute once": (
        [
            look("i", 1, second=0),
            look("j", 1, second=30),
            look("i", 2, second=60),
            look("j", 2, second=90),
            look("i", 3, second=120),
        ],
        [
            span("i-2", "i-1", 60_000),
            span("j-2", "j-1", 30_000, 0.5, 1.0),
            span("i-3", "i-2", 30_000, 0.5, 1.0),
        ],
    ),
    "one look alone covers nothing": ([look("i", 1, second=0)], []),
    "a look at another cluster in between is none of this one's": (
        [look("i", 1, second=0), look("i", 2, second=60, cluster="other"), look("i", 3, second=120)],
        [span("i-3", "i-1", 120_000)],
    ),
}


def test_what_looks_cover(spark: SparkSession) -> None:
    """Each case is a cluster of that name."""
    rows = [
        row | {"cluster": row["cluster"].replace(CLUSTER, case)} for case, (told, _) in COVERED.items() for row in told
    ]
    expected = [(case, *one[1:]) for case, (_, spans) in COVERED.items() for one in spans]
    assertDataFrameEqual(by_hour(pairs(looks(spark, *rows))), spark.createDataFrame(expected, SPAN))


TIMELINE = (
    "cluster string, look string, instance string, taken_ms long, monotonic_ms long, racks int, known_racks int, "
    "previous string, previous_ms long, run string, of_instance_ms long"
)


def test_whole_looks_stand_beside_the_one_before(spark: SparkSession) -> None:
    rows = [
        look("i", 1, second=0),
        look("i", 2, second=30, complete=False),
        look("i", 3, second=60, racks=None, known_racks=2),
        look("i", 4, second=3_000),
        look("i", 5, second=3_060, cluster="other"),
        look("j", 1, second=600),
    ]

    def stands(number: int, second: int, previous: str | None, *held: object, **more: str) -> tuple[object, ...]:
        cluster, instance = more.get("cluster", CLUSTER), more.get("instance", "i")
        at_ms = second * 1000
        monotonic_ms = 5_000_000 + at_ms
        before_ms = 5_000_000 if previous == "i-1" else None
        name = f"{instance}-{number}"
        run = (instance, monotonic_ms)
        return cluster, name, instance, HOUR_MS + at_ms, monotonic_ms, *held, previous, before_ms, *run

    # Beside a gap the look of the other agent stands in for the one before, in the line of this one.
    expected = [
        (CLUSTER, "i-3", "j", HOUR_MS + 60_000, 5_599_999, None, 2, None, None, None, None),
        (CLUSTER, "j-1", "i", HOUR_MS + 600_000, 7_999_999, 3, 3, None, None, None, None),
        stands(1, 0, None, 3, 3),
        stands(3, 60, "i-1", None, 2),
        stands(4, 3_000, "j-1", 3, 3),
        stands(5, 3_060, None, 3, 3, cluster="other"),
        stands(1, 600, "i-3", 3, 3, instance="j"),
    ]
    wanted = spark.createDataFrame(expected, TIMELINE)
    assertDataFrameEqual(timeline(looks(spark, *rows)).select(*wanted.columns), wanted)


def test_windows_take_their_part_of_each_pair(spark: SparkSession) -> None:
    told = pairs(looks(spark, *(look("i", number, second=60 * number) for number in range(3))))
    schema = "cluster string, hour_ms long, window_from_ms long, window_to_ms long"
    windows = [
        (cluster, HOUR_MS + begin, HOUR_MS + begin, HOUR_MS + end)
        for cluster, begin, end in (
            (CLUSTER, 30_000, 90_000),
            (CLUSTER, 0, 60_000),
            (CLUSTER, 120_000, 180_000),
            ("other", 0, 60_000),
        )
    ]
    expected = [
        (CLUSTER, "i-1", "i-0", True, HOUR_MS + 30_000, 0.5, 1.0, 30_000),
        (CLUSTER, "i-2", "i-1", True, HOUR_MS + 30_000, 0.0, 0.5, 30_000),
        (CLUSTER, "i-1", "i-0", True, HOUR_MS, 0.0, 1.0, 60_000),
    ]
    found = by_window(told, spark.createDataFrame(windows, schema))
    assertDataFrameEqual(found, spark.createDataFrame(expected, SPAN))


TOUCHED = [
    ("the first look reaches into the hour of the next", "i-1", (-20, 40, 100), [-1, 0]),
    ("a look right after the border touches the hour before", "i-2", (-20, 40, 100), [-1, 0]),
    ("a look in the middle touches its hour alone", "i-3", (40, 100, 160), [0]),
    ("the newest look touches no hour to come", "i-4", (-200, -140, -80, -20), [-1]),
    ("sizes that come late teach the hour after", "i-1", (-200, -140, -80, 40), [-1, 0]),
    ("the first look after a gap touches all hours of the gap", "i-2", (-4_000, 3_700, 3_760), [-2, -1, 0, 1]),
    ("so does one before it that comes late", "i-1", (-4_000, 3_700, 3_760), [-2, -1, 0, 1]),
    ("a look that is not there touches nothing", "j-1", (40, 100, 160), []),
]


def test_which_hours_a_look_touches(spark: SparkSession) -> None:
    """Each case is a cluster of that name."""
    there = [
        look("i", number, second=second, cluster=case)
        for case, _, times, _ in TOUCHED
        for number, second in enumerate(times, 1)
    ]
    mine = spark.createDataFrame([(case, touched) for case, touched, _, _ in TOUCHED], "cluster string, look string")
    expected = [(case, HOUR_MS + hour * 3_600_000) for case, _, _, hours in TOUCHED for hour in hours]
    wanted = spark.createDataFrame(expected, "cluster string, hour_ms long")
    assertDataFrameEqual(touched_hours(looks(spark, *there), mine), wanted)


def test_every_time_has_a_day_even_one_that_no_calendar_has(spark: SparkSession) -> None:
    days = [
        (HOUR_MS, "2025-10-09"),
        (-1, "1969-12-31"),
        (253_402_300_799_999, "9999-12-31"),
        (253_402_300_800_000, "1970-01-01"),
        (2**63 - 1, "1970-01-01"),
        (-(2**63), "1970-01-01"),
        (None, None),
    ]
    schema = "at_ms long, day string"
    given = spark.createDataFrame(days, schema)
    assertDataFrameEqual(given.select("at_ms", day_of(given["at_ms"]).alias("day")), given)
    assert [day_of_look(at_ms) for at_ms, _ in days if at_ms is not None] == [day for _, day in days if day is not None]
