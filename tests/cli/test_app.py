"""The application as a whole: what one of its commands says is the same beside all others and alone."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from agent.cli.app import ORDER, command_line, full_application

APP = full_application(loaded=True)
COMMANDS = [one.callback.__name__ for one in APP.registered_commands if one.callback is not None]
GROUPS = [one.name for one in APP.registered_groups if one.name is not None]


@pytest.mark.parametrize("asked", [*COMMANDS, *GROUPS])
def test_a_command_says_alone_what_it_says_beside_all_others(asked: str) -> None:
    alone = command_line(asked)
    assert len(alone.registered_commands) + len(alone.registered_groups) == 1
    told = [CliRunner().invoke(one, [asked, "--help"], prog_name="rackwise") for one in (alone, APP)]
    assert [one.exit_code for one in told] == [0, 0]
    assert f"rackwise {asked}" in told[0].output
    assert told[0].output == told[1].output


@pytest.mark.parametrize("asked", ["", "--help", "--version", "statsu", "rackwise"])
def test_what_is_no_command_is_answered_by_all_of_them(asked: str) -> None:
    answering = command_line(asked)
    assert len(answering.registered_commands) + len(answering.registered_groups) == len(COMMANDS) + len(GROUPS)
    assert {*COMMANDS, *GROUPS} >= {"run", "status", "plan", "proposals", "cluster", "spark", "demo"}


def test_the_help_lists_every_command_and_those_of_a_new_user_first() -> None:
    assert sorted(ORDER) == sorted([*COMMANDS, *GROUPS])
    told = [CliRunner().invoke(one, ["--help"], prog_name="rackwise").output for one in (command_line("--help"), APP)]
    assert told[0] == told[1], "the line of a command is the same before it is loaded"
    listed = told[0].partition("Commands:\n")[2]
    heads = [line.split()[0] for line in listed.partition("\n\n")[0].splitlines()]
    assert heads == list(ORDER)
    assert heads[:3] == ["status", "doctor", "groups"]
