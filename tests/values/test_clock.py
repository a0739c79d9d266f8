"""Durations count the time that the machine slept: what was decided before is not fresh after it."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from agent.act import probe
from agent.act.probe import RebalanceProbe, StaleGroupError
from agent.journal.triggers import TriggerPath
from agent.values.clock import elapsed_s, system_clock
from agent.values.observation import RawClassicGroup
from agent.wire.admin_client import WireAdminClient
from agent.wire.changes import Fate
from agent.wire.cluster_calls import _kafka_uuid
from agent.wire.failure import Deadline
from assignors.problem import TopicPartition
from tests.act.test_probe import ASK, Coordinator, Line, fine
from tests.wire.fake_broker import FakeBroker
from tests.wire.test_changes import CHANGES, error

HOUR_S = 3_600
real = time.clock_gettime_ns


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seconds that the machine slept, as the kernel tells them: one clock goes on, the other stood still."""
    slept = [0]

    def told(clock: int) -> int:
        return real(clock) + (slept[0] * 10**9 if clock == getattr(time, "CLOCK_BOOTTIME", None) else 0)

    monkeypatch.setattr(time, "clock_gettime_ns", told)
    return slept


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system tells no such time")
def test_a_deadline_is_over_after_a_sleep_and_nothing_is_sent(sleeps: list[int]) -> None:
    move = TopicPartition("moved", 0)
    offers = {api.key: error(api, 0) for api in CHANGES}
    with FakeBroker(offers) as broker, WireAdminClient(broker.arguments) as hand:
        hand.describe_brokers(5_000)
        begin_by, before, awake = Deadline.after_ms(60_000), system_clock(), elapsed_s()
        assert not begin_by.over
        sleeps[0] = HOUR_S
        assert (begin_by.over, begin_by.left_s, begin_by.part(0.5).over) == (True, 0.0, True)
        assert elapsed_s() - awake >= HOUR_S
        assert system_clock().monotonic_ms - before.monotonic_ms >= HOUR_S * 1_000
        assert hand.alter_placements({move: (1, 2)}, 5_000, begin_by)[move].fate is Fate.NOT_SENT


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system tells no such time")
def test_a_join_does_not_rest_on_a_description_from_before_a_sleep(
    sleeps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    to, describe = Coordinator(), Line.describe

    def asleep_meanwhile(line: Line, deadline_ms: int) -> RawClassicGroup:
        sleeps[0] += HOUR_S
        return describe(line, deadline_ms)

    monkeypatch.setattr(Line, "describe", asleep_meanwhile)
    with pytest.raises(StaleGroupError, match="too old to join on"), RebalanceProbe(to.line, ASK, fine) as prober:
        prober.run(TriggerPath.PENDING_LEAVE)
    assert "join" not in to.said
    assert probe.FRESH_MS < HOUR_S * 1_000


def test_an_id_of_zero_is_no_id_of_a_topic() -> None:
    assert _kafka_uuid(UUID(int=0)) is None
    assert _kafka_uuid(None) is None
    assert _kafka_uuid(UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
