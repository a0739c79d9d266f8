"""Telemetry: what is written of a look rebuilds it exactly, whatever was seen."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.telemetry.events import MAX_RECORD_CHARS, EventKind, TelemetryEvent, from_lines, to_lines
from agent.telemetry.looks import IncompleteLookError, checked, limits_digest, observation_from_events
from agent.values.clock import TimeWindow, TimeWindowSet
from agent.values.limits import (
    AgentMode,
    GroupLimits,
    Limits,
    LocatorKind,
    PriceLimits,
    ProbingLimits,
    ProposalLimits,
    RackLimits,
    RackLocator,
    RackPattern,
)
from agent.values.memory import Memory
from agent.values.observation import Observation, RawBroker, RawClassicGroup, RawMember, RawPartition, RawTopic
from agent.values.typed_json import UnreadableError
from assignors.problem import TopicPartition
from tests.record.observations import ANY_LIMITS, LIMITS, MEMORIES, OBSERVATIONS
from tests.recorded_looks import observation_to_events

SMALL = Observation(
    cluster_id="c",
    controller=1,
    brokers=(RawBroker(1, "h", 9092, "a", None),),
    topics=(RawTopic("orders", "id", False, (RawPartition(0, 1, (1,), (1,), ()),), None),),
    topic_configs={"orders": {"min.insync.replicas": "1"}, "gone": {}},
    end_offsets={TopicPartition("orders", 0): 5, TopicPartition("other", 3): 7},
    committed_offsets={"g": {TopicPartition("orders", 0): 4}, "h": {}},
    groups=(
        RawClassicGroup("g", "Stable", "consumer", "range", (RawMember("m", None, "c", "/h", b"\x00\xff", b""),), None),
    ),
    replica_bytes={(1, TopicPartition("orders", 0)): 9},
    taken_ms=1,
    monotonic_ms=2,
    took_ms=3,
)


def lines_of(observation: Observation, memory: Memory | None = None, look: str = "l-1") -> list[str]:
    events = observation_to_events(observation, memory or Memory(), Limits(), look=look)
    return [line for event in events for line in to_lines(event)]


@settings(max_examples=50, deadline=None)
@given(OBSERVATIONS, MEMORIES, LIMITS, st.randoms())
def test_a_look_comes_back_equal_through_text_in_any_order(
    observation: Observation, memory: Memory, limits: Limits, shuffle: random.Random
) -> None:
    events = observation_to_events(observation, memory, limits, look="l-1")
    lines = [line for event in events for line in to_lines(event)]
    shuffle.shuffle(lines)
    recorded = observation_from_events(from_lines([*lines, *lines[:2]]))
    assert recorded.observation == observation
    assert recorded.memory == memory
    assert recorded.limits == limits
    assert all("\n" not in line and line.isascii() for line in lines)


def test_each_subject_has_its_event_and_its_key() -> None:
    events = list(observation_to_events(SMALL, Memory(), Limits(), look="l-1"))
    assert [event.n for event in events] == list(range(len(events)))
    assert [(event.kind.value, event.subject) for event in events] == [
        ("limits", "cluster/c"),
        ("memory", "cluster/c"),
        ("gaps", "cluster/c"),
        ("reassignments", "cluster/c"),
        ("application_lags", "cluster/c"),
        ("listed_groups", "cluster/c"),
        ("broker", "broker/1"),
        ("topic", "topic/orders"),
        ("topic", "topic/gone"),
        ("topic", "topic/other"),
        ("group", "group/g"),
        ("committed_offsets", "group/g"),
        ("committed_offsets", "group/h"),
        ("look", "cluster/c"),
    ]


def test_the_golden_lines() -> None:
    """Readers of telemetry depend on these bytes; a difference here is a decision."""
    lines = {json.loads(line)["kind"]: line for line in lines_of(SMALL)}
    assert lines["group"] == (
        '{"v":1,"kind":"group","subject":"group/g","cluster":"c","look":"l-1","n":10,"taken_ms":1,"data":'
        '{"group_id":"g","state":"Stable","protocol_type":"consumer","protocol":"range","members":[{"member_id":"m",'
        '"instance_id":null,"client_id":"c","client_host":"/h","metadata":"AP8=","assignment":""}],"coordinator":null}}'
    )
    topics = [line for line in lines_of(SMALL) if '"kind":"topic"' in line]
    assert topics[0] == (
        '{"v":1,"kind":"topic","subject":"topic/orders","cluster":"c","look":"l-1","n":7,"taken_ms":1,"data":'
        '{"name":"orders","row":{"name":"orders","topic_id":"id","internal":false,"partitions":[{"partition":0,'
        '"leader":1,"replicas":[1],"isr":[1],"offline":[]}],"error":null},"configs":{"min.insync.replicas":"1"},'
        '"end_offsets":[{"partition":0,"offset":5}],"replica_bytes":[{"partition":0,"broker":1,"bytes":9}]}}'
    )


def test_a_large_event_travels_in_fragments_that_fit_into_a_record() -> None:
    member = RawMember("m", None, "c", '"\\' * 200_000, b"\x00" * 2_000_000, b"")
    large = Observation(
        cluster_id="c", controller=None, brokers=(), topics=(), taken_ms=1, monotonic_ms=1, took_ms=1,
        groups=(RawClassicGroup("g", "Stable", "consumer", "range", (member,), 1),),
    )  # fmt: skip
    lines = lines_of(large)
    assert max(map(len, lines)) <= MAX_RECORD_CHARS
    assert sum('"fragment"' in line for line in lines) > 2
    random.Random(7).shuffle(lines)
    assert observation_from_events(from_lines(lines)).observation == large


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        pytest.param(lambda lines: lines[1:], "lacks 1 of its 14 events", id="the first event is missing"),
        pytest.param(lambda lines: lines[:-1], "has no last event", id="the last event is missing"),
        pytest.param(
            lambda lines: lines[:5] + lines[6:], "lacks 1 of its 14 events", id="one in the middle is missing"
        ),
        pytest.param(lambda lines: [], "belong to 0 looks", id="nothing"),
        pytest.param(lambda lines: lines + lines_of(SMALL, look="l-2"), "belong to 2 looks", id="two looks at once"),
    ],
)
def test_a_look_that_is_not_whole_is_refused(spoil, sentence: str) -> None:  # type: ignore[no-untyped-def] # a table's lambda
    with pytest.raises(IncompleteLookError, match=sentence):
        observation_from_events(from_lines(spoil(lines_of(SMALL))))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("", id="nothing"),
        pytest.param("{}", id="no fields"),
        pytest.param("[1]", id="a list"),
        pytest.param('{"v":1', id="cut in two"),
        pytest.param("[" * 100_000, id="nested a hundred thousand times"),
        pytest.param('{"v":2,"kind":"look"}', id="a newer version"),
        pytest.param('{"v":1,"kind":"look"}', id="an event without its fields"),
        pytest.param(b"\xff\xfe", id="bytes that are no text"),
    ],
)
def test_a_line_that_is_no_event_is_refused(line: str | bytes) -> None:
    with pytest.raises(UnreadableError):
        list(from_lines([line]))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        pytest.param("broker", {"id": "one"}, id="a text for a number"),
        pytest.param("broker", {"id": True}, id="true for a number"),
        pytest.param("topic", {"row": {"name": "x"}}, id="a row without its fields"),
        pytest.param(
            "gaps", {"gaps": [{"part": "NOWHERE", "cause": "ERROR", "subject": "", "detail": ""}]}, id="an unknown word"
        ),
        pytest.param("group", {"members": {}}, id="an object for a list"),
        pytest.param("memory", {"text": "{}"}, id="a memory of no version"),
    ],
)
def test_data_of_another_shape_is_refused(kind: str, change: dict[str, object]) -> None:
    events = [
        event._replace(data={**event.data, **change}) if event.kind == kind else event
        for event in from_lines(lines_of(SMALL))
    ]
    with pytest.raises(UnreadableError):
        observation_from_events(events)


def test_a_reader_leaves_aside_what_it_does_not_know() -> None:
    lines = lines_of(SMALL)
    newer = [
        line.replace('"data":{', '"data":{"a_new_field":1,') if '"kind":"broker"' in line else line for line in lines
    ]
    unknown = '{"v":1,"kind":"a_new_kind","subject":"s","cluster":"c","look":"l-1","n":99,"taken_ms":1,"data":{}}'
    assert observation_from_events(from_lines([unknown, *newer])).observation == SMALL


def test_a_reader_fills_in_what_an_older_writer_did_not_write() -> None:
    events = list(from_lines(lines_of(SMALL)))
    older = [_without(event, "groups_hidden") if event.kind is EventKind.LOOK else event for event in events]
    assert observation_from_events(older).observation == SMALL


def _without(event: TelemetryEvent, name: str) -> TelemetryEvent:
    rights = {key: value for key, value in event.data["rights"].items() if key != name}
    return event._replace(data={**event.data, "rights": rights})


@settings(max_examples=100, deadline=None)
@given(ANY_LIMITS)
def test_limits_that_anybody_wrote_are_refused_or_within_bounds(limits: Limits) -> None:
    with suppress(UnreadableError):
        found = checked(limits)
        assert found == limits
        assert min(found.probing.budget_per_group_per_hour, found.proposals.max_per_cycle) >= 0
        assert found.proposals.move_bytes_per_s >= 1


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        pytest.param(
            Limits(probing=ProbingLimits(budget_per_group_per_hour=-1)),
            "the limit execute.probing_budget_per_group_per_hour is -1, and no limit is below 0", id="a budget below 0",
        ),
        pytest.param(
            Limits(price=PriceLimits(usd_per_gb=-0.02)), "the limit usd_per_gb is -0.02", id="a price below 0"
        ),
        pytest.param(
            Limits(price=PriceLimits(between={("a", "b"): -1.0})), """the limit prices["('a', 'b')"] is -1.0""",
            id="of racks",
        ),
        pytest.param(
            Limits(groups={"shop": GroupLimits(num_standby_replicas=-2)}),
            "the limit groups['shop'].num_standby_replicas is -2", id="of a group",
        ),
        pytest.param(
            Limits(racks=RackLimits(flap_changes=2**64)), "has more than 64 bits", id="a number beyond 64 bits"
        ),
        pytest.param(
            Limits(proposals=ProposalLimits(move_bytes_per_s=0.0)), "move_bytes_per_s is 0.0, and is at least 1",
            id="a divisor of 0",
        ),
        pytest.param(
            Limits(windows=TimeWindowSet(allow=(TimeWindow("w", "Mars/Olympus"),))),
            "cannot be used: 'No time zone found with key Mars/Olympus'", id="no such zone",
        ),
        pytest.param(
            Limits(windows=TimeWindowSet(blackout=(TimeWindow("w", "UTC", 1_440, 10),))),
            "a window among the limits begins or ends after midnight of its day", id="no such minute",
        ),
        pytest.param(
            Limits(rack_locators=(RackLocator(name="r", kind=LocatorKind.REGEX,
                patterns=(RackPattern("host", "(", "a"),)),)),
            "a window or a rack locator among the limits cannot be used", id="no pattern",
        ),
        pytest.param(
            Limits(rack_locators=(RackLocator(name="n", kind=LocatorKind.CIDR, networks=(("10.0.0.1/8", "a"),)),)),
            "a window or a rack locator among the limits cannot be used", id="no network",
        ),
    ],
)  # fmt: skip
def test_limits_that_no_settings_have_are_refused_by_name(limits: Limits, sentence: str) -> None:
    assert checked(Limits()) == Limits()
    events = observation_to_events(SMALL, Memory(), limits, look="l-1")
    lines = [line for event in events for line in to_lines(event)]
    with pytest.raises(UnreadableError) as raised:
        observation_from_events(from_lines(lines))
    assert sentence in str(raised.value)


def test_the_digest_of_the_limits_changes_with_any_of_them_and_with_nothing_else() -> None:
    assert limits_digest(Limits()) == limits_digest(Limits())
    assert (
        len(
            {
                limits_digest(Limits()),
                limits_digest(Limits(mode=AgentMode.OBSERVE)),
                limits_digest(Limits(price=PriceLimits(between={("a", "b"): 1.0}))),
            }
        )
        == 3
    )
