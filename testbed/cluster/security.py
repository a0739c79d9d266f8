"""TLS, SCRAM and ACLs for an embedded cluster: its files, and the settings of brokers and clients.

Invariant: one self-signed certificate for 127.0.0.1 serves all brokers and is its own authority; it is in
the cluster's directory.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path

from testbed.cluster.errors import BadSpec, ClusterError
from testbed.cluster.jars import JarSet
from testbed.cluster.settings import STANDARD_AUTHORIZER
from testbed.cluster.spec import ClusterSecurity, ClusterSpec

_MECHANISM = "SCRAM-SHA-512"
_ITERATIONS = 4096
_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def make_certificate(cluster_directory: Path, jars: JarSet) -> None:
    """Write the brokers' key store and the authority file clients trust. Raises ClusterError when keytool fails."""
    password = secrets.token_hex(12)
    _password_file(cluster_directory).write_text(password, encoding="ascii")
    _password_file(cluster_directory).chmod(0o600)
    keytool = jars.java.with_name("keytool")
    store = ("-keystore", str(_key_store(cluster_directory)), "-storetype", "PKCS12", "-storepass", password)
    _run(
        (str(keytool), "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-groupname", "secp256r1",
         "-dname", "CN=rackwise embedded cluster", "-validity", "3650", "-ext", "san=ip:127.0.0.1,dns:localhost",
         "-ext", "bc:c=ca:true", *store)
    )  # fmt: skip
    certificate = ("-exportcert", "-rfc", "-alias", "broker", "-file", str(authority_file(cluster_directory)))
    _run((str(keytool), *certificate, *store))


def authority_file(cluster_directory: Path) -> Path:
    """PEM file of the authority that signed the brokers' certificate."""
    return cluster_directory / "ca.pem"


def scram_users(security: ClusterSecurity | None) -> tuple[str, ...]:
    """Values for the storage tool's `--add-scram`."""
    users = security.users.items() if security else ()
    return tuple(f"{_MECHANISM}=[name={name},password={password},iterations={_ITERATIONS}]" for name, password in users)


def broker_security(spec: ClusterSpec, cluster_directory: Path) -> dict[str, str]:
    """Settings of a broker in addition to its listeners; empty for a cluster in plain text."""
    if spec.security is None:
        return {}
    admin = next(iter(spec.security.users))
    settings = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        # The brokers' own listener is in plain text, so among themselves they are anonymous.
        "super.users": f"User:{admin};User:ANONYMOUS",
        "sasl.enabled.mechanisms": _MECHANISM,
        "ssl.keystore.location": str(_key_store(cluster_directory)),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": _password_file(cluster_directory).read_text(encoding="ascii"),
        "listener.name.client.scram-sha-512.sasl.jaas.config": _LOGIN,
    }
    if spec.proxied:
        settings["listener.name.proxied.scram-sha-512.sasl.jaas.config"] = _LOGIN
    return settings


def client_settings(spec: ClusterSpec, cluster_directory: Path, user: str, *, proxied: bool = False) -> dict[str, str]:
    """Properties of a Java client that reaches the cluster as this user; empty in plain text."""
    if spec.security is None:
        return {}
    password = _password(spec.security.users, user)
    settings = {
        "security.protocol": "SASL_PLAINTEXT" if proxied else "SASL_SSL",
        "sasl.mechanism": _MECHANISM,
        "sasl.jaas.config": f'{_LOGIN[:-1]} username="{user}" password="{password}";',
    }
    if not proxied:
        settings |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority_file(cluster_directory)),
        }
    return settings


def _password(users: Mapping[str, str], user: str) -> str:
    if user not in users:
        raise BadSpec(f"The cluster has no user {user!r}", why=f"its users are {', '.join(sorted(users))}")
    return users[user]


def _key_store(cluster_directory: Path) -> Path:
    return cluster_directory / "broker.p12"


def _password_file(cluster_directory: Path) -> Path:
    return cluster_directory / "broker.p12.password"


def _run(command: tuple[str, ...]) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
    except OSError as error:
        raise ClusterError(
            f"{command[0]} could not be run",
            why=str(error),
            todo="Install a whole JDK; a runtime alone has no keytool.",
        ) from error
    if done.returncode:
        output = (done.stdout or done.stderr).strip()
        raise ClusterError("keytool could not make the brokers' certificate", why=output)
