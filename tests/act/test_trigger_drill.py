"""Triggers by the dozen, killed and disturbed at every step, on live groups: what it costs them is measured."""

from __future__ import annotations

import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path as FilePath
from threading import Thread

import pytest

from agent.act.trigger import RebalanceTrigger
from agent.decode.values import Subscription
from agent.execute.probe_bytes import encode_subscription
from agent.execute.trigger_judgement import judge
from agent.execute.trigger_refusals import RefusalReason, refusal
from agent.journal.triggers import TriggerEffect, TriggerPath, TriggerVerdict, path_at, path_learned, triggers
from agent.values.clock import system_clock
from agent.values.limits import Limits, TriggerLimits, TriState
from agent.values.memory import Memory
from agent.values.proposal import Outcome
from agent.values.snapshot import Snapshot
from agent.wire.admin_client import WireAdminClient
from assignors.problem import TopicPartition
from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.demo.workload import ClusterFacts, ClusterWorkload, WorkloadPlan
from testbed.demo.workload.placement import spread
from testbed.demo.workload.plan import JavaGroupPlan, LoadPlan, TopicPlan
from testbed.demo.workload.scenes import classic_application
from tests.act.coordinator_log import log_lines_about, rebalances
from tests.act.group_activity import Pulse, Window, longest_of, outside
from tests.act.triggers import (
    GroupWatch,
    MemoryJournal,
    a_proposal,
    admin_client_of,
    held,
    joined_generations,
    sent,
    wire_of,
)
from tests.observe.live import delete_groups
from tests.raw_member import RawMember
from tests.watching_agent import WatchingAgent, settings_for
from tests.workload import brokers

pytestmark = pytest.mark.drill

READERS, SHOP = "readers", "shop"
PARTITIONS = 6
TRIGGERS = 50
OLD_TRIGGERS = 10
HEARTBEAT_S = 3.0
WARM_S = 20.0
"""Brokers and members that are up for three seconds take twice as long for everything, rejoining included."""
ALLOWED = TriggerLimits(transactional=TriState.NO)
LIMITS = Limits(trigger=ALLOWED)
ROOT = FilePath(__file__).resolve().parents[2]


def plan(facts: ClusterFacts) -> WorkloadPlan:
    """A Java cooperative-sticky group of three and a Streams application of two, steadily fed."""
    app = classic_application(facts, SHOP)
    fast = {"commit.interval.ms": "100", "fetch.min.bytes": "1", "producer.linger.ms": "5"}
    return WorkloadPlan(
        topics=(TopicPlan(name="orders", replicas=spread(facts.racks, PARTITIONS, 2)),),
        loads=(LoadPlan(topic="orders", records_per_s=200, value_bytes=100, skew=0.0, preload_records=3_000),),
        linger_ms=20,
        java_groups=(
            JavaGroupPlan(
                group=READERS, topic="orders", racks=facts.rack_names[:3],
                settings={"auto.commit.interval.ms": "100", "fetch.min.bytes": "1"},
            ),
        ),
        streams=(replace(app, settings={**app.settings, **fast}),),
    )  # fmt: skip


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[EmbeddedCluster, ClusterWorkload]]:
    with (
        EmbeddedCluster.start(ClusterSpec(), on_progress=print) as cluster,
        ClusterWorkload.start(cluster.bootstrap_servers, plan=plan, on_progress=print) as work,
    ):
        work.wait_settled()
        yield cluster, work


@pytest.fixture(scope="module")
def hand(scene: tuple[EmbeddedCluster, ClusterWorkload]) -> Iterator[WireAdminClient]:
    with admin_client_of(scene[0].bootstrap_servers) as made:
        yield made


@pytest.fixture
def eye(scene: tuple[EmbeddedCluster, ClusterWorkload]) -> Iterator[WatchingAgent]:
    with WatchingAgent(settings_for(scene[0].bootstrap_servers)) as opened:
        yield opened


def snapshot_of(eye: WatchingAgent, group: str) -> Snapshot:
    return eye.until(
        lambda one: getattr(one.snapshot.groups.get(group), "state", None) == "Stable",
        f"{group} is stable",
        within_s=90,
    ).snapshot


def carry_out(hand: WireAdminClient, journal: MemoryJournal, snapshot: Snapshot, group: str, **more: object) -> Outcome:
    trigger = RebalanceTrigger(hand, journal, system_clock, LIMITS, **more)  # type: ignore[arg-type]
    return trigger.carry_out(a_proposal(group), snapshot)


# --- fifty triggers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [TriggerPath.PENDING_LEAVE, TriggerPath.PHANTOM_JOIN], ids=lambda way: way.value)
def test_fifty_triggers_at_random_phases(
    scene: tuple[EmbeddedCluster, ClusterWorkload], hand: WireAdminClient, eye: WatchingAgent, way: TriggerPath
) -> None:
    cluster, work = scene
    count = TRIGGERS if way is TriggerPath.PENDING_LEAVE else 10
    repartition = [TopicPartition(name, n) for name, size in sinks(cluster).items() for n in range(size)]
    journal, r = MemoryJournal(), random.Random(way.value)
    line = hand.group_line(READERS, 10_000)
    journal.append(path_learned(line.fingerprint, way, 0))
    line.close()
    windows: list[Window] = []
    events = max((one["seq"] for one in work.java.rebalances()), default=0)
    with (
        wire_of(cluster.bootstrap_servers) as wire,
        GroupWatch(hand, READERS) as readers,
        GroupWatch(hand, SHOP) as shop,
        Pulse(wire, (READERS, SHOP), {SHOP: repartition}) as pulse,
    ):
        watches = {READERS: readers, SHOP: shop}
        trigger_all(hand, journal, eye, watches)  # from now on all members tell the same generation
        firsts = {group: watch.generation for group, watch in watches.items()}
        earlier = {group: len(watch.stretches) for group, watch in watches.items()}
        holding = held(readers.wait_stable())
        began_s = time.time()
        time.sleep(5)
        for number in range(1, count + 1):
            begin_s = time.time()
            trigger_all(hand, journal, eye, watches)
            windows.append(Window(begin_s, time.time()))
            told_now = {
                group: set(joined_generations(watch.wait_stable()).values()) for group, watch in watches.items()
            }
            assert told_now == {group: {first + number} for group, first in firsts.items()}, "one generation a trigger"
            time.sleep(r.uniform(0.2, 1.5))  # at random phases of the members' heartbeats
        assert held(readers.wait_stable()) == holding
        calm = outside(windows, Window(began_s, time.time()))
        reads = [[at / 1000 for at in times] for times in work.java.reads().values()]
    assert all(one.effect is TriggerEffect.REBALANCING and one.path is way for one in triggers(journal.view()))
    revoked = [
        one
        for one in work.java.rebalances(events)
        if one["kind"] in ("revoked", "lost") and one["group"] == READERS and one["partitions"]
    ]
    print(f"\n{way.value}: {count} of {count} triggers of each group, one generation each, {len(revoked)} revoked")
    gaps = {
        "readers commit": ([pulse.commits[READERS]], 0.0),
        "shop commits": ([pulse.commits[SHOP]], 0.0),
        "readers read": (reads, 0.3),
        "shop works": ([pulse.work[SHOP]], 0.3),
    }
    for what, (times, _) in gaps.items():
        among, else_ = longest_of(times, windows), longest_of(times, calm)
        print(f"  {what}: longest gap {among:.3f} s in triggers, {else_:.3f} s between them")
    # A machine that is busy with other things holds everybody up; what it does between the triggers is not theirs.
    machine_s = max(0.0, longest_of(reads, calm) - 0.15)
    for group, watch in watches.items():
        lasted = [one.lasted_s for one in watch.stretches[earlier[group] :]]
        logged = [one.lasted_s for one in rebalances(cluster, group, began_s)]
        print(
            f"  {group}: out of Stable {min(logged):.2f} .. {max(logged):.2f} s, median "
            f"{statistics.median(logged):.2f} s, by its coordinator's log; {min(lasted):.2f} .. {max(lasted):.2f} s as "
            f"seen by one who looked every {watch.slowest_s:.2f} s at worst"
        )
        assert len(lasted) == len(logged) == count, f"{group} was out of Stable once a trigger"
        assert max(logged) <= HEARTBEAT_S + 0.2 + machine_s, group
        assert max(lasted) <= HEARTBEAT_S + 0.2 + machine_s + watch.slowest_s, group
    assert revoked == []
    for what, (times, floor_s) in gaps.items():
        assert longest_of(times, windows) <= max(floor_s, longest_of(times, calm) + 0.3), what


def trigger_all(
    hand: WireAdminClient, journal: MemoryJournal, eye: WatchingAgent, watches: dict[str, GroupWatch]
) -> None:
    """One trigger of each group, side by side, until both have a new generation and are stable."""
    before = {group: watch.generation for group, watch in watches.items()}
    for group in watches:
        ask(hand, journal, eye, group)
    for group, watch in watches.items():
        brokers.eventually(
            lambda w=watch, g=before[group]: w.generation > g, f"{group}: no generation", within_s=120, every_s=0.02
        )
        watch.wait_stable()


def ask(hand: WireAdminClient, journal: MemoryJournal, eye: WatchingAgent, group: str, **more: object) -> None:
    """Trigger the group, again while a busy machine makes it too late to be sure of it, and nothing happens."""
    outcome = sent(lambda: carry_out(hand, journal, snapshot_of(eye, group), group, **more))
    assert outcome.done, outcome


def sinks(cluster: EmbeddedCluster) -> dict[str, int]:
    """What the application writes to for itself, and at once: its repartition topics."""
    topics = brokers.admin(cluster).list_topics(timeout=10).topics
    return {
        name: len(of.partitions)
        for name, of in topics.items()
        if name.startswith(f"{SHOP}-") and name.endswith("-repartition")
    }


# --- killed at each step ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [READERS, SHOP])
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(("intended", TriggerPath.PENDING_LEAVE, signal.SIGKILL), id="killed after its intent"),
        pytest.param(("described", TriggerPath.PENDING_LEAVE, signal.SIGKILL), id="killed before it asked"),
        pytest.param(
            ("pending", TriggerPath.PENDING_LEAVE, signal.SIGKILL), id="killed with an id that it never gave back"
        ),
        pytest.param(("left", TriggerPath.PENDING_LEAVE, signal.SIGKILL), id="killed after it had left"),
        pytest.param(("joined", TriggerPath.PHANTOM_JOIN, signal.SIGKILL), id="killed as a member"),
        pytest.param(("left", TriggerPath.PHANTOM_JOIN, signal.SIGKILL), id="killed after it had been a member"),
        pytest.param(("pending", TriggerPath.PENDING_LEAVE, signal.SIGTERM), id="told to end with an id in its hand"),
        pytest.param(("joined", TriggerPath.PHANTOM_JOIN, signal.SIGTERM), id="told to end as a member"),
    ],
)
def test_a_prober_that_ends_in_the_middle_costs_no_more_than_its_session(
    scene: tuple[EmbeddedCluster, ClusterWorkload],
    hand: WireAdminClient,
    group: str,
    end: tuple[str, TriggerPath, signal.Signals],
) -> None:
    cluster, work = scene
    step, way, ended_by = end
    with (
        wire_of(cluster.bootstrap_servers) as wire,
        GroupWatch(hand, group) as watch,
        Pulse(wire, (group,), {}) as pulse,
    ):
        members = set(joined_generations(watch.wait_stable()))
        calm_s = time.time()
        process = prober(cluster, group, step, way)
        begin_s = time.time()
        process.send_signal(ended_by)
        process.wait(20)
        time.sleep(3.5)  # a heartbeat interval: by now everybody knows
        brokers.eventually(
            lambda: set(joined_generations(watch.wait_stable())) == members,
            "the group is not itself again",
            every_s=0.1,
        )
        time.sleep(1.5)
        after = watch.wait_stable()
        window = Window(begin_s, time.time())
    assert not [one for one in work.java.rebalances() if one["kind"] == "failed"]
    stalled_s = longest_of(pulse.partition_commits.values(), [window])
    machine_s = longest_of(pulse.partition_commits.values(), [Window(calm_s, begin_s - 0.5)])
    out = [f"{one.lasted_s:.2f}" for one in watch.stretches]
    print(
        f"\n{group}, {ended_by.name} at {step} ({way.value}): {stalled_s:.2f} s without a commit of some partition, "
        f"{machine_s:.2f} s before; out of Stable {', '.join(out) or 'never'} s"
    )
    assert stalled_s <= 6.5 + max(0.0, machine_s - 0.3)
    assert set(joined_generations(after)) == members


def prober(cluster: EmbeddedCluster, group: str, step: str, way: TriggerPath) -> subprocess.Popen[str]:
    """A process that has come to that step, and waits there."""
    command = [sys.executable, "-m", "tests.act.prober_process", cluster.bootstrap_servers, group, step, way.name]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line.strip())
        if seen[-1] == step:
            return process
    raise AssertionError(f"the prober ended with {process.wait()} before {step}: {seen}")


# --- disturbed --------------------------------------------------------------------------------------------------


def meanwhile(disturb: Callable[[], None]) -> Callable[[str], None]:
    """Disturbs the group between the intent and the join."""
    return lambda step: disturb() if step == "intended" else None


def test_a_group_whose_members_leave_meanwhile_is_not_asked(
    scene: tuple[EmbeddedCluster, ClusterWorkload], hand: WireAdminClient, eye: WatchingAgent
) -> None:
    cluster, work = scene
    name, journal = "leavers", MemoryJournal()
    work.java.start_consumer("leaver", name, "orders", rack="a", settings={})
    snapshot = snapshot_of(eye, name)
    outcome = carry_out(hand, journal, snapshot, name, on_step=meanwhile(lambda: work.java.stop_consumer("leaver")))
    assert not outcome.done
    assert "Empty" in outcome.sentence
    (entry,) = triggers(journal.view())
    assert entry.effect is TriggerEffect.NOT_SENT
    (judged,) = judge(journal.view(), eye.look().snapshot)
    journal.append(judged)
    assert triggers(journal.view())[0].judgement.verdict is TriggerVerdict.NOT_DONE  # type: ignore[union-attr]
    empty = eye.look()
    refused = refusal(a_proposal(name), empty.snapshot, empty.after, {}, LIMITS)
    assert refused is not None
    assert refused.reason is RefusalReason.EMPTY
    delete_groups(brokers.admin(cluster), name)
    outcome = carry_out(hand, MemoryJournal(), snapshot, name)
    assert not outcome.done
    assert "no classic group of this id" in outcome.sentence


def test_a_group_that_begins_to_rebalance_meanwhile_is_not_asked(
    scene: tuple[EmbeddedCluster, ClusterWorkload], hand: WireAdminClient, eye: WatchingAgent
) -> None:
    _cluster, work = scene
    journal = MemoryJournal()
    snapshot = snapshot_of(eye, READERS)
    with GroupWatch(hand, READERS) as watch:
        members = set(joined_generations(watch.wait_stable()))

        def join() -> None:
            work.java.start_consumer("fourth", READERS, "orders", rack="a", settings={})
            brokers.eventually(lambda: watch.last.state != "Stable", "it does not rebalance", every_s=0.01)

        outcome = carry_out(hand, journal, snapshot, READERS, on_step=meanwhile(join))
        assert not outcome.done
        assert triggers(journal.view())[0].effect is TriggerEffect.NOT_SENT
        brokers.eventually(
            lambda: len(joined_generations(watch.wait_stable())) == len(members) + 1, "the fourth is not there"
        )
        work.java.stop_consumer("fourth")
        brokers.eventually(lambda: set(joined_generations(watch.wait_stable())) == members, "the fourth did not leave")


def test_a_poisoned_member_that_joins_meanwhile_stops_the_trigger(
    scene: tuple[EmbeddedCluster, ClusterWorkload], hand: WireAdminClient, eye: WatchingAgent
) -> None:
    cluster, _work = scene
    name, journal = "poisoned", MemoryJournal()
    good = encode_subscription(Subscription(3, ("orders",), b"\0\0\0\0", (), 0, "a"))
    poison = encode_subscription(Subscription(3, ("orders",), b"\xff", (), 0, "a"))
    protocol = {"protocol": "cooperative-sticky", "join_timeout_ms": 9_000}
    with ExitStack() as stack:
        stack.callback(delete_groups, brokers.admin(cluster), name)
        stack.enter_context(RawMember(cluster.bootstrap_servers, name, metadata=good, **protocol))  # type: ignore[arg-type]
        snapshot = snapshot_of(eye, name)
        poisoner = RawMember(cluster.bootstrap_servers, name, metadata=poison, **protocol)  # type: ignore[arg-type]
        joining = Thread(target=lambda: stack.enter_context(poisoner))

        def join() -> None:
            joining.start()
            line = hand.group_line(name, 10_000)
            brokers.eventually(lambda: line.describe(10_000).state != "Stable", "it does not rebalance", every_s=0.01)
            line.close()

        outcome = carry_out(hand, journal, snapshot, name, on_step=meanwhile(join))
        assert not outcome.done
        assert triggers(journal.view())[0].effect is TriggerEffect.NOT_SENT
        joining.join()
        cycle = eye.until(
            lambda one: getattr(one.snapshot.groups.get(name), "state", None) == "Stable",
            f"{name} is stable",
            within_s=60,
        )
        refused = refusal(a_proposal(name), cycle.snapshot, Memory(), {}, LIMITS)
        assert refused is not None
        assert refused.reason is RefusalReason.UNREADABLE
        outcome = carry_out(hand, MemoryJournal(), snapshot, name)
        assert not outcome.done
        assert "cannot be read" in outcome.sentence


# --- an older coordinator ---------------------------------------------------------------------------------------


def old_plan(facts: ClusterFacts) -> WorkloadPlan:
    return replace(plan(facts), streams=())


def test_the_coordinator_of_kafka_3_6_wants_a_phantom_join_and_that_is_remembered() -> None:
    with (
        EmbeddedCluster.start(ClusterSpec(version="3.6.2"), on_progress=print) as cluster,
        ClusterWorkload.start(cluster.bootstrap_servers, "3.6.2", old_plan, on_progress=print) as work,
        admin_client_of(cluster.bootstrap_servers) as hand,
        WatchingAgent(settings_for(cluster.bootstrap_servers)) as eye,
        GroupWatch(hand, READERS) as watch,
    ):
        work.wait_ready()
        journal = MemoryJournal()
        events = max((one["seq"] for one in work.java.rebalances()), default=0)
        brokers.eventually(
            lambda: len(joined_generations(watch.wait_stable())) == 3, "the members are not together", every_s=0.1
        )
        time.sleep(WARM_S)
        holding, began_s = held(watch.wait_stable()), time.time()
        pending = []
        for _ in range(OLD_TRIGGERS):
            before, steps = watch.generation, []
            ask(hand, journal, eye, READERS, on_step=steps.append)
            pending.append(steps.count("pending"))
            brokers.eventually(lambda g=before: watch.generation > g, "no generation", within_s=60, every_s=0.02)
            # Newcomers come from none, so the first generation reported may be the second.
            (generation,) = set(joined_generations(watch.wait_stable()).values())
            assert before < 0 or generation == before + 1, "exactly one generation a trigger"
            (entry,) = triggers(journal.view())
            assert (entry.effect, entry.path) == (TriggerEffect.REBALANCING, TriggerPath.PHANTOM_JOIN)
        line = hand.group_line(READERS, 10_000)
        assert path_at(journal.view(), line.fingerprint) is TriggerPath.PHANTOM_JOIN
        line.close()
        assert pending == [2, *[1] * (OLD_TRIGGERS - 1)], "the way that works is tried first from then on"
        assert held(watch.wait_stable()) == holding
        changes = [one for one in work.java.rebalances(events) if one["kind"] in ("revoked", "lost")]
        assert [one for one in changes if one["partitions"]] == []
        out = [one.lasted_s for one in rebalances(cluster, READERS, began_s)]
        print(
            f"\n3.6.2: {OLD_TRIGGERS} of {OLD_TRIGGERS} triggers by phantom join, one generation each, 0 revoked; out "
            f"of Stable {min(out):.2f} .. {max(out):.2f} s, by its coordinator's log"
        )
        assert len(out) == OLD_TRIGGERS
        assert max(out) <= HEARTBEAT_S + 0.2, "\n".join(log_lines_about(cluster, READERS))
