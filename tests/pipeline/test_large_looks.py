"""Large looks in parts: whatever a look is divided into, its rows are those of the look in one."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from agent.telemetry.derived import AssessmentData, FindingData
from agent.telemetry.events import EventKind, TelemetryEvent
from agent.values.assessment import Locality, LocalityMeasure
from agent.values.memory import Memory, RackSighting, RateBase, RunningReassignment, TopicMemory
from agent.values.observation import GapCause, ObservationPart, RawListedGroup
from agent.values.typed_json import to_json
from pipeline.jobs.refresh import RefreshSettings, refresh
from pipeline.schemas.bronze import TELEMETRY
from pipeline.schemas.table import TableSpec
from pipeline.tables import TableStore, WriterBatch
from pipeline.transforms import large_looks
from pipeline.transforms.large_looks import parts_of
from pipeline.transforms.look_parts import LookPart, events_about_the_cluster, part_events, rows_of_part
from pipeline.transforms.look_rows import BronzeEvent, SilverRow, rows_of_look
from pipeline.transforms.looks import _heads, look_rows, silver_table
from tests.builders import (
    TAKEN_MS,
    an_observation,
    consumer,
    instance,
    process_id,
    reader,
    streams_member,
    subtopology,
)
from tests.pipeline.contents import contents, rounded
from tests.pipeline.look_events import events_of, telemetry
from tests.pipeline.test_looks import derived, raw
from tests.snapshots import tp

LOOK = "12345678-7"
COMPILED = "spark.sql.codegen.wholeStage"


def world(seed: int) -> list[TelemetryEvent]:
    """A look with everything in it that rows are made of: groups of all kinds, a broker that is gone, a move, gaps."""
    draw = random.Random(seed)
    told = an_observation(a=(1, 4), b=(2,), c=(3,))
    names = [f"t{number}" for number in range(draw.randint(1, 6))]
    for name in names:
        told.topic(name, *(tuple(draw.sample((1, 2, 3, 4, 9), 3)) for _ in range(draw.randint(1, 4))))
        told.sizes |= {(broker, tp(f"{name}-0")): draw.randint(1, 10**6) for broker in (1, 2, 3)}
    told.moving(f"{names[0]}-0", (1, 2, 3), (1,), (4,))
    for number in range(draw.randint(0, 4)):
        told.group(f"g{number}", reader("m1", "a", f"{draw.choice(names)}-0"), reader("m2", None, ""))
        told.kip848(f"k{number}", consumer("m", "b", f"{draw.choice(names)}-0"))
        told.committed[f"g{number}"] = {tp(f"{draw.choice(names)}-0"): draw.randint(1, 900)}
    told.group("busy", reader("m1", "a", "t0-0"), state="PreparingRebalance")
    told.group("app-old", state="PreparingRebalance")
    told.listed["share"] = RawListedGroup("share", "share", "Stable", "share")
    told.committed |= {"flink": {tp("t0-0"): 5}, "share": {tp("t0-0"): 7}}
    told.listed["flink"] = RawListedGroup("flink", "", "Empty", "classic")
    told.topic("clicks", (1, 2), (2, 3), ends=(50, 60)).topic("app-1-store-changelog", (1, 2), (2, 9), ends=(7, 9))
    told.topic("app-1-x-store-changelog", (1, 2), ends=(70,)).topic("views", (3, 2), (2, 3))
    told.streams(
        "app-1",
        instance(1, "a", {"0_0": "clicks-0"}, {"0_1": "clicks-1"}, sums={"0_1": 3}, topics=("clicks",)),
        instance(2, "b", {"0_1": "clicks-1"}, topics=("clicks",)),
    )
    told.streams("app-1-x", instance(3, "c", {"0_0": "views-0"}, topics=("views",)))
    told.topic("new-s-changelog", (1, 2), (2, 3), ends=(20, 30))
    told.kip1071(
        "new",
        streams_member(1, "a", active="0_0", standby="0_1", offsets={"0_1": (3, 30)}),
        streams_member(2, "b", active="0_1"),
        subtopologies=(subtopology("0", "views", "new-s-changelog"),),
    )
    told.says("new", process_id(1), "0_1", "standby", 27, at_s=0)
    told.gap(ObservationPart.BROKER_CONFIGS, GapCause.TIMED_OUT, "broker 3")
    told.broker_configs[2] = {}
    memory = Memory(
        cycle=3, taken_ms=TAKEN_MS - 60_000, monotonic_ms=1_000,
        brokers={9: RackSighting("b", "b", None, 5, 3)},
        topics={"t0": TopicMemory("id", ((1, 2, 3),))},
        reassignments={tp("t0-0"): RunningReassignment(5, own=draw.random() < 0.5)},
        rate_bases=(RateBase(1_000, {tp("t0-0"): 3}, {tp("t0-0"): 300}),),
        bytes_per_record={name: 10.0 * at for at, name in enumerate(names, 1)},
    )  # fmt: skip
    events = events_of(told.at(), LOOK, memory=memory)
    return [*events, *(event._replace(n=event.n + len(events)) for event in _derived())]


def _derived() -> list[TelemetryEvent]:
    about = FindingData("f-2", "RACK_UNKNOWN", "WARNING", "broker/9", "It is so", (), 5, held=False)
    near = Locality(LocalityMeasure.READ_LOCAL, "partitions", 1, 2, 1)
    measured = AssessmentData("g0", None, (near,), (), 1, 0, 0, 1)
    more = [
        ("broker/9", EventKind.FINDING, to_json(FindingData, about)),
        ("group/g0", EventKind.ASSESSMENT, to_json(AssessmentData, measured)),
    ]
    events = [
        TelemetryEvent(kind, subject, "test-cluster", LOOK, 2_000 + n, TAKEN_MS, data)
        for n, (subject, kind, data) in enumerate(more)
    ]
    return [*derived(), *events]


def in_parts(rows: list[BronzeEvent], of: int) -> list[SilverRow]:
    """What all parts give, the events of each in the order in which Spark sorts them."""
    cluster = [row for row in rows if not row.subject.startswith(("topic/", "group/"))]
    others = [row for row in rows if row.subject.startswith(("topic/", "group/"))]
    heads = events_about_the_cluster(sorted(cluster, key=lambda row: row.n))
    found: list[SilverRow] = []
    for number in range(of + 1):
        part = LookPart(number, of)
        groups = [row for row in others if row.subject.startswith("group/") and part.owns(row.subject)]
        topics = [row for row in others if row.subject.startswith("topic/")] if number else []
        found += rows_of_part(part_events([*heads, *groups, *topics], part), part)
    return found


def counted(rows: Iterable[SilverRow], *without: str) -> Counter[str]:
    return Counter(repr(row) for row in rows if row.table not in without)


@given(seed=st.integers(0, 2**32), of=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_the_rows_of_all_parts_are_those_of_the_look(seed: int, of: int) -> None:
    rows = raw(world(seed))
    whole, parts = rows_of_look(rows), in_parts(rows, of)
    assert [row.row["problem"] for row in parts if row.table == "part"] == [None] * (of + 1)
    assert counted(parts, "part", "looks", "brokers") == counted(whole, "looks", "brokers")
    brokers = [{repr(row) for row in of_one if row.table == "brokers"} for of_one in (parts, whole)]
    assert brokers[0] == brokers[1]
    (look,), (same,) = ([row.row for row in of_one if row.table == "looks"] for of_one in (whole, parts))
    told = [row.row for row in parts if row.table == "part"]
    sums = {name: sum(one[name] for one in told) for name in ("topics", "groups")}
    assert same | sums == look
    assert {one["expected"] for one in told} == {sum(one["events"] for one in told)}


def lacking(events: list[TelemetryEvent], kind: EventKind) -> list[TelemetryEvent]:
    gone = next(event for event in events if event.kind is kind)
    return [event for event in events if event is not gone]


def spoilt(events: list[TelemetryEvent], kind: EventKind) -> list[TelemetryEvent]:
    first = next(event for event in events if event.kind is kind)
    return [event._replace(data={"x": 1}) if event is first else event for event in events]


CHANGES: dict[str, Callable[[list[TelemetryEvent]], list[TelemetryEvent]]] = {
    "as it is": lambda events: events,
    "twice": lambda events: [*events[::-1], *events],
    "no topic": lambda events: lacking(events, EventKind.TOPIC),
    "no group": lambda events: lacking(events, EventKind.GROUP),
    "no memory": lambda events: lacking(events, EventKind.MEMORY),
    "no end": lambda events: lacking(events, EventKind.LOOK),
    "odd topic": lambda events: spoilt(events, EventKind.TOPIC),
    "odd group": lambda events: spoilt(events, EventKind.STREAMS_GROUP),
    "odd memory": lambda events: spoilt(events, EventKind.MEMORY),
    "odd broker": lambda events: spoilt(events, EventKind.BROKER),
    "odd end": lambda events: spoilt(events, EventKind.LOOK),
    "not in full": lambda events: [event for event in events if event.kind is EventKind.ASSESSMENT],
}


def test_looks_in_parts_give_every_table_what_they_give_in_one_whole_or_broken(spark: SparkSession) -> None:
    events, large = [], {}
    for number, (name, change) in enumerate(CHANGES.items()):
        look = f"12345678-{number}"
        told = change([event._replace(look=look) for event in world(number)])
        events += told
        if name != "not in full":
            large["test-cluster", look] = 1 + number % 5
    rows = telemetry(spark, events).coalesce(1).localCheckpoint()
    one, parts = (
        Counter(repr(rounded(row.asDict(recursive=True))) for row in wide.collect())
        for wide in (look_rows(rows), look_rows(rows, large, lambda frame: frame.localCheckpoint()))
    )
    assert parts == one
    assert sum("'complete': False" in row for row in one) == len(CHANGES) - 2
    assert len({row for row in one if "'brokers': {" in row}) > 4


def test_an_event_in_fragments_and_half_a_surrogate_pair_are_of_one_part() -> None:
    told = an_observation()
    told.topic("orders", (1, 2, 3)).topic("odd-\ud800", (1, 2))
    told.group("g" * 200, *(reader(f"m{n}-{'x' * 900}", "a", "orders-0") for n in range(1_200)))
    told.group("odd-\ud800", reader("m", "a", "orders-0"))
    memory = Memory(bytes_per_record={f"topic-{number}" * 20: 1.0 for number in range(9_000)})
    rows = raw(events_of(told.at(), LOOK, memory=memory))
    assert len({row.subject for row in rows if row.kind == "fragment"}) == 2
    parts = in_parts(rows, 3)
    assert counted(parts, "part", "looks", "brokers") == counted(rows_of_look(rows), "looks", "brokers")


def spoilt_text(text: str) -> list[TelemetryEvent]:
    """A look with an event about the cluster that comes in fragments, whose text is changed to that."""
    events = world(1)
    gaps = next(event for event in events if event.kind is EventKind.GAPS)
    step = len(text) // 2
    pieces = [{"part": at, "parts": 2, "text": piece} for at, piece in enumerate((text[:step], text[step:]))]
    others = [event for event in events if event is not gaps]
    return [*others, *(gaps._replace(kind=EventKind.FRAGMENT, data=piece) for piece in pieces)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"n": 2**70}, id="a number of 70 bits"),
        pytest.param({"n": 2**40}, id="a number of 40 bits"),
        pytest.param({"n": -(2**40)}, id="a number far below zero"),
        pytest.param({"v": -(2**40)}, id="a version far below zero"),
        pytest.param({"subject": "cluster/\ud800"}, id="half a surrogate pair in the subject"),
        pytest.param({"cluster": "\udc00"}, id="half a surrogate pair in the cluster"),
        pytest.param({"look": "\udc00-1"}, id="half a surrogate pair in the look"),
        pytest.param({"subject": "a\x00b"}, id="a null byte"),
        pytest.param({"subject": 7}, id="a subject that is no text"),
        pytest.param({"data": {"gaps": 1e999}}, id="infinity"),
        pytest.param({"data": []}, id="a list"),
        pytest.param({"data": "[" * 980 + "]" * 980}, id="a deep nest"),
    ],
)
def test_no_event_about_the_cluster_ends_the_task_that_joins_its_fragments(change: dict[str, object]) -> None:
    gaps = next(event for event in world(1) if event.kind is EventKind.GAPS)
    text = json.dumps({"v": 1, **gaps._asdict(), **change}).replace('"[[', "[[").replace(']]"', "]]")
    rows = raw(spoilt_text(text))
    cluster = sorted((row for row in rows if not row.subject.startswith(("topic/", "group/"))), key=lambda row: row.n)
    batch = pa.RecordBatch.from_pylist([row._asdict() for row in cluster])
    (heads,) = _heads(iter([batch]))
    assert heads.num_rows in (len(cluster), len(cluster) - 1)
    parts = in_parts(rows, 2)
    assert {row.row["number"] for row in parts if row.table == "part"} == {0, 1, 2}


@pytest.mark.drill
def test_a_refresh_divides_a_large_look_and_comes_to_the_same(
    make_tables: Callable[..., TableStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [parts_of(size) for size in (0, 16_000_000, 16_000_001, 75_000_000)] == [0, 0, 3, 10]
    one, many = (make_tables(name, "delta") for name in ("one", "many"))
    events = [event._replace(look=f"12345678-{number}") for number in range(2) for event in world(number)]
    for tables in (one, many):
        tables.append(TELEMETRY, telemetry(tables.spark, events), WriterBatch("test", 0))
    refresh(one, settings=RefreshSettings(), histories=False, outcomes=False)
    monkeypatch.setattr(large_looks, "PART_BYTES", 4_000)
    monkeypatch.setattr("pipeline.jobs.refresh.PART_BYTES", 4_000)
    session, compiled = many.spark, []
    assert session.conf.get(COMPILED) == "false"

    def silver(wide: DataFrame, table: TableSpec) -> DataFrame:
        compiled.append(session.conf.get(COMPILED))
        return silver_table(wide, table)

    monkeypatch.setattr("pipeline.jobs.refresh.silver_table", silver)
    refresh(many, settings=RefreshSettings(), histories=False, outcomes=False)
    assert set(compiled) == {"true"}, "what is done with each of many rows is compiled"
    assert session.conf.get(COMPILED) == "false"
    assert contents(many) == contents(one)
