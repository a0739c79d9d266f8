"""A reassignment under way on four brokers, and harm to it.

Roles are dealt by the seed: what moves is a replica of each partition, from the source to the target; the two others
stay. Foreign throttles stand beside ours in every run. What must hold afterwards is in `tests.drill.drill_checks`.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient

from agent.act.journal.file_journal import read_file
from agent.act.leadership import read_journal
from agent.journal.entries import JournalState
from agent.values.kafka import LEADER_REPLICAS
from agent.values.reassignment import PlanState, ReassignmentPlan
from agent.values.throttles import ThrottleResource
from agent.values.typed_json import to_json
from agent.wire.admin_client import WireAdminClient
from assignors.problem import TopicPartition
from testbed.cluster import EmbeddedCluster
from tests.act.journals import delete_topics, leadership_plan, make_topics, new_prefix
from tests.act.reassignments import (
    DEADLINE_MS,
    Placement,
    kafka_tool,
    placement,
    plan_for,
    set_config,
    throttles,
    topic_with,
)
from tests.drill.harness import Clocks
from tests.drill.process import Process
from tests.drill.reassignment_proxy import Started, WatchingProxy
from tests.drill.traffic import Traffic
from tests.observe.live import wait_for

QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
CLIENT_ID = "drilled-executor"
EITHER = (PlanState.DONE, PlanState.CANCELLED)
POLICY: dict[str, object] = {
    "throttle": 1_500_000,
    "request_timeout_ms": 4_000,
    "look_ms": 400,
    "grace_after_broker_loss_ms": 60_000,  # the default: a killed broker takes its time to come back on a busy machine
    "batch_partitions": 4,
}
SLOWLY: dict[str, object] = {"batch_partitions": 2, "throttle": 800_000}
"""Three batches of some seconds each."""
_BEGUN_S = 150.0
"""A process that begins needs a while on a busy machine; nothing is concluded from how long it takes."""
_OVER_S = 300.0


@dataclass
class Run:
    """One plan on its way, or several."""

    cluster: EmbeddedCluster
    servers: str
    """Of a listener where everything is allowed, without the proxy."""
    proxy: WatchingProxy
    hand: WireAdminClient
    seed: int
    rng: random.Random
    clocks: Clocks
    name: str
    source: int
    stay: tuple[int, int]
    target: int
    before: Placement
    after: Placement
    plan: ReassignmentPlan
    process: Process
    traffic: Traffic
    foreign: dict[tuple[ThrottleResource, str], str]
    directory: Path
    config: dict[str, object]
    """Of the executor's process."""
    lost_topics: set[str] = field(default_factory=set)
    """Topics that the harm deleted or replaced."""
    ends: Collection[PlanState] = (PlanState.DONE,)
    """How the plan may end."""
    more: Mapping[str, Collection[PlanState]] = field(default_factory=dict)
    """Other plans that there may be in the end, and how they may end."""
    wanted: Placement | None = None
    """Where partitions must be in the end, of those that it names; None: on their old or new replicas."""
    former: list[JournalState] = field(default_factory=list)
    """What journals said that are lost: their requests passed as well."""
    resent: bool = False
    """True where a request may be sent again, because the controller took no notice of the first."""
    turns: int = 1
    """So often a partition may be asked to the same replicas, each time in the journal."""

    @property
    def a(self) -> str:
        """The topic that harm is done to."""
        return f"{self.name}-a"

    @property
    def b(self) -> str:
        """The other one."""
        return f"{self.name}-b"

    def give(self, *plans: ReassignmentPlan) -> None:
        """Let the executor have these plans, in this order; what is checked is the first."""
        self.plan = plans[0]
        self.process.set(plans=[to_json(ReassignmentPlan, plan) for plan in plans])

    def view(self) -> JournalState:
        """What the journal says by now."""
        if (prefix := self.config.get("prefix")) is not None:
            return read_journal(leadership_plan(self.servers, str(prefix)))
        return read_file(self.journal).view

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return Path(str(self.config["journal"]))

    def another(self, name: str) -> Process:
        """An executor beside the first, of the same journal; it is not started yet."""
        directory = self.directory / name
        directory.mkdir()
        return Process(directory, self.config | {"client_id": f"{self.config['client_id']}-{name}"})

    def begun(self, since_s: float = 0.0) -> list[Started]:
        """Every line of a request of ours that passed since."""
        return self.proxy.started(f"{CLIENT_ID}-{self.name}", frozenset({self.a, self.b}), since_s=since_s)

    def wait_moving(self) -> None:
        """Until some of it moves, and a little longer."""
        topics = {self.a, self.b}
        wait_for(
            lambda: any(row.id.topic in topics for row in self.hand.list_reassignments(DEADLINE_MS)),
            "something moves",
            _BEGUN_S,
        )
        time.sleep(self.rng.uniform(0.2, 1.5))

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Until that is so, while the executor runs."""
        wait_for(holds, f"{what}: {self.process.log()[-800:]}", _OVER_S)

    def wait_over(self) -> None:
        """Until the executor has nothing left to do."""
        self.wait_until(self.process.idle, "the plan is over")
        self.clocks.done()


Harm = Callable[[Run], None]


class Row(NamedTuple):
    """One fault."""

    name: str
    harm: Harm
    policy: dict[str, object] = {}  # noqa: RUF012 never changed
    kafka: bool = False
    """The journal is in Kafka, and else in a file."""
    throttled: bool = False
    """Each request to move is checked, before it is passed on, against the throttles that are set."""


@contextmanager
def running(
    cluster: EmbeddedCluster,
    proxy: WatchingProxy,
    clocks: Clocks,
    directory: Path,
    *,
    fault: str,
    seed: int,
    policy: Mapping[str, object],
    user: str | None = None,
) -> Iterator[Run]:
    """Topics with data and traffic, foreign throttles, and an executor that is not started yet."""
    rng = random.Random(f"{fault}{seed}")
    name = re.sub("[^a-z]+", "-", fault.lower())[:40].strip("-") + f"-{seed}"
    source, one, two, target = rng.sample([broker.id for broker in cluster.brokers], 4)
    servers = servers_of(cluster)
    rows = [[source, one, two], [one, source, two], [two, one, source]]
    for topic in ("a", "b"):
        topic_with(servers, f"{name}-{topic}", rows, mb=2, min_insync_replicas="2")
    foreign = {
        (ThrottleResource(topic=f"{name}-b"), LEADER_REPLICAS): f"7:{one}",
        (ThrottleResource(topic=f"{name}-foreign"), LEADER_REPLICAS): f"0:{one}",
    }
    topic_with(servers, f"{name}-foreign", [[one, two]])
    for setting, value in foreign.items():
        set_config(servers, setting, value)
    with ExitStack() as stack:
        hand = stack.enter_context(WireAdminClient({"bootstrap_servers": servers.split(",")}))
        before = placement(hand, f"{name}-a", f"{name}-b")
        after = {
            partition: tuple(target if broker == source else broker for broker in replicas)
            for partition, replicas in before.items()
        }
        plan = plan_for(hand, f"p-{name}", after)
        properties = {} if user is None else cluster.client_properties(user, proxied=True)
        directly = {} if user is None else cluster.client_properties(user)
        config: dict[str, object] = {
            "connection": {**properties, "bootstrap.servers": cluster.proxied_bootstrap_servers},
            "direct": {**directly, "bootstrap.servers": cluster.bootstrap_servers},
            "journal": str(directory / "journal"),
            "client_id": f"{CLIENT_ID}-{name}",
            "policy": {**POLICY, **policy},
            "plans": [to_json(ReassignmentPlan, plan)],
        }
        process = Process(directory, config)
        # What a drill that failed has left must not spoil the next one.
        stack.callback(_delete_topics, servers, name)
        stack.callback(_clear_rates, servers, hand)
        stack.callback(process.close)
        stack.callback(mend, cluster, proxy)
        traffic = stack.enter_context(Traffic(servers, sorted(before)))
        yield Run(
            cluster, servers, proxy, hand, seed, rng, clocks, name, source, (one, two), target, before, after, plan,
            process, traffic, foreign, directory, config,
        )  # fmt: skip


def servers_of(cluster: EmbeddedCluster) -> str:
    """Bootstrap servers of clients that may do everything: of the brokers' own listener, where clients need a user."""
    if cluster.spec.security is None:
        return cluster.bootstrap_servers
    return ",".join(f"127.0.0.1:{broker.node.internal_port}" for broker in cluster.brokers)


@contextmanager
def journal_topics(run: Run) -> Iterator[str]:
    """The journal of this run is in Kafka; the prefix of its topics."""
    prefix = new_prefix()
    make_topics(run.servers, prefix)
    run.process.set(prefix=prefix)
    try:
        yield prefix
    finally:
        run.process.close()
        delete_topics(run.servers, *(f"{prefix}.{name}" for name in ("journal", "leader", "commands")))


def _delete_topics(servers: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    left = [topic for topic in admin.list_topics(timeout=30).topics if topic.startswith(name)]
    for future in admin.delete_topics(left).values() if left else ():
        future.result(60)


def _clear_rates(servers: str, hand: WireAdminClient) -> None:
    for setting in throttles(hand):
        set_config(servers, setting, None)


def mend(cluster: EmbeddedCluster, proxy: WatchingProxy) -> None:
    """Every broker runs, and every connection works."""
    proxy.heal()
    proxy.before_alter = None
    for broker in cluster.brokers:
        if broker.alive:
            broker.thaw()
        else:
            broker.start(wait=False)
    for broker in cluster.brokers:
        broker.wait_ready(90)


def controller_of(run: Run) -> int:
    """The active controller."""
    told = kafka_tool(run.cluster, QUORUM, "describe", "--status")
    return int(next(line.split()[1] for line in told.splitlines() if line.startswith("LeaderId")))


def partitions(topic: str, run: Run) -> set[TopicPartition]:
    """Those of one topic of the plan."""
    return {partition for partition in run.before if partition.topic == topic}
