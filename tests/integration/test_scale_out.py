"""A Streams application grows: its warm-ups as reported, against the application's own figures.

Two eyes look at the same time. One has the application's endpoint; the other has to estimate, so its ranges are
compared with the truth too, and how often they hold is printed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Self

import pytest

from agent.values.cycle import Cycle
from agent.values.finding import FindingReason, FindingSeverity
from agent.values.proposal import ProposalReason
from agent.values.snapshot import LagSource, Range, TaskCopy, TaskRole
from testbed.cluster import EmbeddedCluster
from testbed.demo.run import demo_settings
from testbed.demo.workload import ClusterFacts, ClusterWorkload, WorkloadPlan
from testbed.demo.workload.placement import spread
from testbed.demo.workload.plan import LoadPlan, TopicPlan, TopologyPlan
from testbed.demo.workload.producers import LoadGenerator
from testbed.demo.workload.scenes import classic_application
from tests.watching_agent import WatchingAgent, cycle_text, findings_of

ACCEPTABLE = 1_000
MOST_LATE_S = 10.0
SAMPLED_EVERY_S = 0.1
BURST: dict[str, Any] = {"records_per_s": 600, "value_bytes": 100, "skew": 0}


class Sample(NamedTuple):
    """The application's word at one time."""

    at_ms: int
    lags: dict[str, int]
    """Task -> lag of the newcomer's copy."""


class Seen(NamedTuple):
    """What one look told of one copy of the newcomer."""

    began_ms: int
    ended_ms: int
    copy: TaskCopy
    promotable: bool

    @property
    def task(self) -> str:
        return str(self.copy.task)


class Truth:
    """Asks the application again and again, in a thread."""

    def __init__(self, work: ClusterWorkload, instance: str) -> None:
        self._work, self._instance = work, instance
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[Sample] = []
        self.process_id = ""

    def first_true_ms(self, task: str) -> int | None:
        """When the lag was first acceptable."""
        return next((s.at_ms for s in self.samples if s.lags.get(task, ACCEPTABLE + 1) <= ACCEPTABLE), None)

    def around(self, task: str, began_ms: int, ended_ms: int) -> tuple[int, int] | None:
        """Least and greatest lag from the last sample before until the first one after."""
        known = [sample for sample in self.samples if task in sample.lags]
        before = [sample for sample in known if sample.at_ms <= began_ms][-1:]
        after = [sample for sample in known if sample.at_ms >= ended_ms][:1]
        if not before or not after:
            return None
        lags = [s.lags[task] for s in known if before[0].at_ms <= s.at_ms <= after[0].at_ms]
        return min(lags), max(lags)

    def _run(self) -> None:
        while not self._ended.wait(SAMPLED_EVERY_S):
            answer = next(one for one in self._work.lags("shop")["instances"] if one["id"] == self._instance)
            self.process_id = answer["process_id"]
            lags = {t["task"]: t["lag"] for t in answer["tasks"] if t["role"] == "standby" and t["lag"] is not None}
            self.samples.append(Sample(round(time.time() * 1000), lags))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def newcomer(work: ClusterWorkload, application: str, rack: str, restore_records_per_s: int) -> Iterator[str]:
    """One more instance of that application, which leaves in the end."""
    name = work.scale_out(application, rack, restore_records_per_s=restore_records_per_s)
    try:
        yield name
    finally:
        work.scale_in(name)
        work.wait_settled()


def depot_plan(facts: ClusterFacts) -> WorkloadPlan:
    """One instance of a Streams application over a topic in which there is nearly nothing."""
    app = classic_application(facts, "depot")
    return WorkloadPlan(
        topics=(TopicPlan(name="deliveries", replicas=spread(facts.racks, 6, 2)),),
        loads=(LoadPlan(topic="deliveries", records_per_s=20, value_bytes=100, skew=0),),
        streams=(replace(app, topology=TopologyPlan(input="deliveries"), racks=("a",)),),
    )


@pytest.mark.parametrize(
    "restore_records_per_s",
    [
        pytest.param(1_500, id="a store that is restored in some seconds"),
        # Restoring takes a minute and more, as long as all other tests of this folder: run by `make drill`.
        pytest.param(300, id="a store that takes over thirty seconds", marks=pytest.mark.drill),
    ],
)
def test_warm_ups_are_followed_until_they_are_promotable(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, restore_records_per_s: int
) -> None:
    settings = demo_settings(demo_cluster, work)
    blindfolded = demo_settings(demo_cluster, work, **{"groups.shop.application.endpoints": ""})
    with WatchingAgent(settings.settings) as eye, WatchingAgent(blindfolded.settings) as blind:
        eye.look()
        blind.look()
        with newcomer(work, "shop", "c", restore_records_per_s) as name, Truth(work, name) as truth:
            began = time.monotonic()
            # The longer the workload has run, the more there is to restore.
            with_endpoint, without, last = watch(eye, blind, truth, within_s=300)
            took_s = time.monotonic() - began
    warming = [seen for seen in with_endpoint if seen.copy.role is TaskRole.WARMUP]
    report(restore_records_per_s, took_s, with_endpoint, without, truth)
    assert len({seen.task for seen in warming}) == 2, "max.warmup.replicas is 2"
    assert all(seen.copy.lag_source is LagSource.APPLICATION for seen in warming)
    behind = [seen.copy for seen in warming if seen.copy.caught_up is False and seen.copy.eta_s is not None]
    assert behind, "no warm-up was seen on its way"
    for copy in behind:
        assert copy.lag is not None
        assert copy.eta_s is not None
        assert 0 < copy.eta_s.low <= copy.eta_s.likely <= copy.eta_s.high
    for seen in (*with_endpoint, *without):
        if seen.promotable:
            true_ms = truth.first_true_ms(seen.task)
            assert true_ms is not None, f"{seen.task} never caught up"
            # The application may be asked a sample's time later than the look asked it.
            assert true_ms <= seen.ended_ms + 1000 * SAMPLED_EVERY_S + 200, f"{seen.task} was reported too early"
    for task in {seen.task for seen in warming}:
        true_ms = truth.first_true_ms(task)
        told_ms = min(seen.ended_ms for seen in with_endpoint if seen.promotable and seen.task == task)
        assert true_ms is not None
        assert told_ms - true_ms <= 1000 * MOST_LATE_S
    (trigger,) = (one for one in last.proposals if one.reason is ProposalReason.WARMUP_PROMOTABLE)
    assert str(trigger.subject) == "group/shop"


@pytest.mark.drill
def test_copies_that_restore_too_slowly_are_found(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> None:
    """A warm-up that restores slower than its task grows, and standbys that had caught up until more was written."""
    with ClusterWorkload.start(demo_cluster.bootstrap_servers, plan=depot_plan) as depot:
        depot.wait_ready()
        depot.scale_out("depot", "b", restore_records_per_s=50)
        depot.wait_ready()
        more = {
            "groups.depot.application.endpoints": depot.lags_url("depot"),
            "groups.depot.acceptable.recovery.lag": "200",
            "groups.depot.num.standby.replicas": "1",
        }
        burst = LoadGenerator(demo_cluster.bootstrap_servers, [(LoadPlan(topic="deliveries", **BURST), 6)])
        with WatchingAgent(demo_settings(demo_cluster, work, **more).settings) as eye, newcomer(work, "shop", "c", 5):
            eye.look()
            burst.start()
            try:
                cycle = eye.until(
                    lambda cycle: (
                        findings_of(cycle, FindingReason.WARMUP_NEVER)
                        and findings_of(cycle, FindingReason.STANDBY_LAG_GROWS)
                    ),
                    "a warm-up that never catches up, and standbys that fall behind",
                    within_s=90,
                )
            finally:
                burst.close()
    assert {str(finding.subject).split("/")[1] for finding in findings_of(cycle, FindingReason.WARMUP_NEVER)} == {
        "shop"
    }
    assert {str(finding.subject) for finding in findings_of(cycle, FindingReason.STANDBY_LAG_GROWS)} == {"group/depot"}


def test_copies_of_a_task_in_one_rack_are_found_where_brokers_place_them(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload
) -> None:
    """Brokers place the copies of a streams group (KIP-1071) without looking at racks."""
    with WatchingAgent(demo_settings(demo_cluster, work).settings) as eye, newcomer(work, "shop-next", "a", 0):
        cycle = eye.until(
            lambda cycle: findings_of(cycle, FindingReason.COPIES_SHARE_RACK), "copies that share a rack", within_s=60
        )
    by_key = {finding.detail: finding for finding in findings_of(cycle, FindingReason.COPIES_SHARE_RACK)}
    assert {str(finding.subject) for finding in by_key.values()} == {"group/shop-next"}
    assert by_key["rack"].severity is FindingSeverity.WARNING
    assert "both a; b is free" in by_key["rack"].sentence


def watch(
    eye: WatchingAgent, blind: WatchingAgent, truth: Truth, *, within_s: float
) -> tuple[list[Seen], list[Seen], Cycle]:
    """What both eyes see until every warm-up of the newcomer is promotable."""
    deadline = time.monotonic() + within_s
    with_endpoint: list[Seen] = []
    without: list[Seen] = []
    while True:
        cycle = eye.look(planning=True)
        now = seen_of(cycle, truth.process_id)
        with_endpoint += now
        without += seen_of(blind.look(), truth.process_id)
        warming = [seen for seen in now if seen.copy.role is TaskRole.WARMUP]
        if len(warming) == 2 and all(seen.promotable for seen in warming):
            return with_endpoint, without, cycle
        assert time.monotonic() < deadline, (cycle_text(cycle), [seen.copy for seen in now])
        time.sleep(0.5)


def seen_of(cycle: Cycle, process_id: str) -> list[Seen]:
    promotable = {str(finding.subject) for finding in findings_of(cycle, FindingReason.WARMUP_PROMOTABLE)}
    began_ms = cycle.observation.taken_ms
    return [
        Seen(began_ms, began_ms + cycle.observation.took_ms, copy, f"task/shop/{copy.task}/{process_id}" in promotable)
        for copy in cycle.snapshot.copies.get("shop", ())
        if copy.process_id == process_id and copy.role is not TaskRole.ACTIVE
    ]


def report(bound: int, took_s: float, with_endpoint: list[Seen], without: list[Seen], truth: Truth) -> None:
    """The figures, for the test's output."""
    print(f"\nscale-out at {bound} records/s: {took_s:.1f} s until all are promotable")
    for task in sorted({seen.task for seen in with_endpoint}):
        true_ms = truth.first_true_ms(task)
        for name, of in (("endpoint", with_endpoint), ("estimate", without)):
            first = next((seen.ended_ms for seen in of if seen.promotable and seen.task == task), None)
            late = "never" if first is None or true_ms is None else f"{(first - true_ms) / 1000:+.1f} s"
            print(f"  {task} told promotable by {name}: {late}")
    judged = [
        (seen, span, seen.copy.lag)
        for seen in without
        if (span := truth.around(seen.task, seen.began_ms, seen.ended_ms)) is not None and seen.copy.lag is not None
    ]
    hits = sum(holds(lag, span) for _, span, lag in judged)
    widths = sorted(lag.high - lag.low for _, _, lag in judged)
    sources = sorted({str(seen.copy.lag_source) for seen, _, _ in judged})
    print(f"  estimates: {hits} of {len(judged)} ranges hold, median width {widths[len(widths) // 2]:,.0f}, {sources}")


def holds(lag: Range, span: tuple[int, int]) -> bool:
    """Whether the truth passed through the range while it was looked at."""
    return lag.low <= span[1] and span[0] <= lag.high
