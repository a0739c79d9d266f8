"""Client ids that brokers get, recorded in front of them: an agent that acts, and each thing said to it."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.agent_process import wait_for
from tests.command import RACKWISE, ROOT, environment, rackwise

NAME = "team-7.rack-watch"


def test_an_agent_that_acts_and_those_who_speak_to_it_all_go_out_under_the_configured_client_id(
    cluster_factory: Callable[[ClusterSpec], EmbeddedCluster], tmp_path: Path
) -> None:
    cluster = cluster_factory(ClusterSpec(racks=("a",), proxied=True))
    given = (
        "-b", cluster.proxied_bootstrap_servers, "--set", f"kafka.client.id={NAME}", "--set", "mode=execute",
        "--set", "poll.interval=1s", "--set", "plan.interval=2s", "--set", "http.port=0",
    )  # fmt: skip
    with (tmp_path / "agent.log").open("w") as log:
        agent = subprocess.Popen(
            [*RACKWISE, "run", *given],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, cwd=ROOT, env=environment(),
        )  # fmt: skip

    def seen() -> Counter[str]:
        return Counter(one.api for one in cluster.proxy.records())

    try:
        wait_for(lambda: seen()["EndTxn"] > 0, within_s=90)
        said = [rackwise(*words, *given) for words in (("pause",), ("resume",), ("proposals", "history"))]
        said += [rackwise(*words, *given) for words in (("proposals",), ("reassign", "status"), ("status",))]
        assert [done.exit_code for done in said] == [0] * len(said), said
    finally:
        agent.send_signal(signal.SIGTERM)
        agent.wait(20)
    assert {"JoinGroup", "InitProducerId", "Produce", "Fetch", "DescribeCluster", "OffsetFetch"} <= set(seen())
    others = Counter((one.api, one.client_id) for one in cluster.proxy.records() if one.client_id != NAME)
    assert others == {}
