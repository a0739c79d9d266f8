"""Texts of ``--help``: examples and a one-line description of every command; arguments without types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand
from typer.models import CommandInfo

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
