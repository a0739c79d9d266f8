"""Checks of the Kafka connection's settings: each value by itself, then contradictions between settings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from config.kafka_keys import (
    KEY_LOCATION,
    SASL_MECHANISM,
    SASL_PASSWORD,
    SASL_USERNAME,
    SECURITY_PROTOCOL,
    KafkaKey,
)
from config.plain_file import why_not_plain
from config.secrets import masked
from config.setting_mistake import SettingMistake

_ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9_+.-]*://)?(\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]/]+):(\d{1,5})")
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


def checked_value(key: KafkaKey, value: str) -> str:
    """The value as both clients take it. Raises SettingMistake when it is not of the key's kind."""
    match key.kind:
        case "number":
            if not re.fullmatch(r"[0-9]{1,10}", value):
                raise SettingMistake(key.name, f"a whole number is expected, not {masked(value)!r}")
            return value
        case "choice":
            known = {choice.upper(): choice for choice in key.choices}
            if value.upper() not in known:
                raise SettingMistake(key.name, f"{masked(value)!r} is not offered; use one of {', '.join(key.choices)}")
            return known[value.upper()]
        case "list":
            return _checked_addresses(key.name, value)
        case "text":
            return _as_pem(key.name, value) if key.name.endswith(".pem") else value


def refuse_contradictions(values: Mapping[str, str]) -> None:
    """Raise SettingMistake for settings that are right alone and wrong, or without effect, together."""
    protocol = values.get(SECURITY_PROTOCOL, "PLAINTEXT")
    login = (SASL_MECHANISM, SASL_USERNAME, SASL_PASSWORD)
    given = [name for name in login if name in values]
    if protocol.startswith("SASL_") and len(given) < 3:
        missing = [name for name in login if name not in values]
        raise SettingMistake(SECURITY_PROTOCOL, f"{protocol} also needs {' and '.join(missing)}")
    if given and not protocol.startswith("SASL_"):
        raise SettingMistake(given[0], f"it has no effect with {SECURITY_PROTOCOL} {protocol}; use SASL_SSL")
    tls = [name for name in values if name.startswith("ssl.")]
    if tls and not protocol.endswith("SSL"):
        wanted = "SASL_SSL" if protocol.startswith("SASL_") else "SSL"
        raise SettingMistake(tls[0], f"it has no effect with {SECURITY_PROTOCOL} {protocol}; use {wanted}")
    for name in values:
        if name.endswith(".location") and (why := why_not_plain(values[name])) is not None:
            raise SettingMistake(name, f"{values[name]} cannot be read ({why})")
    given_as = {
        part: {f"ssl.{part}.location", f"ssl.{part}.pem"} & values.keys() for part in ("ca", "certificate", "key")
    }
    for part, names in given_as.items():
        if len(names) > 1:
            raise SettingMistake(f"ssl.{part}.pem", f"give it or ssl.{part}.location, not both")
    if bool(given_as["key"]) != bool(given_as["certificate"]):
        raise SettingMistake(KEY_LOCATION, "a client certificate needs both its key and its certificate")


def _checked_addresses(name: str, value: str) -> str:
    addresses = [address.strip() for address in value.split(",") if address.strip()]
    for address in addresses:
        found = _ADDRESS.fullmatch(address)
        if found is None or not 0 < int(found.group(2)) < 65536:
            raise SettingMistake(name, f"{masked(address)!r} is not host:port")
    return ",".join(f"{found[1]}:{found[2]}" for found in map(_ADDRESS.fullmatch, addresses) if found)


def _as_pem(name: str, value: str) -> str:
    """Inline PEM with its line breaks: Java takes it on one line, OpenSSL does not."""
    blocks = _PEM_BLOCK.findall(value)
    if not blocks:
        raise SettingMistake(name, "a text with -----BEGIN …----- and -----END …----- is expected")
    return "".join(_pem_block(label, body) for label, body in blocks)


def _pem_block(label: str, body: str) -> str:
    packed = "".join(body.split())
    if not re.fullmatch(r"[A-Za-z0-9+/=]*", packed):  # an old key with headers: leave its lines alone
        return f"-----BEGIN {label}-----{body}-----END {label}-----\n"
    lines = "\n".join(packed[at : at + 64] for at in range(0, len(packed), 64))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n"
