"""Rights of the executor that are taken in mid-plan and given back, on brokers with StandardAuthorizer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from testbed.cluster import embedded as embedding
from tests.act.rights import Grants, Right, documented
from tests.drill.drill_checks import survived
from tests.drill.harness import SEEDS, drilled
from tests.drill.moves import SLOWLY, Row, Run, journal_topics, running
from tests.drill.reassignment_proxy import WatchingProxy

pytestmark = pytest.mark.drill

USER = "rackwise-executor"
USERS = {"admin": "admin-secret", USER: "executor-secret"}
ALTER = Right("--cluster", "kafka-cluster", prefixed=False, operation="Alter")
BROKER_CONFIGS = Right("--cluster", "kafka-cluster", prefixed=False, operation="AlterConfigs")
TOPIC_CONFIGS = Right("--topic", "*", prefixed=False, operation="AlterConfigs")
JOURNAL = Right("--topic", "rackwise.journal", prefixed=False, operation="Write")
LOST_S = 6.0


class Loss(NamedTuple):
    """A right that is lost, and how its loss is reported."""

    name: str
    right: Right
    told: str


LOSSES = [
    Loss("right to alter the cluster lost in mid-plan", ALTER, "executor_look_failed"),
    Loss("right to change settings of brokers lost in mid-plan", BROKER_CONFIGS, "the settings of broker"),
    Loss("right to change settings of topics lost in mid-plan", TOPIC_CONFIGS, "no new batch: the min ISR of"),
    Loss("right to write the journal lost in mid-plan", JOURNAL, "executor_journal_unavailable"),
]


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    """Four brokers with TLS, SCRAM and ACLs behind a watching proxy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "RecordingProxy", WatchingProxy)
        spec = ClusterSpec(racks=("a", "b", "c", "d"), proxied=True, security=ClusterSecurity(users=USERS))
        with EmbeddedCluster.start(spec, on_progress=print) as started:
            yield started


@pytest.fixture
def grants(secured: EmbeddedCluster) -> Grants:
    return Grants(secured, USER)


def lost_for_a_while(run: Run, loss: Loss, right: Right, grants: Grants) -> None:
    """Nothing begins without it; what moves goes on, and so does the plan once it is given back."""
    run.process.start()
    run.wait_moving()
    grants.take(right)
    try:
        run.process.wait_logged(loss.told)
        since_s = time.monotonic()
        time.sleep(LOST_S)
        assert run.begun(since_s) == [], "nothing begins"
    finally:
        grants.give(right)
    run.clocks.harm_over()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loss", LOSSES, ids=[loss.name for loss in LOSSES])
def test_a_plan_survives(loss: Loss, seed: int, secured: EmbeddedCluster, grants: Grants, tmp_path: Path) -> None:
    proxy = secured.proxy
    assert isinstance(proxy, WatchingProxy)
    with (
        drilled(loss.name, seed) as clocks,
        running(secured, proxy, clocks, tmp_path, fault=loss.name, seed=seed, policy=SLOWLY, user=USER) as run,
        journal_topics(run) if loss.right is JOURNAL else nullcontext("rackwise") as prefix,
    ):
        every = [right.under(prefix) for right in documented("executor")]
        grants.give(*every)
        try:
            row = Row(
                loss.name, lambda it: lost_for_a_while(it, loss, loss.right.under(prefix), grants), throttled=True
            )
            survived(row, run)
        finally:
            run.process.close()
            grants.take(*every)
