"""What a list of commands says of each: a few words that fit its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    "proposals": "Proposals of the agent: list, approve, follow, cancel.",
    "reassign": "Reassignments: status, verify, cancel, rollback.",
    "pause": "Begin no new batch and no rebalance until resume.",
    "resume": "End a pause.",
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
    "config check": "Check settings and key files.",
    "config show": "Every setting in force, with secrets as stars.",
    "config schema": "JSON Schema of the settings file, for editors.",
    "config docs": "The table of all settings, as Markdown.",
    "config example": "A settings file with every setting and its default.",
    "spark ingest": "Read rackwise's topics into tables.",
    "spark refresh": "Work out silver and gold again from bronze.",
    "spark report": "Write a report that begins with what to do first.",
    "spark backtest": "Recorded history under other settings, ranked.",
    "spark fleet": "Plan every group of every cluster exactly.",
    "spark weights": "Write changed weights to the weights topic.",
}
"""Command -> its line in the help of what is above it; its own help says the rest."""
