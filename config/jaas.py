"""User and password of a ``sasl.jaas.config`` line; login modules that load code or need a ticket are refused.

The grammar is JAAS's own: ``class flag name=value ...;`` where a value may be quoted and a backslash escapes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from config.kafka_keys import JAAS
from config.setting_mistake import SettingMistake

_FLAGS = {"required", "requisite", "sufficient", "optional"}
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([=;])|([^\s=;"]+))')
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"


class JaasLogin(NamedTuple):
    """The login of a JAAS line; ``scram`` is True for ScramLoginModule, False for PlainLoginModule."""

    username: str
    password: str
    scram: bool


def parse_jaas(line: str) -> JaasLogin:
    """User and password of a PLAIN or SCRAM login module. Raises SettingMistake, whose text never holds a value."""
    tokens = _tokens(line)
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise SettingMistake(JAAS, f'write it as: {SCRAM_LOGIN} required username="…" password="…";')
    module, options = tokens[0], _options(tokens[2:])
    if module not in (PLAIN_LOGIN, SCRAM_LOGIN):
        raise SettingMistake(JAAS, _refusal(module))
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise SettingMistake(JAAS, f"{' and '.join(missing)} missing")
    return JaasLogin(options["username"], options["password"], module == SCRAM_LOGIN)


def _tokens(line: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    text = line.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise SettingMistake(JAAS, "a quote is not closed")
        quoted, sign, bare = found.groups()
        tokens.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else sign or bare)
        at = found.end()
    if tokens and tokens[-1] == ";":
        return tokens[:-1]
    raise SettingMistake(JAAS, "it must end with a semicolon")


def _options(tokens: list[str]) -> dict[str, str]:
    if len(tokens) % 3 or any(sign != "=" for sign in tokens[1::3]) or ";" in tokens[0::3]:
        raise SettingMistake(JAAS, "options are written name=value, and one login module is enough")
    return dict(zip(tokens[0::3], tokens[2::3], strict=True))


def _refusal(module: str) -> str:
    short = module.rsplit(".", 1)[-1]
    if short == "Krb5LoginModule":
        return "Kerberos is not supported; use SCRAM or a TLS client certificate"
    if short == "OAuthBearerLoginModule":
        return "OAUTHBEARER is not supported; use SCRAM or a TLS client certificate"
    return f"{short} is not supported, and rackwise loads no code; use PlainLoginModule or ScramLoginModule"
