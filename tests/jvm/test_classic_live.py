"""Classic groups of Java and Python members on three real brokers, led by either language: all reads are local."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from assignors import ConsumerMember, ConsumerProblem, optimal_consumer
from testbed.cluster import EmbeddedCluster
from tests.clients.live import BY_NAME, JavaMember, Lab, Overlaps, demo_topics
from tests.jvm.building import build_jar

pytestmark = pytest.mark.integration

CLICKS = "classic-clicks"
OURS = "optimal"


class Joins(NamedTuple):
    """A member by its client and its rack."""

    client: str
    rack: str


GROUPS = {
    "led by Java": (Joins("java", "a"), Joins("kafka-python", "b"), Joins("aiokafka", "c")),
    "led by kafka-python": (Joins("kafka-python", "a"), Joins("java", "b"), Joins("java", "c")),
    "led by aiokafka": (Joins("aiokafka", "a"), Joins("java", "b"), Joins("kafka-python", "c")),
}
"""The first member leads, because it joins alone."""


@pytest.fixture(scope="module")
def classic_lab(embedded_cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = demo_topics(embedded_cluster, "classic")
    made.plugins = (str(build_jar(tmp_path_factory.mktemp("jar"))),)
    try:
        yield made
    finally:
        made.close()


def least_crossing(lab: Lab, members: Sequence[Any]) -> int:
    """What the optimum leaves across racks."""
    joined = tuple(ConsumerMember(id=str(n), rack=m.rack, topics=(CLICKS,)) for n, m in enumerate(members))
    return optimal_consumer(ConsumerProblem(members=joined, racks={CLICKS: lab.topics[CLICKS]})).crossing


def join(lab: Lab, group: str, joins: Joins) -> Any:
    strategy = [OURS] if joins.client in BY_NAME else OURS
    return lab.member(joins.client, group, joins.rack, strategy, (CLICKS,))


def test_all_is_read_in_its_rack_whichever_language_leads(classic_lab: Lab) -> None:
    """The groups run side by side."""
    lab = classic_lab
    with lab.group() as everybody:
        groups: dict[str, list[Any]] = {about: [] for about in GROUPS}
        names = {about: lab.name("classic") for about in GROUPS}
        for place in range(3):
            for about, joins in GROUPS.items():
                member = join(lab, names[about], joins[place])
                groups[about].append(member)
                everybody.append(member)
            if place == 0:
                for members in groups.values():
                    lab.settle(members, (CLICKS,), calm_s=0.0)
        for about, members in groups.items():
            lab.settle(members, (CLICKS,))
            assert least_crossing(lab, members) == lab.crossing(members) == 0, about
        assert groups["led by kafka-python"][0].leads


def test_members_come_and_go_and_no_partition_has_two_readers(classic_lab: Lab) -> None:
    """The leaders leave, so that each language takes over from the other."""
    lab = classic_lab
    group = lab.name("classic")
    with lab.group() as members:
        members.append(join(lab, group, Joins("java", "a")))
        lab.settle(members, (CLICKS,), calm_s=0.0)
        with Overlaps(lambda: list(members)) as overlaps:
            for joins in (Joins("kafka-python", "b"), Joins("java", "c"), Joins("kafka-python", "a")):
                members.append(join(lab, group, joins))
                lab.settle(members, (CLICKS,))
                assert lab.crossing(members) == least_crossing(lab, members)
            python = members[1]
            for leaver in [each for each in members if isinstance(each, JavaMember)]:
                members.remove(leaver)
                leaver.leave()
                lab.settle(members, (CLICKS,))
                assert lab.crossing(members) == least_crossing(lab, members)
            assert any(each.leads for each in members)
            assert python.failure is None
        assert overlaps.looks > 10
        assert overlaps.found == set()
    assert lab.java is not None
    assert "rackwise.assignor" not in lab.java.log(), "no fallback is logged"
