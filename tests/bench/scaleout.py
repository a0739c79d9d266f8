"""``make bench-scaleout``: how long a Streams application takes from one more instance to balance, with rackwise.

The application has twelve stateful tasks, ``max.warmup.replicas=2`` and ``probing.rebalance.interval.ms=600000``, on an
embedded cluster. What counts as restore time is the time in which, by the application's own word, some warm-up was
behind; everything else is what rackwise and the rebalances took, bounded by ten seconds a round.

With ``--alone`` a second application of the same make grows at the same time without rackwise, and its first
round is measured. Without, its rounds are counted: each promotes ``max.warmup.replicas`` tasks at most.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from agent.execute.probing_values import ProbingDecision
from agent.values.cycle import Cycle
from config.settings import Settings
from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.demo.workload import ClusterFacts, ClusterWorkload, WorkloadPlan
from testbed.demo.workload.placement import spread
from testbed.demo.workload.plan import LoadPlan, StreamsPlan, TopicPlan, TopologyPlan
from tests.probing.live import Followed, Restoring, at_rest, driver_of
from tests.watching_agent import settings_for

APPLICATION = "growing"
TASKS = 12
ACCEPTABLE = 1_000
MAX_WARMUPS = 2
INTERVAL_S = 600
PER_ROUND_S = 10.0
MOST_S = 480.0
"""Longer than this it must not take: the application's own probing rebalance comes near."""


@dataclass(frozen=True)
class Outcome:
    """What was measured."""

    followed: Followed
    restoring_s: float
    alone_s: float | None
    """The first round of the application without rackwise; None where it was not measured."""

    @property
    def bound_s(self) -> float:
        """What it may take."""
        return self.restoring_s + PER_ROUND_S * len(self.followed.rounds)

    @property
    def rounds_alone(self) -> int:
        """What the application would take by itself at the very least."""
        return ceil(len({task for one in self.followed.rounds for task in one.wanted}) / MAX_WARMUPS)

    @property
    def ratio(self) -> float:
        """How many times longer it takes alone."""
        return self.rounds_alone * INTERVAL_S / self.followed.seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-scaleout", description=__doc__)
    parser.add_argument("--alone", action="store_true", help="measure one round of the application alone beside it")
    parser.add_argument("--records", type=int, default=90_000, help="written ahead, over nine tasks")
    parser.add_argument("--rate", type=int, default=800, help="records per second that the new instance restores")
    parser.add_argument("--estimate", action="store_true", help="do not tell rackwise the application's endpoint")
    arguments = parser.parse_args()
    with EmbeddedCluster.start(ClusterSpec(), on_progress=say) as cluster:
        outcome = measure(
            cluster,
            records=arguments.records,
            rate=arguments.rate,
            alone=arguments.alone,
            endpoint=not arguments.estimate,
        )
    report(outcome)
    return 0 if outcome.followed.seconds <= outcome.bound_s else 1


def measure(
    cluster: EmbeddedCluster,
    *,
    records: int,
    rate: int,
    name: str = APPLICATION,
    alone: bool = False,
    floor: str = "10s",
    endpoint: bool = True,
) -> Outcome:
    """Grow the application of that name on that cluster by one instance and see it through to balance."""
    with ClusterWorkload.start(
        cluster.bootstrap_servers, plan=lambda facts: plan(facts, name, records=records, alone=alone), on_progress=say
    ) as work:
        work.wait_settled()
        with driver_of(settings_of(cluster, work, floor=floor, endpoint=endpoint), name, say) as driver:
            before = driver.settle()
            began = time.monotonic()
            work.scale_out(name, "c", restore_records_per_s=rate)
            if alone:
                work.scale_out(_alone(name), "c", restore_records_per_s=rate)

            def ended(cycle: Cycle, decision: ProbingDecision) -> bool:
                return at_rest(decision) and len(driver.processes(cycle)) > len(before)

            with Restoring(work, name, ACCEPTABLE) as restoring:
                followed = driver.follow(began, ended, within_s=MOST_S)
        alone_s = _first_round_alone(work, _alone(name), began) if alone else None
    return Outcome(followed, restoring.seconds, alone_s)


def plan(
    facts: ClusterFacts, name: str, *, records: int, alone: bool = False, standbys: int = 0, instances: int = 2
) -> WorkloadPlan:
    """Nine tasks with the latest record of each key, and three that count by region."""
    names, topic = (name, _alone(name)) if alone else (name,), f"{name}-parcels"
    return WorkloadPlan(
        topics=(TopicPlan(name=topic, replicas=spread(facts.racks, TASKS - 3, 2)),),
        loads=(LoadPlan(topic=topic, records_per_s=50, value_bytes=100, skew=0, preload_records=records),),
        streams=tuple(_application(one, topic, ("a", "b", "c")[:instances], standbys) for one in names),
    )


def _application(name: str, topic: str, racks: tuple[str, ...], standbys: int) -> StreamsPlan:
    return StreamsPlan(
        application=name,
        topology=TopologyPlan(input=topic, region_partitions=3),
        racks=racks,
        tagged=False,
        settings={
            "acceptable.recovery.lag": str(ACCEPTABLE),
            "max.warmup.replicas": str(MAX_WARMUPS),
            "num.standby.replicas": str(standbys),
            "probing.rebalance.interval.ms": str(INTERVAL_S * 1000),
            "replication.factor": "2",
        },
    )


def settings_of(
    cluster: EmbeddedCluster, work: ClusterWorkload, *, floor: str = "10s", endpoint: bool = True
) -> Settings:
    """What the owner of the first application would set."""
    app = work.plan.streams[0]
    of_app = f"groups.{app.application}"
    overrides = {f"{of_app}.{name}": value for name, value in app.settings.items()}
    del overrides[f"{of_app}.replication.factor"]
    if endpoint:
        overrides[f"{of_app}.application.endpoints"] = work.lags_url(app.application)
    return settings_for(cluster.bootstrap_servers, **overrides, **{"probing.floor": floor})


def _alone(name: str) -> str:
    return f"{name}-alone"


def _first_round_alone(work: ClusterWorkload, name: str, began: float) -> float:
    """Seconds until the instance that came last in the application alone runs its first task."""
    say("balanced with rackwise; now waiting for the first round of the application alone")
    newcomer = work.instances(name)[-1]
    while not _runs(work.java.assignment, newcomer):
        if time.monotonic() - began > 2 * INTERVAL_S:
            raise TimeoutError(f"{name} promoted nothing within {2 * INTERVAL_S} s")
        time.sleep(1.0)
    return time.monotonic() - began


def _runs(assignment: Callable[[], object], name: str) -> bool:
    lags = assignment()
    assert isinstance(lags, dict)
    return any(one["active"] for one in lags["instances"] if one["id"] == name)


def report(outcome: Outcome) -> None:
    """The figures."""
    followed = outcome.followed
    for number, one in enumerate(followed.rounds, start=1):
        say(f"round {number}: at {one.at_s:.1f} s, {', '.join(one.wanted)}")
    rounds = len(followed.rounds)
    beside_s = (followed.seconds - outcome.restoring_s) / max(1, rounds)
    say(f"balanced after {followed.seconds:.1f} s, {outcome.restoring_s:.1f} s of it restoring, {followed.looks} looks")
    say(f"{rounds} rounds, {beside_s:.1f} s each beside restoring (bound {PER_ROUND_S:.0f} s), {followed.vain} in vain")
    alone_s = outcome.rounds_alone * INTERVAL_S
    say(f"alone: {outcome.rounds_alone} rounds of {INTERVAL_S} s, {alone_s} s; ratio {outcome.ratio:.1f}")
    if outcome.alone_s is not None:
        say(f"measured beside it: the first round of the application alone after {outcome.alone_s:.1f} s")


def say(line: str) -> None:
    """To the terminal at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
