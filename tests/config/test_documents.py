"""The settings as documents: what is committed is what the models say."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from config.catalogue import catalogue
from config.document import example_yaml, settings_schema, settings_table
from config.load import effective, load_settings

ROOT = Path(__file__).resolve().parents[2]


def test_the_settings_table_in_the_docs_is_the_one_of_the_models() -> None:
    document = (ROOT / "docs" / "operations.md").read_text()
    _, _, rest = document.partition("<!-- settings: written by `rackwise config docs` -->\n")
    between, end, _ = rest.partition("\n<!-- end of settings -->")
    assert end
    assert between == settings_table(), "write it anew with: rackwise config docs"


def test_the_example_file_is_the_one_of_the_models() -> None:
    assert (ROOT / "config" / "rackwise.example.yaml").read_text() == example_yaml()


def test_every_setting_has_a_sentence() -> None:
    assert [entry.name for entry in catalogue() if not entry.sentence.endswith((".", "..."))] == []


def test_the_example_file_sets_nothing_but_the_bootstrap_servers_and_uncommented_nothing_but_defaults(
    tmp_path: Path,
) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(example_yaml())
    assert set(load_settings(files=[given], environ={}).origins) == {"kafka.bootstrap.servers"}

    whole = tmp_path / "whole.yaml"
    without_login = re.sub(r"^ *# (sasl|ssl|security)\..*\n", "", example_yaml(), flags=re.MULTILINE)
    whole.write_text(re.sub(r"^( *)# ([\w.]+: )", r"\1\2", without_login, flags=re.MULTILINE))
    found = load_settings(files=[whole], environ={})
    defaults = {name: value for name, value, _ in effective(load_settings(environ={}))}
    changed = {name: value for name, value, _ in effective(found) if defaults.get(name) != value}
    chosen = (
        "groups.orders-app.", "approve.rules.small.", "windows.allow.nights.", "windows.blackout.year-end.",
        "notify.targets.ops.",
    )  # fmt: skip
    beside = {name for name in changed if not name.startswith(chosen)}
    examples = {"price.between.<from->to>": "price.between.a->b"}
    examples["rack.locator.properties.<property>"] = "rack.locator.properties.file.path"
    examples["approve.people.<person>"] = "approve.people.ann"
    examples["spark.conf.<spark.setting>"] = "spark.conf.spark.driver.memory"
    assert beside == {"kafka.bootstrap.servers", *examples.values()}
    for pattern, name in zip(
        (
            "groups.<application.id>.",
            "approve.rules.<rule>.",
            "windows.allow.<window>.",
            "windows.blackout.<window>.",
            "notify.targets.<target>.",
        ),
        chosen,
        strict=True,
    ):
        examples |= {e.name: e.name.replace(pattern, name) for e in catalogue() if e.name.startswith(pattern)}
    examples = {name: whole.replace("<subtopology>", "0") for name, whole in examples.items()}
    named = {examples.get(name, name) for name in (e.name for e in catalogue())}
    assert {name for name in named if not name.startswith(("kafka.", "execute.kafka."))} <= set(found.origins)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        pytest.param("poll: {interval: 10s}", True, id="a duration"),
        pytest.param("poll.interval: 10s", True, id="a dotted name"),
        pytest.param("kafka: {bootstrap.servers: 'a:1', security.protocol: SSL}", True, id="a connection"),
        pytest.param("groups: {a: {max.warmup.replicas: 1}}", True, id="an application"),
        pytest.param("poll: {interval: 10}", False, id="a duration without unit"),
        pytest.param("pol: {interval: 10s}", False, id="a misspelt section"),
        pytest.param("kafka: {security.protocol: TLS}", False, id="an unknown protocol"),
        pytest.param("max.warmup.replicas: 0", False, id="below Kafka's limit"),
    ],
)
def test_the_schema_tells_editors_what_may_be_written(text: str, valid: bool) -> None:
    schema = settings_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(yaml.safe_load(text)) is valid
