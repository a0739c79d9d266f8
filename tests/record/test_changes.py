"""Looks by changes: what comes back is the look in full, whatever was seen; foreign bytes give a sentence."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.simulate.evaluation import recorded_looks
from agent.telemetry.changes import FullLook, LookHead, whole_look
from agent.telemetry.events import MAX_RECORD_CHARS, EventKind, TelemetryEvent, from_lines, to_lines
from agent.telemetry.looks import IncompleteLookError, observation_from_events, observation_rows
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation, RawTopic
from agent.values.typed_json import UnreadableError
from assignors.problem import TopicPartition
from tests.record.observations import MEMORIES, OBSERVATIONS
from tests.record.test_telemetry import SMALL
from tests.recorded_looks import observation_to_events
from tests.synthetic_cluster import next_look, synthetic_cluster


def written(
    full: Observation, now: Observation, memory: Memory | None = None
) -> tuple[list[TelemetryEvent], list[TelemetryEvent]]:
    """A look in full and the next by changes, each read back from its lines."""
    limits = Limits()
    base = FullLook(LookHead(full.cluster_id, "l-1", full.taken_ms))
    first = list(base.events(observation_rows(full, Memory(), limits)))
    head = LookHead(now.cluster_id, "l-2", now.taken_ms)
    return first, list(base.changed_events(head, observation_rows(now, memory or Memory(), limits)))


def read_back(events: Iterable[TelemetryEvent]) -> list[TelemetryEvent]:
    return list(from_lines(line for event in events for line in to_lines(event)))


def in_order(events: Iterable[TelemetryEvent]) -> list[TelemetryEvent]:
    return sorted(events, key=lambda event: event.n)


@settings(max_examples=30, deadline=None)
@given(OBSERVATIONS, OBSERVATIONS, MEMORIES, st.randoms())
def test_a_look_by_changes_is_the_look_in_full_whatever_both_are(
    full: Observation, now: Observation, memory: Memory, shuffle: random.Random
) -> None:
    mixed = replace(
        now, cluster_id=full.cluster_id, topics=(*now.topics, *full.topics), groups=(*full.groups, *now.groups),
        end_offsets={**full.end_offsets, **now.end_offsets}, committed_offsets=full.committed_offsets,
    )  # fmt: skip
    for look in (replace(now, cluster_id=full.cluster_id), mixed, full):
        first, changed = written(full, look, memory)
        first, changed = read_back(first), read_back(changed)
        shuffle.shuffle(changed)
        found = in_order(whole_look([*changed, *changed[:2]], first))
        expected = read_back(observation_to_events(look, memory, Limits(), look="l-2"))
        assert found == expected
        assert observation_from_events(found).observation == look


def test_what_did_not_change_is_not_written_again() -> None:
    world = synthetic_cluster(200)
    _, changed = written(world, next_look(world, share=0.01))
    kinds = [event.kind for event in changed]
    assert kinds.count(EventKind.GROUP) == 2
    assert set(kinds) - {EventKind.GROUP} == {
        EventKind.LIMITS, EventKind.MEMORY, EventKind.GAPS, EventKind.LOOK, EventKind.KEPT,
    }  # fmt: skip
    full_bytes, bytes_ = (
        sum(len(line) for event in events for line in to_lines(event)) for events in written(world, next_look(world))
    )
    assert bytes_ < full_bytes / 30


def test_offsets_and_sizes_are_deltas_of_a_kept_event() -> None:
    moved = replace(
        SMALL,
        end_offsets={TopicPartition("orders", 0): 8, TopicPartition("other", 3): 7},
        replica_bytes={(1, TopicPartition("orders", 0)): 4},
    )
    _, changed = written(SMALL, moved)
    (kept,) = (event for event in changed if event.kind is EventKind.KEPT)
    assert kept.data == {"part": 0, "parts": 1, "runs": [{"n": 3, "of": 3, "events": 10, "deltas": [3, -5, 0, 0]}]}
    assert (kept.base, kept.base_taken_ms, kept.n) == ("l-1", 1, 14)
    (line,) = to_lines(kept)
    assert line.endswith('"base":"l-1","base_taken_ms":1}')


def test_an_event_of_more_numbers_than_a_record_holds_is_written_whole() -> None:
    ends = {TopicPartition("huge", number): number for number in range(50_000)}
    huge = replace(SMALL, topics=(RawTopic("huge", "id", False, (), None),), end_offsets=ends)
    more = replace(huge, end_offsets={tp: end + 7 for tp, end in ends.items()})
    many = replace(SMALL, end_offsets={TopicPartition(f"t-{number}", 0): 2**62 for number in range(90_000)})
    less = replace(many, end_offsets=dict.fromkeys(many.end_offsets, -(2**62)))
    for full, now in ((huge, more), (many, less)):
        first, changed = written(full, now)
        kept = [line for event in changed if event.kind is EventKind.KEPT for line in to_lines(event)]
        assert max(map(len, kept)) <= MAX_RECORD_CHARS
        assert not any('"fragment"' in line for line in kept)
        assert observation_from_events(whole_look(changed, first)).observation == now


# --- what is lost, late or twice --------------------------------------------------------------------------------------


def three_looks() -> tuple[list[Observation], list[list[TelemetryEvent]]]:
    """One in full and two that stand on it."""
    world = synthetic_cluster(3)
    seen = [world, next_look(world, share=0.4), next_look(next_look(world, share=0.4), share=0.4, seed=9)]
    base = FullLook(LookHead(world.cluster_id, "l-1", world.taken_ms))
    told = [list(base.events(observation_rows(world, Memory(), Limits())))]
    for number, look in enumerate(seen[1:], 2):
        head = LookHead(look.cluster_id, f"l-{number}", look.taken_ms)
        told.append(list(base.changed_events(head, observation_rows(look, Memory(), Limits()))))
    return seen, told


def test_a_look_that_is_lost_spoils_no_other() -> None:
    seen, (full, _, third) = three_looks()
    assert [one.observation for one in recorded_looks([*full, *third])] == [seen[0], seen[2]]


def test_any_event_that_is_lost_makes_its_look_unknown() -> None:
    _, (full, second, third) = three_looks()
    assert len(second) > 5
    for number in range(len(second)):
        why: list[str] = []
        found = recorded_looks([*full, *second[:number], *second[number + 1 :], *third], why.append)
        assert [look.look for look in found] == ["l-1", "l-3"]
        assert why[0].startswith(("look l-2 lacks", "look l-2 has no last event"))


def test_a_reader_between_two_full_looks_waits_for_the_next() -> None:
    seen, (full, second, third) = three_looks()
    why: list[str] = []
    found = list(recorded_looks([*second, *third, *full], why.append))
    assert [one.observation for one in found] == [seen[0]]
    waits = "it stands on a full look of which events are missing; looks are known again from the next full look on"
    assert why == [waits, waits]


def test_a_full_look_that_lacks_a_kept_event_carries_none() -> None:
    _, (full, second, _) = three_looks()
    broker = next(event for event in full if event.kind is EventKind.BROKER)
    with pytest.raises(IncompleteLookError, match="it stands on a full look of which events are missing"):
        list(whole_look(second, [event for event in full if event is not broker]))
    # One that the look by changes has itself is not missed.
    memory = next(event for event in full if event.kind is EventKind.MEMORY)
    assert list(whole_look(second, [event for event in full if event is not memory]))


# --- foreign bytes ----------------------------------------------------------------------------------------------------

RUN = {"n": 3, "of": 3, "events": 9}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="no runs"),
        pytest.param({"runs": {}}, id="an object"),
        pytest.param({"runs": [7]}, id="a run that is a number"),
        pytest.param({"runs": [{**RUN, "events": "9"}]}, id="a count that is text"),
        pytest.param({"runs": [{**RUN, "events": True}]}, id="a count that is true"),
        pytest.param({"runs": [{**RUN, "events": 2**62}]}, id="more than there are"),
        pytest.param({"runs": [RUN, RUN]}, id="twice"),
        pytest.param({"runs": [RUN] * 100_000}, id="very often"),
        pytest.param({"runs": [{**RUN, "deltas": [1]}]}, id="too few deltas"),
        pytest.param({"runs": [{**RUN, "deltas": [1] * 100_000}]}, id="too many deltas"),
        pytest.param({"runs": [{**RUN, "deltas": [2**65] * 5}]}, id="a sum beyond 64 bits"),
        pytest.param({"runs": [{**RUN, "deltas": [0.5] * 5}]}, id="half a record"),
        pytest.param({"runs": [{**RUN, "of": -5}]}, id="an event before the first"),
    ],
)
def test_kept_events_of_something_else_are_refused_in_linear_time(data: dict[str, Any]) -> None:
    full, changed = written(SMALL, SMALL)
    whole = {"part": 0, "parts": 1, **data}
    spoilt = [event._replace(data=whole) if event.kind is EventKind.KEPT else event for event in changed]
    began = time.process_time()
    with pytest.raises((UnreadableError, IncompleteLookError)) as refused:
        observation_from_events(whole_look(spoilt, full))
    assert len(str(refused.value)) < 500
    assert time.process_time() - began < 5


def test_many_kept_events_together_keep_no_event_twice() -> None:
    """Each on its own may be all right: a thousand of them must not make a thousand looks of one."""
    full, changed = written(SMALL, SMALL)
    kept = next(event for event in changed if event.kind is EventKind.KEPT)
    copies = [
        kept._replace(n=1_000 + number, data={"part": number, "parts": 1_000, "runs": [{**RUN, "n": 20 * number}]})
        for number in range(1_000)
    ]
    others = [event for event in changed if event is not kept]
    with pytest.raises(UnreadableError, match="keeps an event of its full look twice"):
        list(whole_look([*others, *copies], full))


def test_one_of_several_kept_events_that_is_lost_is_missed() -> None:
    """Also where it names nothing that rebuilds the look: findings would be missing, and nothing would say so."""
    ends = {TopicPartition(f"t-{number}", 0): number for number in range(90_000)}
    many = replace(SMALL, end_offsets=ends)
    full, changed = written(many, replace(many, end_offsets={tp: end + 7 for tp, end in ends.items()}))
    kept = [event for event in changed if event.kind is EventKind.KEPT]
    assert len(kept) == 3
    for lost in kept:
        with pytest.raises(IncompleteLookError, match="it has 2 of its 3 events of kind kept"):
            list(whole_look([event for event in changed if event is not lost], full))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"end_offsets": 7}, id="offsets that are a number"),
        pytest.param({"end_offsets": [7]}, id="an offset without its partition"),
        pytest.param({"end_offsets": [{"offset": "7"}]}, id="an offset that is text"),
        pytest.param({}, id="no offsets"),
    ],
)
def test_a_full_look_of_something_else_moves_nowhere(data: dict[str, Any]) -> None:
    full, changed = written(SMALL, replace(SMALL, end_offsets={tp: end + 1 for tp, end in SMALL.end_offsets.items()}))
    spoilt = [event._replace(data=data) if event.kind is EventKind.TOPIC else event for event in full]
    with pytest.raises(UnreadableError):
        list(whole_look(changed, spoilt))


@pytest.mark.parametrize(
    "more",
    [{"base": 7, "base_taken_ms": 1}, {"base": "l-1"}, {"base_taken_ms": 1}, {"base": "l-1", "base_taken_ms": -1}],
)
def test_a_base_that_names_no_look_makes_a_line_no_event(more: dict[str, object]) -> None:
    line = next(to_lines(next(iter(observation_to_events(SMALL, Memory(), Limits(), look="l")))))
    with pytest.raises(UnreadableError, match="base and base_taken_ms do not name a full look"):
        list(from_lines([json.dumps({**json.loads(line), **more})]))
