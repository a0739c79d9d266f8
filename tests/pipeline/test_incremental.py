"""Incremental sums, batch after batch: whatever comes, and in whichever order, gold is what one refresh makes."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.testing import assertDataFrameEqual

from agent.telemetry.events import TelemetryEvent
from agent.values.observation import ObservationPart
from pipeline.jobs import hourly
from pipeline.jobs.incremental import (
    HourlySums,
    HourShare,
    IncrementalSums,
    KeptSums,
    LookHours,
    LookId,
    Looks,
    contributing,
    looks_of,
    still_valid,
    with_predecessors,
)
from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.jobs.touched_looks import LookKey
from pipeline.jobs.work import ClusterHour
from pipeline.schemas import gold
from pipeline.schemas.bronze import TELEMETRY
from pipeline.tables import Format, TableStore, WriterBatch
from pipeline.transforms.prices import PriceRow
from pipeline.transforms.spans import HOUR_MS as AN_HOUR_MS
from tests.builders import TAKEN_MS, Answers, an_observation, instance, reader
from tests.pipeline.look_events import events_of, telemetry
from tests.pipeline.silver_rows import CLUSTER, HOUR_MS
from tests.snapshots import tp

SETTINGS = RefreshSettings(prices=(PriceRow("a", "b", 0.01), PriceRow("b", "c", 0.02)))
OF_HOURS = (gold.PARTITION_TRAFFIC, gold.READ_TRAFFIC, gold.LEDGER, gold.CONSERVATION, gold.LAGS, gold.LOCALITY)
THIS, NEXT = ClusterHour(CLUSTER, HOUR_MS), ClusterHour(CLUSTER, HOUR_MS + AN_HOUR_MS)
MakeTables = Callable[[str, Format], TableStore]


# Which looks hold


def told(number: int, second: int, *, instance: str = "i", **more: Any) -> tuple[LookId, LookHours]:
    """A look a minute after the one before it."""
    taken_ms = HOUR_MS + second * 1000
    hour_ms = taken_ms - taken_ms % AN_HOUR_MS
    known: dict[str, Any] = {
        "instance": instance,
        "previous": f"{instance}-{number - 1}",
        "taken_ms": taken_ms,
        "monotonic_ms": second * 1000,
        "shown_in_ms": hour_ms,
        "stretches": (HourShare(hour_ms, 0.0, 1.0, 60_000),),
    }
    return LookId(CLUSTER, f"{instance}-{number}"), LookHours(**known | more)


FIRST, SECOND, THIRD, FOURTH = (told(number, number * 60) for number in range(1, 5))


def kept(*looks: tuple[LookId, LookHours]) -> KeptSums:
    """As if these were all looks that were known, and were added up."""
    sums = cast("HourlySums[DataFrame]", HourlySums(*("sums",) * len(HourlySums._fields)))
    return KeptSums(sums, frozenset({THIS}), dict(looks))


def still(kept: KeptSums, looks: Looks, *touched: str, hours: Collection[ClusterHour] = (THIS,)) -> bool:
    return still_valid(kept, looks, hours, [LookId(CLUSTER, look) for look in touched])


def test_what_was_added_up_holds_while_new_looks_come_after_it() -> None:
    of = kept(FIRST, SECOND)
    assert still(of, dict((FIRST, SECOND, THIRD)), "i-3")
    assert still(of, dict((FIRST, SECOND, THIRD)), "i-3", "i-not-whole-yet")
    assert still(of, dict((FIRST, SECOND, told(1, 130, instance="j"))), "j-1")
    assert still(of, dict((FIRST, SECOND)))


def test_what_was_read_again_or_comes_before_what_was_added_up_ends_it() -> None:
    of = kept(FIRST, THIRD)
    every = dict((FIRST, SECOND, THIRD))
    assert not still(of, every, "i-3"), "one of its own"
    assert not still(of, every, "i-2"), "one in between, whose sizes the third is compared with"
    assert not still(of, every), "one in between that no look had seen"
    # It has no say in the hour itself.
    before = told(0, 0, shown_in_ms=None, stretches=())
    assert not still(of, {**dict((FIRST, THIRD)), before[0]: before[1]}, "i-0")
    # Sizes of a look after the hour were kept as the newest ones.
    later = told(5, 3_700, shown_in_ms=None, stretches=())
    assert not still(kept(FIRST, later), dict((FIRST, FOURTH, later)), "i-4")


@pytest.mark.parametrize(
    "other",
    [
        told(2, 120, previous=None, stretches=()),
        told(2, 120, stretches=(HourShare(HOUR_MS, 0.5, 1.0, 30_000),)),
        told(2, 120, previous="i-0"),
    ],
    ids=["no pair any more", "another agent tells half of it", "compared with another one"],
)
def test_a_look_that_tells_something_else_ends_it(other: tuple[LookId, LookHours]) -> None:
    of = kept(FIRST, SECOND)
    assert not still(of, dict((FIRST, other, THIRD)), "i-3")
    assert not still(of, dict((FIRST, THIRD)), "i-3"), "or one that is gone"


def test_over_the_border_of_an_hour_the_new_hour_begins_with_new_looks() -> None:
    of = kept(FIRST, SECOND)
    across = told(
        60, 3_630, stretches=(HourShare(HOUR_MS, 0.0, 0.5, 30_000), HourShare(NEXT.hour_ms, 0.5, 1.0, 30_000))
    )
    assert still(of, dict((FIRST, SECOND, across)), "i-60", hours=(THIS, NEXT))
    # The hour before is no longer asked for: what its looks tell of it makes no difference.
    now = {id_: one.within(CLUSTER, {NEXT}) for id_, one in (FIRST, SECOND, across)}
    assert contributing(now).keys() == {across[0]}
    assert still(of, now, "i-60", hours=(NEXT,))
    # Of the next hour nothing was added up, so a look that tells of both must not be among those that were.
    one_hour = (across[0], across[1].within(CLUSTER, {THIS}))
    assert not still(kept(FIRST, one_hour), dict((FIRST, across)), hours=(THIS, NEXT))
    assert not still(kept(FIRST, one_hour), {across[0]: across[1].within(CLUSTER, {NEXT})}, hours=(NEXT,))


def test_where_looks_of_no_say_were_not_known_their_sizes_are_missing() -> None:
    before = told(0, 0, instance="j", shown_in_ms=None, stretches=())
    after = told(1, 60, instance="j")
    assert not still(kept(FIRST), dict((FIRST, before, after)), "j-1")
    assert still(kept(FIRST, before), dict((FIRST, before, after)), "j-1")
    assert still(kept(FIRST), dict((FIRST, after)), "j-1")


def test_a_look_of_no_say_that_is_compared_with_another_makes_no_difference() -> None:
    """The first one that is looked at has none before it."""
    before, edge = (told(0, 0, previous=name, shown_in_ms=None, stretches=()) for name in ("i-x", None))
    assert still(kept(before, FIRST), dict((edge, FIRST, SECOND)), "i-2")


def test_what_is_taken_is_kept_no_longer_until_it_is_kept_again() -> None:
    sums, of = IncrementalSums(), kept(FIRST)
    assert sums.take(dict((FIRST,)), {THIS}, ()) is None
    sums.keep(of.sums, dict((FIRST,)), of.hours)
    assert sums.take(dict((FIRST,)), {THIS}, ()) == KeptSums(of.sums, of.hours, dict((FIRST,)))
    assert sums.take(dict((FIRST,)), {THIS}, ()) is None


def test_the_rows_of_a_look_are_compared_with_those_of_the_one_before() -> None:
    looks = dict((FIRST, SECOND, THIRD, FOURTH))
    assert with_predecessors([FOURTH[0]], looks) == [THIRD[0], FOURTH[0]]
    assert with_predecessors([FIRST[0]], looks) == [FIRST[0]]
    assert with_predecessors([], looks) == []


def test_looks_are_those_of_the_timeline_with_their_parts_of_hours() -> None:
    look: dict[str, Any] = {"cluster": CLUSTER, "look": "i-2", "instance": "i", "previous": "i-1", "monotonic_ms": 60}
    times = [Row(**look, taken_ms=HOUR_MS + 5, of_instance_ms=clock) for clock in (60, None)]
    spans = [
        Row(cluster=CLUSTER, look="i-2", hour_ms=HOUR_MS + of, from_share=share, to_share=share + 0.5, ms=30)
        for of, share in ((0, 0.5), (-AN_HOUR_MS, 0.0))
    ]
    both = {THIS, ClusterHour(CLUSTER, HOUR_MS - AN_HOUR_MS)}
    (found,) = looks_of(times, spans, both).items()
    parts = (HourShare(HOUR_MS - AN_HOUR_MS, 0.0, 0.5, 30), HourShare(HOUR_MS, 0.5, 1.0, 30))
    assert found == (LookId(CLUSTER, "i-2"), LookHours("i", "i-1", HOUR_MS + 5, 60, HOUR_MS, parts))
    (later,) = looks_of(times, spans, {NEXT}).values()
    assert not later.contributes


# What comes to gold


class Look(NamedTuple):
    """A look of a small world; seconds count from the hour's begin."""

    instance: str
    number: int
    second: int

    @property
    def id(self) -> str:
        return f"{self.instance}-{self.number}"


def world(look: Look) -> Answers:
    """Topics that grow, move and are led from elsewhere; groups that rebalance, and one whose copies restore."""
    second = look.second + 10_000
    answers = an_observation(a=(1, 4), b=(2,), c=(3,))
    if look.second % 3 == 0:
        answers.selector("org.apache.kafka.common.replica.RackAwareReplicaSelector")
    moves = look.second % 7 < 2
    replicas = [(4, 1, 2, 3) if moves else (1, 2, 3), (2, 3, 1) if look.second < 3_500 else (3, 2, 1)]
    answers.topic("orders", *replicas, ends=(10 * second, 3 * second))
    answers.topic("idle", (4, 2), ends=(7,))
    answers.topic("app-store-changelog", (1, 2), ends=(second,))
    if moves:
        answers.moving("orders-0", replicas[0], adding=(4,), removing=(2,))
    held = ("orders-1", "orders-0") if look.second % 5 == 0 else ("orders-0", "orders-1")
    answers.group("shop", reader("m1", "a", held[0]), reader("m2", "c", held[1]))
    answers.group("blind", reader("m1", None, "orders-0 idle-0"))
    helper = instance(2, "c", standby={"0_0": "app-store-changelog-0"}, topics=("orders",))
    answers.streams("app", instance(1, "b", {"0_0": "orders-0"}), helper)
    answers.committed = {"shop": {tp("orders-0"): 10 * second - look.second % 11, tp("orders-1"): 3 * second}}
    answers.sizes = {
        # Records become larger by and by: whichever interval is left out, their mean size is another one.
        (broker, tp(f"orders-{part}")): size * second + second**2 // 40
        for broker in (1, 2, 3)
        for part, size in ((0, 1_000), (1, 90))
    }
    answers.sizes[4, tp("orders-0")] = 300 * second
    return answers


def events(looks: Sequence[Look]) -> list[TelemetryEvent]:
    return [event for look in looks for event in _events(look)]


def _events(look: Look) -> list[TelemetryEvent]:
    moment = (HOUR_MS - TAKEN_MS) / 1000 + look.second
    seen = world(look).at(moment)
    if look.number % 3:
        seen = replace(seen, ages_ms={ObservationPart.LOG_DIRS: 5_000})
    return events_of(seen, look.id)


class Runner:
    """Batch after batch into one root, with incremental sums; how often it had to read all looks of its hours."""

    def __init__(self, tables: TableStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tables = tables
        self.batches = 0
        self.whole = 0
        self.sums = IncrementalSums()
        read_all = hourly._all_rows

        def counted(*given: Any) -> Any:
            self.whole += 1
            return read_all(*given)

        monkeypatch.setattr(hourly, "_all_rows", counted)

    def batch(self, events: Sequence[TelemetryEvent]) -> None:
        rows = telemetry(self.tables.spark, events)
        self.tables.append(TELEMETRY, rows, WriterBatch("test", self.batches))
        self.batches += 1
        touched = sorted({LookKey(event.cluster, event.look, event.taken_ms) for event in events})
        refresh(self.tables, touched, settings=SETTINGS, histories=False, outcomes=False, incremental=self.sums)


def hours_of(tables: TableStore) -> dict[str, list[Row]]:
    return {table.name: tables.read(table).collect() for table in OF_HOURS}


def check(tables: TableStore, fresh: TableStore) -> None:
    """The hours are those that one refresh of the same bronze makes."""
    fresh.append(TELEMETRY, tables.read(TELEMETRY), WriterBatch("test", 0))
    refresh(fresh, settings=SETTINGS, histories=False, outcomes=False)
    found, wanted = hours_of(tables), hours_of(fresh)
    assert min(len(rows) for rows in wanted.values()) > 0
    for name, rows in wanted.items():
        assertDataFrameEqual(found[name], rows)


def test_few_new_looks_are_added_to_what_the_hour_came_to(
    make_tables: MakeTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(make_tables("incremental", "parquet"), monkeypatch)
    looks = [Look("12345678", number, number * 60 + 3_450) for number in range(5)]
    runner.batch(events(looks[:2]))
    assert runner.whole == 1
    # The next ones lie on either side of the hour's end.
    runner.batch(events(looks[2:4]))
    assert runner.whole == 1
    # A second agent looks meanwhile, and its first look comes late.
    runner.batch(events([looks[4], *(Look("87654321", number, 3_500 + number * 100) for number in range(2))]))
    assert runner.whole == 2
    check(runner.tables, make_tables("fresh", "parquet"))


@pytest.mark.drill
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_in_whichever_order(make_tables: MakeTables, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Looks late, twice and in pieces, restarts, gaps, two agents at once, kills and batches that failed."""
    draw = random.Random(seed)
    looks = [*_line(draw, "12345678", 2_500), *_line(draw, "87654321", 3_200), *_line(draw, "abcdefab", 8_000)]
    parts: list[tuple[float, list[TelemetryEvent]]] = []
    for look in looks:
        told = _events(look)
        late = draw.choice((0, 0, 0, 0, 0, 0, 60, 400, 1_500, 9_000))
        cut = draw.randrange(1, len(told)) if draw.random() < 0.15 else len(told)
        parts.append((look.second, told[:cut]) if cut < len(told) else (look.second + late, told))
        if cut < len(told):
            parts.append((look.second + late, told[cut:]))
    parts.sort(key=lambda part: part[0])
    runner = Runner(make_tables("incremental", "parquet"), monkeypatch)
    while parts:
        number = draw.choice((1, 1, 2, 5))
        batch = [event for _, told in parts[:number] for event in told]
        parts = parts[number:]
        fate = draw.random()
        if fate < 0.1:
            runner.sums = IncrementalSums()
        elif fate < 0.2:
            with monkeypatch.context() as broken:
                broken.setattr(hourly, "lags", _fail)
                with pytest.raises(OSError, match="disk"):
                    runner.batch(batch)
            runner.batches -= 1
        runner.batch(batch)
    print(f"seed {seed}: {len(looks)} looks in {runner.batches} batches, {runner.whole} of which read whole hours")
    assert runner.whole < runner.batches
    check(runner.tables, make_tables("fresh", "parquet"))


def _line(draw: random.Random, instance: str, second: int) -> list[Look]:
    looks = []
    for number in range(draw.randrange(6, 10)):
        looks.append(Look(instance, number, second))
        second += draw.choice((60, 60, 60, 61, 30, 200, 1_000))
    return looks


def _fail(_: DataFrame) -> DataFrame:
    raise OSError("the disk is full")
