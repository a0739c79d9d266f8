"""Settings of the wire client, taken once from kafka-python's keyword arguments: addresses, SASL, TLS, limits."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from agent.errors import ConfigError
from config.kafka_keys import CA_LOCATION, CERTIFICATE_LOCATION, CRL_LOCATION

DEFAULT_FRAME_BYTES = 100_000_000

_GIVE = (
    "Give at least one host:port: option -b, environment variable RACKWISE_KAFKA_BOOTSTRAP_SERVERS, or setting "
    "kafka.bootstrap.servers of a config file."
)


class BrokerAddress(NamedTuple):
    """Host and port of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireSettings:
    """Bootstrap addresses, identity, TLS and limits."""

    bootstrap: tuple[BrokerAddress, ...]
    client_id: str
    version: str
    """Version of rackwise, which brokers show among their clients (KIP-511)."""
    sasl: Mapping[str, Any] | None
    """kafka-python's names; None when the listener takes any client."""
    tls: ssl.SSLContext | None
    max_frame_bytes: int
    setup_timeout_ms: int
    """Upper bound for one connection's set-up, within the call's own deadline."""
    max_idle_ms: int


def wire_settings(arguments: Mapping[str, Any]) -> WireSettings:
    """Settings of kafka-python's keyword arguments. Raises ConfigError for a missing address or an unreadable file."""
    if not arguments.get("bootstrap_servers"):
        raise ConfigError("bootstrap.servers is not set", todo=_GIVE)
    protocol = str(arguments.get("security_protocol", "PLAINTEXT"))
    return WireSettings(
        bootstrap=tuple(map(_address, arguments["bootstrap_servers"])),
        client_id=str(arguments.get("client_id", "rackwise")),
        version=_own_version(),
        sasl=_sasl(arguments, protocol) if protocol.startswith("SASL_") else None,
        tls=_tls_context(arguments) if protocol.endswith("SSL") else None,
        max_frame_bytes=int(arguments.get("receive_message_max_bytes", DEFAULT_FRAME_BYTES)),
        setup_timeout_ms=int(arguments.get("socket_connection_setup_timeout_ms", 10_000)),
        max_idle_ms=int(arguments.get("connections_max_idle_ms", 540_000)),
    )


def _own_version() -> str:
    try:
        return metadata.version("rackwise")
    except metadata.PackageNotFoundError:  # run from a tree that was never installed
        return "unknown"


def _address(text: str) -> BrokerAddress:
    host, _, port = text.rpartition(":")
    return BrokerAddress(host.strip("[]"), int(port))


def _sasl(arguments: Mapping[str, Any], protocol: str) -> dict[str, Any]:
    return {
        "sasl_mechanism": arguments.get("sasl_mechanism"),
        "sasl_plain_username": arguments.get("sasl_plain_username"),
        "sasl_plain_password": arguments.get("sasl_plain_password"),
        "security_protocol": protocol,
    }


def _tls_context(arguments: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = bool(arguments.get("ssl_check_hostname", True))
    _load_authorities(context, arguments)
    if arguments.get("ssl_certfile") or arguments.get("ssl_certdata"):
        _load_own_certificate(context, arguments)
    return context


def _load_authorities(context: ssl.SSLContext, arguments: Mapping[str, Any]) -> None:
    file, data = arguments.get("ssl_cafile"), arguments.get("ssl_cadata")
    try:
        if file or data:
            context.load_verify_locations(cafile=file, cadata=data)
        else:
            context.load_default_certs()
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(CA_LOCATION, file, error) from error
    crl = arguments.get("ssl_crlfile")
    if crl:
        try:
            context.load_verify_locations(cafile=crl)
        except (OSError, ssl.SSLError) as error:
            raise _unreadable(CRL_LOCATION, crl, error) from error
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_own_certificate(context: ssl.SSLContext, arguments: Mapping[str, Any]) -> None:
    # A password of None would make OpenSSL ask at the terminal.
    password = arguments.get("ssl_password") or ""
    certificate, key = arguments.get("ssl_certfile"), arguments.get("ssl_keyfile")
    try:
        if certificate and key:
            context.load_cert_chain(certificate, key, password)
            return
        with tempfile.TemporaryDirectory(prefix="rackwise-") as folder:
            certificate = certificate or _private_file(folder, "certificate", arguments["ssl_certdata"])
            key = key or _private_file(folder, "key", arguments["ssl_keydata"])
            context.load_cert_chain(certificate, key, password)
    except (OSError, ssl.SSLError) as error:
        raise _unreadable(CERTIFICATE_LOCATION, arguments.get("ssl_certfile"), error) from error


def _private_file(folder: str, name: str, content: str) -> str:
    """A file of mode 0600 in that folder, as OpenSSL reads keys from files only."""
    path = Path(folder) / name
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(content)
    return str(path)


def _unreadable(key: str, file: object, error: Exception) -> ConfigError:
    if isinstance(error, ssl.SSLError):
        why = "it is not valid PEM, or its password is wrong"
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            why = "the key and the certificate do not belong together"
    else:
        why = getattr(error, "strerror", None) or str(error)
    where = str(file) if file else "the inline PEM"
    return ConfigError(f"{key} cannot be used", why=f"{where}: {why}", todo="Name a readable PEM file.")
