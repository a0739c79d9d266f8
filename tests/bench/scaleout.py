"""``make bench-scaleout``: how long a Streams application takes from one more instance to balance, with rackwise.

The application has twelve stateful tasks, ``max.warmup.replicas=2`` and ``probing.rebalance.interval.ms=600000``, on an
embedded cluster. What counts as restore time is the time in which, by the application's own word, some warm-up was
behind; everything else is what rackwise and the rebalances took, bounded by ten seconds a round.

With ``--alone`` a second application of the same make grows at the same time with nobody to help it, and its first
round is measured. Without, its rounds are counted: each promotes ``max.warmup.replicas`` tasks at most.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple, Self

from agent.act.trigger import Trigger
from agent.clock import system_clock
from agent.cluster import ClusterSpec, EmbeddedCluster
from agent.cut import to_limits
from agent.cycle import Cycle
from agent.demo.workload import ClusterFacts, Workload, WorkloadPlan
from agent.demo.workload.placement import spread
from agent.demo.workload.plan import LoadPlan, StreamsPlan, TopicPlan, TopologyPlan
from agent.execute.refusals import refusal
from agent.execute.trigger_judging import judge
from agent.execute.trigger_learning import learn
from agent.model.snapshot import StreamsGroup
from agent.probing import Decision, Ground, Off, Past, TriggerNow, decide, next_look_ms
from agent.probing.past import past_triggers
from agent.propose.proposal import ProposalReason
from agent.wire.hand import WireHand
from config.settings import Settings
from tests.act.triggers import MemoryJournal
from tests.eye import Eye, settings_for

APPLICATION, ALONE = "shop", "shop-alone"
TASKS = 12
ACCEPTABLE = 1_000
MAX_WARMUPS = 2
INTERVAL_S = 600
PER_ROUND_S = 10.0
POLL_MS = 10_000
_SAMPLED_EVERY_S = 0.1
_HEADROOM_S = 120


class Round(NamedTuple):
    """One trigger."""

    at_s: float
    """Since the instance was started."""
    promoted: tuple[str, ...]
    sentence: str


@dataclass
class Outcome:
    """What was measured."""

    seconds: float = 0.0
    restoring_s: float = 0.0
    looks: int = 0
    rounds: list[Round] = field(default_factory=list)
    alone_s: float | None = None
    """The first round of the application that nobody helped; None where it was not measured."""

    @property
    def bound_s(self) -> float:
        """What it may take."""
        return self.restoring_s + PER_ROUND_S * len(self.rounds)

    @property
    def rounds_alone(self) -> int:
        """What the application would take by itself at the very least."""
        return ceil(len({task for one in self.rounds for task in one.promoted}) / MAX_WARMUPS)

    @property
    def ratio(self) -> float:
        """How many times longer it takes alone."""
        return self.rounds_alone * INTERVAL_S / self.seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alone", action="store_true", help="measure one round of the application alone beside it")
    parser.add_argument("--records", type=int, default=90_000, help="written ahead, over nine tasks")
    parser.add_argument("--rate", type=int, default=800, help="records per second that the new instance restores")
    arguments = parser.parse_args()
    spec = ClusterSpec()
    with EmbeddedCluster.start(spec, on_progress=_say) as cluster:
        outcome = measure(cluster, records=arguments.records, rate=arguments.rate, alone=arguments.alone)
    report(outcome)
    return 0 if outcome.seconds <= outcome.bound_s else 1


def measure(cluster: EmbeddedCluster, *, records: int, rate: int, alone: bool = False) -> Outcome:
    """Grow the application on that cluster by one instance and see it through to balance."""
    with ExitStack() as stack:
        work = stack.enter_context(
            Workload.start(
                cluster.bootstrap_servers,
                plan=lambda facts: plan(facts, records=records, alone=alone),
                on_progress=_say,
            )
        )
        work.wait_settled()
        settings = settings_of(cluster, work)
        driver = stack.enter_context(_driver(settings))
        driver.settle()
        began = time.monotonic()
        work.scale_out(APPLICATION, "c", restore_records_per_s=rate)
        if alone:
            work.scale_out(ALONE, "c", restore_records_per_s=rate)
        with Restoring(work) as restoring:
            outcome = driver.see_through(began)
        outcome.restoring_s = restoring.seconds
        if alone:
            _say("balanced with rackwise; now waiting for the first round of the application alone")
            outcome.alone_s = _first_round_alone(work, began)
    return outcome


def plan(facts: ClusterFacts, *, records: int, alone: bool) -> WorkloadPlan:
    """Nine tasks with the latest order of each customer, three that count by region, on two instances."""
    names = (APPLICATION, ALONE) if alone else (APPLICATION,)
    return WorkloadPlan(
        topics=(TopicPlan(name="orders", replicas=spread(facts.racks, TASKS - 3, 2)),),
        loads=(LoadPlan(topic="orders", records_per_s=50, value_bytes=100, skew=0, preload_records=records),),
        streams=tuple(_application(name, len(facts.racks)) for name in names),
    )


def _application(name: str, brokers: int) -> StreamsPlan:
    return StreamsPlan(
        application=name,
        topology=TopologyPlan(input="orders", region_partitions=3),
        racks=("a", "b"),
        tagged=False,
        settings={
            "acceptable.recovery.lag": str(ACCEPTABLE),
            "max.warmup.replicas": str(MAX_WARMUPS),
            "num.standby.replicas": "0",
            "probing.rebalance.interval.ms": str(INTERVAL_S * 1000),
            "replication.factor": str(min(2, brokers)),
        },
    )


def settings_of(cluster: EmbeddedCluster, work: Workload) -> Settings:
    """What the owner of the application would set."""
    app = next(one for one in work.plan.streams if one.application == APPLICATION)
    told = {f"groups.{APPLICATION}.{name}": value for name, value in app.settings.items() if "." in name}
    told.pop(f"groups.{APPLICATION}.replication.factor")
    told[f"groups.{APPLICATION}.application.endpoints"] = work.lags_url(APPLICATION)
    return settings_for(cluster.bootstrap_servers, **told)


class Driver:
    """Looks, decides and triggers, as the agent does in mode ``execute``."""

    def __init__(self, eye: Eye, hand: WireHand) -> None:
        self._eye = eye
        self._journal = MemoryJournal()
        self._limits = to_limits(eye.settings)
        self._trigger = Trigger(hand, self._journal, system_clock, self._limits.execute)
        self._anchors: dict[tuple[str, str, int], int] = {}

    def settle(self) -> None:
        """Look until the application has come to rest."""
        self._eye.until(lambda cycle: isinstance(self._decide(cycle), Off), "an application at rest", within_s=60)

    def see_through(self, began: float) -> Outcome:
        """From the start of the new instance to balance. Raises AssertionError when it takes far too long."""
        outcome = Outcome()
        before = self._processes(self._look())
        while time.monotonic() - began < INTERVAL_S - _HEADROOM_S:
            cycle = self._look()
            outcome.looks += 1
            decision = self._decide(cycle)
            acted = isinstance(decision, TriggerNow) and self._carry_out(cycle, decision, began, outcome)
            if isinstance(decision, Off) and len(self._processes(cycle)) > len(before):
                outcome.seconds = time.monotonic() - began
                return outcome
            delay_ms = next_look_ms([decision], cycle.snapshot.monotonic_ms, poll_ms=POLL_MS, acted=acted)
            time.sleep((POLL_MS if delay_ms is None else delay_ms) / 1000)
        raise AssertionError(f"not balanced within {INTERVAL_S - _HEADROOM_S} s: {outcome}")

    def _look(self) -> Cycle:
        cycle = self._eye.look(planning=True)
        self._journal.append(*learn(self._journal.view(), cycle.snapshot, cycle.before, cycle.proposals))
        self._journal.append(*judge(self._journal.view(), cycle.snapshot))
        return cycle

    def _decide(self, cycle: Cycle) -> Decision:
        ground = Ground(cycle.snapshot, cycle.before, self._limits)
        return decide(APPLICATION, ground, self._past(cycle))

    def _past(self, cycle: Cycle) -> tuple[Past, ...]:
        snapshot = cycle.snapshot
        past, anchors = past_triggers(
            self._journal.view(), self._anchors, taken_ms=snapshot.taken_ms, monotonic_ms=snapshot.monotonic_ms
        )
        self._anchors = dict(anchors)
        return past.get(APPLICATION, ())

    def _carry_out(self, cycle: Cycle, decision: TriggerNow, began: float, outcome: Outcome) -> bool:
        proposal = next(
            one
            for one in cycle.proposals
            if one.reason is ProposalReason.WARMUP_PROMOTABLE and one.subject.name == APPLICATION
        )
        why = refusal(proposal, cycle.snapshot, cycle.before, self._journal.view(), self._limits)
        if why is not None:
            _say(f"refused: {why.sentence}")
            return False
        done = self._trigger.carry_out(proposal, cycle.snapshot)
        at_s = time.monotonic() - began
        _say(f"{at_s:6.1f} s  {decision.sentence}: {done.sentence}")
        if done.done:
            outcome.rounds.append(Round(at_s, tuple(str(task) for _, task in decision.copies), done.sentence))
        return done.done

    @staticmethod
    def _processes(cycle: Cycle) -> tuple[str, ...]:
        group = cycle.snapshot.groups.get(APPLICATION)
        return tuple(one.id for one in group.processes) if isinstance(group, StreamsGroup) else ()


class Restoring:
    """Adds up the time in which some warm-up is behind, by the application's own word; asks in a thread."""

    def __init__(self, work: Workload) -> None:
        self._work = work
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.seconds = 0.0

    def _run(self) -> None:
        last = time.monotonic()
        while not self._ended.wait(_SAMPLED_EVERY_S):
            told = self._work.lags(APPLICATION)
            now = time.monotonic()
            rows = [row for instance in told["instances"] for row in instance["tasks"] if row["role"] == "standby"]
            if any(row["lag"] is not None and row["lag"] > ACCEPTABLE for row in rows):
                self.seconds += now - last
            last = now

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def _first_round_alone(work: Workload, began: float) -> float:
    """Seconds until the instance that came last in the application alone runs its first task that had to warm up."""
    name = work.instances(ALONE)[-1]
    while True:
        held = next(one for one in work.java.assignment()["instances"] if one["id"] == name)
        if held["active"]:
            return time.monotonic() - began
        time.sleep(_SAMPLED_EVERY_S * 10)


@contextmanager
def _driver(settings: Settings) -> Iterator[Driver]:
    with Eye(settings) as eye, WireHand(settings.kafka.kafka_python()) as hand:
        hand.describe_brokers(10_000)
        yield Driver(eye, hand)


def report(outcome: Outcome) -> None:
    """The figures."""
    for number, one in enumerate(outcome.rounds, start=1):
        _say(f"round {number}: at {one.at_s:.1f} s, {', '.join(one.promoted)}")
    late_s = outcome.seconds - outcome.restoring_s
    rounds = max(1, len(outcome.rounds))
    _say(f"balanced after {outcome.seconds:.1f} s, of which {outcome.restoring_s:.1f} s of restoring")
    _say(f"{len(outcome.rounds)} rounds, {late_s / rounds:.1f} s each beside restoring (bound {PER_ROUND_S:.0f} s)")
    _say(f"{outcome.looks} looks")
    alone_s = outcome.rounds_alone * INTERVAL_S
    _say(f"alone: {outcome.rounds_alone} rounds of {INTERVAL_S} s, {alone_s} s; ratio {outcome.ratio:.1f}")
    if outcome.alone_s is not None:
        _say(f"measured beside it, one round alone: {outcome.alone_s:.1f} s")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
