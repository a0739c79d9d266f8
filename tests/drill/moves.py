"""A reassignment under way on four brokers, harm to it, and what must hold afterwards whatever the harm was.

Roles are dealt by the seed: what moves is a replica of each partition, from the source to the target; the two others
stay. Foreign throttles stand beside ours in every run.
"""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import AdminClient

from agent.act.file_journal import read_file
from agent.act.leadership import read_journal
from agent.cluster import EmbeddedCluster
from agent.execute.values import LEADER_REPLICAS, Batch, BatchState, End, Plan, PlanState
from agent.journal import moves
from agent.journal.entry import View
from agent.typed_json import to_json
from agent.wire.config_changes import Holder, Setting
from agent.wire.hand import WireHand
from assignors.problem import TopicPartition
from tests.act.journals import leadership_plan
from tests.act.moving import DEADLINE_MS, Placement, placement, plan_for, set_config, throttles, topic_with
from tests.drill.harness import Clocks
from tests.drill.traffic import Traffic
from tests.drill.watching import WatchingProxy
from tests.observe.live import wait_for

CLIENT_ID = "drilled-executor"
POLICY: dict[str, object] = {
    "throttle_bytes_per_s": 1_500_000,
    "request_timeout_ms": 4_000,
    "look_ms": 400,
    "grace_ms": 60_000,  # as by default: on a busy machine a killed broker takes its time to come back
    "batch_partitions": 4,
}
_BEGUN_S = 150.0
"""A process that begins needs a while on a busy machine; nothing is concluded from how long it takes."""
_OVER_S = 300.0


class Process:
    """The executor, as a supervisor runs it."""

    def __init__(self, directory: Path, config: dict[str, object]) -> None:
        self._directory = directory
        self._config = config
        self._running: subprocess.Popen[str] | None = None
        self._said: list[str] = []
        self._starts = 0

    @property
    def client_id(self) -> str:
        """As brokers and the proxy see it."""
        return str(self._config["client_id"])

    def start(self, die: str | None = None, times: int = 1) -> None:
        """Start it; it dies at that step when one is given."""
        self._starts += 1
        file = self._directory / f"executor-{self._starts}.json"
        file.write_text(json.dumps({**self._config, "die": die, "times": times}))
        self._said = said = []
        log = (self._directory / f"executor-{self._starts}.log").open("w")
        self._running = subprocess.Popen(
            [sys.executable, "-m", "tests.drill.executor", str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        log.close()
        threading.Thread(target=_read, args=(self._running, said), daemon=True).start()

    def wait_said(self, word: str, within_s: float = _BEGUN_S) -> None:
        """Until it has said that since it was started; AssertionError when it ends before."""
        wait_for(lambda: word in self._said or self._gone(), f"the executor says {word}", within_s)
        assert word in self._said, f"the executor ended: {self.log()}"

    def idle(self) -> bool:
        """True when its latest word is that nothing is left to do."""
        assert not self._gone(), f"the executor ended: {self.log()}"
        return bool(self._said) and self._said[-1] == "idle"

    def wait_dead(self, within_s: float = _BEGUN_S) -> None:
        """Until it died."""
        assert self._running is not None
        assert self._running.wait(within_s) == -9, self.log()

    def signal(self, number: signal.Signals) -> None:
        """Send it that."""
        assert self._running is not None
        self._running.send_signal(number)

    def wait_ended(self, within_s: float) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._running is not None
        return self._running.wait(within_s)

    def tell(self, line: str) -> None:
        """Say something to it."""
        assert self._running is not None
        assert self._running.stdin is not None
        self._running.stdin.write(f"{line}\n")
        self._running.stdin.flush()

    def terminate(self) -> None:
        """SIGTERM, and the end that it asks for."""
        assert self._running is not None
        self._running.terminate()
        try:
            code = self._running.wait(40)
        except subprocess.TimeoutExpired:
            self._running.send_signal(signal.SIGABRT)  # its last words tell where every thread of it is
            code = self._running.wait(10)
        assert code == 0, self.log()

    def log(self) -> str:
        """The end of what it logged."""
        return (self._directory / f"executor-{self._starts}.log").read_text(errors="replace")[-3_000:]

    def close(self) -> None:
        """Whatever is left of it."""
        if self._running is not None and self._running.poll() is None:
            self._running.kill()
            self._running.send_signal(signal.SIGCONT)
            self._running.wait(10)

    def _gone(self) -> bool:
        return self._running is None or self._running.poll() is not None


def _read(process: subprocess.Popen[str], said: list[str]) -> None:
    assert process.stdout is not None
    while line := process.stdout.readline():
        said.append(line.strip())


@dataclass
class Run:
    """One plan on its way."""

    cluster: EmbeddedCluster
    proxy: WatchingProxy
    hand: WireHand
    seed: int
    rng: random.Random
    clocks: Clocks
    name: str
    source: int
    stay: tuple[int, int]
    target: int
    before: Placement
    after: Placement
    plan: Plan
    process: Process
    traffic: Traffic
    foreign: dict[Setting, str]
    directory: Path
    config: dict[str, object]
    """Of the executor's process."""
    lost_topics: set[str] = field(default_factory=set)
    """Topics that the harm deleted or replaced."""
    ends: Collection[PlanState] = (PlanState.DONE,)
    """How the plan may end."""
    resent: bool = False
    """True where a request may be sent again, because the controller took no notice of the first."""

    @property
    def a(self) -> str:
        """The topic that harm is done to."""
        return f"{self.name}-a"

    @property
    def b(self) -> str:
        """The other one."""
        return f"{self.name}-b"

    def view(self) -> View:
        """What the journal says in the end."""
        if (prefix := self.config.get("prefix")) is not None:
            return read_journal(leadership_plan(self.cluster.bootstrap_servers, str(prefix)))
        return read_file(Path(str(self.config["journal"]))).view

    def another(self, name: str) -> Process:
        """An executor beside the first, of the same journal; it is not started yet."""
        directory = self.directory / name
        directory.mkdir()
        return Process(directory, self.config | {"client_id": f"{self.config['client_id']}-{name}"})

    def wait_moving(self) -> None:
        """Until some of it moves, and a little longer."""
        topics = {self.a, self.b}
        wait_for(
            lambda: any(row.id.topic in topics for row in self.hand.list_reassignments(DEADLINE_MS)),
            "something moves",
            _BEGUN_S,
        )
        time.sleep(self.rng.uniform(0.2, 1.5))

    def wait_over(self) -> None:
        """Until the executor has nothing left to do."""
        wait_for(self.process.idle, f"the plan is over: {self.process.log()[-800:]}", _OVER_S)
        self.clocks.done()


Harm = Callable[[Run], None]


@contextmanager
def running(
    cluster: EmbeddedCluster,
    proxy: WatchingProxy,
    clocks: Clocks,
    directory: Path,
    *,
    fault: str,
    seed: int,
    policy: dict[str, object],
) -> Iterator[Run]:
    """Topics with data and traffic, foreign throttles, and an executor that is not started yet."""
    rng = random.Random(f"{fault}{seed}")
    name = re.sub("[^a-z]+", "-", fault.lower())[:40].strip("-") + f"-{seed}"
    source, one, two, target = rng.sample([broker.id for broker in cluster.brokers], 4)
    servers = cluster.bootstrap_servers
    rows = [[source, one, two], [one, source, two], [two, one, source]]
    for topic in ("a", "b"):
        topic_with(servers, f"{name}-{topic}", rows, mb=2, min_insync_replicas="2")
    foreign = {
        Setting(Holder.TOPIC, f"{name}-b", LEADER_REPLICAS): f"7:{one}",
        Setting(Holder.TOPIC, f"{name}-foreign", LEADER_REPLICAS): f"0:{one}",
    }
    topic_with(servers, f"{name}-foreign", [[one, two]])
    for setting, value in foreign.items():
        set_config(servers, setting, value)
    with ExitStack() as stack:
        hand = stack.enter_context(WireHand({"bootstrap_servers": servers.split(",")}))
        before = placement(hand, f"{name}-a", f"{name}-b")
        after = {
            partition: tuple(target if broker == source else broker for broker in replicas)
            for partition, replicas in before.items()
        }
        plan = plan_for(hand, f"p-{name}", after)
        config: dict[str, object] = {
            "servers": cluster.proxied_bootstrap_servers,
            "direct": servers,
            "journal": str(directory / "journal"),
            "client_id": f"{CLIENT_ID}-{name}",
            "policy": POLICY | policy,
            "plan": to_json(Plan, plan),
        }
        process = Process(directory, config)
        # What a drill that failed has left must not spoil the next one.
        stack.callback(_delete_topics, servers, name)
        stack.callback(_clear_rates, cluster, hand)
        stack.callback(process.close)
        stack.callback(_mend, cluster, proxy)
        traffic = stack.enter_context(Traffic(servers, sorted(before)))
        yield Run(
            cluster, proxy, hand, seed, rng, clocks, name, source, (one, two), target, before, after, plan, process,
            traffic, foreign, directory, config,
        )  # fmt: skip


def _delete_topics(servers: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    left = [topic for topic in admin.list_topics(timeout=30).topics if topic.startswith(name)]
    for future in admin.delete_topics(left).values() if left else ():
        future.result(60)


def _clear_rates(cluster: EmbeddedCluster, hand: WireHand) -> None:
    for setting in throttles(hand):
        set_config(cluster.bootstrap_servers, setting, None)


def check(run: Run) -> None:
    """What must hold afterwards, whatever the harm was."""
    run.process.terminate()
    _mend(run.cluster, run.proxy)
    kept = {partition for partition in run.before if partition.topic not in run.lost_topics}
    view = run.view()
    (plan,) = moves.plans(view)
    batches = moves.batches(view)
    assert plan.state in run.ends, f"{plan.state}: {plan.sentence}"
    _check_placement(run, plan, batches, kept)
    assert moves.debts(view) == ()
    set_now = throttles(run.hand, *{partition.topic for partition in kept}, f"{run.name}-foreign")
    wanted = {setting: value for setting, value in run.foreign.items() if setting.name not in run.lost_topics}
    assert set_now == wanted, "our throttles are gone, those of others unchanged"
    _check_requests(run, batches, kept)
    run.traffic.__exit__(None, None, None)
    acked, lost = run.traffic.lost(sorted(kept))
    assert lost == 0, f"{lost} of {acked} acknowledged records are lost"
    assert acked > 0
    run.clocks.notes.append(f"{plan.state}, {acked} records")


def _check_placement(run: Run, plan: Plan, batches: tuple[Batch, ...], kept: set[TopicPartition]) -> None:
    moving = [row for row in run.hand.list_reassignments(DEADLINE_MS) if row.id.topic.startswith(run.name)]
    assert moving == []
    now = placement(run.hand, *{partition.topic for partition in kept})
    ends = {end.id: end.end for batch in batches for end in batch.ends}
    for partition in kept:
        assert now[partition] in (run.before[partition], run.after[partition]), partition
        if plan.state is PlanState.DONE and ends.get(partition) not in (End.SKIPPED, End.REFUSED, End.NOT_BEGUN):
            assert now[partition] == run.after[partition], partition
        if plan.state is PlanState.ROLLED_BACK:
            assert now[partition] == run.before[partition], partition


def _check_requests(run: Run, batches: tuple[Batch, ...], kept: set[TopicPartition]) -> None:
    """What passed the proxy is what the journal says: nothing unlogged, doubled or lost.

    A cancelled partition may be asked back into its former order, as Kafka leaves it in another one.
    """
    passed = run.proxy.started(f"{CLIENT_ID}-{run.name}", frozenset({run.a, run.b}))
    begun: dict[tuple[TopicPartition, tuple[int, ...]], int] = {}
    for row in passed:
        if row.target is None:
            assert any(row.id in batch.cancelling for batch in batches), f"unlogged cancel of {row.id}"
        else:
            begun[row.id, row.target] = begun.get((row.id, row.target), 0) + 1
    for (partition, target), times in begun.items():
        logged = sum(
            batch.sendings
            for batch in batches
            for one in batch.targets
            if one.id == partition and batch.state is not BatchState.INTENT
            if target == one.after or (target == one.before and one.id in batch.cancelling)
        )
        assert times <= logged, f"{partition} to {target}: {times} requests, {logged} logged"
        assert times == 1 or run.resent, f"{partition} to {target} was asked for {times} times"
    ends = {end.id: end.end for batch in batches if not batch.back for end in batch.ends}
    for partition in kept:
        if ends.get(partition) is End.DONE:
            assert begun.get((partition, run.after[partition])), f"{partition} is done, but was never asked for"


def _mend(cluster: EmbeddedCluster, proxy: WatchingProxy) -> None:
    """Every broker runs, and every connection works."""
    proxy.heal()
    for broker in cluster.brokers:
        if broker.alive:
            broker.thaw()
        else:
            broker.start(wait=False)
    for broker in cluster.brokers:
        broker.wait_ready(90)
