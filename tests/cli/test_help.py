"""The help of every command: examples that parse, values named as people name them."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from agent.cli.app import full_application
from agent.cli.options import EXAMPLES as OWN_EXAMPLES
from agent.cli.options import SHORT as OWN_SHORT
from agent.cli.output import OutputFormat
from testbed.cluster import commands as of_cluster
from testbed.demo import command as of_demo
from tests.cli.documents import commands
from tests.docs.document_schemas import NOT_YET

APP = full_application(loaded=True)
EXAMPLES = {**OWN_EXAMPLES, **of_cluster.EXAMPLES, **of_demo.EXAMPLES}
SHORT = {**OWN_SHORT, **of_cluster.SHORT}
COMMANDS = [name for name, _ in commands()]
LINES = [(name, line) for name, lines in EXAMPLES.items() if name in COMMANDS for line in lines]


def help_of(name: str) -> str:
    done = CliRunner().invoke(APP, [*name.split(), "--help"], prog_name="rackwise")
    assert done.exit_code == 0, done.output
    return done.output


def test_every_command_has_examples_and_no_example_is_of_another() -> None:
    assert sorted({*COMMANDS} - {*EXAMPLES}) == [], "add them in agent/cli/options.py, or in the module of the command"
    assert {*EXAMPLES} - {*COMMANDS} <= {*NOT_YET}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_the_examples_each_on_a_line_of_its_own(name: str) -> None:
    told = help_of(name).rstrip().splitlines()
    lines = EXAMPLES[name]
    assert [line.strip() for line in told[-len(lines) - 1 :]] == ["Examples:", *lines]


@pytest.mark.parametrize(("name", "line"), LINES, ids=lambda text: text.removeprefix("rackwise "))
def test_an_example_is_one_that_the_parser_takes(name: str, line: str) -> None:
    program, *words = shlex.split(line)
    assert program == "rackwise"
    assert " ".join(words).startswith(name)
    command, context = get_command(APP), None
    while True:
        context = command.make_context(program, words, parent=context)
        left = [*context._protected_args, *context.args]
        below = getattr(command, "commands", {})
        if not below or not left:
            break
        program, command, words = left[0], below[left[0]], left[1:]
    assert left == [], "every word of it means something"
    assert context.command_path == f"rackwise {name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_value_is_named_by_the_type_behind_it(name: str) -> None:
    types = "str|int|float|path|Path|bool|list|tuple|datetime"
    assert re.findall(rf"<(?:{types})\b[^>]*>|\bINTEGER\b", help_of(name)) == []


@pytest.mark.parametrize("name", ["proposals approve", "proposals apply"])
def test_the_help_of_a_limit_names_the_settings_that_bound_it(name: str) -> None:
    told = " ".join(help_of(name).split())
    assert {*re.findall(r"execute\.\w+", told)} == {
        "execute.throttle_floor", "execute.throttle_ceiling", "execute.max_moves_per_cluster",
    }  # fmt: skip


ASKING = [
    name for name, one in commands()
    if name != "run" and not name.startswith(("spark ", "token ")) and any("-b" in of.opts for of in one.params)
]  # fmt: skip


@pytest.mark.parametrize("name", ASKING)
def test_what_asks_a_cluster_takes_every_output_format_as_the_readme_says(name: str) -> None:
    assert f"-o, --output <{'|'.join(OutputFormat)}>" in help_of(name)


GROUPS = sorted({"", *(name.rpartition(" ")[0] for name in COMMANDS)})


@pytest.mark.parametrize("name", GROUPS, ids=lambda name: name or "rackwise")
def test_a_list_of_commands_says_each_in_one_whole_line(name: str) -> None:
    rows = help_of(name).partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    below = {one.removeprefix(f"{name} ".lstrip()).partition(" ")[0] for one in COMMANDS if one.startswith(name)}
    assert {row.split()[0] for row in rows} >= below - {name}
    for row in rows:
        assert re.fullmatch(r"  [a-z]+ +[^ `].*\.", row), row
        assert (len(row) <= 80, "..." in row) == (True, False), row


def test_no_command_without_a_line_and_no_line_without_a_command() -> None:
    assert {*SHORT} == {*COMMANDS, *GROUPS} - {""}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_has_marks_of_another_format(name: str) -> None:
    assert "``" not in help_of(name)


def test_the_help_names_what_shows_a_traceback() -> None:
    assert re.search(r"^  --debug +Show the traceback", help_of(""), re.MULTILINE)
