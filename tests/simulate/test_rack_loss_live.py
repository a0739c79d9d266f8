"""The brokers of one rack are killed: what it costs is what was foretold, and the cluster is as simulated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from agent.simulate.rack_loss import rack_losses
from agent.simulate.what_if import RemoveRack, SimulatedCluster, what_if
from agent.values.limits import Limits
from agent.values.snapshot import Snapshot
from testbed.cluster import ClusterSpec
from tests.command import rackwise
from tests.conftest import ClusterFactory
from tests.watching_agent import WatchingAgent, settings_for

pytestmark = [pytest.mark.harm, pytest.mark.drill]
RACKS = ("a", "a", "b", "c", "c")
"""Brokers 1 and 2 are in rack a; three of five controllers are left without it."""
PLACED = {
    "spread": ([[1, 3, 4], [3, 4, 1], [2, 5, 3], [4, 2, 3]], "2"),
    "strict": ([[1, 3, 4], [4, 3, 5]], "3"),
    "crowded": ([[1, 2], [2, 1], [1, 3], [4, 1]], "1"),
    "single": ([[1], [2], [3], [4]], "1"),
}


def test_what_losing_a_rack_costs_is_what_was_foretold(cluster_factory: ClusterFactory) -> None:
    cluster = cluster_factory(ClusterSpec(racks=RACKS, heap="256m"))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    made = [
        NewTopic(name, len(rows), replica_assignment=rows, config={"min.insync.replicas": least})
        for name, (rows, least) in PLACED.items()
    ]
    for future in admin.create_topics(made).values():
        future.result(60)
    with WatchingAgent(settings_for(cluster.bootstrap_servers, **{"observe.refresh_configs": "0s"})) as eye:
        before = eye.until(lambda seen: _whole(seen.snapshot), "all topics, led and in sync", within_s=60).snapshot
        (loss,) = [one for one in rack_losses(before) if one.rack == "a"]
        foretold = what_if(SimulatedCluster(before, Limits()), (RemoveRack("a"),)).snapshot
        rows = _told(rackwise("racks", "-b", cluster.bootstrap_servers, "-o", "json").stdout)
        simulated = rackwise("simulate", "-b", cluster.bootstrap_servers, "--remove-rack", "a", "-o", "json")
        assert simulated.exit_code == 0, simulated.stderr

        for broker in (1, 2):
            cluster.broker(broker).kill()
        left = eye.until(lambda seen: _settled(seen.snapshot), "the controller noticed", within_s=60).snapshot

    states = {state.id: state for topic in left.topics.values() for state in topic.partitions}
    leaderless = sorted(name for name, state in states.items() if state.leader is None)
    assert list(loss.leaderless) == leaderless
    assert [str(one) for one in leaderless] == ["crowded-0", "crowded-1", "single-0", "single-1"]
    under = sorted(
        state.id
        for topic in left.topics.values()
        for state in topic.partitions
        if state.leader is not None and len({*state.isr} - {1, 2}) < min(topic.min_isr or 1, len(state.replicas))
    )
    assert list(loss.under_min_isr) == under
    assert [str(one) for one in under] == ["strict-0"]
    leads = {broker: sum(state.leader == broker for state in states.values()) for broker in (3, 4, 5)}
    assert {survivor.broker: survivor.leaders_after for survivor in loss.survivors} == leads

    wanted = {state.id: state for topic in foretold.topics.values() for state in topic.partitions}
    assert {name: state.leader for name, state in states.items()} == {n: s.leader for n, s in wanted.items()}
    alive = {name: {*state.isr} - {1, 2} for name, state in states.items()}
    assert alive == {name: {*state.isr} for name, state in wanted.items()}

    of_a = next(row for row in rows if row["rack"] == "a")
    assert of_a["loss"]["leaderless"] == [str(one) for one in leaderless]
    assert of_a["loss"]["under_min_isr"] == [str(one) for one in under]
    assert next(row for row in simulated.json["racks"] if row["rack"] == "a")["then"] is None
    assert any("under min ISR" in row["finding"] for row in simulated.json["findings"])


def _whole(snapshot: Snapshot) -> bool:
    states = [state for name in PLACED for state in getattr(snapshot.topics.get(name), "partitions", ())]
    known = all(getattr(snapshot.topics.get(name), "min_isr", None) is not None for name in PLACED)
    led = all(state.leader == state.replicas[0] and len(state.isr) == len(state.replicas) for state in states)
    return known and led and len(states) == sum(len(rows) for rows, _ in PLACED.values())


def _settled(snapshot: Snapshot) -> bool:
    """The two brokers are fenced, and no partition is led by one of them."""
    leaders = {state.leader for topic in snapshot.topics.values() for state in topic.partitions}
    gone = [broker for broker in snapshot.brokers if broker.id in (1, 2)]
    return not any(broker.alive for broker in gone) and not leaders & {1, 2}


def _told(text: str) -> Any:
    return json.loads(text)
