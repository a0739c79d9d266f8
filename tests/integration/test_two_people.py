"""Two people approve one plan over the API of a running agent: it moves only then, and the journal has both of them."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from agent.web.access.credentials import append_entry, new_token
from agent.web.access.person import AccessRole
from testbed.cluster import EmbeddedCluster
from tests.agent_process import Running, wait_for
from tests.command import rackwise

pytestmark = pytest.mark.integration
CROWDED = [[1, 4], [4, 1]]
"""Brokers 1 and 4 are both in rack a."""
REASON = "outlive a rack"


class TwoPeople:
    """An agent in mode execute, asked by people with tokens."""

    def __init__(self, process: Running, topic: str, tokens: dict[str, str], prefix: str) -> None:
        self.process, self.topic, self.tokens, self.prefix = process, topic, tokens, prefix
        (listening,) = process.events("listening")
        self.url = f"http://{listening['address']}"

    def ask(self, who: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.tokens[who]}"}
        return httpx.request(method, f"{self.url}/api/v1{path}", headers=headers, timeout=40, **more)

    def rows(self, path: str) -> list[dict[str, Any]]:
        answer = self.ask("vic", "GET", path)
        return answer.json()["items"] if answer.status_code == 200 else []

    def proposal(self) -> dict[str, Any] | None:
        """The open proposal about the topic."""
        return next((row for row in self.rows("/proposals") if self.topic in row["sentence"]), None)


@pytest.fixture
def people(demo_cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[TwoPeople]:
    name, prefix = f"crowded-{uuid4().hex[:8]}", f"two-{uuid4().hex[:8]}"
    tokens, file, key, config = {}, tmp_path / "tokens.yaml", tmp_path / "key", tmp_path / "rackwise.yaml"
    roles = {"vic": AccessRole.VIEW, "ann": AccessRole.APPROVE, "bob": AccessRole.APPROVE}
    for who, role in roles.items():
        tokens[who], entry = new_token(who, role, None)
        append_entry(file, entry)
    key.touch(0o600)
    key.write_text(secrets.token_hex(32))
    settings = {
        "mode": "execute", "poll.interval": "1s", "plan.interval": "2s", "racks.stable_for": "1s",
        "racks.stable_polls": 1, "http.port": 0, "http.auth.tokens_file": str(file), "log.format": "json",
        "execute.journal_key_file": str(key), "topics.prefix": prefix, "approve.triggers": False,
        "approve.second_person": True, "probing.enabled": False, "execute.include_topics": [name],
        "execute.cooldown": "0s", "execute.payback_days": "none",
    }  # fmt: skip
    config.write_text(yaml.safe_dump(settings))
    admin = AdminClient({"bootstrap.servers": demo_cluster.bootstrap_servers})
    made = NewTopic(name, num_partitions=len(CROWDED), replica_assignment=CROWDED)
    admin.create_topics([made])[name].result(30)
    process = Running(demo_cluster, config, tmp_path / "agent.log")
    try:
        wait_for(lambda: process.events("leading") and process.events("listening"), 120)
        yield TwoPeople(process, name, tokens, prefix)
    finally:
        process.end(signal.SIGTERM)
        own = [one for one in admin.list_topics(timeout=30).topics if one == name or one.startswith(f"{prefix}.")]
        for removed in admin.delete_topics(own, operation_timeout=30).values():
            removed.result(60)


def test_a_plan_begins_when_a_second_person_has_approved_what_the_first_saw(
    people: TwoPeople, demo_cluster: EmbeddedCluster
) -> None:
    found = wait_for(people.proposal, 90)["id"]
    seen = people.ask("vic", "GET", f"/proposals/{found}").json()["plan_hash"]
    where, given = f"/proposals/{found}/approve", {"plan_hash": seen, "reason": REASON}
    assert people.ask("vic", "POST", where, json=given).status_code == 403
    stale = people.ask("ann", "POST", where, json={**given, "plan_hash": "0" * 32})
    assert (stale.status_code, stale.json()["type"]) == (409, "urn:rackwise:problem:stale-plan")

    first = people.ask("ann", "POST", where, json=given)
    assert (first.status_code, "a second person" in first.json()["sentence"]) == (200, True), first.text
    again = people.ask("ann", "POST", where, json=given)
    assert (again.status_code, "another person must approve it" in again.json()["detail"]) == (409, True)
    assert people.ask("vic", "GET", "/reassignments").json()["plans"] == []

    second = people.ask("bob", "POST", where, json={**given, "reason": "seen too"})
    assert second.status_code == 200, second.text
    assert "approved by bob, requested by ann" in second.json()["sentence"]

    def plans() -> list[dict[str, Any]]:
        return [one for one in people.ask("vic", "GET", "/reassignments").json()["plans"] if one["state"] == "done"]

    (plan,) = wait_for(plans, 90)
    assert (plan["plan"], plan["approved_by"], plan["done"]) == (found, "bob", len(CROWDED))
    replayed = people.ask("ann", "POST", where, json=given)
    assert replayed.status_code == 409

    def told() -> list[dict[str, Any]]:
        return [row for row in people.rows("/journal/history") if row["what"] == "approve"]

    expected = [
        ("ann", "refused", REASON, "0" * 32),
        ("ann", "done", REASON, seen),
        ("ann", "refused", REASON, seen),
        ("bob", "done", "seen too", seen),
        ("ann", "refused", REASON, seen),
    ]
    # An agent reads the journal once a second at most.
    wait_for(lambda: len(told()) >= len(expected), 10)
    history = told()
    assert [(row["who"], row["state"], row["reason"], row["plan_hash"]) for row in history] == expected
    asked = rackwise(
        "proposals", "history", "-o", "json", "-b", demo_cluster.bootstrap_servers,
        "--set", f"topics.prefix={people.prefix}",
    )  # fmt: skip
    assert [row for row in json.loads(asked.stdout) if row["what"] == "approve"] == history
    log = people.process.log.read_text()
    assert [who for who, token in people.tokens.items() if token in log] == []
