"""Streams applications that grow and shrink on real brokers, with rackwise at their side.

The clusters are the shared one; the application is this file's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent.execute.probing_values import ProbingDecision
from agent.values.cycle import Cycle
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from tests.bench.scaleout import INTERVAL_S, TASKS, measure, plan, report, settings_of
from tests.probing.live import Driver, at_rest, driver_of

QUIET_S = 40.0
NEAR, FAR = "shrinking", "shrinking-far"
"""Applications whose standbys have caught up, and lag."""
LAG_RATE = 700
"""Records per second of an instance whose copies lag."""


@pytest.mark.drill
def test_a_small_application_that_grows_is_balanced_without_waiting_for_its_interval(
    demo_cluster: EmbeddedCluster,
) -> None:
    outcome = measure(demo_cluster, records=13_500, rate=2_000, name="growing-small", floor="6s")
    report(outcome)
    assert outcome.followed.rounds
    assert outcome.followed.vain == 0
    assert outcome.followed.seconds < INTERVAL_S / 5


@pytest.mark.drill
def test_an_application_that_grows_takes_its_restore_time_and_ten_seconds_a_round(
    demo_cluster: EmbeddedCluster,
) -> None:
    outcome = measure(demo_cluster, records=90_000, rate=800, name="growing-twelve")
    report(outcome)
    assert outcome.followed.vain == 0
    assert outcome.followed.seconds <= outcome.bound_s
    assert len(outcome.followed.rounds) <= TASKS


@pytest.mark.drill
def test_a_scale_in_with_standbys_that_have_caught_up_takes_no_trigger(demo_cluster: EmbeddedCluster) -> None:
    with settled(demo_cluster, NEAR, standbys=2, instances=3) as (work, driver, before):
        work.scale_in(work.instances(NEAR)[-1])
        began = time.monotonic()

        def ended(cycle: Cycle, _: ProbingDecision) -> bool:
            return len(driver.processes(cycle) & before) == 2 and time.monotonic() - began > QUIET_S

        followed = driver.follow(began, ended, within_s=120)
    assert followed.rounds == []


@pytest.mark.drill
def test_a_scale_in_with_lagging_standbys_takes_as_few_triggers_as_needed(demo_cluster: EmbeddedCluster) -> None:
    """A slow newcomer's copies lag when an instance leaves: it gets its share as they catch up, no round in vain."""
    with settled(demo_cluster, FAR, standbys=1, instances=2) as (work, driver, before):
        work.scale_out(FAR, "c", restore_records_per_s=LAG_RATE)
        work.scale_in(work.instances(FAR)[0])
        began = time.monotonic()

        def ended(cycle: Cycle, decision: ProbingDecision) -> bool:
            now = driver.processes(cycle)
            return at_rest(decision) and len(now) == 2 and now != before

        followed = driver.follow(began, ended, within_s=480)
    promoted = {task for one in followed.rounds for task in one.wanted}
    print(f"\nscale-in: {len(followed.rounds)} rounds for {len(promoted)} tasks, {followed.seconds:.0f} s")
    assert followed.vain == 0
    assert 1 <= len(followed.rounds) <= len(promoted)


@contextmanager
def settled(
    cluster: EmbeddedCluster, name: str, *, standbys: int, instances: int
) -> Iterator[tuple[ClusterWorkload, Driver, frozenset[str]]]:
    """The application at rest, rackwise that has seen it so, and its processes."""
    with ClusterWorkload.start(
        cluster.bootstrap_servers,
        plan=lambda facts: plan(facts, name, records=27_000, standbys=standbys, instances=instances),
    ) as work:
        work.wait_settled()
        with driver_of(settings_of(cluster, work), name) as driver:
            before = driver.settle()
            assert len(before) == instances
            yield work, driver, before
