"""Faults while replicas move: in the executor, in brokers, in the network, and by others who act meanwhile."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from agent.values.kafka import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE
from agent.values.reassignment import PlanState
from agent.values.throttles import ThrottleResource
from assignors.problem import TopicPartition
from testbed.cluster import ConnectionFault, ConnectionFaultKind, EmbeddedCluster
from tests.act.reassignments import DEADLINE_MS, kafka_tool, plan_for, set_config, topic_with
from tests.drill.drill_checks import survives
from tests.drill.harness import SEEDS
from tests.drill.moves import EITHER, Harm, Row, Run, controller_of
from tests.observe.live import wait_for

pytestmark = pytest.mark.drill

CONFIGS = "kafka.admin.ConfigCommand"


# --- harm to the executor ----------------------------------------------------------------------------------


def dies(step: str, *, late: int = 1) -> Harm:
    """SIGKILL at that step, the first or, by another seed, a later time; a supervisor starts it again."""

    def harm(run: Run) -> None:
        run.process.start(step, 1 if run.seed % 2 else late)
        run.process.wait_dead()
        run.clocks.harm_over()
        run.process.start()
        run.process.wait_for_word("looked")
        run.clocks.goes_on()

    return harm


def dies_in_takeover(run: Run) -> None:
    run.process.start("mid-progress", 2)
    run.process.wait_dead()
    run.process.start("look" if run.seed % 2 else "append")
    run.process.wait_dead()
    run.clocks.harm_over()
    run.process.start()
    run.process.wait_for_word("looked")
    run.clocks.goes_on()


def is_terminated(run: Run) -> None:
    run.process.start()
    run.wait_moving()
    run.process.terminate()
    run.clocks.harm_over()
    run.process.start()
    run.process.wait_for_word("looked")
    run.clocks.goes_on()


def is_told(word: str, end: PlanState) -> Harm:
    def harm(run: Run) -> None:
        run.ends = (end,)
        run.process.start()
        run.wait_moving()
        assert run.process.command(f"{word} {run.plan.proposal_id}").startswith("done")
        run.clocks.harm_over()

    return harm


# --- harm to brokers -----------------------------------------------------------------------------------------


def killed(run: Run, broker: int, *, for_s: float) -> None:
    run.ends = EITHER
    run.resent = True
    run.process.start()
    run.wait_moving()
    run.cluster.broker(broker).kill()
    time.sleep(for_s)
    run.cluster.broker(broker).start()
    run.clocks.harm_over()


def source_killed(run: Run) -> None:
    killed(run, run.source, for_s=run.rng.uniform(2, 6))


def target_killed(run: Run) -> None:
    killed(run, run.target, for_s=run.rng.uniform(2, 6))


def target_stays_away(run: Run) -> None:
    killed(run, run.target, for_s=14)
    run.ends = (PlanState.FAILED,)


def controller_killed(run: Run) -> None:
    killed(run, controller_of(run), for_s=run.rng.uniform(2, 6))


def target_frozen(run: Run) -> None:
    run.ends = EITHER
    run.process.start()
    run.wait_moving()
    run.cluster.broker(run.target).freeze()
    time.sleep(run.rng.uniform(5, 8))
    run.cluster.broker(run.target).thaw()
    run.clocks.harm_over()


def all_bounced(run: Run) -> None:
    run.ends = EITHER
    run.resent = True
    run.process.start()
    run.wait_moving()
    for broker in run.cluster.brokers:
        broker.restart()
    run.clocks.harm_over()


# --- what others do meanwhile --------------------------------------------------------------------------------


def deleted(run: Run) -> None:
    run.lost_topics = {run.a}
    run.process.start()
    run.wait_moving()
    admin = AdminClient({"bootstrap.servers": run.cluster.bootstrap_servers})
    admin.delete_topics([run.a])[run.a].result(30)
    run.clocks.harm_over()


def recreated(run: Run) -> None:
    """A look between the two sees a topic that was deleted, which is no failure; one that comes later another topic."""
    run.ends = (PlanState.FAILED, PlanState.DONE)
    deleted(run)
    rows = [list(run.before[TopicPartition(run.a, number)]) for number in range(3)]

    def made() -> bool:
        try:
            topic_with(run.cluster.bootstrap_servers, run.a, rows)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
            return False
        return True

    wait_for(made, "the topic is made anew", 30)
    run.clocks.harm_over()


def grown(run: Run) -> None:
    run.process.start()
    run.wait_moving()
    admin = AdminClient({"bootstrap.servers": run.cluster.bootstrap_servers})
    admin.create_partitions([NewPartitions(run.a, 5)])[run.a].result(30)
    run.clocks.harm_over()


def foreign_move(run: Run) -> None:
    """It stands still under a throttle until that is removed; ours waits, and never touches it."""
    topic, servers = f"{run.name}-theirs", run.cluster.bootstrap_servers
    one, two = run.stay
    topic_with(servers, topic, [[one, two]], mb=3)
    brake = [
        ((ThrottleResource(topic=topic), FOLLOWER_REPLICAS), f"0:{run.source}"),
        ((ThrottleResource(broker=run.source), FOLLOWER_RATE), "1"),
    ]
    for setting, value in brake:
        set_config(servers, setting, value)
    plan = plan_for(run.hand, "theirs", {TopicPartition(topic, 0): (run.source, two)})
    run.hand.alter_placements({plan.targets[0].id: plan.targets[0].after}, DEADLINE_MS)
    run.process.start()
    run.process.wait_for_word("looked")
    time.sleep(3)
    assert [row.id.topic for row in run.hand.list_reassignments(DEADLINE_MS)] == [topic], "ours waits for theirs"
    for setting, _ in brake:
        set_config(servers, setting, None)
    run.clocks.harm_over()


def foreign_throttles(run: Run) -> None:
    servers = run.cluster.bootstrap_servers
    for broker in (run.source, run.target):
        for key in (LEADER_RATE, FOLLOWER_RATE):
            run.foreign[ThrottleResource(broker=broker), key] = "3000000"
    run.foreign[ThrottleResource(topic=run.a), FOLLOWER_REPLICAS] = "*"
    for setting, value in run.foreign.items():
        set_config(servers, setting, value)
    run.process.start()
    run.wait_moving()
    run.clocks.harm_over()


def default_throttle(run: Run) -> None:
    """Set by Kafka's own tool: librdkafka has no name for all brokers."""
    keys = (LEADER_RATE, FOLLOWER_RATE)
    everywhere = ("--alter", "--entity-type", "brokers", "--entity-default")
    kafka_tool(run.cluster, CONFIGS, *everywhere, "--add-config", ",".join(f"{key}=4000000" for key in keys))
    try:
        run.process.start()
        run.wait_moving()
        run.clocks.harm_over()
        run.wait_over()
        read = run.hand.describe_throttles([], [run.target], DEADLINE_MS)
        assert {throttle.default for throttle in read.settings.values()} == {"4000000"}, "the default is as it was"
    finally:
        kafka_tool(run.cluster, CONFIGS, *everywhere, "--delete-config", ",".join(keys))


def min_isr_raised(run: Run, *, for_s: float) -> None:
    run.ends = EITHER
    run.process.start()
    run.wait_moving()
    setting = (ThrottleResource(topic=run.a), "min.insync.replicas")
    set_config(run.cluster.bootstrap_servers, setting, "4")
    time.sleep(for_s)
    set_config(run.cluster.bootstrap_servers, setting, "2")
    run.clocks.harm_over()


# --- harm to the network -------------------------------------------------------------------------------------


def disturbed(run: Run, fault: ConnectionFault, broker: int | None, *, for_s: float) -> None:
    run.resent = True
    if run.seed % 2:
        run.process.start()
        run.wait_moving()
        run.cluster.inject(fault, broker)
    else:
        run.cluster.inject(fault, broker)
        run.process.start()
    time.sleep(for_s)
    run.proxy.heal()
    run.clocks.harm_over()


SLOW = {"throttle": 200_000}
"""A batch of 8 MB lasts half a minute. Kafka lets the bytes of ten seconds pass at once: at 1.5 MB/s, all of it."""
FAULTS = [
    Row("SIGKILL after intent", dies("after intent", late=2)),
    Row("SIGKILL after throttle set", dies("throttle set", late=2)),
    Row("SIGKILL before the request", dies("before the request", late=2)),
    Row("SIGKILL with the request sent", dies("request sent", late=2)),
    Row("SIGKILL with the request acknowledged", dies("request acknowledged", late=2)),
    Row("SIGKILL in mid-progress", dies("mid-progress", late=4)),
    Row("SIGKILL before throttle clear", dies("before throttle clear", late=2)),
    Row("SIGKILL after throttle clear", dies("after throttle clear", late=2)),
    Row("SIGKILL in takeover", dies_in_takeover),
    Row("SIGTERM in mid-batch", is_terminated),
    Row("cancelled in mid-batch", is_told("cancel", PlanState.CANCELLED), SLOW),
    Row("rolled back in mid-batch", is_told("rollback", PlanState.ROLLED_BACK), SLOW),
    Row("source broker killed", source_killed),
    Row("target broker killed", target_killed),
    Row("target broker away for longer than the grace", target_stays_away, {"grace_after_broker_loss_ms": 4_000}),
    Row("controller broker killed", controller_killed),
    Row("target broker frozen", target_frozen),
    Row("every broker restarted in turn", all_bounced),
    Row("topic deleted", deleted),
    Row("topic deleted and made anew", recreated),
    Row("topic grown", grown),
    Row("foreign reassignment", foreign_move),
    Row("foreign throttles", foreign_throttles),
    Row("default throttle of the cluster", default_throttle),
    Row("min ISR raised for a moment", lambda run: min_isr_raised(run, for_s=3)),
    Row(
        "min ISR raised for longer than the grace",
        lambda run: min_isr_raised(run, for_s=10),
        {"grace_after_broker_loss_ms": 4_000},
    ),
    Row(
        "one broker black-holed",
        lambda run: disturbed(run, ConnectionFault(ConnectionFaultKind.BLACKHOLE), run.rng.choice(run.stay), for_s=12),
    ),
    Row(
        "all answers delayed by 2 s",
        lambda run: disturbed(run, ConnectionFault(ConnectionFaultKind.DELAY, 2_000), None, for_s=25),
    ),
    Row("all connections reset", lambda run: disturbed(run, ConnectionFault(ConnectionFaultKind.RESET), None, for_s=5)),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", FAULTS, ids=[row.name for row in FAULTS])
def test_a_plan_survives(row: Row, seed: int, arena: EmbeddedCluster, tmp_path: Path) -> None:
    survives(row, seed, arena, tmp_path)
