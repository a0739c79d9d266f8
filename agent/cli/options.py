"""Options that commands share, the settings and files of JSON that they lead to, and the texts of ``--help``."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand
from typer.models import CommandInfo

from agent.cli.output import OutputFormat, emit_json, remember, say
from agent.errors import BadInput, reason
from agent.process import load_checked_settings
from config.option_groups import Assign, Bootstrap, Config, Properties
from config.option_groups import expanded as expanded  # noqa: PLC0414 for the commands
from config.plain_file import read_plain

if TYPE_CHECKING:
    from config.load import LoadedSettings

Replay = Annotated[
    Path | None,
    typer.Option("--replay", metavar="FILE", help="Use the last look of a telemetry file instead of a live cluster."),
]
All = Annotated[
    bool, typer.Option("--all", help="Show all rows; without it long tables are cut, with the number of rows left out.")
]
For = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="DURATION", help="Look twice, this far apart (such as 10s), to measure bytes/s and $/day."
    ),
]
Output = Annotated[
    OutputFormat | None,
    typer.Option("--output", "-o", help="Output format; default: table on a terminal, JSON elsewhere."),
]


CORRECT = "Correct the settings named above."


class SettingsOptions(NamedTuple):
    """Options of every command that loads settings."""

    config: Config = None
    properties: Properties = None
    assign: Assign = None
    bootstrap: Bootstrap = None


class LookOptions(NamedTuple):
    """Options of every command that shows one look at a cluster, beside its `SettingsOptions`."""

    output: Output = None
    replay: Replay = None
    duration: For = None
    every: All = False


def settings(
    source: SettingsOptions, flags: Mapping[str, object] = MappingProxyType({}), *, checked: bool = False
) -> LoadedSettings:
    """The settings in force; what is worth reporting about them goes to stderr. Raises ConfigError with every mistake.

    ``flags``: settings of options of the command's own. ``checked``: the command itself is the one that checks them.
    """
    config, properties, assign = source.config or (), source.properties or (), source.assign or ()
    remember(config, properties, assign, source.bootstrap)
    given = dict(flags)
    if source.bootstrap is not None:
        given["kafka.bootstrap.servers"] = source.bootstrap
    if checked:
        return load_checked_settings(config, properties, assign, given, say, todo=CORRECT)
    return load_checked_settings(config, properties, assign, given, say)


STANDARD = Path("-")
"""Standard input or output."""
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 256 * 1024 * 1024
"""Also of what a gzip file unfolds to."""
_MOST_VALUES = 1 << 24


def read_json(path: Path) -> Any:
    """The JSON document in a file, maybe gzip'ed; ``-`` is standard input. Raises BadInput where there is none."""
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1) if path == STANDARD else read_plain(path, _MOST_BYTES)
    except OSError as error:
        raise BadInput(f"{path} cannot be read", why=reason(error), todo="Name a file that can be read.") from error
    if path.suffix == ".gz" or data.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=BytesIO(data)) as file:
                data = file.read(_MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(
                f"{path} is not a whole gzip file", why=reason(error), todo="Copy or write it again."
            ) from error
    from agent.values import typed_json  # the help of commands does without its imports

    try:
        return typed_json.read_json(data, most_bytes=_MOST_BYTES, most_values=_MOST_VALUES)
    except typed_json.ForeignJsonError as error:
        raise BadInput(
            f"{path} cannot be used", why=reason(error), todo="Name a file of JSON, with or without gzip."
        ) from error


def write_json(path: Path | None, document: Any) -> None:
    """Write a document as one line of JSON; without a path, or to ``-``, on standard output."""
    if path is None or path == STANDARD:
        emit_json(document)
        return
    write_text(path, json.dumps(document) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file anew. Raises ``BadInput`` where that cannot be."""
    try:
        path.write_text(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be written", why=reason(error), todo="Name another file.") from error


_AT = "-b broker:9092"

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "run": (
        f"rackwise run {_AT}",
        "rackwise run -c rackwise.yaml --mode execute",
        f"rackwise run {_AT} --mode observe --once",
    ),
    "status": (f"rackwise status {_AT}", f"rackwise status {_AT} -o json", "rackwise status --replay telemetry.jsonl"),
    "racks": (f"rackwise racks {_AT}", f"rackwise racks {_AT} -o csv"),
    "groups": (
        f"rackwise groups {_AT}",
        f"rackwise groups {_AT} --for 10s",
        f"rackwise groups orders-app {_AT} -o json",
    ),
    "doctor": (f"rackwise doctor {_AT}", "rackwise doctor --properties client.properties"),
    "topics": (f"rackwise topics {_AT}", f"rackwise topics orders {_AT} --for 10s"),
    "top": (f"rackwise top {_AT}", f"rackwise top {_AT} --every 10s --count 6 -o jsonl"),
    "plan": (
        f"rackwise plan {_AT} --detailed-exitcode",
        f"rackwise plan {_AT} --groups -o csv",
        f"rackwise plan {_AT} --reassignment-json moves.json --rollback-json back.json",
        f"rackwise plan {_AT} --new-topic payments --partitions 12 --replication-factor 3",
        f"rackwise plan {_AT} --add-partitions orders=48",
    ),
    "explain": (
        f"rackwise explain topic/orders {_AT}",
        f"rackwise explain group/billing {_AT}",
        f"rackwise explain p-2f2aa44d7de5 {_AT}",
    ),
    "proposals": (f"rackwise proposals {_AT}", f"rackwise proposals {_AT} -o json"),
    "proposals list": (f"rackwise proposals list {_AT} -o json",),
    "proposals approve": (
        f'rackwise proposals approve p-2f2aa44d7de5 {_AT} --throttle 50MB/s --reason "after the move"',
        f"rackwise proposals approve p-2f2aa44d7de5 {_AT} --yes --max-moves 20",
    ),
    "proposals apply": (f"rackwise proposals apply p-2f2aa44d7de5 {_AT} --throttle 50MB/s",),
    "proposals cancel": (f'rackwise proposals cancel p-2f2aa44d7de5 {_AT} --reason "too slow"',),
    "proposals history": (f"rackwise proposals history {_AT}",),
    "reassign status": (
        f"rackwise reassign status {_AT}",
        f"rackwise reassign status p-2f2aa44d7de5 {_AT} --rollback-json back.json",
    ),
    "reassign verify": (
        f"rackwise reassign verify p-2f2aa44d7de5 {_AT}",
        f"rackwise reassign verify moves.json {_AT}",
    ),
    "reassign cancel": (f"rackwise reassign cancel p-2f2aa44d7de5 {_AT}",),
    "reassign rollback": (f"rackwise reassign rollback p-2f2aa44d7de5 {_AT} --yes",),
    "pause": (f"rackwise pause {_AT} --reason stocktaking", f"rackwise pause p-2f2aa44d7de5 {_AT}"),
    "resume": (f"rackwise resume {_AT}",),
    "plugin jar": ("rackwise plugin jar -o /opt/kafka/libs", "rackwise plugin jar -o libs --force -o json"),
    "simulate": (
        f"rackwise simulate {_AT} --add-member orders=c",
        f"rackwise simulate {_AT} --remove-rack a",
        f"rackwise simulate {_AT} --strategy orders-app=min_traffic --standbys orders-app=1",
        "rackwise simulate --replay telemetry.jsonl --add-rack d=7,8 --replication-factor clicks=3",
    ),
    "optimize": (
        "rackwise optimize problem.json.gz --counts fixed --balance none -o result.json",
        "rackwise optimize problem.json --traffic-cost 10 --non-overlap-cost 1 --timings",
    ),
    "assign": (
        "rackwise assign cases.json.gz --check",
        "rackwise assign cases.json.gz -o result.json",
    ),
    "config check": ("rackwise config check -c rackwise.yaml", f"rackwise config check {_AT} -o json"),
    "config show": ("rackwise config show --origin -c rackwise.yaml", "rackwise config show -o json"),
    "config schema": ("rackwise config schema",),
    "notify test": ("rackwise notify test -c rackwise.yaml", "rackwise notify test --target ops -o json"),
    "config docs": ("rackwise config docs",),
    "config example": ("rackwise config example",),
    "token new": (
        "rackwise token new ann --role approve --expires 90d --file /etc/rackwise/tokens.yaml",
        "rackwise token new grafana -c rackwise.yaml",
    ),
    "token check": ("rackwise token check -c rackwise.yaml", "rackwise token check --file /etc/rackwise/tokens.yaml"),
    "spark ingest": (
        f"rackwise spark ingest {_AT} --tables /data/rackwise",
        f"rackwise spark ingest {_AT} --tables /data/rackwise --once --weights",
    ),
    "spark refresh": ("rackwise spark refresh --tables /data/rackwise --day 2026-11-02",),
    "spark report": (
        "rackwise spark report --tables /data/rackwise --out report --from 2026-11-01 --to 2026-12-01",
        "rackwise spark report --tables /data/rackwise --out report --bill transfer.csv -o html,focus",
    ),
    "spark status": (
        "rackwise spark status --tables /data/rackwise",
        "rackwise spark status --tables /data/rackwise -o json",
    ),
    "spark sql": (
        "rackwise spark sql --tables /data/rackwise",
        "rackwise spark sql --tables s3a://bucket/rackwise --schema main.rackwise",
    ),
    "spark backtest": (
        "rackwise spark backtest --tables /data/rackwise --strategies as-recorded,no-action,execute",
        "rackwise spark backtest --tables /data/rackwise --change bold:min_gain_share=0.01 --strategies execute,bold",
    ),
    "spark fleet": (
        "rackwise spark fleet --tables /data/rackwise",
        f"rackwise spark fleet {_AT} --tables /data/rackwise --publish",
    ),
    "spark weights": (f"rackwise spark weights {_AT} --tables /data/rackwise --window 24h",),
}
"""Command -> lines as they are typed. Each is parsed by a test."""


class PlainCommand(TyperCommand):
    """A command whose help shows an argument by its name alone, without the Python type behind it."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        for parameter in self.params:
            if parameter.param_type_name == "argument" and getattr(parameter, "metavar", None):
                vars(parameter)["display_type_rich"] = lambda ctx: None  # noqa: ARG005 (typer names it)


def _name_of(command: CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback is not None else "")


def add_examples(
    app: typer.Typer, examples: Mapping[str, Sequence[str]], short_helps: Mapping[str, str], before: str = ""
) -> None:
    """Give every command of an application and of its groups its examples, its short help and plain arguments.

    ``before`` is what is typed before the names of these commands, with a space at its end: "cluster ".
    """
    for command in app.registered_commands:
        name = f"{before}{_name_of(command)}"
        command.epilog, command.cls = _epilog(examples.get(name)), PlainCommand
        command.short_help = short_helps.get(name)
    for group in app.registered_groups:
        if group.typer_instance is not None and group.name is not None:
            add_examples(group.typer_instance, examples, short_helps, f"{before}{group.name} ")
            group.epilog = _epilog(examples.get(f"{before}{group.name}"))
            group.short_help = short_helps.get(f"{before}{group.name}")


def _epilog(lines: Sequence[str] | None) -> str | None:
    """Lines that are left as they are, below a word that says what they are; None where there are none."""
    return None if lines is None else "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


SHORT: Final[Mapping[str, str]] = {
    "status": "Summary: size, traffic across racks, $/day, findings.",
    "doctor": "Faults behind traffic across racks, each with its fix.",
    "groups": "Consumer groups, costliest first, with their lag.",
    "topics": "Topics, costliest first, with their readers.",
    "racks": "Racks: what each holds, and what losing it would do.",
    "top": "Live: traffic across racks and $/day, by group and topic.",
    "plan": "What rackwise would do now; publishes nothing.",
    "explain": "Why something is proposed or not, rule by rule.",
    "simulate": "What changes of brokers, racks and groups would do.",
    "run": "Run the agent; a dry run unless --mode execute.",
    "config": "Settings: check, show, schema, docs, example.",
    "token": "Tokens for pages and API: new, check.",
    "notify": "Notifications: a test message to the targets.",
    "proposals": "Proposals of the agent: list, approve, follow, cancel.",
    "reassign": "Reassignments: status, verify, cancel, rollback.",
    "pause": "Begin no new batch and no rebalance until resume.",
    "resume": "End a pause.",
    "plugin": "The plug-in for brokers: jar.",
    "spark": "Data pipeline: tables, reports, backtests, weights.",
    "assign": "Run Kafka's own assignors and replica placers on cases.",
    "optimize": "The cheapest assignment of Kafka Streams tasks.",
    "demo": "A local three-rack cluster with the agent in dry run.",
    "cluster": "Kafka brokers on this machine, one per rack.",
    "proposals list": "Open proposals; the same as proposals alone.",
    "proposals approve": "Approve exactly this plan.",
    "proposals apply": "Approve the proposal and follow it until it ends.",
    "proposals cancel": "Start no further batch and revert moving partitions.",
    "proposals history": "Approvals, commands, plans and rebalances so far.",
    "reassign status": "Plans, and every reassignment in progress.",
    "reassign verify": "Check that all planned replicas are in place.",
    "reassign cancel": "Start no further batch and revert moving partitions.",
    "reassign rollback": "Restore the replicas from before the plan.",
    "plugin jar": "Write the jar for brokers, and the lines to set.",
    "config check": "Check settings and key files.",
    "config show": "Every setting in force, with secrets as stars.",
    "config schema": "JSON Schema of the settings file, for editors.",
    "config docs": "The table of all settings, as Markdown.",
    "config example": "A settings file with every setting and its default.",
    "token new": "Make a token, shown once; its hash goes into the file.",
    "token check": "Check the file of tokens; list names and roles.",
    "notify test": "Send a test message to each target.",
    "spark ingest": "Read rackwise's topics into tables.",
    "spark refresh": "Work out silver and gold again from bronze.",
    "spark report": "Write a report that begins with what to do first.",
    "spark status": "Say how far ingest is, and which stream is stalled.",
    "spark sql": "Print the SQL that registers the tables, with views.",
    "spark backtest": "Recorded history under other settings, ranked.",
    "spark fleet": "Plan every group of every cluster exactly.",
    "spark weights": "Write changed weights to the weights topic.",
}
"""Command -> its line in the help of what is above it; its own help says the rest."""
