"""What rackwise says the plug-in would bring a live group of three real brokers is what it brings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from testbed.cluster import EmbeddedCluster
from tests.command import rackwise
from tests.jvm.building import build_jar
from tests.jvm.live import PARTITIONS, brokers, group_of, local, settled

pytestmark = [pytest.mark.integration, pytest.mark.drill]


def test_what_rackwise_says_it_would_bring_is_what_it_brings(tmp_path: Path) -> None:
    """The group is assigned by uniform first; then its members come back without naming an assignor."""
    with brokers(build_jar(tmp_path)) as cluster:
        with group_of(cluster, assignor="uniform") as join:
            members = [join(rack) for rack in "abcabc"]
            settled(cluster, members, assignor="uniform")
            before = local(members)
            assert before < PARTITIONS
            gain = f"with the plug-in 24 of 24 local instead of {before} of 24"
            said = asked(cluster, "groups", "readers")["plugin_gain"]
            assert re.fullmatch(gain + r"(, saves about \$[\d.]+/day)?", said)
            checks = {row["check"]: row["sentences"] for row in asked(cluster, "doctor")}
            line = f"plug-in for brokers, group readers: {gain}"
            assert any(one.startswith(line) for one in checks["assignors cost no local reads"])
            (row,) = asked(cluster, "plan", "--groups")
            assert (row["plugin"]["crossing"], row["now"]["crossing"]) == (0, PARTITIONS - before)
        with group_of(cluster) as join:
            members = [join(rack) for rack in "abcabc"]
            settled(cluster, members)
            assert local(members) == PARTITIONS
            assert asked(cluster, "groups", "readers")["plugin_gain"] == "runs the plug-in; 24 of 24 local"
            findings = asked(cluster, "status")["findings"]
            assert not any(one["finding"] == "group kind ignores racks" for one in findings)


def asked(cluster: EmbeddedCluster, *command: str) -> Any:
    done = rackwise(*command, "-b", cluster.bootstrap_servers, "-o", "json")
    assert done.exit_code == 0, done.stderr
    return done.json
