"""``topics``: topics with bytes written and traffic across racks, or one topic with its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from agent.cli import options, session
from agent.cli.output import NAMES_SHOWN, OutputFormat, chosen, emit, emit_one, emit_text
from config.foreign_text import listed, segment_of

if TYPE_CHECKING:
    from agent.documents.cluster import AgentLookDocument
    from agent.simulate.evaluation import StageEvaluation


def topics(
    source: options.SettingsOptions,
    given: options.LookOptions,
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="Topic to show with its partitions; default: all topics.")
    ] = None,
) -> None:
    """Topics, costliest first: bytes written, traffic across racks, its cost a day, and the groups that read them.

    With TOPIC: its leaders, its readers by rack, and its partitions. Racks of producers
    are not visible, so produce traffic across racks is in no figure.
    """
    if topic is not None:
        _show_topic(source, given, topic)
    hidden: list[str] = []

    def made(evaluation: StageEvaluation) -> object:
        from agent.documents.views_money import topics
        from agent.money.costs import costs_of

        costs = costs_of(evaluation.snapshot)
        hidden.extend(costs.hidden_groups)
        return topics(costs, evaluation)

    rows, look = session.shown(source, given, "/topics", made)
    from agent.cli import agent_api, tables
    from agent.values.observation import ObservationPart

    if agent_api.named_agent() is not None:
        hidden = cast("AgentLookDocument", look)["groups_with_hidden_reads"]
    if chosen(given.output) is OutputFormat.TABLE:
        empty = session.none_of("no topics", look, ObservationPart.TOPICS)
        columns = tables.with_money(tables.TOPICS, priced=look["priced"])
        emit(tables.topics(rows), columns, given.output, empty=empty, every=given.every)
        if rows:
            emit_text(tables.ACROSS)
        tables.basis(look)
        _emit_hidden_reads(hidden, every=given.every)
    else:
        emit(rows, tuple(name for name in rows[0] if name != "readers") if rows else (), given.output)
    session.leave_look(look)


def _emit_hidden_reads(groups: Sequence[str], *, every: bool) -> None:
    """The groups whose reads no topic counts."""
    if groups:
        named = listed(groups, None if every else NAMES_SHOWN)
        rest = "" if every or len(groups) <= NAMES_SHOWN else "; all: --all or status -o json"
        of = "group" if len(groups) == 1 else "groups"
        emit_text(f"not in the table: reads of {of} {named} that are not visible now{rest}")


def _show_topic(source: options.SettingsOptions, given: options.LookOptions, topic: str) -> NoReturn:
    """One topic with its readers by rack and its partitions. Raises what an unknown topic raises."""

    def made(evaluation: StageEvaluation) -> object:
        from agent.documents.views_money import topic_details
        from agent.money.costs import costs_of
        from agent.plan.new_partitions import unknown_topic

        if topic not in evaluation.snapshot.topics:
            raise unknown_topic(topic, evaluation.snapshot)
        return topic_details(topic, costs_of(evaluation.snapshot), evaluation)

    document, look = session.shown(source, given, f"/topics/{segment_of(topic)}", made)
    if chosen(given.output) is OutputFormat.TABLE:
        from agent.cli import tables

        tables.show_topic(document, look, every=given.every)
    else:
        emit_one(document, given.output)
    session.leave_look(look)
