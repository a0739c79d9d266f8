"""Faults between intent and send: what is not read by then, what is lost on the way, and who dies right then."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from agent.values.reassignment import PlanState
from testbed.cluster import EmbeddedCluster
from tests.drill.drill_checks import survives
from tests.drill.harness import SEEDS
from tests.drill.moves import EITHER, SLOWLY, Harm, Row, Run, controller_of
from tests.drill.reassignment_proxy import ALTER_CONFIGS, DESCRIBE_CONFIGS, LIST_REASSIGNMENTS, METADATA, Cut

pytestmark = pytest.mark.drill

UNREAD_S = 6.0


def every(run: Run) -> list[int]:
    return [broker.id for broker in run.cluster.brokers]


def cut(run: Run, api: int, brokers: Collection[int], *, times: int | None = None) -> Cut:
    """Requests of the executor to these brokers; by seed they do not arrive, or are done and not answered."""
    return run.proxy.cut(
        Cut(frozenset({api}), frozenset(brokers), run.process.client_id, done=bool(run.seed % 2), times=times)
    )


def unread(run: Run, api: int, brokers: Collection[int]) -> None:
    """From between an intent and its request on; nothing is sent until it can be read again."""
    run.process.start("after intent", run.rng.choice((1, 2)), holds=True)
    run.process.wait_for_word("at after intent")
    harm, since_s = cut(run, api, brokers), time.monotonic()
    run.process.tell("go")
    run.wait_until(lambda: harm.hit >= 2, "it asks, and is not answered")
    time.sleep(UNREAD_S)
    assert run.begun(since_s) == [], "nothing is sent while anything of the batch is unread"
    run.proxy.heal()
    run.clocks.harm_over()


def settings_unread(run: Run) -> None:
    """Those of one broker, which it alone can tell."""
    unread(run, DESCRIBE_CONFIGS, [run.rng.choice(every(run))])


def all_settings_unread(run: Run) -> None:
    """Also those of topics: throttle lists and min ISR."""
    unread(run, DESCRIBE_CONFIGS, every(run))


def topics_unread(run: Run) -> None:
    """One broker describes topics, and two are needed."""
    unread(run, METADATA, set(every(run)) - {run.rng.choice(every(run))})


def reassignments_unread(run: Run) -> None:
    unread(run, LIST_REASSIGNMENTS, every(run))


def throttle_answer_lost(run: Run) -> None:
    """Of the first requests to set it, or to take it away; done or not, each is found out before anything moves."""
    step = "before throttle clear" if run.seed == 5 else "after intent"
    run.process.start(step, holds=True)
    run.process.wait_for_word(f"at {step}")
    harm = cut(run, ALTER_CONFIGS, every(run), times=run.rng.choice((1, 3, 5)))
    run.process.tell("go")
    run.wait_until(lambda: harm.hit == harm.times, "its requests are lost")
    run.clocks.harm_over()


# --- who dies right then -------------------------------------------------------------------------------------


def dies_while_held(run: Run, broker: int) -> None:
    """That broker, while the executor is held at its step; it comes back a little later."""
    run.resent = True
    run.cluster.broker(broker).kill()
    run.process.tell("go")
    time.sleep(run.rng.uniform(2, 6))
    run.cluster.broker(broker).start()
    run.clocks.harm_over()


def journal_leader_killed(run: Run) -> None:
    run.ends = EITHER
    run.process.start("after intent", run.rng.choice((1, 2)), holds=True)
    run.process.wait_for_word("at after intent")
    topic = f"{run.config['prefix']}.journal"
    known = AdminClient({"bootstrap.servers": run.servers}).list_topics(topic, timeout=30)
    dies_while_held(run, int(known.topics[topic].partitions[0].leader))


def controller_killed_in_cancel(run: Run) -> None:
    run.ends = (PlanState.CANCELLED,)
    run.process.start("before the cancel", holds=True)
    run.wait_moving()
    assert run.process.command(f"cancel {run.plan.proposal_id}").startswith("done")
    run.process.wait_for_word("at before the cancel")
    dies_while_held(run, controller_of(run))


def disk_slow(seconds: tuple[float, float]) -> Harm:
    """Each entry of the journal takes so long to be on the disk."""

    def harm(run: Run) -> None:
        run.process.set(flush_s=run.rng.uniform(*seconds))
        run.process.start()
        run.wait_moving()
        run.clocks.harm_over()

    return harm


LONG: dict[str, object] = {"throttle": 300_000}

FAULTS = [
    Row("settings of a broker unread between intent and send", settings_unread, SLOWLY, throttled=True),
    Row("all settings unread between intent and send", all_settings_unread, SLOWLY, throttled=True),
    Row("topics unread between intent and send", topics_unread, SLOWLY, throttled=True),
    Row("reassignments unread between intent and send", reassignments_unread, SLOWLY, throttled=True),
    Row("answer to the throttle request lost", throttle_answer_lost, SLOWLY, throttled=True),
    Row("broker of the journal killed between intent and send", journal_leader_killed, SLOWLY, kafka=True),
    Row("controller broker killed during a cancel", controller_killed_in_cancel, LONG),
    Row("disk of the journal slow", disk_slow((0.5, 2.5)), throttled=True),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", FAULTS, ids=[row.name for row in FAULTS])
def test_a_plan_survives(row: Row, seed: int, arena: EmbeddedCluster, tmp_path: Path) -> None:
    survives(row, seed, arena, tmp_path)
