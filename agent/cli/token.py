"""``token``: tokens with which people and programs sign in at the agent's pages and API: make one, check the file."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import emit_line, say
from agent.errors import BadInput, ConfigError
from agent.values.number_format import counted

if TYPE_CHECKING:
    from agent.web.access.credentials import TokenEntry

token_app = typer.Typer(help="Tokens for the agent's pages and API: new, check.", no_args_is_help=True)
File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="File of tokens; default: http.auth.tokens_file.")
]


class RoleName(StrEnum):
    """The roles, named here so that showing the help loads no server."""

    VIEW = "view"
    APPROVE = "approve"
    OPERATE = "operate"


@token_app.command()
@options.expanded
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the person or program, as the journal has it.")],
    source: options.SettingsOptions,
    role: Annotated[
        RoleName,
        typer.Option("--role", help="view; approve: also approves, cancels, rolls back; operate: also pauses."),
    ] = RoleName.VIEW,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="The token counts for this long, such as 90d.")
    ] = None,
    file: File = None,
) -> None:
    """Make a token and print it, this once; its hash goes into the file of tokens, or is shown where there is none."""
    from agent.web.access.credentials import append_entry, new_token, read_entries
    from agent.web.access.person import AccessRole

    path = file or _file(source)
    token, entry = new_token(name, AccessRole(role.value), _until_ms(expires))
    if path is None:
        say("no file of tokens is set (http.auth.tokens_file, --file); this is the line for it:")
        say(f"  {entry.line()}")
    else:
        append_entry(path, entry)
        say(f"this token of {name} has the role {role.value} in {path}; a running agent reads it again by itself")
        others = [one for one in read_entries(path) if one.name == name and one.hashed != entry.hashed]
        if others:
            say("other tokens of this name are in the file; to take one back, remove its line:")
            for one in others:
                say(f"  {_line(one, _now_ms())}")
    say("the token is shown this once; only its hash is kept:")
    emit_line(token)


@token_app.command()
@options.expanded
def check(source: options.SettingsOptions, file: File = None) -> None:
    """Check the file of tokens as the agent does, and list names, roles and expiry; no hash is shown."""
    from agent.web.access.credentials import read_entries

    path = file or _file(source)
    if path is None:
        raise ConfigError(
            "No file of tokens is set",
            why="http.auth.tokens_file is none",
            todo="Set it, or give --file; make one with: rackwise token new NAME --file FILE",
        )
    entries = read_entries(path)
    for entry in entries:
        emit_line(_line(entry, _now_ms()))
    say(f"{path} can be used: {counted(len(entries), 'token')}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _line(entry: TokenEntry, now_ms: int) -> str:
    if entry.expires_ms is None:
        return f"{entry.name}: {entry.role.value}, does not expire"
    day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(entry.expires_ms / 1_000))
    over = "expired" if entry.expires_ms <= now_ms else "expires"
    return f"{entry.name}: {entry.role.value}, {over} {day}"


def _file(source: options.SettingsOptions) -> Path | None:
    named = options.settings(source).settings.http.auth.tokens_file
    return None if named is None else Path(named)


def _until_ms(text: str | None) -> int | None:
    from config.value_kinds import parse_duration

    if text is None:
        return None
    try:
        lasting = parse_duration(text)
    except ValueError as error:
        raise BadInput(f"--expires {text} is no time", why=str(error), todo="Write it as 90d.") from error
    if lasting == 0:
        raise BadInput("--expires 0 is no time", why="the token would not count at all", todo="Write it as 90d.")
    return _now_ms() + lasting
