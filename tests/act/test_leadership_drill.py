"""Agents that are killed, frozen and thawed, brokers that die, logs that are compacted: one writer, and the next soon.

Each drill prints a line of JSON with its figures. ``RACKWISE_DRILL_SEEDS`` says how often each is done (default 2; the
takeover three times as often).
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from statistics import quantiles

import pytest
from confluent_kafka.admin import AdminClient

from agent.act.journal.kafka_journal import KafkaJournal
from agent.act.leadership import JournalLeadership
from agent.errors import FatalFailure, JournalUnavailable
from agent.journal.entries import JournalWrite
from agent.journal.record_trust import LEADER
from testbed.cluster import EmbeddedCluster
from tests.act.journals import (
    CLUSTER,
    a_write,
    committed_journal,
    leadership_plan,
    make_topics,
    new_prefix,
    opened,
    order,
    place,
    plan,
    records,
)
from tests.act.leader_processes import LeaderProcess, members_of, the_leader
from tests.observe.live import wait_for

pytestmark = pytest.mark.drill

SEEDS = int(os.environ.get("RACKWISE_DRILL_SEEDS", "2"))
TAKEOVER_MS = 15_000
FROZEN_S = 30
SETTLED_S = 5
Start = Callable[..., LeaderProcess]


@pytest.fixture
def servers(embedded_cluster: EmbeddedCluster) -> str:
    return embedded_cluster.bootstrap_servers


@pytest.fixture
def prefix(servers: str) -> str:
    one = new_prefix()
    make_topics(servers, one)
    return one


@pytest.fixture
def start(servers: str, prefix: str) -> Iterator[Start]:
    started: list[LeaderProcess] = []

    def one(name: str, file: Path | None = None) -> LeaderProcess:
        agent = LeaderProcess(servers, prefix, name, file)
        started.append(agent)
        agent.wait_for("started")
        return agent

    yield one
    for agent in started:
        agent.end()


def tell(drill: str, **figures: object) -> None:
    print(json.dumps({"drill": drill, **figures}))


def p50_p95(times_ms: list[int]) -> tuple[int, int]:
    if len(times_ms) == 1:
        return times_ms[0], times_ms[0]
    cuts = quantiles(times_ms, n=20, method="inclusive")
    return round(cuts[9]), round(cuts[18])


def check_order(servers: str, prefix: str) -> list[int]:
    """Each epoch is written by one agent, in one piece, after all earlier ones; the epochs."""
    written = records(servers, prefix)
    places = [place(record) for record in written]
    assert places == sorted(set(places)), "an order without repetition"
    sources: dict[int, set[str]] = {}
    for record, (epoch, _) in zip(written, places, strict=True):
        sources.setdefault(epoch, set()).add(record.headers["ce_source"])
    assert all(len(one) == 1 for one in sources.values()), sources
    epochs = [epoch for epoch, _ in groupby(epoch for epoch, _ in places)]
    assert epochs == sorted(set(epochs))
    return epochs


def test_killed_leaders_are_replaced_in_time(servers: str, prefix: str, start: Start) -> None:
    kills = 3 * SEEDS
    agents = [start("a-0"), start("a-1")]
    times_ms = []
    acknowledged: dict[str, int] = {}
    for number in range(kills):
        leader = the_leader(agents)
        time.sleep(random.Random(number).uniform(0.5, 2.5))
        killed = leader.signal(signal.SIGKILL)
        leader.process.wait(10)
        acknowledged[leader.name] = leader.events("wrote")[-1]["n"]
        agents = [one for one in agents if one is not leader]
        taken = agents[0].wait_for("leading")["at"]
        times_ms.append(round(1_000 * (taken - killed)))
        agents.append(start(f"a-{number + 2}"))
    view = committed_journal(servers, prefix).view
    for name, count in acknowledged.items():
        assert view[f"beat/{name}"].value["n"] in {count, count + 1}, "what was acknowledged stands"
    p50, p95 = p50_p95(times_ms)
    tell("SIGKILL of the leader", seeds=kills, survived=kills, takeover_ms_p50=p50, takeover_ms_p95=p95)
    assert check_order(servers, prefix) == list(range(1, kills + 2))
    assert p95 <= TAKEOVER_MS


def test_a_leader_that_was_frozen_ends_without_a_further_record(servers: str, prefix: str, start: Start) -> None:
    agents = [start("a-0"), start("a-1")]
    takeovers_ms, ends_ms = [], []
    for number in range(SEEDS):
        frozen = the_leader(agents)
        stopped = frozen.signal(signal.SIGSTOP)
        other = next(one for one in agents if one is not frozen)
        takeovers_ms.append(round(1_000 * (other.wait_for("leading")["at"] - stopped)))
        before = other.events("wrote")
        time.sleep(max(0.0, FROZEN_S - (time.monotonic() - stopped)))
        assert len(other.events("wrote")) > len(before), "the second one is active"
        epoch = frozen.events("leading")[-1]["epoch"]
        written = [place for place in order(servers, prefix) if place[0] == epoch]
        newest = committed_journal(servers, prefix).view[f"beat/{frozen.name}"].value["n"]
        thawed = frozen.signal(signal.SIGCONT)
        assert frozen.process.wait(20) == 6
        ends_ms.append(round(1_000 * (time.monotonic() - thawed)))
        assert [place for place in order(servers, prefix) if place[0] == epoch] == written, "0 further records"
        # Frozen between an acknowledgement and the report of it, the process reports that one: it was there before.
        assert [one["n"] for one in frozen.events("wrote") if one["at"] > thawed] in ([], [newest])
        wait_for(
            lambda: len(members_of(servers, f"{prefix}-leader")) == 1, "the thawed one holds up no election", SETTLED_S
        )
        agents = [other, start(f"a-{number + 2}")]
    assert check_order(servers, prefix) == list(range(1, SEEDS + 2))
    tell(
        "SIGSTOP 30 s, then thaw",
        seeds=SEEDS,
        survived=SEEDS,
        takeover_ms=takeovers_ms,
        thaw_to_exit_6_ms=ends_ms,
        records_after_thaw=0,
    )
    assert max(takeovers_ms) <= TAKEOVER_MS


def test_a_leader_that_is_asked_to_stop_hands_over_at_once(servers: str, prefix: str, start: Start) -> None:
    agents = [start("a-0"), start("a-1")]
    leader = the_leader(agents)
    asked = leader.signal(signal.SIGTERM)
    other = next(one for one in agents if one is not leader)
    took_ms = round(1_000 * (other.wait_for("leading")["at"] - asked))
    assert leader.process.wait(10) == 0
    assert check_order(servers, prefix) == [1, 2]
    tell("SIGTERM of the leader", seeds=1, survived=1, takeover_ms=took_ms)
    assert took_ms < TAKEOVER_MS


def test_on_a_single_host_the_next_one_goes_on_after_a_kill(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "journal"
    agents = [start("a-0", file), start("a-1", file)]
    times_ms = []
    for number in range(SEEDS):
        leader = the_leader(agents)
        killed = leader.signal(signal.SIGKILL)
        leader.process.wait(10)
        agents = [one for one in agents if one is not leader]
        times_ms.append(round(1_000 * (agents[0].wait_for("leading")["at"] - killed)))
        agents.append(start(f"a-{number + 2}", file))
    tell("SIGKILL of the leader, journal in a file", seeds=SEEDS, survived=SEEDS, takeover_ms=times_ms)
    assert max(times_ms) <= TAKEOVER_MS


@pytest.mark.parametrize("broker", ["the journal's", "the transactions'"])
def test_a_broker_that_dies_during_appends_loses_and_doubles_nothing(
    embedded_cluster: EmbeddedCluster, servers: str, prefix: str, broker: str
) -> None:
    done: list[int] = []
    ended: list[FatalFailure] = []
    doubts, stop = 0, threading.Event()
    leadership = JournalLeadership(leadership_plan(servers, prefix))

    def write() -> None:
        """Number after number, by whatever journal this agent leads with at the time."""
        nonlocal doubts
        number = 1
        while not stop.wait(0.01):
            try:
                journal = leadership.journal()
                if journal is None:
                    continue
                if f"plan/{number}" not in journal.view():
                    journal.append(a_write(f"plan/{number}", n=number))
                done.append(number)
                number += 1
            except JournalUnavailable:
                doubts += 1
            except FatalFailure as error:
                ended.append(error)
                return

    leadership.start()
    leadership.begin(CLUSTER)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: len(done) > 20, "appends go on")
        journal = leadership.journal()
        assert isinstance(journal, KafkaJournal)
        topic = f"{prefix}.journal" if broker == "the journal's" else "__transaction_state"
        victim = _leader_of(servers, topic, journal)
        embedded_cluster.broker(victim).kill()
        killed, count = time.monotonic(), len(done)
        try:
            wait_for(lambda: ended or len(done) > count + 20, "appends go on without it", within_s=120)
            recovered_ms = round(1_000 * (time.monotonic() - killed))
        finally:
            stop.set()
            writer.join(60)
            embedded_cluster.broker(victim).start()
    finally:
        stop.set()
        leadership.close()
    assert [str(error) for error in ended] == []
    view = committed_journal(servers, prefix).view
    assert {key for key in view if key != LEADER} >= {f"plan/{number}" for number in done}
    keys = [record.key for record in records(servers, prefix) if record.key != LEADER]
    assert len(keys) == len(set(keys)), "nothing was written twice"
    tell(
        f"broker killed during appends: {broker} leader",
        appends=len(done),
        doubts=doubts,
        epochs=view[LEADER].epoch,
        recovered_ms=recovered_ms,
    )


def _leader_of(servers: str, topic: str, journal: KafkaJournal) -> int:
    """The broker that leads the topic's partition: of the transactions', the one that this journal's id falls into."""
    admin = AdminClient({"bootstrap.servers": servers})
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    hashed = 0
    for unit in journal._plan.transactional_id.encode("ascii"):  # Java's hash of a text
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return int(partitions[abs(hashed - (hashed >> 31 << 32)) % len(partitions)].leader)


def test_a_compacted_journal_says_the_same(servers: str, prefix: str) -> None:
    del prefix
    quick = new_prefix()
    make_topics(
        servers,
        quick,
        **{
            "segment.ms": "1000",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "0",
            "min.compaction.lag.ms": "0",
            "max.compaction.lag.ms": "2000",
        },
    )
    with opened(plan(servers, quick)) as journal:
        for number in range(60):
            journal.append(
                a_write("plan/a", n=number), JournalWrite("plan/b", "k", {"n": number} if number % 2 else None)
            )
        before = len(records(servers, quick))
        until = time.monotonic() + 120
        while len(records(servers, quick)) > before / 2:  # new segments let the cleaner at the old ones
            assert time.monotonic() < until, "the brokers compact the topic"
            journal.append(a_write("tick", at=round(until)))
            time.sleep(2)
        assert committed_journal(servers, quick).view == journal.view()
        with opened(plan(servers, quick, "two")) as two:
            assert two.epoch == 2
            assert {k: e for k, e in two.view().items() if k != LEADER} == {
                k: e for k, e in journal.view().items() if k != LEADER
            }
        tell("journal compacted", records_before=before, records_after=len(records(servers, quick)))
