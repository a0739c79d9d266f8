"""``topics``: topics with bytes written and traffic across racks, or one topic with its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from agent.cli import options, session
from agent.cli.output import NAMES_SHOWN, OutputFormat, chosen, emit, emit_one, emit_text
from config.foreign_text import listed


@options.expanded
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
    look = session.look_or_replay(source, given.replay, duration=given.duration)
    from agent.cli import tables
    from agent.documents import views_money
    from agent.money.costs import costs_of
    from agent.plan.new_partitions import unknown_topic
    from agent.values.observation import ObservationPart

    costs = costs_of(look.snapshot)
    if topic is not None and topic not in look.snapshot.topics:
        raise unknown_topic(topic, look.snapshot)
    if topic is not None:
        document = views_money.topic_details(topic, costs, look)
        if chosen(given.output) is OutputFormat.TABLE:
            tables.show_topic(document, look, every=given.every)
        else:
            emit_one(document, given.output)
        session.leave(look)
    rows = views_money.topics(costs, look)
    if chosen(given.output) is OutputFormat.TABLE:
        empty = session.none_of("no topics", look, ObservationPart.TOPICS)
        columns = tables.with_money(tables.TOPICS, look.limits)
        emit(tables.topics(rows), columns, given.output, empty=empty, every=given.every)
        tables.basis(look)
        _emit_hidden_reads(costs.hidden_groups, every=given.every)
    else:
        emit(rows, tuple(name for name in rows[0] if name != "readers") if rows else (), given.output)
    session.leave(look)


def _emit_hidden_reads(groups: Sequence[str], *, every: bool) -> None:
    """The groups whose reads no topic counts."""
    if groups:
        named = listed(groups, None if every else NAMES_SHOWN)
        rest = "" if every or len(groups) <= NAMES_SHOWN else "; all: --all or status -o json"
        of = "group" if len(groups) == 1 else "groups"
        emit_text(f"not in the table: reads of {of} {named} that are not visible now{rest}")
