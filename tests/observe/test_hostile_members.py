"""Members that store broken bytes, on a real cluster: all are seen as they are, and hide no other."""

from __future__ import annotations

import time
from contextlib import ExitStack

from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.observation import ObservationPart, RawClassicGroup
from testbed.cluster import EmbeddedCluster
from tests.broken_bytes import GOOD, HELD, HOSTILE
from tests.observe.live import clients_of, gaps
from tests.raw_member import RawMember

JOIN_TIMEOUT_MS = 1_500
"""Enough for a healthy join on a loaded machine; a bricked one never answers."""


def test_every_kind_of_broken_bytes_is_observed_untouched_and_healthy_groups_are_all_there(
    embedded_cluster: EmbeddedCluster,
) -> None:
    where = embedded_cluster.bootstrap_servers
    with ExitStack() as stack:
        for number in range(3):
            stack.enter_context(RawMember(where, f"healthy-{number}", metadata=GOOD, assignment=HELD))
        hostile = [
            stack.enter_context(
                RawMember(
                    where,
                    f"hostile-{number:02}",
                    metadata=kind.metadata,
                    assignment=kind.assignment,
                    join_timeout_ms=JOIN_TIMEOUT_MS if kind.bricks else 20_000,
                )
            )
            for number, kind in enumerate(HOSTILE)
        ]
        clients = stack.enter_context(clients_of(where))
        for member in hostile:
            member.join()  # on a loaded machine a broker that was fenced has forgotten those that it never answered
        began = time.monotonic()
        seen = observe(clients, system_clock)
        took_s = time.monotonic() - began
    described = {group.group_id: group for group in seen.described(RawClassicGroup)}
    stored = [member for member in hostile if member.joined]
    for member in stored:
        (row,) = described[member.group].members
        assert (row.member_id, row.metadata, row.assignment) == (member.member_id, member.metadata, member.assignment)
        assert described[member.group].state == "Stable"
    for member in hostile:
        if not member.joined:
            assert described[member.group].state == "PreparingRebalance"
            assert [row.member_id for row in described[member.group].members] == [member.member_id]
    assert len(stored) >= 20
    assert [kind.name for kind, member in zip(HOSTILE, hostile, strict=True) if kind.bricks == member.joined] == []
    for number in range(3):
        (row,) = described[f"healthy-{number}"].members
        assert (row.metadata, row.assignment) == (GOOD, HELD)
    assert gaps(seen, ObservationPart.GROUPS) == []
    assert took_s < 5
