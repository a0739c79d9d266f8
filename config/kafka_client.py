"""Settings of one Kafka connection in Kafka's dotted names, for confluent-kafka and kafka-python.

Secrets are `SecretStr`. The only files read are those of references and of an imported properties file. Mistakes are
reported in this order: a refused key, an unknown key (with the nearest one), a wrong value, contradictions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from pydantic import ConfigDict, RootModel, SecretStr, model_validator
from pydantic_core import PydanticUndefined

from config.jaas import parse_jaas
from config.kafka_checks import checked_value, refuse_contradictions
from config.kafka_keys import (
    ALIASES,
    CA_LOCATION,
    CERTIFICATE_LOCATION,
    CLIENT_ID,
    DEFAULT_CLIENT_ID,
    FOLDED,
    HOST_CHECK,
    IGNORED,
    JAAS,
    KEY_LOCATION,
    KEYS,
    KEYSTORES,
    MECHANISMS,
    REFUSED,
    SASL_MECHANISM,
    SASL_PASSWORD,
    SASL_USERNAME,
    SECURITY_PROTOCOL,
    STORES,
    KafkaKey,
)
from config.properties import resolve_references
from config.setting_mistake import SettingMistake, nearest

_PROVIDER_CLASSES = ("EnvVarConfigProvider", "FileConfigProvider", "DirectoryConfigProvider")
_PEM_SUFFIXES = (".pem", ".crt", ".cer", ".key", ".ca")

_TO_PEM = {
    "JKS": "keytool -importkeystore -srckeystore STORE.jks -destkeystore STORE.p12 -deststoretype PKCS12 && "
    "openssl pkcs12 -in STORE.p12 -out STORE.pem -nodes",
    "PKCS12": "openssl pkcs12 -in STORE.p12 -out STORE.pem -nodes",
}


class KafkaClientConfig(RootModel[dict[str, str | SecretStr]]):
    """The checked connection settings, dotted name -> value, in the table's own names (aliases and JAAS resolved).

    Build it from a mapping: with `of`, or as a field of the settings. There pydantic wraps the `SettingMistake` of a
    mistake: the outer model must set ``hide_input_in_errors``, or pydantic prints the raw values.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    root: dict[str, str | SecretStr] = {}

    @model_validator(mode="before")
    @classmethod
    def _check(cls, raw: Any) -> Any:
        if isinstance(raw, cls):
            return raw.root
        if raw is None or raw is PydanticUndefined:
            return {}
        if not isinstance(raw, Mapping):
            raise SettingMistake("", "the kafka section holds dotted names, such as bootstrap.servers: host:9092")
        written = {str(key): _as_text(str(key), value) for key, value in raw.items()}
        return cls._checked(_folded(written, os.environ))

    @classmethod
    def of(cls, values: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Self:
        """Settings of a mapping of dotted names. Raises SettingMistake itself, not pydantic's error."""
        return cls._of_folded(_folded(values, os.environ if environ is None else environ))

    def under(self, over: KafkaClientOverrides) -> KafkaClientConfig:
        """The same with overrides that were checked already one by one; what is replaced goes as a whole."""
        values = {name: value for name, value in self._plain().items() if _rivals(name).isdisjoint(over.root)}
        return self._of_folded({**values, **over._plain()})  # noqa: SLF001 the same class

    def confluent(self) -> dict[str, str | int]:
        """Configuration for confluent-kafka. Holds secrets in clear text: pass it to the client, keep it nowhere.

        Every client has a name, and none writes log lines of its own to stderr: causes come with its errors.
        """
        settings = {key.confluent: _typed(key, value) for key, value in self._keys() if key.confluent is not None}
        return {CLIENT_ID: DEFAULT_CLIENT_ID, **settings, "log_level": 0}

    def kafka_python(self) -> dict[str, Any]:
        """Keyword arguments in kafka-python's names; ``ssl_cadata``, ``ssl_certdata``, ``ssl_keydata`` are PEM."""
        arguments: dict[str, Any] = {"client_id": DEFAULT_CLIENT_ID} | {
            key.python: _typed(key, value) for key, value in self._keys() if key.python is not None
        }
        if "bootstrap_servers" in arguments:
            arguments["bootstrap_servers"] = arguments["bootstrap_servers"].split(",")
        if "ssl_check_hostname" in arguments:
            arguments["ssl_check_hostname"] = arguments["ssl_check_hostname"] == "https"
        return arguments

    def masked(self) -> dict[str, str]:
        """The settings for a person's eyes: every secret is stars."""
        return {key: "******" if isinstance(value, SecretStr) else value for key, value in self.root.items()}

    def not_secret(self) -> dict[str, str]:
        """The settings that are not secret."""
        return {key: value for key, value in self.root.items() if isinstance(value, str)}

    def secrets(self) -> tuple[str, ...]:
        """The secret values themselves, for the log's redaction."""
        return tuple(value.get_secret_value() for value in self.root.values() if isinstance(value, SecretStr))

    def warnings(self) -> tuple[str, ...]:
        """Sentences about what works but is weak."""
        found: list[str] = []
        protocol = self.root.get(SECURITY_PROTOCOL, "PLAINTEXT")
        if self.root.get(HOST_CHECK) == "none":
            found.append(f"host names of brokers are not checked ({HOST_CHECK} is off)")
        if protocol == "SASL_PLAINTEXT" and self.root.get(SASL_MECHANISM) == "PLAIN":
            found.append("the password crosses the network in clear text; use SASL_SSL")
        return tuple(found)

    @classmethod
    def _of_folded(cls, values: Mapping[str, str]) -> Self:
        return cls.model_construct(root=cls._checked(values))

    @classmethod
    def _checked(cls, folded: Mapping[str, str]) -> dict[str, str | SecretStr]:
        """Each value checked on its own, then together; secrets wrapped."""
        checked = _checked_each(folded)
        refuse_contradictions(checked)
        return _wrapped(checked)

    def _keys(self) -> list[tuple[KafkaKey, str]]:
        return [(KEYS[name], value) for name, value in self._plain().items()]

    def _plain(self) -> dict[str, str]:
        return {k: v.get_secret_value() if isinstance(v, SecretStr) else v for k, v in self.root.items()}


class KafkaClientOverrides(KafkaClientConfig):
    """What another principal's connection differs in; whether it is whole shows when it is put over another."""

    @classmethod
    def _checked(cls, folded: Mapping[str, str]) -> dict[str, str | SecretStr]:
        return _wrapped(_checked_each(folded))


def notes_on(values: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence when keys of producers and consumers were left out, naming them."""
    left_out = sorted(key for key in values if key in IGNORED)
    return (f"ignored, as they are settings of producers or consumers: {', '.join(left_out)}",) if left_out else ()


def _folded(raw: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The settings in the table's own names: references resolved, aliases, JAAS and stores translated."""
    wanted = {key: value for key, value in _without_providers(raw).items() if key not in IGNORED}
    values = {key: value.strip() for key, value in resolve_references(wanted, environ).items()}
    if values.get(HOST_CHECK) == "":
        values[HOST_CHECK] = "none"  # Java's way to switch it off
    return _with_stores(_with_jaas(_renamed(values)))


def _checked_each(folded: Mapping[str, str]) -> dict[str, str]:
    """Each value checked on its own, in the table's order."""
    return {name: checked_value(KEYS[name], folded[name]) for name in KEYS if folded.get(name)}


def _wrapped(checked: Mapping[str, str]) -> dict[str, str | SecretStr]:
    return {name: SecretStr(value) if KEYS[name].secret else value for name, value in checked.items()}


def _rivals(name: str) -> set[str]:
    """Names that contradict it: the same thing given as a file and inline."""
    return {name.replace(".location", ".pem"), name.replace(".pem", ".location")} - {name}


def _as_text(key: str, value: object) -> str:
    """A YAML or environment value as the text a properties file would hold."""
    match value:
        case SecretStr():
            return value.get_secret_value()
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case [*items]:
            return ",".join(str(item) for item in items)
        case _:
            raise SettingMistake(key, "a text or a number is expected")


def _without_providers(raw: Mapping[str, str]) -> dict[str, str]:
    """Without the declaration of Kafka's own config providers; any other provider class is code to load."""
    rest: dict[str, str] = {}
    for key, value in raw.items():
        if key != "config.providers" and not key.startswith("config.providers."):
            rest[key] = value
        elif key.endswith(".class") and value.strip().rsplit(".", 1)[-1] not in _PROVIDER_CLASSES:
            raise SettingMistake(key, "only Kafka's env, file and directory providers are offered")
    return rest


def _renamed(values: Mapping[str, str]) -> dict[str, str]:
    """Aliases under their own name; refused and unknown keys are mistakes."""
    named: dict[str, str] = {}
    for key, value in values.items():
        name = ALIASES.get(key, key)
        if name not in KEYS and name not in FOLDED:
            _refuse(key, value)
            continue
        if named.get(name, value) != value:
            raise SettingMistake(key, f"it contradicts another name of the same setting, {name}; give one of them")
        named[name] = value
    return named


def _refuse(key: str, value: str) -> None:
    """Raise for a key that is not accepted; return for one that sets what holds anyway."""
    if key == "enable.ssl.certificate.verification":
        if value.lower() == "true":
            return
        raise SettingMistake(key, "certificates are always verified; name the CA in ssl.ca.location")
    for pattern, sentence in REFUSED:
        if pattern.fullmatch(key):
            raise SettingMistake(key, sentence)
    near = nearest(key, [*KEYS, *ALIASES, *FOLDED])
    raise SettingMistake(key, f"no such setting; did you mean {near}?" if near else "no such setting")


def _with_jaas(values: dict[str, str]) -> dict[str, str]:
    line = values.pop(JAAS, "")
    if not line:
        return values
    login = parse_jaas(line)
    mechanism = values.get(SASL_MECHANISM, "").upper()
    if mechanism in MECHANISMS and mechanism.startswith("SCRAM") != login.scram:
        raise SettingMistake(JAAS, f"its login module does not fit {SASL_MECHANISM} {mechanism}")
    for name, value in ((SASL_USERNAME, login.username), (SASL_PASSWORD, login.password)):
        if values.get(name, value) != value:
            raise SettingMistake(JAAS, f"it contradicts {name}; give one of them")
        values[name] = value
    return values


def _with_stores(values: dict[str, str]) -> dict[str, str]:
    """Java's PEM stores as file locations; JKS and PKCS12 are refused with the command that converts them."""
    trust = _pem_location(values, STORES)
    if trust:
        _put(values, CA_LOCATION, trust, STORES[0])
    keys = _pem_location(values, KEYSTORES)
    if keys:
        _put(values, CERTIFICATE_LOCATION, keys, KEYSTORES[0])
        _put(values, KEY_LOCATION, keys, KEYSTORES[0])
    return values


def _pem_location(values: dict[str, str], names: tuple[str, str, str]) -> str:
    location, kind, password = (values.pop(name, "") for name in names)
    store_type = kind.upper()
    if location and not store_type:
        store_type = "PEM" if location.lower().endswith(_PEM_SUFFIXES) else "JKS"
        if location.lower().endswith((".p12", ".pfx")):
            store_type = "PKCS12"
    if store_type in ("", "PEM"):
        if password and store_type == "PEM":
            raise SettingMistake(names[2], "a PEM store has no password; a key's own password is ssl.key.password")
        return location
    command = _TO_PEM.get(store_type, _TO_PEM["JKS"])
    raise SettingMistake(names[0], f"a {store_type} store can only be read by Java; convert it to PEM: {command}")


def _put(values: dict[str, str], name: str, value: str, source: str) -> None:
    if values.get(name, value) != value:
        raise SettingMistake(source, f"it contradicts {name}; give one of them")
    values[name] = value


def _typed(key: KafkaKey, value: str) -> str | int:
    return int(value) if key.kind == "number" else value
