"""``config check|show|schema|docs|example``: the settings in force, their origins, and those that exist."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

import typer

from agent.cli import agent_api, options
from agent.cli.output import OutputFormat, chosen, emit, emit_document, emit_json, emit_one, say
from agent.errors import ConfigError
from agent.values.kafka import BOOTSTRAP_SERVERS
from agent.values.number_format import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.documents.config import CheckedSettings, LocatorRow
    from config.kafka_client import KafkaClientConfig
    from config.load import LoadedSettings
    from config.settings import Settings

_SERVERS = "kafka.bootstrap.servers"
_KINDS = {
    "flag": "",
    "environment": "environment variable ",
    "file": "config file ",
    "properties": "properties file ",
}

config_app = typer.Typer(help="Settings: check, show, schema, docs, example.", no_args_is_help=True)


@config_app.command()
@options.expanded
def check(
    source: options.SettingsOptions,
    output: options.Output = None,
) -> None:
    """Check settings and the files that they name; exit code 2 when one cannot be used.

    Rack locators are asked, brokers are not.
    """
    loaded = options.settings(source, checked=True)
    _read_files(loaded)
    servers, others = _brokers(loaded.settings.kafka), _brokers(loaded.settings.execute.kafka)
    origin = str(loaded.origin(_SERVERS)) if servers else None
    _say_sources(loaded)
    say(f"brokers: {','.join(servers)} ({origin})" if servers else f"brokers: none are named ({_SERVERS} is not set)")
    if others and others != servers:
        say(f"brokers of the executor: {','.join(others)} ({loaded.origin(f'execute.{_SERVERS}')})")
    locators = _ask_locators(loaded)
    say(f"the settings can be used: mode {loaded.settings.mode}")
    if output is not None:
        document: CheckedSettings = {
            "mode": loaded.settings.mode,
            "sources": [
                {
                    "kind": cast("Any", source.origin.kind),  # a default is no source
                    "name": source.origin.where,
                    "settings": source.settings,
                    "named_by": source.named_by or None,
                }
                for source in loaded.sources
            ],
            "bootstrap_servers": servers,
            "bootstrap_servers_from": origin,
            "executor_bootstrap_servers": others or servers,
            "locators": locators,
        }
        if chosen(output) is not OutputFormat.TABLE:
            emit_one(document, output)


def _say_sources(loaded: LoadedSettings) -> None:
    """What was read, the strongest first, and which wins."""
    if not loaded.sources:
        say("settings read: no option, environment variable or file sets any; all have their defaults")
        return
    say("settings read, the strongest first (flag > environment > config file > properties file > default):")
    for source in loaded.sources:
        by = f", named by {source.named_by}" if source.named_by else ""
        noun = "setting" if source.settings == 1 else "settings"
        say(f"  {_KINDS[source.origin.kind]}{source.origin.where}: {source.settings} {noun}{by}")


def _brokers(kafka: KafkaClientConfig) -> list[str]:
    named = str(kafka.root.get(BOOTSTRAP_SERVERS) or "")
    return [server.strip() for server in named.split(",") if server.strip()]


def _read_files(loaded: LoadedSettings) -> None:
    """Read every file of keys, tokens, certificates or addresses that is set. Raises ConfigError with all mistakes."""
    from agent.act.own_files import journal_keys, people, signer
    from agent.web.access.gate import make_gate
    from agent.web.access.person import tls_context

    settings = loaded.settings
    readers: list[Callable[[], object]] = [
        *(partial(_read_target, settings, name) for name, one in settings.notify.targets.items() if one.enabled),
        partial(journal_keys, settings.execute.journal_key_file),
        partial(people, settings.approve.people),
        partial(signer, settings.operator.name, settings.operator.key_file),
        partial(tls_context, settings.http.tls),
        partial(_check_telemetry_file, settings.record.file),
        *((partial(make_gate, settings.http),) if settings.http.pages else ()),
    ]
    _raise_all([mistake for read in readers if (mistake := _mistake_of(read)) is not None])


def _check_telemetry_file(path: str | None) -> None:
    from config.plain_file import why_not_appended

    if path is not None and (why := why_not_appended(path)) is not None:
        raise ConfigError(
            f"{path}, which record.file names, cannot be written", why=why, todo="Name a file of its own."
        )


def _read_target(settings: Settings, name: str) -> None:
    from agent.act.own_files import read_key_file
    from agent.notify.notifier import addresses
    from agent.notify.service import NotifyService

    for target in addresses(settings.notify, read_key_file, [name]):
        NotifyService(target.target.name, target.url)


def _mistake_of(read: Callable[[], object]) -> ConfigError | None:
    try:
        read()
    except ConfigError as mistake:
        return mistake
    return None


def _raise_all(mistakes: Sequence[ConfigError]) -> None:
    """One as it is, several in one."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise ConfigError(
            f"{counted(len(mistakes), 'setting')} cannot be used",
            why="; ".join(f"{one.what} ({one.why})" if one.why else one.what for one in mistakes),
            todo=" ".join(dict.fromkeys(one.todo for one in mistakes if one.todo)),
        )


def _ask_locators(loaded: LoadedSettings) -> list[LocatorRow]:
    """Ask every file, command and entry point once. Raises ConfigError with all that cannot be used."""
    from agent.daemon.limits_from_settings import to_scope
    from agent.observe.ask_locators import ask_locator
    from agent.observe.context import ObserverState
    from agent.wire.failure import CallFailed

    scope = to_scope(loaded.settings)
    failed: list[str] = []
    answered: list[LocatorRow] = []
    for question in scope.rack_locators:
        try:
            rows = ask_locator(question, ObserverState(), scope.call_timeout_ms)
        except CallFailed as failure:
            failed.append(f"{question.name}: {failure.detail}")
        else:
            answered.append({"locator": question.name, "names": len(rows)})
            say(f"rack locator {question.name} knows {counted(len(rows), 'name')}")
    if failed:
        what = f"rack locator {failed[0]}" if len(failed) == 1 else f"{len(failed)} rack locators cannot be used"
        raise ConfigError(
            what,
            why="" if len(failed) == 1 else "; ".join(failed),
            todo="Correct rack.locator.properties, or what it names.",
        )
    return answered


@config_app.command()
@options.expanded
def show(
    source: options.SettingsOptions,
    output: options.Output = None,
    origin: bool = typer.Option(False, "--origin", help="Also show where each value was set."),
) -> None:
    """Every setting in force; secrets are shown as stars."""
    from agent.documents.config import setting_rows
    from config.load import effective

    rows: list[dict[str, Any]]
    if agent_api.named_agent() is not None:
        agent_api.note_options(*source)
        rows = agent_api.rows("/settings")
    else:
        rows = [dict(row) for row in setting_rows(effective(options.settings(source)))]
    columns = ("setting", "value", "origin") if origin else ("setting", "value")
    if chosen(output) is OutputFormat.TABLE:
        rows = [{**row, "value": "none" if row["value"] is None else row["value"]} for row in rows]
    emit([{name: row[name] for name in columns} for row in rows], columns, output, every=True)


@config_app.command()
def schema(output: options.Output = None) -> None:
    """JSON Schema of the settings file, for editors."""
    from agent.cli.output import OutputFormat
    from config.document import settings_schema

    document = settings_schema()
    if output is OutputFormat.YAML:
        emit_one(document, output)
    else:
        emit_json(document, 2)


@config_app.command()
def docs() -> None:
    """The table of all settings, as Markdown."""
    from config.document import settings_table

    emit_document(settings_table())


@config_app.command()
def example() -> None:
    """Print a settings file with every setting, its description and its default."""
    from config.document import example_yaml

    emit_document(example_yaml())
