"""On real brokers: one trigger, one generation, nothing revoked; and each refusal, with nothing done to the group."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition

from agent.act.trigger import RebalanceTrigger
from agent.execute.trigger_judgement import judge
from agent.execute.trigger_refusals import RefusalReason, refusal
from agent.journal.triggers import TriggerEffect, TriggerPath, TriggerVerdict, learned_of, path_at, triggers
from agent.values.clock import system_clock
from agent.values.cycle import Cycle
from agent.values.limits import Limits, ProposalLimits, TriggerLimits, TriState
from agent.values.memory import ChangeCause, Memory, RackChange
from agent.values.snapshot import Snapshot
from agent.wire.admin_client import WireAdminClient
from testbed.cluster import EmbeddedCluster
from testbed.demo.run import demo_settings
from testbed.demo.workload import ClusterWorkload
from tests.act.triggers import GroupWatch, MemoryJournal, a_proposal, admin_client_of, held, joined_generations, sent
from tests.observe.live import delete_groups
from tests.raw_member import RawMember
from tests.watching_agent import WatchingAgent
from tests.workload import brokers

pytestmark = pytest.mark.integration

COOPERATIVE = "probed"
STATIC = "probed-static"
PLAIN = TriggerLimits(transactional=TriState.NO)
"""As an operator sets it for a plain consumer group."""


@pytest.fixture(scope="module")
def hand(demo_cluster: EmbeddedCluster) -> Iterator[WireAdminClient]:
    with admin_client_of(demo_cluster.bootstrap_servers) as made:
        yield made


@pytest.fixture(scope="module")
def probed(demo_cluster: EmbeddedCluster, work: ClusterWorkload) -> Iterator[None]:
    """Beside the demo's groups: a cooperative Java group of two, and one with a static member."""
    names = {COOPERATIVE: ("probed-1", "probed-2"), STATIC: ("probed-static-1",)}
    for group, members in names.items():
        for number, name in enumerate(members, start=1):
            static = {"group.instance.id": name} if group == STATIC else {}
            settings = {"session.timeout.ms": "6000", **static}
            work.java.start_consumer(name, group, "clicks", rack="a", settings=settings)
            # One after the other: a member that was there before sends a generation.
            brokers.eventually(lambda g=group, n=number: stable(demo_cluster, g, n), f"{group} is not stable")
    yield
    for members in names.values():
        for name in members:
            work.java.stop_consumer(name)
    # A static member leaves its place behind, which ends with its session.
    brokers.eventually(lambda: not any(members_of(demo_cluster, group) for group in names), "members are left")
    delete_groups(brokers.admin(demo_cluster), *names)


def stable(cluster: EmbeddedCluster, group: str, size: int) -> bool:
    found = brokers.admin(cluster).list_groups(group, timeout=10)
    return bool(found) and found[0].state == "Stable" and len(found[0].members) == size


def members_of(cluster: EmbeddedCluster, group: str) -> int:
    return sum(len(one.members) for one in brokers.admin(cluster).list_groups(group, timeout=10))


@pytest.fixture
def look(demo_cluster: EmbeddedCluster, work: ClusterWorkload, probed: None) -> Iterator[WatchingAgent]:
    with WatchingAgent(demo_settings(demo_cluster, work).settings) as opened:
        yield opened


def limits_of(*, groups: dict[str, TriggerLimits] | None = None, default: TriggerLimits | None = None) -> Limits:
    proposals = ProposalLimits(trigger_cooldown_ms=60_000)
    return Limits(group_triggers=groups or {}, trigger=default or TriggerLimits(), proposals=proposals)


def settled(eye: WatchingAgent, group: str) -> Cycle:
    return eye.until(
        lambda cycle: getattr(cycle.snapshot.groups.get(group), "state", None) == "Stable", f"{group} is stable"
    )


# --- a trigger --------------------------------------------------------------------------------------------------


def test_a_java_group_is_triggered_once_for_one_generation_and_nothing_is_revoked(
    look: WatchingAgent, hand: WireAdminClient, work: ClusterWorkload
) -> None:
    cycle = settled(look, COOPERATIVE)
    limits, journal = limits_of(groups={COOPERATIVE: PLAIN}), MemoryJournal()
    proposal = a_proposal(COOPERATIVE)
    assert refusal(proposal, cycle.snapshot, cycle.after, journal.view(), limits) is None
    events = work.java.rebalances()[-1]["seq"]
    with GroupWatch(hand, COOPERATIVE) as watch:
        before, earlier = watch.wait_stable(), len(watch.stretches)
        trigger = RebalanceTrigger(hand, journal, system_clock, limits)
        outcome = sent(lambda: trigger.carry_out(proposal, settled(look, COOPERATIVE).snapshot))
        assert outcome.done, outcome.sentence
        assert journal.kinds[0] == "intent"
        (entry,) = triggers(journal.view())
        assert (entry.effect, entry.path) == (TriggerEffect.REBALANCING, TriggerPath.PENDING_LEAVE)
        generation = max(joined_generations(before).values())
        brokers.eventually(lambda: watch.generation > generation, "no new generation was seen", every_s=0.05)
        after = watch.wait_stable()
        again = refusal(proposal, cycle.snapshot, cycle.after, journal.view(), limits)
        assert again is not None
        assert again.reason is RefusalReason.UNJUDGED
        time.sleep(1)  # a second generation would follow at once
        assert set(joined_generations(watch.wait_stable()).values()) == {generation + 1}
    assert held(after) == held(before), "who reads what is as before"
    (out,) = watch.stretches[earlier:]
    print(f"out of Stable for {out.lasted_s:.2f} s")
    revoked = [one for one in work.java.rebalances(events)
               if one["group"] == COOPERATIVE and one["kind"] in ("revoked", "lost") and one["partitions"]]  # fmt: skip
    assert revoked == []
    journal.append(*judge(journal.view(), settled(look, COOPERATIVE).snapshot))
    (entry,) = triggers(journal.view())
    assert entry.judgement is not None
    assert entry.judgement.verdict is TriggerVerdict.AS_PREDICTED
    assert (entry.judgement.rebalances, entry.judgement.beyond) == (1, ())
    later = settled(look, COOPERATIVE)
    cooling = refusal(proposal, later.snapshot, later.after, journal.view(), limits)
    assert cooling is not None
    assert cooling.reason is RefusalReason.COOLING_DOWN
    learned = [key for key in journal.view() if key.startswith("learned/trigger-path/")]
    assert [path_at(journal.view(), key.rpartition("/")[2]) for key in learned] == [TriggerPath.PENDING_LEAVE]


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "limits", "reason", "known_by"),
    [
        pytest.param("billing", TriggerLimits(), RefusalReason.EAGER, "seen on the wire", id="an eager group"),
        pytest.param(STATIC, PLAIN, RefusalReason.STATIC, "seen on the wire", id="a static member"),
        pytest.param("search", PLAIN, RefusalReason.NOT_CLASSIC, "seen on the wire", id="a KIP-848 group"),
        pytest.param("shop-next", PLAIN, RefusalReason.NOT_CLASSIC, "seen on the wire", id="a KIP-1071 group"),
        pytest.param("nobody", PLAIN, RefusalReason.GONE, "seen on the wire", id="a group that is not there"),
        pytest.param(
            COOPERATIVE, TriggerLimits(), RefusalReason.TRANSACTIONAL, "not set by trigger.transactional",
            id="a plain consumer of which nothing is said about transactions",
        ),
        pytest.param(
            COOPERATIVE, replace(PLAIN, long_poll=TriState.YES), RefusalReason.LONG_POLL, "set by trigger.long_poll",
            id="a group that is said to poll seldom",
        ),
        pytest.param(
            COOPERATIVE, replace(PLAIN, rolling=TriState.YES), RefusalReason.ROLLING, "set by trigger.rolling",
            id="a group that is said to be rolled",
        ),
        pytest.param(
            "shop", replace(TriggerLimits(), transactional=TriState.YES), RefusalReason.TRANSACTIONAL,
            "set by trigger.transactional", id="an application that is said to write in transactions",
        ),
    ],
)  # fmt: skip
def test_a_group_is_refused_with_reason_and_with_how_it_is_known(
    look: WatchingAgent, group: str, limits: TriggerLimits, reason: RefusalReason, known_by: str
) -> None:
    cycle = look.until(lambda one: group == "nobody" or shows(one.snapshot, group), f"{group} is shown")
    refused = refusal(a_proposal(group), cycle.snapshot, cycle.after, {}, limits_of(groups={group: limits}))
    assert refused is not None
    assert (refused.reason, refused.known_by) == (reason, known_by), refused


def shows(snapshot: Snapshot, group: str) -> bool:
    return getattr(snapshot.groups.get(group), "state", None) == "Stable"


@pytest.mark.parametrize(
    ("group", "says"),
    [
        pytest.param("billing", "gives up all its partitions", id="an eager group"),
        pytest.param(STATIC, "static", id="a static member"),
        pytest.param(
            "search", "no classic group of this id", id="a KIP-848 group, which no classic coordinator describes"
        ),
        pytest.param("nobody", "no classic group of this id", id="a group that is not there"),
    ],
)
def test_the_hand_refuses_by_itself_what_it_sees_right_before(
    look: WatchingAgent, hand: WireAdminClient, group: str, says: str
) -> None:
    snapshot = look.until(lambda one: group == "nobody" or shows(one.snapshot, group), f"{group} is shown").snapshot
    journal = MemoryJournal()
    limits = Limits(trigger=PLAIN)
    outcome = RebalanceTrigger(hand, journal, system_clock, limits).carry_out(a_proposal(group), snapshot)
    assert not outcome.done
    assert says in outcome.sentence
    assert journal.kinds == [], "nothing was meant"


def test_a_java_group_with_racks_is_left_to_notice_a_rack_change_by_itself(look: WatchingAgent) -> None:
    cycle = settled(look, COOPERATIVE)
    wait_ms = Limits().trigger.own_rebalance_wait_ms
    limits = limits_of(default=PLAIN)
    seen_ms = cycle.snapshot.monotonic_ms - 30_000
    change = RackChange(ChangeCause.REASSIGNED, "clicks", 0, seen_ms, 1, 1, ())
    memory = replace(cycle.after, changes=(change,))
    refused = refusal(a_proposal(COOPERATIVE), cycle.snapshot, memory, {}, limits)
    assert refused is not None
    assert refused.reason is RefusalReason.OWN_REBALANCE
    assert refused.until_ms == cycle.snapshot.taken_ms + wait_ms - 30_000
    # The demo's group without racks does not notice anything: waiting would be in vain.
    views = (
        replace(change, subject="views")
        if hasattr(change, "__dataclass_fields__")
        else change._replace(subject="views")
    )
    free = refusal(a_proposal("exports"), cycle.snapshot, replace(memory, changes=(views,)), {}, limits)
    assert free is None


def test_transactions_of_members_are_found_and_remembered(
    look: WatchingAgent, hand: WireAdminClient, demo_cluster: EmbeddedCluster
) -> None:
    snapshot = settled(look, COOPERATIVE).snapshot
    journal = MemoryJournal()
    with open_transaction(demo_cluster, COOPERATIVE):
        trigger = RebalanceTrigger(hand, journal, system_clock, Limits())
        outcome = trigger.carry_out(a_proposal(COOPERATIVE), snapshot)
    assert not outcome.done
    assert "learned from ListTransactions" in outcome.sentence
    learned = learned_of(journal.view(), COOPERATIVE)
    assert learned is not None
    assert learned.transactional
    refused = refusal(a_proposal(COOPERATIVE), snapshot, Memory(), journal.view(), Limits())
    assert refused is not None
    assert (refused.reason, refused.known_by) == (RefusalReason.TRANSACTIONAL, "learned from ListTransactions")


@contextmanager
def open_transaction(cluster: EmbeddedCluster, group: str) -> Iterator[None]:
    """A transaction that commits an offset of that group, and is not over."""
    bootstrap = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = Producer({**bootstrap, "transactional.id": "somebody-elses", "transaction.timeout.ms": 30_000})
    producer.init_transactions(20)
    producer.begin_transaction()
    # The name alone is enough to include the group's offsets.
    producer.send_offsets_to_transaction([Partition("clicks", 0, 0)], metadata_for(group, bootstrap), 20)
    try:
        yield
    finally:
        producer.abort_transaction(20)


def metadata_for(group: str, bootstrap: dict[str, str]):
    with_group = Consumer({**bootstrap, "group.id": group})
    try:
        return with_group.consumer_group_metadata()
    finally:
        with_group.close()


def test_a_group_that_rebalances_now_is_left_alone(
    look: WatchingAgent, hand: WireAdminClient, demo_cluster: EmbeddedCluster, probed: None
) -> None:
    metadata = next(iter(hand_members(hand)))
    group = "probed-busy"
    with ExitStack() as stack:
        stack.callback(delete_groups, brokers.admin(demo_cluster), group)
        first = RawMember(demo_cluster.bootstrap_servers, group, metadata=metadata, protocol="cooperative-sticky")
        second = RawMember(
            demo_cluster.bootstrap_servers, group, metadata=metadata, protocol="cooperative-sticky",
            join_timeout_ms=1_000,
        )  # fmt: skip
        stack.enter_context(first)
        quiet = settled(look, group).snapshot
        stack.enter_context(second)  # the first one never comes back, so the rebalance waits for it
        busy = look.look().snapshot
        refused = refusal(a_proposal(group), busy, Memory(), {}, limits_of(default=PLAIN))
        assert refused is not None
        assert refused.reason is RefusalReason.NOT_STABLE
        journal = MemoryJournal()
        outcome = RebalanceTrigger(hand, journal, system_clock, Limits(trigger=PLAIN)).carry_out(
            a_proposal(group), quiet
        )
        assert not outcome.done
        assert "not Stable" in outcome.sentence
        assert journal.kinds == []


def hand_members(hand: WireAdminClient) -> list[bytes]:
    line = hand.group_line(COOPERATIVE, 10_000)
    try:
        return [member.metadata for member in line.describe(10_000).members]
    finally:
        line.close()
