"""Rack locators as they are set: KIP-36's two names, what each locator needs, and the sentence for every mistake."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agent.daemon.limits_from_settings import to_limits, to_scope
from agent.observe.context import CommandQuestion, EntryPointQuestion, FileQuestion, TableForm
from agent.values.limits import LocatorKind, RackLocator, RackPattern
from config.load import LoadedSettings, SettingsRefusedError, effective, load_settings
from tests.installed_package import offering

ROOT = Path(__file__).resolve().parents[2]
SECRET = "canary-55aa"


def loaded(*assignments: str, **sources: Any) -> LoadedSettings:
    sources.setdefault("environ", {})
    return load_settings(assignments=[f"rack.locator.{text}" for text in assignments], **sources)


def mistake(*assignments: str, **sources: Any) -> str:
    with pytest.raises(SettingsRefusedError) as refused:
        loaded(*assignments, **sources)
    (one,) = refused.value.mistakes
    return str(one).removeprefix("rack.locator.").removesuffix(" (flag --set)")


def test_by_default_the_wire_alone_is_believed() -> None:
    settings = loaded().settings
    assert to_limits(settings).rack_locators == ()
    assert to_scope(settings).rack_locators == ()


def test_each_locator_becomes_a_rule_of_the_model_or_a_question_of_the_look(tmp_path: Path) -> None:
    file = tmp_path / "rackwise.yaml"
    file.write_text(
        """
rack.locator:
  class: [wire, file, "file:clients", command, regex, cidr, alias]
  properties:
    file: {path: racks.yaml, max: {bytes: 2MiB}}
    "file:clients.path": racks.txt
    command.argv: [/bin/racks, --zone, a b]
    command: {timeout: 500ms, format: yaml}
    regex.client.id: {"-az1-": a, ^orders: b}
    regex.host.^10\\.1\\.: a
    cidr: {10.1.0.0/16: a, "fd00:1::/32": b}
    alias: {use1-az1: a, 12: b}
"""
    )
    settings = loaded(files=[file]).settings
    assert to_limits(settings).rack_locators == (
        RackLocator(name="wire", kind=LocatorKind.WIRE),
        RackLocator(name="file", kind=LocatorKind.TABLE),
        RackLocator(name="file:clients", kind=LocatorKind.TABLE),
        RackLocator(name="command", kind=LocatorKind.TABLE),
        RackLocator(
            name="regex",
            kind=LocatorKind.REGEX,
            patterns=(
                RackPattern("client.id", "-az1-", "a"),
                RackPattern("client.id", "^orders", "b"),
                RackPattern("host", "^10\\.1\\.", "a"),
            ),
        ),
        RackLocator(name="cidr", kind=LocatorKind.CIDR, networks=(("10.1.0.0/16", "a"), ("fd00:1::/32", "b"))),
        RackLocator(name="alias", kind=LocatorKind.ALIAS, aliases=(("use1-az1", "a"), ("12", "b"))),
    )
    assert to_scope(settings).rack_locators == (
        FileQuestion(name="file", path="racks.yaml", form=TableForm.YAML, max_bytes=2 * 2**20),
        FileQuestion(name="file:clients", path="racks.txt", form=TableForm.PROPERTIES, max_bytes=2**20),
        CommandQuestion(
            name="command", argv=("/bin/racks", "--zone", "a b"), form=TableForm.YAML, timeout_ms=500, max_bytes=2**20
        ),
    )


KIP_36 = "file.path=/etc/racks,command.argv=/bin/racks --zone 'a b'"


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param(
            {"assignments": ["rack.locator.class=wire,file,command", f"rack.locator.properties={KIP_36}"]}, id="a flag"
        ),
        pytest.param(
            {
                "environ": {
                    "RACKWISE_RACK_LOCATOR_CLASS": "wire,file,command",
                    "RACKWISE_RACK_LOCATOR_PROPERTIES": KIP_36,
                }
            },
            id="the environment",
        ),
        pytest.param(
            {"properties": f"rack.locator.class=wire,file,command\nrack.locator.properties={KIP_36}\n"},
            id="server.properties",
        ),
    ],
)
def test_key_value_pairs_with_commas_are_taken_as_kip_36_writes_them(tmp_path: Path, sources: dict[str, Any]) -> None:
    if "properties" in sources:
        file = tmp_path / "server.properties"
        file.write_text(sources["properties"])
        sources = {"properties": [file]}
    settings = load_settings(**{"environ": {}, **sources}).settings
    found, asked = to_scope(settings).rack_locators
    assert isinstance(found, FileQuestion)
    assert isinstance(asked, CommandQuestion)
    assert (found.path, asked.argv) == ("/etc/racks", ("/bin/racks", "--zone", "a b"))


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        pytest.param(
            ["class=wire,fil"], "class: fil is not a rack locator; did you mean file?", id="a misspelt locator"
        ),
        pytest.param(
            ["class=com.acme.ZkRackLocator"],
            "class: com.acme.ZkRackLocator is not a rack locator; use one of wire, file, command, regex, cidr, "
            "alias, or "
            "Python entry points of group rackwise.rack_locators that are installed",
            id="a Java class, as KIP-36 meant it",
        ),
        pytest.param(["class="], "class: it lists no locator; wire uses broker.rack and client.rack", id="no locator"),
        pytest.param(
            ["class=wire,wire"],
            "class: wire is listed twice; give the second a label, such as wire:second",
            id="a locator that is listed twice",
        ),
        pytest.param(["class=file:"], "class: file: has an empty label", id="an empty label"),
        pytest.param(["class=file"], "properties.file.path: file needs it, as one text", id="a file without path"),
        pytest.param(
            ["class=file", "properties.file.path=x", "properties.file.pat=y"],
            "properties.file.pat: no such property; did you mean file.path?",
            id="a misspelt property",
        ),
        pytest.param(
            ["class=wire", "properties.wire.path=x"],
            "properties.wire.path: no such property; wire has none",
            id="a property of a locator that has none",
        ),
        pytest.param(
            ["properties.fil.path=x"],
            "properties.fil.path: no locator of rack.locator.class has this prefix; did you mean file.path?",
            id="a property of no locator",
        ),
        pytest.param(
            ["class=file", "properties.file.path=x", "properties.file.format=csv"],
            "properties.file.format: csv is not offered; use one of properties or yaml",
            id="an unknown form",
        ),
        pytest.param(
            ["class=file", "properties.file.path=x", "properties.file.max.bytes=1GiB"],
            "properties.file.max.bytes: it must be at least 1 and at most 16MiB",
            id="a table beyond any bound",
        ),
        pytest.param(
            ["class=file", "properties.file.path=x", "properties.file.max.bytes=much"],
            "properties.file.max.bytes: a number of bytes is expected, such as 1048576, 50MB or 1GiB",
            id="no size",
        ),
        pytest.param(
            ["class=command"],
            "properties.command.argv: command needs it: the program and its arguments, such as "
            "[/usr/local/bin/racks, --all]",
            id="a command without program",
        ),
        pytest.param(
            ["class=command", "properties.command.argv=racks 'all"],
            "properties.command.argv: it cannot be split into arguments (No closing quotation)",
            id="a quotation mark without its other half",
        ),
        pytest.param(
            ["class=command", "properties.command.argv=racks", "properties.command.timeout=3"],
            "properties.command.timeout: a duration with its unit is expected, such as 500ms, 10s, 5m, 2h or 7d",
            id="a time limit without unit",
        ),
        pytest.param(
            ["class=command", "properties.command.argv=racks", "properties.command.timeout=10ms"],
            "properties.command.timeout: it must be at least 100ms",
            id="a time limit that no program can keep",
        ),
        pytest.param(
            ["class=command", "properties.command.argv=racks", "properties.command.timeout=6s"],
            "properties.command.timeout: it is longer than observe.call_timeout",
            id="a time limit beyond the look's",
        ),
        pytest.param(
            ["class=regex"],
            "properties.regex: regex needs at least a pattern, written as regex.client.id.PATTERN: RACK",
            id="no pattern",
        ),
        pytest.param(
            ["class=regex", "properties.regex.client.id.az(1=a"],
            "properties.regex.client.id.az(1: it is not a valid pattern: unclosed group",
            id="a pattern that is broken",
        ),
        pytest.param(
            ["class=regex", "properties.regex.client.id.(?<!x)a=a"],
            "properties.regex.client.id.(?<!x)a: it is not a valid pattern: look-around, including look-ahead and "
            "look-behind, is not supported",
            id="a pattern that could take forever",
        ),
        pytest.param(
            ["class=regex", "properties.regex.member.id.x=a"],
            "properties.regex.member.id.x: no such property; write regex.group.instance.id.PATTERN or "
            "regex.client.id.PATTERN or regex.host.PATTERN",
            id="a pattern for names that change with every join",
        ),
        pytest.param(
            ["class=cidr"],
            "properties.cidr: cidr needs at least a network, written as cidr.NETWORK: RACK",
            id="no network",
        ),
        pytest.param(
            ["class=cidr", "properties.cidr.10.1.0.0/33=a"],
            "properties.cidr.10.1.0.0/33: it is not a network; write it as 10.1.0.0/16 or fd00:1::/32",
            id="no network at all",
        ),
        pytest.param(
            ["class=cidr", "properties.cidr.10.1.2.3/16=a"],
            "properties.cidr.10.1.2.3/16: it is an address inside a network; the network is 10.1.0.0/16",
            id="an address with a mask",
        ),
        pytest.param(
            [
                "class=cidr",
                "properties.cidr.10.0.0.0/8=a",
                "properties.cidr.10.1.0.0/16=a",
                "properties.cidr.10.1.2.0/24=b",
            ],
            "properties.cidr.10.1.2.0/24: it is in rack b, and 10.1.0.0/16, which contains it, in rack a; an "
            "address can "
            "be in one rack only",
            id="a network in one of another rack",
        ),
        pytest.param(
            ["class=cidr", "properties.cidr.fd00:1::/32=a", "properties.cidr.fd00:0001::/32=b"],
            "properties.cidr.fd00:0001::/32: it is also in rack a",
            id="one network written in two ways",
        ),
        pytest.param(
            ["class=alias", "properties.alias.az1=zone-1", "properties.alias.zone-1=us-east-1a"],
            "properties.alias.az1: it is an alias of zone-1, which is itself an alias of us-east-1a; use "
            "us-east-1a in both",
            id="an alias of an alias",
        ),
        pytest.param(
            ["class=alias", "properties.alias.az1=az1"],
            "properties.alias.az1: it is an alias of itself; leave it out",
            id="an alias of itself",
        ),
        pytest.param(
            ["class=alias", "properties.alias.az1="],
            "properties.alias.az1: a rack is expected: one text of 1 to 255 printable characters",
            id="an alias of nothing",
        ),
        pytest.param(["properties=x"], "properties: it is a section: write its settings below it", id="no pairs"),
    ],
)
def test_a_mistake_is_answered_with_its_sentence(assignments: list[str], sentence: str) -> None:
    assert mistake(*assignments) == sentence


def test_a_bare_no_of_yaml_is_not_taken_for_a_rack(tmp_path: Path) -> None:
    file = tmp_path / "rackwise.yaml"
    file.write_text("rack.locator: {class: [alias], properties: {alias.norway: no}}")
    assert mistake(files=[file]) == (
        "properties.alias.norway: a text or a list of texts is expected; put a bare yes, no or ~ in quotes, as YAML "
        f"reads it anew (file {file})"
    )


@pytest.mark.parametrize(
    ("assignments", "notes"),
    [
        pytest.param(["class=wire"], (), id="the default"),
        pytest.param(
            ["class=alias", "properties.alias.x=a"],
            ("rack.locator.class leaves out wire, so broker.rack and client.rack are ignored",),
            id="no wire",
        ),
        pytest.param(
            ["properties.file.path=x", "properties.cidr.10.0.0.0/8=a"],
            ("rack.locator.properties has properties of cidr, file, but rack.locator.class does not list it",),
            id="a locator that was switched off",
        ),
    ],
)
def test_what_works_and_may_not_be_meant_is_a_note(assignments: list[str], notes: tuple[str, ...]) -> None:
    assert loaded(*assignments).notes == notes


def test_an_entry_point_is_found_by_its_name_and_its_properties_are_shown_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offering(tmp_path, monkeypatch, "inventory", "")
    monkeypatch.setenv("INVENTORY_TOKEN", SECRET)
    found = loaded(
        "class=wire,inventory", "properties.inventory.token=${env:INVENTORY_TOKEN}", "properties.inventory.zone=z-1234",
        "properties.inventory.timeout=2s",
    )  # fmt: skip
    (question,) = to_scope(found.settings).rack_locators
    assert isinstance(question, EntryPointQuestion)
    assert dict(question.properties) == {"token": SECRET, "zone": "z-1234"}
    assert question.timeout_ms == 2_000
    shown = repr(found) + repr(effective(found)) + found.settings.model_dump_json() + repr(question)
    assert SECRET not in shown
    assert "z-1234" not in shown
    assert {SECRET, "z-1234"} <= set(found.secrets())
    assert mistake("class=inventry") == "class: inventry is not a rack locator; did you mean inventory?"


def test_a_reference_of_an_entry_point_to_nothing_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offering(tmp_path, monkeypatch, "inventory", "")
    assert mistake("class=inventory", "properties.inventory.token=${env:NOT_THERE}") == (
        "properties.inventory.token: the environment variable NOT_THERE is not set"
    )


def test_the_example_in_the_docs_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offering(tmp_path, monkeypatch, "inventory", "")
    monkeypatch.setenv("INVENTORY_TOKEN", SECRET)
    chapter = (ROOT / "docs" / "operations.md").read_text().partition("## Racks from elsewhere")[2]
    file = tmp_path / "rackwise.yaml"
    file.write_text(re.findall(r"```yaml\n(.*?)```", chapter, re.DOTALL)[0])
    settings = loaded(files=[file]).settings
    assert [one.name for one in settings.rack_locator.locators] == [
        "wire", "file", "command", "regex", "cidr", "alias", "inventory",
    ]  # fmt: skip
