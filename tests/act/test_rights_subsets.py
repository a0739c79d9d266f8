"""Every subset of the executor's rights, on a broker with an authorizer: each loss is reported, nothing else is lost.

Eight rights are given or not: the six that reach into the cluster, each by itself, and two bundles for what is
rackwise's own, its topics and what writes them. 256 subsets, in an order in which one right of the cluster changes at a
time. Each subset has names of its own, so that the right to create topics counts in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from uuid import uuid4

import pytest

from testbed.cluster import EmbeddedCluster
from tests.act.rights import ASKED, Grants, Right, abilities, config_of
from tests.act.test_rights import LOST, NAMED, SILENT, USER, lost, secured
from tests.observe.live import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.drill]
_ = secured  # the fixture: one broker for all subsets

OWN = tuple(right for right in NAMED if right.name.startswith("rackwise"))
EIGHT: tuple[tuple[Right, ...], ...] = (
    *((right,) for right in NAMED if right not in OWN),
    tuple(right for right in OWN if right.kind == "--topic"),
    tuple(right for right in OWN if right.kind != "--topic"),
)
LEAD_WITHIN_S = 30.0
PATIENCE_S = 120.0
"""The first agent that leads waits for topics of the brokers, and a right reaches them a moment after it is given."""


def in_turn(bits: int) -> Iterator[int]:
    """All numbers of so many bits, each differing from the one before in one bit (Gray's code)."""
    return (number ^ (number >> 1) for number in range(2**bits))


def losses(subset: int) -> set[str]:
    """What is lost without the rights that are not in it."""
    return {ability for right in bundled(~subset & 255) for ability in LOST[str(right)]}


def bundled(subset: int) -> tuple[Right, ...]:
    """The rights of a subset."""
    return tuple(right for number, bundle in enumerate(EIGHT) if subset >> number & 1 for right in bundle)


def test_eight_rights_are_all_that_an_executor_has() -> None:
    assert len(EIGHT) == 8
    assert sorted(bundled(255)) == sorted(NAMED)
    assert len(set(in_turn(8))) == 256
    assert losses(255) == set()
    assert losses(0) == {*ASKED, "lead", "obey", "remember"}


@pytest.mark.timeout(3 * 3_600)
@pytest.mark.parametrize("own", range(4), ids=["nothing of its own", "own topics", "own writer", "all of its own"])
def test_each_subset_of_rights_loses_what_is_told_and_nothing_else(secured: EmbeddedCluster, own: int) -> None:
    grants = Grants(secured, USER)
    wrong: dict[int, object] = {}
    held = 0
    try:
        for world in in_turn(6):
            subset, prefix = world | own << 6, f"rackwise-{uuid4().hex[:8]}"
            change(grants, held, world)
            held = world
            owned = [right.under(prefix) for right in bundled(own << 6)]
            grants.give(*owned)
            found: dict[str, str | None] = {}
            with suppress(AssertionError):  # told below, with all others
                wait_for(partial(settled, secured, prefix, subset, found), "it is as it should be", PATIENCE_S)
            grants.take(*owned)
            untold = {name for name in lost(found) - SILENT if not tells(found[name] or "")}
            if untold or lost(found) != losses(subset):
                wrong[subset] = {"untold": untold, "otherwise": lost(found) ^ losses(subset), "found": found}
                print(subset, wrong[subset], flush=True)
    finally:
        change(grants, held, 0)
    assert wrong == {}


def settled(secured: EmbeddedCluster, prefix: str, subset: int, found: dict[str, str | None]) -> bool:
    """Whether the abilities are those of the subset: a right reaches brokers a moment after it is given."""
    found.clear()
    eyes = config_of(secured, "admin")
    found.update(abilities(config_of(secured, USER), eyes, prefix=prefix, lead_within_s=LEAD_WITHIN_S))
    return lost(found) == losses(subset)


def tells(sentence: str) -> bool:
    told = sentence.lower()
    return "authoriz" in told or "not allowed" in told or "unknown_topic" in told


def change(grants: Grants, before: int, after: int) -> None:
    """Give and take what differs."""
    grants.give(*bundled(after & ~before))
    grants.take(*bundled(before & ~after))
