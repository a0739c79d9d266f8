"""Groups on real brokers: valid, balanced, and read across racks less than the libraries' own assignors have it.

The figures of docs/clients.md are printed here (pytest -s).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from tests.clients.live import BUILT_IN, BY_NAME, DROP_IN, RACKS, Lab

pytestmark = pytest.mark.integration

CLICKS = ("drop-in-clicks",)


def together(lab: Lab, client: str, strategies: dict[str, Sequence[Any]]) -> dict[str, int]:
    """One group per strategy, all side by side -> what each reads across racks."""
    with lab.group() as everybody:
        groups = {}
        for about, strategy in strategies.items():
            name = lab.name("one")
            groups[about] = [lab.member(client, name, rack, strategy) for rack in RACKS]
            everybody.extend(groups[about])
        for members in groups.values():
            lab.settle(members)
        crossing = {about: lab.crossing(members) for about, members in groups.items()}
    print(f"\n{client}: of {sum(map(len, lab.topics.values()))} partitions are read across racks: {crossing}")
    return crossing


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_groups_of_one_client_beat_its_own_assignors(lab: Lab, client: str) -> None:
    own = {f"own {each.name}": [each] for each in BUILT_IN[client][:2]}
    crossing = together(lab, client, own | {name: [name] for name in DROP_IN[client]})
    least = min(crossing[name] for name in own)
    assert crossing["optimal"] == 0
    assert crossing["range"] < crossing["own range"]
    # What the sticky ones leave depends on who joined first (test_figures): at most 2 on these brokers.
    assert all(crossing[name] <= 2 < least for name in DROP_IN[client] if name.endswith("sticky"))


class Mixed(NamedTuple):
    """A group of several clients; the first member leads, because it joins alone."""

    protocol: str
    members: tuple[tuple[str, str], ...]
    """Client and rack."""


def most(case: Mixed) -> int:
    """The most that the protocol may leave across racks, of six partitions on two racks each.

    Kafka's sticky assignors look for local readers only for partitions that no member keeps, so members that join one
    after the other may leave one behind. The rack of a Java member is hidden from a leader of aiokafka.
    """
    if case.members[0][0] == "aiokafka" and "java" in dict(case.members):
        return 2  # what that member reads
    return 1 if case.protocol.endswith("sticky") else 0


QUICK = {
    "cooperative-sticky led by kafka-python, with Java and librdkafka": Mixed(
        "cooperative-sticky", (("kafka-python", "a"), ("java", "b"), ("librdkafka", "c"))
    ),
    "cooperative-sticky led by Java, with kafka-python and librdkafka": Mixed(
        "cooperative-sticky", (("java", "a"), ("kafka-python", "b"), ("librdkafka", "c"))
    ),
    "range led by kafka-python, with all others": Mixed(
        "range", (("kafka-python", "a"), ("java", "b"), ("aiokafka", "c"), ("librdkafka", "a"))
    ),
    "range led by aiokafka, with kafka-python, which repeats its rack": Mixed(
        "range", (("aiokafka", "a"), ("kafka-python", "b"), ("aiokafka", "c"))
    ),
    "sticky led by Java, with both Python clients": Mixed(
        "sticky", (("java", "a"), ("aiokafka", "b"), ("kafka-python", "c"))
    ),
    "optimal led by aiokafka, with kafka-python": Mixed(
        "optimal", (("aiokafka", "a"), ("kafka-python", "b"), ("kafka-python", "c"))
    ),
}
MORE = {
    "cooperative-sticky led by librdkafka, with kafka-python and Java": Mixed(
        "cooperative-sticky", (("librdkafka", "a"), ("kafka-python", "b"), ("java", "c"))
    ),
    "range led by Java, with all others": Mixed(
        "range", (("java", "a"), ("kafka-python", "b"), ("aiokafka", "c"), ("librdkafka", "a"))
    ),
    "range led by librdkafka, with kafka-python and aiokafka": Mixed(
        "range", (("librdkafka", "a"), ("kafka-python", "b"), ("aiokafka", "c"))
    ),
    "range led by aiokafka, which cannot see the rack of the Java member": Mixed(
        "range", (("aiokafka", "a"), ("kafka-python", "b"), ("java", "c"))
    ),
    "sticky led by kafka-python, with Java and aiokafka": Mixed(
        "sticky", (("kafka-python", "a"), ("java", "b"), ("aiokafka", "c"))
    ),
    "sticky led by aiokafka, with kafka-python": Mixed(
        "sticky", (("aiokafka", "a"), ("kafka-python", "b"), ("aiokafka", "c"))
    ),
    "optimal led by kafka-python, with aiokafka": Mixed(
        "optimal", (("kafka-python", "a"), ("aiokafka", "b"), ("kafka-python", "c"))
    ),
}


def mixed(lab: Lab, cases: Mapping[str, Mixed]) -> dict[str, int | str]:
    """All groups side by side -> what each reads across racks, or the sentence why it did not settle."""
    with lab.group() as everybody:
        groups: dict[str, list[Any]] = {}
        names = {about: lab.name("mixed") for about in cases}
        for place in range(4):
            for about, case in cases.items():
                for client, rack in case.members[place : place + 1]:
                    strategy = [case.protocol] if client in BY_NAME else case.protocol
                    member = lab.member(client, names[about], rack, strategy, CLICKS)
                    everybody.append(member)
                    groups.setdefault(about, []).append(member)
            if place == 0:
                for members in groups.values():
                    lab.settle(members, CLICKS, calm_s=0.0)
        outcomes: dict[str, int | str] = {}
        for about, members in groups.items():
            try:
                lab.settle(members, CLICKS)
                outcomes[about] = lab.crossing(members)
            except AssertionError as failed:
                outcomes[about] = str(failed)
            client = cases[about].members[0][0]
            if client == "kafka-python":
                assert members[0].leads, about
    print("\n", outcomes)
    return outcomes


@pytest.fixture(scope="module")
def quick(lab: Lab) -> dict[str, int | str]:
    return mixed(lab, QUICK)


@pytest.fixture(scope="module")
def more(lab: Lab) -> dict[str, int | str]:
    return mixed(lab, MORE)


@pytest.mark.parametrize("about", QUICK)
def test_a_group_of_several_clients_is_balanced_and_local(about: str, quick: dict[str, int | str]) -> None:
    assert quick[about] in range(most(QUICK[about]) + 1)


@pytest.mark.drill
@pytest.mark.parametrize("about", MORE)
def test_more_groups_of_several_clients(about: str, more: dict[str, int | str]) -> None:
    assert more[about] in range(most(MORE[about]) + 1)
