"""A cluster where much is amiss: one rack in two spellings, a broker without one, leaders only, and a guarded door."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.values.cycle import Cycle
from agent.values.finding import FindingReason, FindingSeverity
from agent.values.proposal import ProposalReason
from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.command import Done, rackwise
from tests.watching_agent import WatchingAgent, cycle_text, findings_of, settings_for


@pytest.fixture(scope="module")
def odd() -> Iterator[EmbeddedCluster]:
    """Its users are the super user admin, and rackwise, which has no rights at all."""
    spec = ClusterSpec(racks=("hall-a", "Hall_A", None), rack_aware_selector=False, security=ClusterSecurity())
    with EmbeddedCluster.start(spec, on_progress=print) as started:
        yield started


@pytest.fixture(scope="module")
def by_admin(odd: EmbeddedCluster) -> Cycle:
    return seen_by(odd, "admin")


@pytest.fixture(scope="module")
def by_nobody(odd: EmbeddedCluster) -> Cycle:
    return seen_by(odd, "rackwise")


def seen_by(cluster: EmbeddedCluster, user: str) -> Cycle:
    kafka = {f"kafka.{name}": value for name, value in cluster.client_properties(user).items()}
    with WatchingAgent(settings_for(cluster.bootstrap_servers, **kafka)) as eye:
        return eye.look(planning=True)


def test_a_broker_without_a_rack_is_found_and_advised(by_admin: Cycle) -> None:
    (missing,) = findings_of(by_admin, FindingReason.BROKER_RACK_MISSING)
    assert missing.sentence == (
        "broker 3 has no broker.rack, while others are in Hall_A and hall-a: set broker.rack and restart it"
    )
    assert ProposalReason.SET_BROKER_RACK in {one.reason for one in by_admin.proposals}


def test_a_rack_in_two_spellings_is_found(by_admin: Cycle) -> None:
    (spelling,) = findings_of(by_admin, FindingReason.RACK_SPELLING)
    assert "'Hall_A' (brokers) and 'hall-a' (brokers)" in spelling.sentence


def test_brokers_that_let_nobody_read_from_a_follower_are_found_and_advised(by_admin: Cycle) -> None:
    (selector,) = findings_of(by_admin, FindingReason.SELECTOR_NOT_RACK_AWARE)
    assert selector.sentence.startswith("3 brokers (1 to 3) let consumers read from leaders only")
    (advice,) = (one for one in by_admin.proposals if one.reason is ProposalReason.SET_SELECTOR)
    assert advice.line == "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"


def test_missing_rights_are_findings_and_never_an_empty_world(by_nobody: Cycle) -> None:
    rights = findings_of(by_nobody, FindingReason.RIGHTS_MISSING)
    assert any(one.severity is FindingSeverity.CRITICAL for one in rights), cycle_text(by_nobody)
    sentences = "\n".join(one.sentence for one in rights)
    for right in ("DESCRIBE on topics", "DESCRIBE on groups", "DESCRIBE on the cluster"):
        assert right in sentences, sentences


def test_a_broker_that_does_not_answer_is_a_finding(odd: EmbeddedCluster) -> None:
    kafka = {f"kafka.{name}": value for name, value in odd.client_properties("admin").items()}
    with WatchingAgent(settings_for(odd.bootstrap_servers, **{"observe.call_timeout": "1s"}, **kafka)) as eye:
        eye.look()
        odd.broker(2).freeze()
        try:
            cycle = eye.look()
        finally:
            odd.broker(2).thaw()
            odd.wait_ready()
    missing = findings_of(cycle, FindingReason.PART_MISSING)
    assert missing, cycle_text(cycle)
    assert any("broker 2" in one.sentence for one in missing), cycle_text(cycle)


def test_a_client_of_kafka_is_configured_by_its_own_properties_file(odd: EmbeddedCluster, tmp_path: Path) -> None:
    done = rackwise("racks", *properties(odd, "admin", tmp_path), "-o", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert {row["rack"]: row["brokers"] for row in done.json} == {"Hall_A": [2], "hall-a": [1], None: [3]}


def test_who_may_see_nothing_is_told_so(odd: EmbeddedCluster, tmp_path: Path) -> None:
    done = rackwise("groups", *properties(odd, "rackwise", tmp_path), "-o", "json")
    assert (done.exit_code, done.json) == (5, [])
    assert "not authorized" in done.stderr


REFUSALS = [
    pytest.param(
        {"sasl.jaas.config": None, "sasl.username": "admin", "sasl.password": "wrong"},
        "why: Authentication failed during authentication due to invalid credentials",
        "Check sasl.mechanism, sasl.username and sasl.password.",
        id="a wrong password",
    ),
    pytest.param(
        {"ssl.truststore.location": "OTHER"},
        "its certificate is not trusted",
        "Check ssl.ca.location",
        id="a CA that did not sign the brokers' certificate",
    ),
]


@pytest.mark.parametrize(("changed", "why", "todo"), REFUSALS)
def test_a_refusal_is_named_and_not_called_a_time_out(
    odd: EmbeddedCluster, tmp_path: Path, changed: dict[str, str | None], why: str, todo: str
) -> None:
    if changed.get("ssl.truststore.location"):
        changed = {"ssl.truststore.location": another_authority(odd, tmp_path)}
    done = rackwise("status", *properties(odd, "admin", tmp_path, **changed))
    assert (done.exit_code, done.stdout) == (2, "")
    assert why in done.stderr
    assert todo in done.stderr
    assert "timed out" not in done.stderr
    assert "admin-secret" not in done.stderr


def properties(cluster: EmbeddedCluster, user: str, directory: Path, **changed: str | None) -> tuple[str, ...]:
    """The options that connect as that user, by way of a file as a Java client has it."""
    written = {"bootstrap.servers": cluster.bootstrap_servers, **cluster.client_properties(user), **changed}
    file = directory / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in written.items() if value is not None))
    return "--properties", str(file)


def another_authority(cluster: EmbeddedCluster, directory: Path) -> str:
    """A certificate of another owner."""
    file, keytool = directory / "other.pem", cluster.jars.java.with_name("keytool")
    store = ("-keystore", str(directory / "other.p12"), "-storepass", "changeit", "-alias", "other")
    for command in (
        ("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=other", "-validity", "1"),
        ("-exportcert", "-rfc", "-file", str(file)),
    ):
        subprocess.run((str(keytool), *command, *store), check=True, capture_output=True)
    return str(file)


def test_another_cluster_than_the_expected_one_is_refused(odd: EmbeddedCluster, tmp_path: Path) -> None:
    done: Done = rackwise("status", *properties(odd, "admin", tmp_path), "--set", "cluster.id=another")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"rackwise: The brokers belong to cluster {odd.cluster_id}",
        "  why: cluster another is expected",
        "  do:  Check bootstrap.servers, or cluster.id.",
    ]
