"""The refresh job from bronze to gold: in parts, again, and as a whole it writes the same; what it tells a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pyspark.testing import assertDataFrameEqual

from agent.errors import BadInput
from agent.telemetry.events import TelemetryEvent
from agent.values.observation import Observation
from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.jobs.touched_looks import LookKey, looks_of_days
from pipeline.schemas.bronze import PROPOSALS, TELEMETRY
from pipeline.schemas.gold import GOLD, LEDGER, OUTCOMES, PARTITION_TRAFFIC, RACK_DRIFT, REBALANCES
from pipeline.schemas.silver import LOOKS, SILVER
from pipeline.tables import Format, TableStore, WriterBatch
from pipeline.transforms.prices import PriceRow
from tests.builders import TAKEN_MS, an_observation, reader
from tests.pipeline.look_events import events_of, telemetry
from tests.pipeline.silver_rows import HOUR_MS
from tests.snapshots import tp

pytestmark = [pytest.mark.drill, pytest.mark.timeout(1_200)]
BORDER_S = round((HOUR_MS - TAKEN_MS) / 1000)
"""The hour ends so many seconds after the world began."""
SECONDS = (BORDER_S - 90, BORDER_S - 30, BORDER_S + 30, BORDER_S + 90)
SETTINGS = RefreshSettings(prices=(PriceRow("a", "b", 0.01), PriceRow("a", "c", 0.02), PriceRow("b", "a", 0.03)))
MakeTables = Callable[[str, Format], TableStore]


def world(second: int) -> Observation:
    """10 records of 100 bytes a second; then m2 is gone, and the topic's replicas share a rack."""
    number = SECONDS.index(second)
    told = an_observation(a=(1, 4), b=(2,), c=(3,))
    told.topic("orders", (1, 2, 3), (2, 3, 1) if number < 3 else (2, 1, 4), ends=(10 * second, 500))
    members = [reader("m1", "a", "orders-0"), reader("m2", "c", "orders-1")]
    told.group("shop", *(members if number < 2 else [reader("m1", "a", "orders-0 orders-1", generation=5)]))
    told.committed = {"shop": {tp("orders-0"): 10 * second, tp("orders-1"): 500}}
    told.sizes = {(broker, tp("orders-0")): 1_000 * second for broker in (1, 2, 3)}
    return told.at(second)


def look_of(second: int) -> str:
    return f"12345678-{SECONDS.index(second)}"


def proposal(tables: TableStore) -> None:
    document = {"id": "p-1", "kind": "reassign", "subject": {"kind": "topic", "name": "orders"}, "predicted": {}}
    document |= {"created_ms": TAKEN_MS, "expires_ms": TAKEN_MS + 900_000}
    row: dict[str, Any] = {
        "topic": "rackwise.proposals", "partition": 0, "offset": 0, "kafka_time": None, "event_id": "p-1",
        "type": "rackwise.proposal.created.v1", "cluster": "test-cluster", "time_ms": TAKEN_MS,
        "data": json.dumps(document), "day": "2025-10-09",
    }  # fmt: skip
    kinds = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in PROPOSALS.schema)
    rows = tables.spark.createDataFrame([tuple(row.get(name) for name in PROPOSALS.schema.names)], kinds)
    tables.append(PROPOSALS, rows, WriterBatch("test", 0))


def ingest(tables: TableStore, number: int, seconds: Iterable[int], *, drop: str = "") -> list[LookKey]:
    """Append the looks of these seconds to bronze, without events of one kind; their keys."""
    events: list[TelemetryEvent] = [event for second in seconds for event in events_of(world(second), look_of(second))]
    tables.append(
        TELEMETRY, telemetry(tables.spark, [one for one in events if one.kind != drop]), WriterBatch("test", number)
    )
    return sorted({LookKey(event.cluster, event.look, event.taken_ms) for event in events})


def check(tables: TableStore, wanted: dict[str, list[Any]]) -> None:
    """All rows of silver and gold are these."""
    for name, rows in contents(tables).items():
        assertDataFrameEqual(rows, wanted[name])


def contents(tables: TableStore) -> dict[str, list[Any]]:
    return {table.name: tables.read(table).collect() for table in (*SILVER, *GOLD)}


def test_in_parts_again_and_as_a_whole_it_writes_the_same(make_tables: MakeTables) -> None:
    whole, parts = make_tables("whole", "delta"), make_tables("parts", "parquet")
    every = ingest(whole, 0, SECONDS)
    proposal(whole)
    done = refresh(whole, settings=SETTINGS)
    assert (done.looks, len(done.hours)) == (4, 2)
    # Nothing is written to the partition that is led from b, so its pairs need no price; no log dir tells what of it
    # was copied to broker 4.
    assert done.messages == ()
    unpriced = whole.read(LEDGER).where("zone = 'CROSS_ZONE' and usd is null")
    assert {(row["path"], row["source_rack"], row["target_rack"], row["bytes"]) for row in unpriced.collect()} == {
        ("replicate", "b", "c", 0.0),
        ("move", "b", "a", None),
    }
    assert [key.look for key in every] == [look_of(second) for second in SECONDS]

    proposal(parts)
    # The third look comes first without its topics, and whole with the next batch.
    first = ingest(parts, 0, SECONDS[:2])
    cut = ingest(parts, 1, SECONDS[2:3], drop="topic")
    early = refresh(parts, [*first, *cut], settings=SETTINGS, histories=False, outcomes=False)
    assert [message for message in early.messages if "lacks" in message]
    assert parts.read(LOOKS).where("not complete").count() == 1
    late = ingest(parts, 2, SECONDS[2:])
    wanted = contents(whole)
    for _ in range(2):
        assert refresh(parts, late, settings=SETTINGS).looks == 2
        check(parts, wanted)

    found = {row["hour_ms"]: row for row in whole.read(PARTITION_TRAFFIC).where("partition = 0").collect()}
    assert {hour: (row["seconds"], row["records"], row["bytes"]) for hour, row in found.items()} == {
        HOUR_MS - 3_600_000: (90.0, 900, 90_000.0),
        HOUR_MS: (90.0, 900, 90_000.0),
    }
    assert [row["cause"] for row in whole.read(REBALANCES).collect()] == ["members left"]
    (drift,) = whole.read(RACK_DRIFT).collect()
    assert (drift["subject"], drift["partition"], drift["after"]) == ("topic/orders", 1, ["a", "a", "b"])
    (outcome,) = whole.read(OUTCOMES).collect()
    assert (outcome["proposal"], outcome["state"]) == ("p-1", "standing")


def test_with_nothing_in_bronze_there_is_nothing_to_do(delta_tables: TableStore) -> None:
    done = refresh(delta_tables, settings=SETTINGS)
    assert (done.looks, done.hours, done.rows, done.messages) == (0, (), {}, ())
    done = refresh(delta_tables, [], settings=SETTINGS)
    assert (done.looks, done.hours, done.rows) == (0, (), {})


def test_days_choose_looks(delta_tables: TableStore) -> None:
    keys = ingest(delta_tables, 0, SECONDS[:1])
    assert looks_of_days(delta_tables, ("2025-10-09",)) == tuple(keys)
    assert looks_of_days(delta_tables, ("2025-10-10",)) == ()
    with pytest.raises(BadInput, match="is not a day"):
        looks_of_days(delta_tables, ("yesterday",))
