"""TLS, SCRAM and ACLs on real brokers: a refusal is named, and a missing right never looks like an empty cluster."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # documented there, but not in its __all__
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from agent.errors import AuthenticationFailed, ClusterUnreachable, ConfigError, RackwiseError, TlsFailed
from agent.observe.context import ObserverClients, ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.observation import GapCause, Observation, ObservationPart, PrincipalRights
from config.kafka_client import KafkaClientConfig
from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.observe.live import commit, gaps, kinds, topics, wait_for

pytestmark = pytest.mark.integration

RIGHTS = (
    (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS),
    (ResourceType.TOPIC, "*", AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "*", AclOperation.DESCRIBE_CONFIGS),
    (ResourceType.GROUP, "*", AclOperation.DESCRIBE),
)
"""What an observer needs, and no more."""
SUBSETS = tuple(itertools.product((False, True), repeat=len(RIGHTS)))
PASSWORD = "observer-secret"


def name_of(subset: tuple[bool, ...]) -> str:
    return "v" + "".join("01"[granted] for granted in subset)


ALL = name_of((True,) * len(RIGHTS))


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedCluster]:
    """Two brokers that ask for TLS and a password; one user for each subset of the observer's rights."""
    users = {"admin": "admin-secret", "changing": PASSWORD} | dict.fromkeys(map(name_of, SUBSETS), PASSWORD)
    spec = ClusterSpec(racks=("a", "b"), security=ClusterSecurity(users=users))
    with EmbeddedCluster.start(spec, on_progress=print) as started:
        config = config_of(started, "admin")
        admin = AdminClient(config.confluent())
        grant(admin, [acl(name_of(one), *right) for one in SUBSETS for right in itertools.compress(RIGHTS, one)])
        with topics(admin, config.kafka_python(), guarded_one=2, guarded_two=1):
            commit(config.confluent(), "guarded-group", "guarded-one", 0)
            yield started


@pytest.fixture
def admin(guarded: EmbeddedCluster) -> AdminClient:
    return AdminClient(config_of(guarded, "admin").confluent())


def config_of(cluster: EmbeddedCluster, user: str) -> KafkaClientConfig:
    return KafkaClientConfig.of({"bootstrap.servers": cluster.bootstrap_servers, **cluster.client_properties(user)})


def acl(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def grant(admin: AdminClient, bindings: list[AclBinding]) -> None:
    for future in admin.create_acls(bindings).values():
        future.result(30)


def revoke(admin: AdminClient, user: str, kind: ResourceType) -> None:
    wanted = AclBindingFilter(
        kind, None, ResourcePatternType.ANY, f"User:{user}", None, AclOperation.ANY, AclPermissionType.ANY
    )
    for future in admin.delete_acls([wanted]).values():
        future.result(30)


def look(cluster: EmbeddedCluster, user: str, recall: ObserverState | None = None) -> Observation:
    with ObserverClients.open(config_of(cluster, user)) as clients:
        return observe(clients, system_clock, ObserveScope(), recall)


@pytest.mark.parametrize(
    ("changed", "kind", "sentence"),
    [
        pytest.param(
            {"sasl.password": "wrong"},
            AuthenticationFailed,
            "refused user 'admin': Authentication failed during authentication due to invalid credentials with SASL"
            " mechanism SCRAM-SHA-512. Check sasl.mechanism, sasl.username and sasl.password.",
            id="a wrong password",
        ),
        pytest.param({"sasl.username": "nobody"}, AuthenticationFailed, "refused user 'nobody'", id="an unknown user"),
        pytest.param(
            {"sasl.mechanism": "PLAIN"},
            AuthenticationFailed,
            "it does not offer PLAIN, but SCRAM-SHA-512. Check sasl.mechanism",
            id="a mechanism that is not offered",
        ),
        pytest.param(
            {"ssl.ca.location": "OTHER"},
            TlsFailed,
            "its certificate is not trusted (self-signed certificate). Check ssl.ca.location and the broker's",
            id="a wrong CA",
        ),
        pytest.param(
            {"security.protocol": "SASL_PLAINTEXT"}, TlsFailed, "requires TLS. Set security.protocol to", id="no TLS"
        ),
    ],
)
def test_a_refusal_names_its_cause_at_once(
    guarded: EmbeddedCluster, tmp_path: Path, changed: dict[str, str], kind: type[RackwiseError], sentence: str
) -> None:
    written = {"bootstrap.servers": guarded.bootstrap_servers, **guarded.client_properties("admin")}
    del written["sasl.jaas.config"]
    written |= {"sasl.username": "admin", "sasl.password": "admin-secret"}
    if "ssl.ca.location" in changed:
        changed = {"ssl.ca.location": str(_another_authority(guarded.jars.java.with_name("keytool"), tmp_path))}
    if changed.get("security.protocol") == "SASL_PLAINTEXT" or "ssl.ca.location" in changed:
        written = {key: value for key, value in written.items() if not key.startswith("ssl.")}
    config = KafkaClientConfig.of({**written, **changed})
    began = time.monotonic()
    with ObserverClients.open(config) as clients, pytest.raises(kind) as caught:
        observe(clients, system_clock)
    assert time.monotonic() - began < 3, "not by a time-out"
    assert sentence in str(caught.value)
    assert caught.value.exit_code == 2
    assert "admin-secret" not in str(caught.value)


def test_a_listener_that_wants_a_password_is_named(guarded: EmbeddedCluster) -> None:
    written = {
        "bootstrap.servers": guarded.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": str(guarded.authority_file),
    }
    with ObserverClients.open(KafkaClientConfig.of(written)) as clients, pytest.raises(ClusterUnreachable) as caught:
        observe(clients, system_clock)
    assert "its listener may require SASL (security.protocol)" in caught.value.why


def test_a_ca_file_that_is_not_there_is_named_before_anything_is_connected(guarded: EmbeddedCluster) -> None:
    given = guarded.client_properties("admin").items()
    with pytest.raises(ConfigError, match=r"ssl\.ca\.location cannot be used: /no/ca\.pem: No such file"):
        ObserverClients.open(
            KafkaClientConfig.of(
                {
                    **{name: value for name, value in given if not name.startswith("ssl.truststore.")},
                    "bootstrap.servers": guarded.bootstrap_servers,
                    "ssl.ca.location": "/no/ca.pem",
                }
            )
        )


def _another_authority(keytool: Path, folder: Path) -> Path:
    """A certificate that signed nothing here; made with the JDK's own tool."""
    where = folder / "other.pem"
    store = ("-keystore", str(folder / "other.p12"), "-storepass", "changeit", "-alias", "other")
    for command in (
        ("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=other", "-validity", "1"),
        ("-exportcert", "-rfc", "-file", str(where)),
    ):
        subprocess.run((str(keytool), *command, *store), check=True, capture_output=True)
    return where


def test_an_observers_rights_are_enough_to_see_everything(guarded: EmbeddedCluster) -> None:
    seen, whole = look(guarded, ALL), look(guarded, "admin")
    assert gaps(seen) == gaps(whole) == []
    assert [topic.name for topic in seen.topics] == [topic.name for topic in whole.topics]
    assert seen.groups == whole.groups
    assert seen.rights == PrincipalRights(
        cluster_describe=True,
        cluster_describe_configs=True,
        cluster_alter=False,
        topics_hidden=0,
        groups_hidden=0,
    )
    assert whole.rights.cluster_alter is True


def test_without_any_right_every_part_says_that_it_is_not_allowed(guarded: EmbeddedCluster) -> None:
    seen = look(guarded, name_of((False,) * len(RIGHTS)))
    assert (seen.topics, seen.listed_groups, seen.replica_bytes, seen.broker_configs) == ((), (), {}, {})
    assert [broker.rack for broker in seen.brokers] == ["a", "b"]
    assert kinds(gaps(seen)) == {
        (ObservationPart.TOPICS, GapCause.NOT_ALLOWED, ""),
        (ObservationPart.GROUPS, GapCause.NOT_ALLOWED, ""),
        (ObservationPart.REASSIGNMENTS, GapCause.NOT_ALLOWED, ""),
        *((part, GapCause.NOT_ALLOWED, f"broker {number}") for part in PER_BROKER for number in (1, 2)),
    }
    assert seen.rights == PrincipalRights(cluster_describe=False, cluster_describe_configs=False, cluster_alter=False)


PER_BROKER = (ObservationPart.LOG_DIRS, ObservationPart.BROKER_CONFIGS)

NAMED_BY = {
    "topics": {ObservationPart.TOPICS},
    "topic_configs": {ObservationPart.TOPIC_CONFIGS, ObservationPart.TOPICS},
    "broker_configs": {ObservationPart.BROKER_CONFIGS},
    "committed_offsets": {ObservationPart.COMMITTED_OFFSETS, ObservationPart.GROUPS},
    "end_offsets": {ObservationPart.END_OFFSETS, ObservationPart.TOPICS},
    "listed_groups": {ObservationPart.GROUPS},
    "groups": {ObservationPart.GROUPS},
    "replica_bytes": {ObservationPart.LOG_DIRS},
}
"""A field -> the parts whose gap says why something is missing in it."""


@pytest.mark.parametrize("subset", [pytest.param(one, id=name_of(one)) for one in SUBSETS])
def test_whatever_rights_are_missing_nothing_is_silently_empty(
    guarded: EmbeddedCluster, subset: tuple[bool, ...]
) -> None:
    seen, whole = look(guarded, name_of(subset)), look(guarded, ALL)
    told = {gap.part for gap in gaps(seen) if gap.cause is GapCause.NOT_ALLOWED}
    silent = {
        field
        for field, parts in NAMED_BY.items()
        if len(getattr(seen, field)) < len(getattr(whole, field)) and not parts & told
    }
    assert silent == set()
    complete = all(len(getattr(seen, field)) == len(getattr(whole, field)) for field in NAMED_BY)
    assert complete is (gaps(seen) == [])


def test_rights_that_are_lost_while_we_watch_hide_names_and_never_delete_them(
    guarded: EmbeddedCluster, admin: AdminClient
) -> None:
    user, recall = "changing", ObserverState()
    grant(admin, [acl(user, *right) for right in RIGHTS])
    before = wait_for(lambda: not gaps(seen := look(guarded, user)) and seen, "the rights have come")
    assert look(guarded, user, recall).topics == before.topics
    revoke(admin, user, ResourceType.TOPIC)
    revoke(admin, user, ResourceType.GROUP)
    revoke(admin, user, ResourceType.BROKER)
    wait_for(lambda: look(guarded, user).rights.cluster_describe is False, "the rights have gone")
    after = look(guarded, user, recall)
    assert (after.topics, after.listed_groups) == ((), ())
    assert (after.vanished_topics, after.vanished_groups) == ((), ())
    assert after.rights.topics_hidden == len(before.topics)
    assert after.rights.groups_hidden == len(before.listed_groups)
    hidden = [gap for gap in gaps(after, ObservationPart.TOPICS) if gap.subject]
    assert [(gap.cause, gap.subject) for gap in hidden] == [(GapCause.NOT_ALLOWED, f"{len(before.topics)} topics")]
    assert "no longer visible: DESCRIBE is denied; grant DESCRIBE on topics" in hidden[0].detail
    again = look(guarded, user, recall)
    assert again.rights.topics_hidden == len(before.topics), "what is hidden stays known"
    grant(admin, [acl(user, *right) for right in RIGHTS])
    healed = wait_for(lambda: not gaps(seen := look(guarded, user, recall)) and seen, "the rights are back")
    assert (healed.rights.topics_hidden, healed.rights.groups_hidden) == (0, 0)
    assert healed.topics == before.topics
    revoke(admin, user, ResourceType.ANY)


def test_topics_that_only_log_dirs_show_are_counted_as_hidden_at_the_first_look(guarded: EmbeddedCluster) -> None:
    user = name_of((True, True, False, False, True))
    seen, whole = look(guarded, user), look(guarded, ALL)
    assert seen.topics == ()
    assert seen.rights.topics_hidden == len(whole.topics)
