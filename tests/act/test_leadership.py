"""Leadership on real brokers: one leader at a time, the next soon after, and none whose lease is in doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from agent.act.inbox import POSITION
from agent.act.leadership import JournalLeadership, read_journal
from agent.act.lease import KafkaLease, LeadershipPlan, LeasePlan, awake_ms
from agent.errors import BadInput, ConfigError, FatalFailure, FencedOut, JournalUnavailable
from agent.journal.entries import JournalPort
from agent.journal.record_trust import LEADER, leader_in
from agent.observe.context import ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from tests.act.journals import CLUSTER, a_write, leadership_plan, make_topics, new_prefix, opened, plan
from tests.act.leader_processes import members_of
from tests.cluster.driver import ClusterDriver
from tests.conftest import WatchedCluster
from tests.observe.live import clients_of, wait_for
from tests.record.live import described

Start = Callable[[LeadershipPlan], JournalLeadership]


@pytest.fixture
def servers(cluster: ClusterDriver | WatchedCluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def prefix(servers: str) -> str:
    one = new_prefix()
    make_topics(servers, one)
    return one


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def started(one: LeadershipPlan) -> JournalLeadership:
            leadership = JournalLeadership(one)
            stack.callback(leadership.close)
            leadership.start()
            leadership.begin(CLUSTER)
            return leadership

        yield started


def journal_of(leadership: JournalLeadership) -> JournalPort:
    found: JournalPort = wait_for(leadership.journal, f"it leads; {leadership.problem()}")
    return found


def fatal_of(leadership: JournalLeadership) -> FatalFailure | None:
    """The error with which the agent must end."""
    try:
        leadership.journal()
    except FatalFailure as error:
        return error
    return None


@pytest.mark.integration
def test_one_leads_the_other_stands_by_and_takes_over_with_all_that_was_said(
    servers: str, prefix: str, start: Start
) -> None:
    one = start(leadership_plan(servers, prefix, "one"))
    first = journal_of(one)
    first.append(a_write("plan/a", n=1))
    assert (one.may_act(), one.problem()) == (True, None)
    two = start(leadership_plan(servers, prefix, "two"))
    wait_for(lambda: two._lease is not None, "the second takes part")
    first.append(a_write("plan/b", n=1))
    assert (two.may_act(), two.journal(), two.inbox()) == (False, None, None)
    one.close()
    assert (one.may_act(), one.journal()) == (False, None)
    second = journal_of(two)
    assert (first.epoch, second.epoch) == (1, 2)
    assert set(second.view()) == {LEADER, POSITION, "plan/a", "plan/b"}
    leader = leader_in(read_journal(leadership_plan(servers, prefix)))
    assert leader is not None
    assert leader.agent == "two"
    assert one.journal() is None, "a member that left does not come back"


@pytest.mark.integration
def test_its_topics_are_made_over_the_racks_once_a_look_shows_the_brokers(servers: str, start: Start) -> None:
    prefix = new_prefix()
    own = leadership_plan(servers, prefix)
    with pytest.raises(ConfigError, match="no agent in mode execute has run here"):
        read_journal(own)
    leadership = JournalLeadership(own)
    leadership.start()
    try:
        with clients_of(servers) as clients:
            observation = observe(clients, system_clock, ObserveScope(), ObserverState())
        leadership.observed(observation)
        journal_of(leadership)
    finally:
        leadership.close()
    for name, policy in (("journal", "compact"), ("leader", "delete"), ("commands", "delete")):
        replicas, configs = described(servers, f"{prefix}.{name}")
        assert len(replicas) == 1
        assert len(replicas[0]) == 3, "a replica in each rack"
        assert (configs["cleanup.policy"], configs["min.insync.replicas"]) == (policy, "2")
    found = leader_in(read_journal(own))
    assert found is not None
    assert found.cluster == observation.cluster_id


@pytest.mark.integration
def test_an_agent_that_did_not_run_for_long_gives_its_lease_up_and_ends_only_if_another_led(
    servers: str, prefix: str
) -> None:
    ahead_ms = [0]
    lease = KafkaLease(
        LeasePlan(config={"bootstrap.servers": servers}, topic=f"{prefix}.leader", prefix=prefix),
        clock_ms=lambda: awake_ms() + ahead_ms[0],
    )
    lease.start()
    try:
        wait_for(lease.may_act, "it leads")
        term = lease.term
        ahead_ms[0] = 9_000
        assert not lease.may_act(), "nothing is sure after that long"
        wait_for(lease.may_act, "it is chosen again, as the only member")
        assert term is not None
        assert lease.term == term + 1
    finally:
        lease.close()
    assert not lease.may_act()


@pytest.mark.integration
@pytest.mark.parametrize("leaves", ["standing by", "joining", "after a sleep"])
def test_a_standby_that_leaves_is_gone_at_once_and_holds_up_no_election(servers: str, prefix: str, leaves: str) -> None:
    own = LeasePlan(config={"bootstrap.servers": servers}, topic=f"{prefix}.leader", prefix=prefix)
    ahead_ms = [0]
    leader, standby = KafkaLease(own), KafkaLease(own, clock_ms=lambda: awake_ms() + ahead_ms[0])
    members = 1
    leader.start()
    try:
        wait_for(leader.may_act, "the first leads")
        before = members_of(servers, own.group)
        standby.start()
        if leaves == "joining":
            wait_for(lambda: members_of(servers, own.group) != before, "the second is known to the group")
        else:
            wait_for(lambda: len(members_of(servers, own.group)) == 2, "the second stands by")
        known = members_of(servers, own.group)
        if leaves == "after a sleep":
            ahead_ms[0], members = 9_000, 2
        else:
            standby.close()
        wait_for(
            lambda: (now := members_of(servers, own.group)) != known and len(now) == members,
            "the group is settled without the member that left, long before its session would have ended",
            within_s=own.session_ms / 2_000,
        )
        assert leader.may_act()
    finally:
        standby.close()
        leader.close()


def test_an_election_that_went_wrong_in_an_unforeseen_way_is_said_and_gone_on_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[str] = []

    def breaks(_config: object) -> None:
        tries.append("once more")
        raise RuntimeError("no more threads")

    monkeypatch.setattr("agent.act.lease.Consumer", breaks)
    monkeypatch.setattr("agent.act.lease._RETRY_S", 0.01)
    lease = KafkaLease(LeasePlan(config={}))
    lease.start()
    try:
        wait_for(lambda: len(tries) > 2, "it tries again")
        assert lease.problem() == "internal error of rackwise (RuntimeError: no more threads); report it"
        assert not lease.may_act()
    finally:
        lease.close()


@pytest.mark.integration
def test_a_leader_that_was_fenced_ends_and_one_that_only_lost_its_lease_leads_again(
    servers: str, prefix: str, start: Start
) -> None:
    one = JournalLeadership(leadership_plan(servers, prefix, "one"))
    one.start()
    one.begin(CLUSTER)
    try:
        first = journal_of(one)
        assert one._lease is not None
        one._lease._polled_ms -= 60_000  # as after a long sleep
        wait_for(lambda: one.journal() not in {None, first}, "it leads again, under a new epoch")
        again = journal_of(one)
        assert again.epoch == 2
        with opened(plan(servers, prefix, "another")) as other:
            assert other.epoch == 3
            one._lease._polled_ms -= 60_000
            fatal = wait_for(lambda: fatal_of(one), "it ends")
        assert isinstance(fatal, FencedOut)
        assert fatal.exit_code == 6
        assert "epoch 3 has begun" in str(fatal)
        assert not one.may_act()
    finally:
        one.close()


class _EndedClient:
    """A producer that a fatal error has ended, as the client itself has after some deaths of a coordinator."""

    def __init__(self, producer: object) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def begin_transaction(self) -> None:
        raise KafkaException(KafkaError(KafkaError.INVALID_TXN_STATE, "an invalid state", fatal=True))


@pytest.mark.integration
def test_a_leader_whose_client_ends_by_itself_goes_on_with_another_under_the_next_epoch(
    servers: str, prefix: str
) -> None:
    one = JournalLeadership(leadership_plan(servers, prefix, "one"))
    one.start()
    one.begin(CLUSTER)
    try:
        first = journal_of(one)
        first.append(a_write("plan/1", n=1))
        first._producer = _EndedClient(first._producer)  # type: ignore[attr-defined]
        with pytest.raises(JournalUnavailable, match="cannot continue"):
            first.append(a_write("plan/2", n=2))
        assert not one.may_act(), "nothing is done without a journal"
        wait_for(lambda: one.journal() not in {None, first}, "it leads again, under a new epoch")
        again = journal_of(one)
        again.append(a_write("plan/3", n=3))
        assert again.epoch == 2
        assert {"plan/1", "plan/3"} <= set(again.view())
        assert "plan/2" not in again.view()
        with pytest.raises(JournalUnavailable):
            first.append(a_write("plan/4", n=4))
    finally:
        one.close()


@pytest.mark.integration
def test_a_journal_that_cannot_be_believed_leaves_the_agent_watching_with_a_sentence(
    servers: str, prefix: str, start: Start
) -> None:
    foreign = Producer({"bootstrap.servers": servers})
    foreign.produce(f"{prefix}.journal", key=b"plan/x", value=b'{"v": 9}')
    assert foreign.flush(10) == 0
    one = start(leadership_plan(servers, prefix))
    wait_for(lambda: one.problem() is not None, "it says why")
    assert "a newer rackwise wrote it" in (one.problem() or "")
    assert (one.journal(), one.may_act()) == (None, False)
    assert dict(read_journal(leadership_plan(servers, prefix))) == {}, "nothing was written"


def test_on_a_single_host_the_lock_is_the_lease(tmp_path: Path, start: Start) -> None:
    own = LeadershipPlan(config={}, agent="one", file=tmp_path / "journal")
    assert own.topics() == ()
    one = start(own)
    first = journal_of(one)
    first.append(a_write("plan/a", n=1))
    two = start(own)
    wait_for(two._ready.is_set, "the second takes part")
    assert (one.may_act(), two.may_act(), two.journal()) == (True, False, None)
    assert read_journal(own)["plan/a"].value == {"n": 1}
    one.close()
    second = journal_of(two)
    assert (second.epoch, second.view()["plan/a"].value) == (2, {"n": 1})
    (tmp_path / "journal.lock").unlink()
    assert not two.may_act(), "without its lock nothing is sure"
    with pytest.raises(FencedOut, match="is not this agent's any more"):
        wait_for(lambda: two.journal() and False, "it ends")


def test_a_damaged_file_leaves_the_agent_watching_with_a_sentence(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"00000000 []\n0d4cbb29 []\n")
    with pytest.raises(BadInput, match="damaged in line 1"):
        read_journal(LeadershipPlan(config={}, agent="one", file=path))
    one = start(LeadershipPlan(config={}, agent="one", file=path))
    wait_for(lambda: one.problem() is not None, "it says why")
    assert "damaged in line 1" in (one.problem() or "")
    assert (one.journal(), one.may_act()) == (None, False)


def test_secrets_are_in_no_plans_text() -> None:
    config = {"sasl.password": "hidden-word"}
    plans = [
        LeadershipPlan(config=config, agent="one"),
        LeasePlan(config=config),
    ]
    assert all("hidden-word" not in repr(one) for one in plans)
