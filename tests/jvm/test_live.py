"""The plug-in on three real brokers: every partition is read in its own rack after each join and leave."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.cluster import EmbeddedCluster
from testbed.cluster.jars import JarSet
from tests.jvm.building import build_jar
from tests.jvm.live import NEWEST, PARTITIONS, PollingMember, brokers, errors, group_of, jars_of, local, settled

pytestmark = pytest.mark.integration

EVENTS = ("a", "b", None, "c")
"""The rack of a member that joins; None: the oldest member leaves."""
CALM = {"group.consumer.min.heartbeat.interval.ms": "1000", "group.consumer.heartbeat.interval.ms": "1000"}
"""librdkafka gives a heartbeat up after two intervals, which a busy machine exceeds sooner."""


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_jar(tmp_path_factory.mktemp("jar"))


class WatchedGroup:
    """A group, and the partitions that its staying members had to give to others."""

    def __init__(
        self, cluster: EmbeddedCluster, name: str, assignor: str, join: Callable[[str], PollingMember]
    ) -> None:
        self.members: list[PollingMember] = []
        self.assignor = assignor
        self.moved = 0
        self._cluster, self._name, self._join = cluster, name, join

    def join(self, rack: str) -> None:
        self.members.append(self._join(rack))

    def settle(self) -> None:
        settled(self._cluster, self.members, self._name, assignor=self.assignor)
        loads = [len(member.held) for member in self.members]
        print(f"{self.assignor}: {local(self.members)} of {PARTITIONS} local, loads {loads}")
        assert max(loads) - min(loads) <= 1

    def watch(self, event: str | None) -> None:
        """A member joins in that rack, or the oldest one leaves."""
        if event is None:
            self.members.pop(0).close()
        self._before = [(member, member.held) for member in self.members]
        if event is not None:
            self.join(event)

    def count(self) -> None:
        self.settle()
        self.moved += sum(len(held - member.held) for member, held in self._before)


def check_joins_and_leaves(jar: Path, jars: tuple[str, JarSet] | None = None) -> None:
    """All reads are local after each event, and few partitions move; a group of ``uniform`` beside it sets the bound.

    The first members join one after the other: where several join at once, chance decides what they begin with, and
    with it up to two of the moves that follow.
    """
    with (
        brokers(jar, jars=jars, kafka=CALM) as cluster,
        group_of(cluster, "readers") as join,
        group_of(cluster, "plain", assignor="uniform") as join_plain,
    ):
        ours = WatchedGroup(cluster, "readers", "rackwise", join)
        plain = WatchedGroup(cluster, "plain", "uniform", join_plain)
        for rack in "abcabc":
            for group in (ours, plain):
                group.join(rack)
            for group in (ours, plain):
                group.settle()
        for event in EVENTS:
            for group in (ours, plain):
                group.watch(event)
            for group in (ours, plain):
                group.count()
            assert local(ours.members) == PARTITIONS
        assert errors(ours.members) == []
    print(f"moved of members that stay: {ours.moved} by rackwise, {plain.moved} by uniform")
    assert plain.moved >= 9, "three joins take three partitions each"
    assert ours.moved <= 1.2 * plain.moved


def test_all_is_read_in_its_rack_after_each_join_and_leave_and_few_partitions_move(jar: Path) -> None:
    check_joins_and_leaves(jar)


@pytest.mark.drill
@pytest.mark.parametrize("version", ["4.1.1", NEWEST])
def test_the_same_on_the_oldest_and_the_newest_release(jar: Path, version: str, tmp_path: Path) -> None:
    check_joins_and_leaves(jar, (version, jars_of(version, tmp_path / "jars")))


def test_a_group_above_the_limit_goes_on_with_uniform_and_the_broker_logs_why(jar: Path) -> None:
    with brokers(jar, max_pairs="1") as cluster, group_of(cluster) as join:
        members = [join(rack) for rack in "abc"]
        settled(cluster, members)
        members.append(join("a"))
        settled(cluster, members)
        assert errors(members) == []
        logs = "\n".join(path.read_text() for path in cluster.directory.glob("broker-*/server.log"))
    lines = re.findall(r"WARN The assignor rackwise answers as uniform does; .* \(.*\)\n.*", logs)
    assert len(lines) == 1, "once a minute, for several assignments"
    assert re.search(r"GroupTooLargeException: \d+ sets of \w+ times \d+ are more than", lines[0])
    assert lines[0].endswith(" rackwise.assignor.max.pairs = 1")
