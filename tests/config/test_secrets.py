"""Canaries in every setting that can hold a secret, and in no output.

The settings are walked by their types: a text that a new setting takes is under test by itself. Each text gets every
form of a secret: a user and a query of a URL, a name with its value, arguments of a program, a reference to a file.
"""

from __future__ import annotations

import io
import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from agent.daemon.limits_from_settings import to_leadership_plan, to_limits, to_scope
from agent.errors import ConfigError, error_lines
from agent.process import load_checked_settings
from agent.telemetry.events import LimitsData
from agent.telemetry.looks import limits_data
from agent.values.typed_json import to_json
from config.catalogue import by_name, is_client, mapped_model, section_model
from config.kafka_keys import ALIASES, FOLDED, KEYS
from config.load import LoadedSettings, SettingsRefusedError, effective, load_settings
from config.logging import set_up_logging
from config.secrets import (
    MASK,
    hidden,
    is_secret_name,
    masked,
    secrets_in,
    shown,
    without_resolved,
    without_url_secrets,
)
from config.settings import Settings

CANARY = "canary-51fe"
FORMS = {
    "a user of a URL": f"https://admin:{CANARY}@host/x",
    "a token for a user": f"https://{CANARY}@host/x",
    "a query of a URL": f"https://host/x?sig={CANARY}&se=1",
    "a fragment of a URL": f"https://host/x#{CANARY}",
    "a key of an object store": f"s3a://AKIA:{CANARY}/with/a-slash@bucket/x",
    "a key after an access key": f"wasbs://data:{CANARY}@account.blob.core.windows.net/x",
    "a name with its value": f"-Djavax.net.ssl.trustStorePassword={CANARY}",
    "a header": f"Authorization: Bearer {CANARY}",
}


class Leaf(typing.NamedTuple):
    """A place for a value: its dotted name, and whether the user chose the last part of it."""

    name: str
    chosen: bool
    takes_text: bool


CHOSEN = {
    "conf": ("spark.hadoop.fs.defaultFS", "spark.hadoop.fs.s3a.secret.key", "spark.driver.extraJavaOptions"),
    "properties": ("file.path", "command.argv", "broker-list.password", "alias.other"),
    "between": ("a->b",),
    "changelogs": ("0",),
    "people": ("ann",),
}
"""What a user may choose as the last part, by the mapping; a mapping that is missing here fails the test."""


def leaves(model: type[BaseModel] = Settings, above: str = "") -> Iterator[Leaf]:
    for name, field in by_name(model).items():
        path = f"{above}{name}"
        section, item = section_model(field), mapped_model(field)
        if section is not None:
            yield from leaves(section, f"{path}.")
        elif item is not None:
            yield from leaves(item, f"{path}.one.")
        elif is_client(field):
            yield from (Leaf(f"{path}.{key}", chosen=False, takes_text=True) for key in (*KEYS, *ALIASES, *FOLDED))
        elif typing.get_origin(field.annotation) is dict:
            yield from (Leaf(f"{path}.{key}", chosen=True, takes_text=_takes_text(field)) for key in CHOSEN[name])
        else:
            yield Leaf(path, chosen=False, takes_text=_takes_text(field))


def _takes_text(field: FieldInfo) -> bool:
    return _has_text(field.annotation)


def _has_text(kind: Any) -> bool:
    return kind in (str, SecretStr) or any(map(_has_text, typing.get_args(kind)))


LEAVES = tuple(leaves())
NAMES_OF_KAFKA = {
    "cluster.id", "scope.exclude_topics", "scope.exclude_groups", "task.assignor.class", "approve.rules.one.reasons",
    "execute.include_topics", "execute.exclude_topics", "execute.include_groups", "execute.exclude_groups",
    "approve.rules.one.topics", "approve.rules.one.groups", "rack.locator.properties.alias.other",
    "groups.one.topology.source_changelogs", "groups.one.topology.stateless_subtopologies",
    "groups.one.topology.no_changelog_subtopologies", "groups.one.topology.changelogs.0",
    "groups.one.client.software.name", "groups.one.task.assignor.class",
}  # fmt: skip
"""Names of topics, groups, racks and classes are part of the basis of decisions, and are whole in each look."""
UNUSED = {f"{of}.ssl.{store}.password" for of in ("kafka", "execute.kafka") for store in ("truststore", "keystore")}
"""Passwords that are dropped where no store is given."""
NEEDED = {
    "rack.locator.properties.file.path": "file",
    "rack.locator.properties.command.argv": "command",
    "rack.locator.properties.alias.other": "alias",
}


def given(name: str, value: object, folder: Path) -> LoadedSettings:
    """The settings with that one, and what it needs beside it. Raises SettingsRefusedError."""
    lines = {name: value}
    if name in NEEDED:
        lines["rack.locator.class"] = ["wire", NEEDED[name]]
    document = folder / "settings.yaml"
    document.write_text(json.dumps(lines))
    return load_settings(files=[document], environ={})


def outputs(loaded: LoadedSettings) -> Iterator[tuple[str, str]]:
    """Every output that is made of settings alone."""
    rows = effective(loaded)
    yield "config show", json.dumps([(name, value, str(origin)) for name, value, origin in rows])
    yield "notes", "\n".join(loaded.notes)
    yield "repr", repr(loaded)
    yield "telemetry", json.dumps(to_json(LimitsData, limits_data(to_limits(loaded.settings))))


def told_of(name: str, value: object, folder: Path) -> list[str]:
    """All that is said of that setting: outputs, or why it is refused."""
    try:
        return [text for _, text in outputs(given(name, value, folder))]
    except SettingsRefusedError as refused:
        return [str(refused)]


def test_every_setting_is_walked() -> None:
    names = {leaf.name for leaf in LEAVES}
    assert {"spark.tables", "spark.conf.spark.hadoop.fs.s3a.secret.key", "groups.one.application.endpoints"} <= names
    assert {"kafka.sasl.password", "execute.kafka.sasl.jaas.config", "price.table", "poll.interval"} <= names
    assert {"rack.locator.properties.command.argv", "approve.rules.one.max_bytes", "http.allowed_hosts"} <= names


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_in_any_setting_is_in_no_output(form: str, tmp_path: Path) -> None:
    taken, wrong = set(), {}
    for leaf in LEAVES:
        value = FORMS[form]
        try:
            loaded = given(leaf.name, value, tmp_path)
        except SettingsRefusedError as refused:
            if CANARY in str(refused):
                wrong[leaf.name] = str(refused)
            continue
        taken.add(leaf.name)
        for what, text in outputs(loaded):
            if CANARY in text and (what, leaf.name in NAMES_OF_KAFKA) != ("telemetry", True):
                wrong[f"{leaf.name}: {what}"] = text
        if leaf.name not in UNUSED and not any(CANARY in secret for secret in loaded.secrets()):
            wrong[f"{leaf.name}: not redacted in the log"] = ""
    assert wrong == {}
    assert {"spark.tables", "spark.conf.spark.hadoop.fs.defaultFS", "record.file", "price.table"} <= taken


@pytest.mark.parametrize("reference", ["${file:PATH}", "${file:PATH:key}", "${directory:FOLDER:secret}", "${env:S}"])
def test_what_a_reference_stands_for_is_in_no_output_whatever_the_key(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"key={CANARY} and-{CANARY}-more, 'x'" if reference.endswith(":key}") else f"{CANARY} and-{CANARY}-more"
    (tmp_path / "secret").write_text(text)
    monkeypatch.setenv("S", text)
    written = reference.replace("PATH", str(tmp_path / "secret")).replace("FOLDER", str(tmp_path))
    wrong = {}
    for leaf in LEAVES:
        try:
            loaded = given(leaf.name, written, tmp_path)
        except SettingsRefusedError as refused:
            wrong |= {leaf.name: str(refused)} if CANARY in str(refused) else {}
            continue
        wrong |= {f"{leaf.name}: {what}": text for what, text in outputs(loaded) if CANARY in text}
    assert wrong == {}


@pytest.mark.parametrize("name", ["num.standby.replicas", "rack.aware.assignment.strategy", "acceptable.recovery.lag"])
def test_an_imported_file_with_a_reference_in_the_wrong_place_does_not_tell_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{CANARY}\n")
    (tmp_path / "app.properties").write_text(f"{name}=${{file:{tmp_path / 'secret'}}}\n")
    with pytest.raises(SettingsRefusedError) as refused:
        load_settings(properties=[tmp_path / "app.properties"], environ={})
    assert CANARY not in str(refused.value)
    assert f"${{file:{tmp_path / 'secret'}}}" in str(refused.value)


@pytest.mark.parametrize("name", [name for name in (*KEYS, *ALIASES, *FOLDED) if "password" in name or "jaas" in name])
@pytest.mark.parametrize("where", ["kafka", "execute.kafka"])
def test_a_password_in_clear_is_in_no_sentence(where: str, name: str, tmp_path: Path) -> None:
    assert not any(CANARY in text for text in told_of(f"{where}.{name}", f"{CANARY} x", tmp_path))


def test_a_value_in_the_wrong_place_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(SettingsRefusedError) as refused:
        load_settings(assignments=[CANARY], environ={})
    assert CANARY not in str(refused.value)
    assert str(tmp_path)


@pytest.mark.parametrize(
    ("argv", "shown_as"),
    [
        pytest.param(["racks", "--all", "-v"], ["racks", "--all", "-v"], id="plain options are shown"),
        pytest.param(["racks", "--token", CANARY], ["racks", "--token", MASK], id="an argument of an option"),
        pytest.param(["racks", f"--token={CANARY}"], ["racks", f"--token={MASK}"], id="an option with its argument"),
        pytest.param(["racks", f"-p{CANARY}"], ["racks", MASK], id="an option that is glued to its argument"),
        pytest.param(["racks", CANARY], ["racks", MASK], id="an argument"),
        pytest.param(["curl", "-H", f"X-Key: {CANARY}"], ["curl", "-H", MASK], id="a header"),
        pytest.param(f"racks --token {CANARY}", f"racks --token {MASK}", id="one text"),
    ],
)
def test_the_arguments_of_a_program_are_shown_as_far_as_they_are_options(argv: object, shown_as: object) -> None:
    assert shown("rack.locator.properties.command.argv", argv) == shown_as
    assert shown("rack.locator.properties.command:one.argv", argv) == shown_as


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key", "spark.ssl.keyPassword",
        "spark.authenticate.secret", "spark.hadoop.fs.azure.account.key.x.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas", "spark.hadoop.google.cloud.auth.service.account.private.key",
        "spark.kubernetes.authenticate.oauthToken", "spark.io.encryption.keygen.passphrase", "broker.apiKey",
    ],
)  # fmt: skip
def test_names_that_say_secret(name: str) -> None:
    assert is_secret_name(name)
    assert shown(name, CANARY) == MASK
    assert list(secrets_in(name, CANARY)) == [CANARY]


@pytest.mark.parametrize(
    "text",
    [
        "rackwise-tables", "hdfs://name-node:8020/rackwise", "abfss://data@account.dfs.core.windows.net/rackwise",
        "s3a://bucket/rackwise", "http://host:8080/lags", "/var/lib/rackwise", "[::1]:9092", "local[*]",
        "https://host/@scope/x", "-Xmx2g -Dlog4j2.configurationFile=x", "",
    ],
)  # fmt: skip
def test_what_holds_no_secret_is_shown_as_it_is(text: str) -> None:
    assert masked(text) == without_url_secrets(text) == shown("spark.tables", text) == text
    assert list(secrets_in("spark.tables", text)) == []


@pytest.mark.parametrize("value", ["true", "False", "3600", "30s", ""])
def test_a_switch_under_a_secret_name_is_none(value: str) -> None:
    assert shown("spark.security.token.renewal", value) == value
    assert list(secrets_in("spark.security.token.renewal", value)) == []


def test_names_of_rackwises_own_settings_hide_no_value_of_theirs_but_the_address_of_a_target() -> None:
    own = {leaf.name for leaf in LEAVES if not leaf.chosen and "kafka." not in leaf.name}
    secret = {"http.auth.oidc.client_secret", "notify.targets.one.url"}
    assert {name for name in own if is_secret_name(name)} == secret, "which they are"


def test_a_sentence_tells_the_reference_and_not_what_it_stands_for() -> None:
    resolved = {f"{CANARY} word": "${file:/x}"}
    assert without_resolved(f"'{CANARY} word' is not offered", resolved) == "'${file:/x}' is not offered"
    assert CANARY not in without_resolved(f"{CANARY} is not supported", resolved)
    assert without_resolved("${file:/x} cannot be read", {"file": "${file:/x}"}) == "${file:/x} cannot be read"


def test_what_a_command_says_and_how_it_fails_holds_no_secret_of_its_settings(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(json.dumps({"spark.conf.spark.hadoop.fs.s3a.secret.key": CANARY}))
    load_checked_settings([tmp_path / "r.yaml"], [], [], {}, lambda _: None)
    error = ConfigError("Spark did not start", why=f"fs.s3a refused {CANARY} at https://u:other@h/x?t=third")
    assert re.findall("canary|other|third", error_lines(error, hidden)) == []


def test_the_log_holds_no_secret_of_the_settings(tmp_path: Path) -> None:
    loaded = given("spark.conf.spark.hadoop.fs.s3a.secret.key", CANARY, tmp_path)
    stream = io.StringIO()
    try:
        set_up_logging(form="json", secrets=loaded.secrets(), stream=stream)
        structlog.get_logger("rackwise").info("x", sentence=f"refused {CANARY}", url="https://u:other@h/x?t=third")
    finally:
        structlog.reset_defaults()
    assert re.findall("canary|other|third", stream.getvalue()) == []
    assert MASK in stream.getvalue()


def test_what_agents_are_made_of_shows_no_secret(tmp_path: Path) -> None:
    loaded = given("kafka", {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
                             "sasl.username": "u", "sasl.password": CANARY}, tmp_path)  # fmt: skip
    settings = loaded.settings
    plan = to_leadership_plan(settings, settings.executor_kafka, "agent")
    assert CANARY not in repr((plan, to_scope(settings), to_limits(settings), settings))
