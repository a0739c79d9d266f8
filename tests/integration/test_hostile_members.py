"""Members that store broken bytes beside the demo's groups: the agent stays up, names them, and sees all the others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from agent.daemon.start import agent_of
from agent.values.cycle import Cycle
from agent.values.finding import FindingReason
from agent.values.snapshot import OtherGroup
from testbed.cluster import EmbeddedCluster
from testbed.demo.run import demo_settings
from testbed.demo.workload import ClusterWorkload
from tests.broken_bytes import GOOD, HELD, HOSTILE, Hostile
from tests.integration.test_first_look import GROUPS
from tests.observe.live import delete_groups
from tests.raw_member import RawMember
from tests.watching_agent import WatchingAgent, cycle_text
from tests.workload.brokers import admin

pytestmark = pytest.mark.drill  # groups that hang a coordinator: not beside the quick tests of the same cluster

READABLE = {
    "metadata of version 32767",  # a newer version is read as the newest one that is known
    "good metadata, then a quarter of a megabyte of noise",
    # User data of an assignor that is not Kafka's Streams is not decoded.
    "Streams user data of version 99",
    "Streams user data with two thousand million tasks",
    "Streams assignment info that ends early",
}
"""Kinds whose groups can be judged all the same."""
JOIN_TIMEOUT_MS = 1_500
"""Enough for a healthy join; a join that makes the coordinator give up is never answered."""


@pytest.fixture(scope="module")
def beset(demo_cluster: EmbeddedCluster, work: ClusterWorkload, still: Cycle) -> Iterator[tuple[Cycle, Cycle]]:
    """Beside every kind of hostile member: a cycle of an eye that calls a group stuck after a second, and an agent's.

    What these are compared with was seen before.
    """
    where = demo_cluster.bootstrap_servers
    names = ["veteran", *(f"hostile-{number:02}" for number in range(len(HOSTILE)))]
    more = {"detect.stuck_rebalance_after": "1s", "topics.prefix": "rackwise-beset"}
    settings = demo_settings(demo_cluster, work, **more).settings
    with ExitStack() as stack:
        # A group that hangs is not to be deleted while its coordinator believes in its member.
        stored = [names[0], *(name for name, kind in zip(names[1:], HOSTILE, strict=True) if not kind.bricks)]
        stack.callback(delete_groups, admin(demo_cluster), *stored)
        stack.enter_context(RawMember(where, names[0], metadata=GOOD, assignment=HELD))
        hostile = [
            stack.enter_context(
                RawMember(
                    where,
                    name,
                    metadata=kind.metadata,
                    assignment=kind.assignment,
                    join_timeout_ms=JOIN_TIMEOUT_MS if kind.bricks else 20_000,
                )
            )
            for name, kind in zip(names[1:], HOSTILE, strict=True)
        ]
        for member in hostile:
            member.join()  # on a loaded machine a broker that was fenced has forgotten those that it never answered
        eye = stack.enter_context(WatchingAgent(settings))
        eye.look()
        time.sleep(1.5)
        cycle = eye.look(planning=True)
        agent = stack.enter_context(agent_of(settings))
        agent.once()
        of_agent = agent.once()
        agent.close()
        yield cycle, of_agent


@pytest.mark.parametrize(("number", "kind"), [pytest.param(n, kind, id=kind.name) for n, kind in enumerate(HOSTILE)])
def test_every_hostile_member_is_named(beset: tuple[Cycle, Cycle], number: int, kind: Hostile) -> None:
    subject = f"group/hostile-{number:02}"
    reasons = {one.reason for one in beset[0].detection.findings if str(one.subject) == subject}
    if kind.bricks:
        assert reasons == {FindingReason.GROUP_STUCK_IN_REBALANCE}
    else:
        assert (FindingReason.GROUP_UNDECODABLE in reasons) == (kind.name not in READABLE)
        assert reasons, "it is named for what can be said of it"


def test_a_subscription_that_is_too_old_for_a_rack_is_told_apart(beset: tuple[Cycle, Cycle]) -> None:
    reasons = {one.reason for one in beset[0].detection.findings if str(one.subject) == "group/veteran"}
    assert FindingReason.SUBSCRIPTION_TOO_OLD in reasons
    assert FindingReason.GROUP_UNDECODABLE not in reasons


@pytest.mark.parametrize("whose", [pytest.param(0, id="an eye"), pytest.param(1, id="the whole agent")])
def test_every_healthy_group_is_reported_as_before(beset: tuple[Cycle, Cycle], still: Cycle, whose: int) -> None:
    cycle = beset[whose]
    for name in GROUPS:
        before, now = still.snapshot.groups[name], cycle.snapshot.groups[name]
        assert not isinstance(before, OtherGroup)
        assert not isinstance(now, OtherGroup)
        assert {member.id: member.assigned for member in now.members} == {
            member.id: member.assigned for member in before.members
        }
        assert cycle.detection.assessments[name].gap == still.detection.assessments[name].gap
    subjects = {str(one.subject) for one in cycle.proposals}
    assert {str(one.subject) for one in still.proposals} <= subjects, cycle_text(cycle)
    assert cycle.snapshot.gaps == ()
