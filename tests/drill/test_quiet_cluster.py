"""A cluster in which nothing changes: an agent that may do everything does nothing, for as long as it is watched.

The demo's scene is mended first, by the same agent and under a rule that approves all of it; what it does then is none
of this test's business. `RACKWISE_DRILL_QUIET_S` says for how long the quiet is watched, ten minutes by default.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient

from agent.act.leadership import read_journal
from agent.journal.entries import JournalState, under
from agent.values.snapshot import ConsumerGroup, OtherGroup, StreamsGroup
from testbed.cluster import EmbeddedCluster
from testbed.demo.run import demo_settings
from testbed.demo.workload import ClusterWorkload
from tests.act.journals import leadership_plan
from tests.agent_process import Running, wait_for
from tests.watching_agent import WatchingAgent

pytestmark = [pytest.mark.drill, pytest.mark.timeout(3_600)]

QUIET_S = int(os.environ.get("RACKWISE_DRILL_QUIET_S", "600"))
COOLDOWN_S = 20
"""Between two plans of one topic. Replicas that moved leave leaders uneven, and the plan that mends this waits for the
cooldown; by default that is as long as the quiet that is watched, so a plan that undoes another would not be seen."""
STILL_S = 90
"""Nothing has been done for this long, which is longer than any cooldown: all that was to be mended is."""
SETTINGS = f"""
mode: execute
poll.interval: 2s
plan.interval: 5s
http.port: 0
log.format: json
racks.stable_for: 6s
execute.cooldown: {COOLDOWN_S}s
approve.rules: {{everything: {{kinds: [reassign, leaders, trigger], max_moves: 1000}}}}
"""


class Facts(NamedTuple):
    """What acting would change."""

    acts: tuple[str, ...]
    """Keys of the journal under which something was ever begun."""
    groups: Mapping[str, str]
    """Group -> its state, epochs and assignment: a rebalance changes one of them."""
    replicas: Mapping[str, tuple[tuple[int, ...], ...]]
    """Topic -> replicas by partition."""


@pytest.fixture
def agent(demo_cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[Running]:
    config = tmp_path / "rackwise.yaml"
    config.write_text(SETTINGS)
    running = Running(demo_cluster, config, tmp_path / "agent.log")
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait(10)


def test_nothing_is_triggered_or_moved_while_nothing_changes(
    demo_cluster: EmbeddedCluster, work: ClusterWorkload, agent: Running
) -> None:
    wait_for(lambda: agent.process.poll() is not None or agent.events("leading"), within_s=60)
    assert agent.process.poll() is None, agent.log.read_text()
    _mended(demo_cluster)
    work.wait_settled()
    with WatchingAgent(demo_settings(demo_cluster, work).settings) as eye:
        before, cycles = _facts(demo_cluster, eye), len(agent.events("cycle"))
        assert before.acts, "what the scene has wrong was mended by this agent, so it could act"
        time.sleep(QUIET_S)
        after, looks = _facts(demo_cluster, eye), len(agent.events("cycle")) - cycles
    assert agent.process.poll() is None
    assert looks > QUIET_S / 20, "it went on looking all the time"
    new = set(after.acts) - set(before.acts)
    assert not new, "\n".join([*sorted(new), *(str(one["sentence"]) for one in agent.events("cycle")[-looks:])])
    assert (after.acts, after.replicas) == (before.acts, before.replicas)
    # A member that was too busy to send its heartbeat makes its group rebalance; that is no act of rackwise.
    by_themselves = sorted(name for name in before.groups if after.groups.get(name) != before.groups[name])
    print(f"{QUIET_S} s, {looks} cycles, {len(before.groups)} groups: 0 triggers, 0 moves; by itself: {by_themselves}")


def _mended(cluster: EmbeddedCluster) -> None:
    """Wait until nothing has been begun for a while."""
    seen, since, until = _acts(cluster), time.monotonic(), time.monotonic() + 1_200
    while time.monotonic() - since < STILL_S:
        time.sleep(5)
        if (now := _acts(cluster)) != seen:
            seen, since = now, time.monotonic()
        assert time.monotonic() < until, f"it never comes to rest: {seen[-5:]}"


def _acts(cluster: EmbeddedCluster) -> tuple[str, ...]:
    view: JournalState = read_journal(leadership_plan(cluster.bootstrap_servers, "rackwise"))
    return tuple(f"{one.key} {one.seq}" for prefix in ("plan", "batch", "trigger") for one in under(view, prefix))


def _facts(cluster: EmbeddedCluster, eye: WatchingAgent) -> Facts:
    snapshot = eye.look().snapshot
    groups = [group for group in snapshot.groups.values() if not isinstance(group, OtherGroup)]
    topics = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=30).topics
    return Facts(
        acts=_acts(cluster),
        groups={group.id: _told(group) for group in groups if not group.id.startswith("rackwise")},
        replicas={
            name: tuple(tuple(sorted(row.replicas)) for _, row in sorted(topic.partitions.items()))
            for name, topic in topics.items()
        },
    )


def _told(group: ConsumerGroup | StreamsGroup) -> str:
    members = sorted((one.id, one.generation, one.epoch, one.assigned) for one in group.members)
    return repr((group.state, group.epoch, members))
