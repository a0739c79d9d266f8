"""What is asked now and then: when it is due, what is carried, and what is asked in between.

The wire client is a stand-in that counts: which names are asked for is not to be seen from outside.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agent.observe.context import ObserveContext, ObserverState, ObserveScope, log_dirs, topic_configs
from agent.values.clock import ClockReading
from agent.values.observation import Gap, GapCause, Observation, ObservationPart
from agent.wire.cluster_calls import ClusterAnswer, DescribedConfigs, LogDirs
from agent.wire.failure import Deadline
from assignors.problem import TopicPartition

REFRESH = {ObservationPart.TOPIC_CONFIGS: 1_000, ObservationPart.LOG_DIRS: 1_000}
REFUSED = Gap(ObservationPart.TOPIC_CONFIGS, GapCause.NOT_ALLOWED, "secret", "TOPIC_AUTHORIZATION_FAILED")


class Wire:
    """Answers for every topic but ``secret``; remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def describe_topic_configs(self, names: tuple[str, ...], _keys: object, _deadline_ms: int) -> DescribedConfigs:
        self.asked.append(names)
        values = {name: {"cleanup.policy": "delete"} for name in names if name != "secret"}
        return DescribedConfigs(values, (REFUSED,) if "secret" in names else ())

    def describe_log_dirs(self, _deadline_ms: int) -> LogDirs:
        self.asked.append(("log dirs",))
        return LogDirs({(1, TopicPartition("t", 0)): 7}, frozenset({2}), ())


def a_context(wire: Wire, recall: ObserverState, now_ms: int) -> ObserveContext:
    clients: Any = SimpleNamespace(wire=wire)
    return ObserveContext(
        clients=clients,
        scope=ObserveScope(refresh_ms=REFRESH),
        recall=recall,
        began=ClockReading(0, now_ms),
        cluster=ClusterAnswer("c", None, (), None),
        deadline=Deadline.after_ms(10_000),
    )


def remembered(taken_ms: int, *topics: str) -> ObserverState:
    last = Observation(
        cluster_id="c",
        controller=None,
        brokers=(),
        topics=(),
        topic_configs={name: {"cleanup.policy": "compact"} for name in topics},
        replica_bytes={(1, TopicPartition("t", 0)): 5},
        cordoned=frozenset({3}),
        taken_ms=0,
        monotonic_ms=taken_ms,
        took_ms=0,
    )
    return ObserverState(
        last=last, taken_ms={ObservationPart.TOPIC_CONFIGS: taken_ms, ObservationPart.LOG_DIRS: taken_ms}
    )


@pytest.mark.parametrize(
    ("recall", "asked", "asked_all"),
    [
        pytest.param(ObserverState(), [("a", "b")], True, id="the first look asks for all"),
        pytest.param(remembered(4_500, "a", "b", "gone"), [], False, id="young answers are carried"),
        pytest.param(remembered(4_500, "a"), [("b",)], False, id="a new topic is asked for at once, alone"),
        pytest.param(remembered(4_000, "a", "b"), [("a", "b")], True, id="an answer of that age is asked anew"),
    ],
)
def test_configs_are_asked_for_when_due(recall: ObserverState, asked: list[tuple[str, ...]], asked_all: bool) -> None:
    wire = Wire()
    configs = topic_configs(a_context(wire, recall, 5_000), ["b", "a"])
    assert wire.asked == asked
    assert set(configs.values) == {"a", "b"}
    assert configs.asked_all is asked_all
    carried = [name for name, values in configs.values.items() if values == {"cleanup.policy": "compact"}]
    assert sorted(carried) == sorted({"a", "b"} - {name for names in asked for name in names})


def test_what_was_refused_is_asked_for_at_every_look_and_its_gap_repeated() -> None:
    wire = Wire()
    configs = topic_configs(a_context(wire, remembered(4_500, "a"), 5_000), ["a", "secret"])
    assert wire.asked == [("secret",)]
    assert configs.gaps == (REFUSED,)
    assert set(configs.values) == {"a"}


@pytest.mark.parametrize(
    ("recall", "size", "cordoned", "fresh"),
    [
        pytest.param(remembered(4_500), 5, {3}, False, id="young sizes are carried"),
        pytest.param(remembered(3_000), 7, {2}, True, id="old ones are asked anew"),
        pytest.param(ObserverState(), 7, {2}, True, id="at the first look too"),
    ],
)
def test_log_dirs_are_asked_for_when_due(recall: ObserverState, size: int, cordoned: set[int], fresh: bool) -> None:
    dirs, asked = log_dirs(a_context(Wire(), recall, 5_000))
    assert (dirs.replica_bytes, dirs.cordoned, asked) == ({(1, TopicPartition("t", 0)): size}, cordoned, fresh)
