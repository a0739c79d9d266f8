"""``notify test``: one message to each target of notifications, and what each answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import emit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.documents.config import TargetRow
    from agent.notify.notification import NotifyMessage
    from agent.notify.notifier import TargetAddress
    from agent.notify.service import NotifyService

_COLUMNS = ("target", "service", "accepted", "answer", "took_ms")
NOT_ACCEPTED = 5
"""Exit code where a target accepted no message: it may do so later, as with a cluster that does not answer."""

notify_app = typer.Typer(help="Notifications: test.", no_args_is_help=True)


@notify_app.callback()
def _notify() -> None:
    """Notifications: a test message to the targets of notify.targets."""


@notify_app.command("test")
@options.expanded
def send_test(
    source: options.SettingsOptions,
    target: Annotated[
        list[str] | None, typer.Option("--target", metavar="NAME", help="Only this target; repeatable.")
    ] = None,
    output: options.Output = None,
) -> None:
    """Send one test message to each target; exit code 5 where one does not accept it. No broker is asked."""
    from agent.act.own_files import read_key_file
    from agent.errors import ConfigError
    from agent.notify.notifier import addresses, secrets_of
    from config import secrets

    loaded = options.settings(source)
    found = addresses(loaded.settings.notify, read_key_file, target or None)
    if not found:
        raise ConfigError(
            "No message was sent",
            why="notify.targets names no target that is enabled",
            todo="Name a target there, as docs/notifications.md shows.",
        )
    secrets.remember((*loaded.secrets(), *secrets_of(found)))
    rows = _answers(found, loaded.settings.http.url)
    emit(rows, _COLUMNS, output)
    if not all(row["accepted"] for row in rows):
        raise typer.Exit(NOT_ACCEPTED)


def _answers(found: Sequence[TargetAddress], page: str | None) -> list[TargetRow]:
    """The answer of each target. Raises ConfigError before any message is sent."""
    from agent.notify.notification import NotifyMessage
    from agent.notify.service import NotifyService

    body = "A test message of rackwise notify test: nothing has happened."
    message = NotifyMessage(
        title="rackwise: test message",
        body="\n".join([body, *([page] if page else [])]),
        severity=None,
        notifications=0,
    )
    services = [NotifyService(one.target.name, one.url, page) for one in found]
    return [_answer(service, message) for service in services]


def _answer(service: NotifyService, message: NotifyMessage) -> TargetRow:
    from agent.values.clock import elapsed_ns

    began = elapsed_ns()
    answer = service.send(message)
    took_ms = (elapsed_ns() - began) // 1_000_000
    return {
        "target": service.name,
        "service": service.kind,
        "accepted": answer.accepted,
        "answer": answer.sentence,
        "took_ms": took_ms,
    }
