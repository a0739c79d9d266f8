"""Two executors, one cluster, the journal in Kafka: one acts; killed, frozen and thawed, the other goes on."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from agent.errors import FencedOut
from testbed.cluster import EmbeddedCluster
from tests.act.journals import delete_topics, make_topics, new_prefix
from tests.drill.drill_checks import check
from tests.drill.harness import SEEDS, drilled
from tests.drill.moves import Run, running
from tests.drill.process import Process
from tests.drill.reassignment_proxy import WatchingProxy

pytestmark = pytest.mark.drill

FROZEN_S = 30.0


def killed(run: Run, first: Process, second: Process) -> None:
    first.signal(signal.SIGKILL)
    run.clocks.harm_over()
    second.wait_for_word("leads")
    second.wait_for_word("looked")
    run.clocks.goes_on()


def frozen_and_thawed(run: Run, first: Process, second: Process) -> None:
    first.signal(signal.SIGSTOP)
    frozen_at = time.monotonic()
    run.clocks.harm_over()
    second.wait_for_word("looked")
    run.clocks.goes_on()
    time.sleep(max(0.0, FROZEN_S - (time.monotonic() - frozen_at)))
    mark = run.proxy.count
    first.signal(signal.SIGCONT)
    assert first.wait_ended(60) == FencedOut.exit_code, first.log()
    late = [row.api for row in run.proxy.records(since=mark) if row.client_id == first.client_id and row.mutating]
    assert late == [], "the thawed one did nothing more"


FAULTS = {
    "leader killed, another takes over": killed,
    "leader frozen for 30 s and thawed beside another": frozen_and_thawed,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_acts(fault: str, seed: int, arena: EmbeddedCluster, tmp_path: Path) -> None:
    proxy, prefix, servers = arena.proxy, new_prefix(), arena.bootstrap_servers
    assert isinstance(proxy, WatchingProxy)
    make_topics(servers, prefix)
    with (
        drilled(fault, seed) as clocks,
        running(arena, proxy, clocks, tmp_path, fault=fault, seed=seed, policy={"throttle": 600_000}) as run,
    ):
        run.config["prefix"] = prefix
        first, second = run.another("one"), run.another("two")
        try:
            first.start()
            first.wait_for_word("leads")
            second.start()
            second.wait_for_word("stands by")
            run.wait_moving()
            FAULTS[fault](run, first, second)
            run.process = second
            run.wait_over()
            check(run)
        finally:
            first.close()
            second.close()
    delete_topics(servers, *(f"{prefix}.{name}" for name in ("journal", "leader", "commands")))
