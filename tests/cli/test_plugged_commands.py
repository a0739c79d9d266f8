"""Commands that installed packages add: found without loading anything, loaded when called, and never above our own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from agent.cli.app import GROUP, ORDER, command_line, plugged_commands
from agent.cli.command_exit import run
from tests.command import ROOT, environment

ONE = """
import typer
app = typer.Typer()
@app.command()
def anything(name: str) -> None:
    "Audit one cluster."
    print("audited", name)
"""
TWO = ONE + "@app.command()\ndef other() -> None:\n    print('other')\n"
WITH_CALLBACK = ONE + "@app.callback()\ndef before() -> None:\n    'A group, however few commands it has.'\n"
BROKEN = "raise ImportError('No module named acme_core')"

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with one module of that code and one entry point, in a folder that comes first on the path."""

    def put(code: str, entry: str = "audit = acme:app", *, package: str = "acme") -> Path:
        folder = tmp_path / package
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{package}.py").write_text(textwrap.dedent(code))
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[console_scripts]\nx = x:y\n\n[{GROUP}]\n{entry}\n\n[other]\nz = x:y\n"
        )
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, package, raising=False)
        return folder

    return put


def called(*arguments: str) -> int:
    return run([*arguments], debug=False, interruptible=False)


def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the list of commands."""
    assert called("--help") == 0
    return capsys.readouterr().out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()


def test_an_application_with_one_command_is_that_command(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(ONE)
    assert called("audit", "prod") == 0
    assert capsys.readouterr().out == "audited prod\n"
    assert called("audit", "--help") == 0
    assert "Usage: rackwise audit " in capsys.readouterr().out


@pytest.mark.parametrize("code", [pytest.param(TWO, id="two commands"), pytest.param(WITH_CALLBACK, id="a callback")])
def test_any_other_application_is_a_group(install: Install, capsys: pytest.CaptureFixture[str], code: str) -> None:
    install(code)
    assert called("audit", "anything", "prod") == 0
    assert capsys.readouterr().out == "audited prod\n"


def test_a_package_is_not_loaded_for_the_help_of_others(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("raise AssertionError", "audit = acme:app")
    lines = listed(capsys)
    assert lines[-1].split(maxsplit=1) == ["audit", "A command of package acme."]
    assert [line.split()[0] for line in lines] == [*ORDER, "audit"]


def test_a_wrong_name_is_told_the_plugged_one(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(BROKEN)
    assert called("audti") == 2
    assert "Did you mean 'audit'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["status", "config"])
def test_a_command_of_the_agent_keeps_its_name(install: Install, capsys: pytest.CaptureFixture[str], name: str) -> None:
    before = listed(capsys)
    install(BROKEN, f"{name} = acme:app")
    assert listed(capsys) == before
    assert called(name, "--help") == 0


def test_the_test_bed_keeps_its_names(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    before = listed(capsys)
    install(BROKEN, "cluster = acme:app")
    assert listed(capsys) == before
    assert called("cluster", "status", "--help") == 0


def test_of_two_packages_with_one_command_none_is_loaded(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(BROKEN)
    install(BROKEN, "audit = emca:app", package="emca")
    assert listed(capsys)[-1].split(maxsplit=1) == ["audit", "A command of package emca, acme."]
    assert called("audit") == 1
    assert capsys.readouterr().err == (
        "rackwise: 2 installed packages offer the command audit\n"
        "  why: emca, acme\n"
        "  do:  Uninstall all but one of them.\n"
    )


@pytest.mark.parametrize(
    ("code", "value", "why"),
    [
        pytest.param(BROKEN, "acme:app", "ImportError: No module named acme_core", id="a module that fails"),
        pytest.param("raise SystemExit(0)", "acme:app", "SystemExit: 0", id="a module that ends the process"),
        pytest.param(ONE, "acmes:app", "ModuleNotFoundError: No module named 'acmes'", id="no such module"),
        pytest.param(ONE, "acme:apps", "AttributeError: module 'acme' has no attribute 'apps'", id="no such attribute"),
        pytest.param(ONE, "acme", "AttributeError: module 'acme' has no attribute ''", id="no attribute"),
    ],
)
def test_a_command_that_cannot_be_loaded_says_why(
    install: Install, capsys: pytest.CaptureFixture[str], code: str, value: str, why: str
) -> None:
    install(code, f"audit = {value} [extra]")
    assert called("audit") == 1
    assert capsys.readouterr().err == (
        "rackwise: The command audit cannot be loaded\n"
        f"  why: {value} of package acme: {why}\n"
        "  do:  Install acme again, or uninstall it.\n"
    )
    assert run(["audit"], debug=True, interruptible=False) == 1
    assert "Traceback" in capsys.readouterr().err


def test_what_is_no_application_is_not_called(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("def app() -> None:\n    raise AssertionError")
    assert called("audit") == 1
    assert "  why: acme:app of package acme is not a typer.Typer\n" in capsys.readouterr().err


def test_the_shell_completes_words_of_plugged_commands_beside_a_broken_one(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(BROKEN, "broken = emca:app", package="emca")
    install(TWO)
    monkeypatch.setenv("_RACKWISE_COMPLETE", "complete_bash")
    for words, number, found in (
        ("rackwise audit o", 2, ["other"]),
        ("rackwise br", 1, ["broken"]),
        ("rackwise cluster u", 2, ["up"]),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(number))
        called()
        assert capsys.readouterr().out.split() == found


def test_the_reader_finds_what_the_standard_library_finds(install: Install) -> None:
    install(ONE, "audit=acme:app\n# a remark\n  b-2.c = acme.deep:a.b [extra, more]")
    found = {(one.name, one.value) for one in plugged_commands().values()}
    assert {(one.name, f"{one.module}:{one.attr}") for one in entry_points(group=GROUP)} == found
    assert {"audit", "b-2.c", "cluster", "demo", "spark"} == {name for name, _ in found}, "make venv installs them anew"


def test_of_a_package_that_is_installed_twice_the_first_counts(install: Install) -> None:
    install(ONE, "old = acme:app")
    (install(ONE, package="second") / "second-1.0.dist-info").rename(Path(sys.path[0]) / "acme-2.0.dist-info")
    assert plugged_commands().keys() == {"audit", "cluster", "demo", "spark"}


def test_what_cannot_be_read_offers_nothing(install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = plugged_commands()
    folder = install(ONE)
    entries = folder / "acme-1.0.dist-info" / "entry_points.txt"
    for content in (b"", b"\xff\x00\n[", b"[rackwise.commands]\n--help = a:b\n= a:b\nx =\nx\n", b"audit = acme:app\n"):
        entries.write_bytes(content)
        assert plugged_commands() == before
    entries.unlink()
    entries.mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "absent"))
    monkeypatch.syspath_prepend(str(folder / "acme.py"))
    assert plugged_commands() == before


def test_nothing_is_looked_up_for_a_command_of_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise AssertionError

    monkeypatch.setattr("agent.cli.app.plugged_commands", fail)
    assert command_line("status").registered_commands
    with pytest.raises(AssertionError):
        command_line("cluster")


def test_the_help_loads_no_test_bed_and_no_reader_of_packages() -> None:
    asked = (
        "import sys; from agent.cli.command_exit import run; run(['--help'], debug=False, interruptible=False); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT, env=environment()
    )
    assert "\n  cluster    Kafka brokers on this machine" in done.stdout
    assert {"testbed", "importlib.metadata"}.isdisjoint(done.stderr.split())
