"""Retention the whole way: days of telemetry ingested, rows deleted, refreshed at other prices, reported, and more.

Every row that is kept is exact: as it was, or as a root that never lost anything has it at the new prices.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from agent.telemetry.events import to_lines
from agent.telemetry.looks import CycleInputs
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.gold import GOLD, LEDGER
from pipeline.schemas.silver import LOOKS, SILVER
from pipeline.schemas.table import begin_of, day_of
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster
from tests.builders import TAKEN_MS
from tests.command import Done, rackwise
from tests.pipeline.histories import events_of, recorded, shop, with_tasks
from tests.pipeline.test_retention import Rows, by_day, part
from tests.pipeline.topics import Topics

pytestmark = pytest.mark.drill
RUN_S, DAY_MS, HOUR_MS, MINUTE_MS = 900, 86_400_000, 3_600_000, 60_000
DAYS_TOLD = 19
TODAY_MS = begin_of(day_of(time.time_ns() // 1_000_000))
PRICES = ("0.01", "0.07")


class Kept(NamedTuple):
    """Days of retention, and from which hour on gold is refreshed, of the first day of bronze or of a later one."""

    bronze: int
    silver: int
    gold: int | None
    days_later: int
    hour: int


KEPT = {
    "silver longer than bronze": Kept(10, 15, None, 0, 12),
    "silver shorter than bronze": Kept(17, 15, None, 1, 13),
    "all the same": Kept(16, 16, 16, 0, 13),
}


def day_before(days: int) -> str:
    return day_of(TODAY_MS - days * DAY_MS)


def looks(minutes: Sequence[int]) -> list[CycleInputs]:
    """Of days that ended yesterday; a group rebalances in the middle of them."""
    middle = (TODAY_MS - DAYS_TOLD // 2 * DAY_MS - TAKEN_MS) // MINUTE_MS
    return recorded(lambda at: with_tasks(shop(swapped=at < middle, generation=4 + (at >= middle))), minutes)


def minute(days: int, of_noon: int) -> int:
    """A minute after noon of a day before today, as `recorded` counts them."""
    at_ms = TODAY_MS - days * DAY_MS + 12 * HOUR_MS + of_noon * MINUTE_MS
    return round((at_ms - TAKEN_MS) / MINUTE_MS)


def filled_topics(broker: EmbeddedCluster) -> Topics:
    """Three looks a day, each of its time: brokers keep the time of the producer."""
    topics = Topics(broker)
    ever = {"retention.ms": "-1"}
    names = (topics.names.telemetry, topics.names.proposals, topics.names.journal)
    for answer in topics.admin.create_topics([NewTopic(name, 1, 1, config=ever) for name in names]).values():
        answer.result(30)
    put(topics, looks([minute(days, at) for days in range(DAYS_TOLD, 0, -1) for at in (5, 6, 7)]))
    return topics


def put(topics: Topics, told: Sequence[CycleInputs]) -> None:
    producer = Producer({"bootstrap.servers": topics.cluster.bootstrap_servers})
    for look in told:
        for line in (line for event in events_of([look]) for line in to_lines(event)):
            producer.produce(topics.names.telemetry, line, key=b"x", timestamp=look.observation.taken_ms)
        producer.poll(0)
    assert producer.flush(60) == 0


def run(name: str, root: Path, *more: str, usd: str = PRICES[0]) -> Done:
    done = rackwise(
        "spark", name, "--master", "local[2]", "--tables", str(root), "--conf", "spark.driver.memory=700m",
        "--set", f"price.usd_per_gb={usd}", *more, within_s=RUN_S,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr[-4_000:]
    return done


@pytest.fixture(scope="module")
def whole(broker: EmbeddedCluster, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Rows]:
    """A root that loses nothing, before and after a refresh at other prices."""
    topics, root = filled_topics(broker), tmp_path_factory.mktemp("whole")
    run("ingest", root, "--once", *topics.options())
    before = by_day(TableStore(spark, str(root)))
    run("refresh", root, usd=PRICES[1])
    after = by_day(TableStore(spark, str(root)))
    assert {table.name for table in (*SILVER, *GOLD) if before[table.name] != after[table.name]} == {LEDGER.name}
    assert len(before[LOOKS.name]) == DAYS_TOLD
    return before, after


@pytest.mark.timeout(6 * RUN_S)
@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
def test_what_is_kept_is_exact_and_nothing_goes_that_bronze_cannot_give_back(
    broker: EmbeddedCluster, whole: tuple[Rows, Rows], spark: SparkSession, tmp_path: Path, kept: Kept
) -> None:
    topics, (before, at_new_prices) = filled_topics(broker), whole
    root, days = tmp_path / "root", {"bronze": kept.bronze, "silver": kept.silver, "gold": kept.gold}
    run("ingest", root, "--once", *topics.options())
    then = time.time() - 25 * 3_600
    for mark in root.rglob("_rackwise.json"):
        os.utime(mark, (then, then))  # as if each table was made yesterday: a vacuum is due
    retention = [
        word for layer, of in days.items() if of for word in ("--set", f"spark.retention.{layer}={of}d")
    ]  # fmt: skip
    run("ingest", root, "--once", *topics.options(), *retention)
    tables = TableStore(spark, str(root))
    begins = {layer: "" if of is None else day_before(of) for layer, of in days.items()}
    assert {layer: tables.kept_from(layer) for layer in days} == begins
    told = {day_before(number) for number in range(DAYS_TOLD, 0, -1)}
    assert set(tables.days(TELEMETRY)) == {day for day in told if day >= begins["bronze"]}
    check(by_day(tables), part(before, begins["silver"]), part(before, begins["gold"]))

    run("refresh", root, usd=PRICES[1])
    now = by_day(tables)
    edge = f"{day_before(kept.bronze - kept.days_later)} {kept.hour:02}"
    gold, old = part(at_new_prices, edge), part(before, begins["gold"], edge)
    first_silver = min(begins["silver"], day_before(kept.bronze - 1))
    check(now, part(before, first_silver), {name: {**gold[name], **old[name]} for name in gold})
    assert gold[LEDGER.name]
    assert old[LEDGER.name]
    run("report", root, "--out", str(tmp_path / "report"), usd=PRICES[1])
    assert (tmp_path / "report" / "report.md").read_text()

    put(topics, looks([minute(1, at) for at in (35, 36)]))
    run("ingest", root, "--once", *topics.options(), *retention, usd=PRICES[1])
    after, yesterday = by_day(tables), day_before(1)
    assert len(after[LOOKS.name][yesterday]) > len(now[LOOKS.name][yesterday])
    check(part(after, "", yesterday), part(now, "", yesterday), part(now, "", yesterday))


def check(found: Rows, silver: Rows, gold: Rows) -> None:
    """All rows of silver and gold; rates of restores have no day."""
    for wanted, layer in ((silver, SILVER), (gold, GOLD)):
        for table in layer:
            there = {day: rows for day, rows in found[table.name].items() if day}
            assert there == {day: rows for day, rows in wanted[table.name].items() if day}, table.name
