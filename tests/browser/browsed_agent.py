"""An agent in mode execute beside the demo's cluster, with people who have tokens."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from agent.web.access.credentials import append_entry, new_token
from agent.web.access.person import AccessRole
from agent.wire.client import WireClient
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from tests.agent_process import Running, wait_for
from tests.command import ROOT

PREFIX = "browsed"
"""Of the agent's own topics: the cluster is shared."""
PEOPLE = {"ann": AccessRole.APPROVE, "opa": AccessRole.OPERATE, "vic": AccessRole.VIEW}
CROWDED = [[1, 4], [4, 1], [1, 4], [4, 1]]
"""Brokers 1 and 4 are in rack a, 2 in b and 3 in c."""
RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
CLICKED, TYPED, DROPPED = "carts", "refunds", "wishes"
"""Topics of the test: their plans are approved by clicking and by the keyboard, and one goes with its topic."""


class BrowsedAgent(NamedTuple):
    """The agent, and what people need to sign in."""

    cluster: EmbeddedCluster
    process: Running
    address: str
    """``host:port`` of its page."""
    tokens: Mapping[str, str]

    def make_topics(self, *names: str) -> None:
        """Topics with all replicas of a partition in one rack, and some records in each."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        wanted = [NewTopic(name, num_partitions=len(CROWDED), replica_assignment=CROWDED) for name in names]
        for made in admin.create_topics(wanted).values():
            made.result(30)

    def drop_topic(self, name: str) -> None:
        """Deletes it."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        for removed in admin.delete_topics([name], operation_timeout=30).values():
            removed.result(60)

    def racks_of(self, topic: str) -> list[set[str]]:
        """The racks of each partition's replicas, as the cluster has them now."""
        with WireClient({"bootstrap_servers": self.cluster.bootstrap_servers.split(",")}) as wire:
            wire.describe_brokers(5_000)
            (found,) = wire.describe_topics(5_000, names=[topic]).topics
            return [{RACKS[broker] for broker in row.replicas} for row in found.partitions]


@contextmanager
def browsed_agent(cluster: EmbeddedCluster, work: ClusterWorkload, folder: Path) -> Iterator[BrowsedAgent]:
    """The agent, leading and looking; its topics go with it."""
    tokens_file, key_file, config = folder / "tokens.yaml", folder / "journal.key", folder / "rackwise.yaml"
    key_file.touch(0o600)
    key_file.write_text(secrets.token_hex(32))
    tokens = {}
    for name, role in PEOPLE.items():
        tokens[name], entry = new_token(name, role, None)
        append_entry(tokens_file, entry)
    config.write_text(yaml.safe_dump(_settings(work, tokens_file, key_file)))
    process = Running(cluster, config, folder / "agent.log")
    try:
        wait_for(lambda: process.events("leading"))
        (listening,) = process.events("listening")
        yield BrowsedAgent(cluster, process, listening["address"], tokens)
    finally:
        process.end(signal.SIGTERM)
        _remove_topics(cluster)


def _settings(work: ClusterWorkload, tokens_file: Path, key_file: Path) -> dict[str, object]:
    return {
        "mode": "execute",
        "poll.interval": "1s",
        "plan.interval": "2s",
        "racks.stable_for": "1s",
        "racks.stable_polls": 1,
        "http.port": 0,
        "http.auth.tokens_file": str(tokens_file),
        "execute.journal_key_file": str(key_file),
        "observe.refresh_sizes": "5s",
        "http.reports": str(ROOT / "tests" / "pipeline" / "golden" / "report"),
        "log.format": "json",
        "topics.prefix": PREFIX,
        "groups.shop.application.endpoints": work.lags_url("shop"),
        # The workload is shared: only the test's own topics may be changed.
        "approve.triggers": False,
        "probing.enabled": False,
        "execute.include_topics": [CLICKED, TYPED, DROPPED],
        "execute.cooldown": "0s",
        "execute.payback_days": "none",
    }


def _remove_topics(cluster: EmbeddedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    made = admin.list_topics(timeout=30).topics
    own = [name for name in made if name in (CLICKED, TYPED, DROPPED) or name.startswith(f"{PREFIX}.")]
    for removed in admin.delete_topics(own, operation_timeout=30).values():
        removed.result(60)
