"""``plan --new-topic`` and ``--add-partitions``: new partitions by Kafka's placer and at the optimum."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from agent.cli import agent_api, options, session
from agent.cli.options import write_text
from agent.cli.output import OutputFormat, chosen, emit, emit_command, emit_text, remember_replay
from agent.errors import BadInput
from agent.values.kafka import BOOTSTRAP_SERVERS

if TYPE_CHECKING:
    from agent.documents.plan import BrokerExtent, NewPlacementRow, PlacementSpread

_EXTENTS = ("topic_replicas", "topic_leaders", "cluster_replicas", "cluster_leaders")
_ENDS = ("least", "most")


class PlacementVariant(StrEnum):
    """Whose placement to write to a file."""

    KAFKA = "kafka"
    OPTIMUM = "optimum"


class PlacerName(StrEnum):
    """Kafka's placers, named here so that showing the help loads no stage."""

    STRIPED = "striped"
    KIP_36 = "kip-36"


class NewPartitionsRequest(NamedTuple):
    """New partitions as they were asked for."""

    topic: str
    partitions: int
    replication_factor: int | None
    """None to add partitions to a topic that is there."""


class PlacementOptions(NamedTuple):
    """How to answer."""

    placement: PlacementVariant
    placer: PlacerName
    seed: int
    reassignment_json: Path | None
    rollback_json: Path | None


def wanted(
    new_topic: str | None, partitions: int | None, replication_factor: int | None, add_partitions: str | None
) -> NewPartitionsRequest | None:
    """What was asked for; None when nothing was. Raises ``BadInput`` for options that contradict each other."""
    from agent.simulate.change_texts import named_number

    if new_topic is not None and add_partitions is not None:
        raise BadInput(
            "--new-topic and --add-partitions contradict each other",
            why="a topic is either new or exists already",
            todo="Leave one of them out.",
        )
    if new_topic is not None:
        if partitions is None or replication_factor is None:
            raise BadInput(
                f"--new-topic {new_topic} is incomplete",
                why="its number of partitions or replicas is missing",
                todo="Add --partitions N --replication-factor R.",
            )
        return NewPartitionsRequest(new_topic, partitions, replication_factor)
    if partitions is not None or replication_factor is not None:
        raise BadInput(
            "--partitions and --replication-factor need --new-topic",
            why="they describe a new topic",
            todo="Add --new-topic NAME, or use --add-partitions TOPIC=N.",
        )
    return (
        None
        if add_partitions is None
        else NewPartitionsRequest(*named_number(add_partitions, "--add-partitions"), None)
    )


def place(
    wanted: NewPartitionsRequest,
    source: options.SettingsOptions,
    replay: Path | None,
    choice: PlacementOptions,
    output: OutputFormat | None,
    *,
    every: bool,
) -> NoReturn:
    """Show both placements in all forms that Kafka's tools take, and write the chosen one to its file.

    Raises BadInput for a rollback file, as new partitions have no earlier replicas, and for a refused placement.
    """
    if choice.rollback_json is not None:
        raise BadInput(
            "new partitions have no rollback", why="no existing replica moves", todo="Leave --rollback-json out."
        )
    if agent_api.named_agent() is not None:
        session.refuse_beside_agent(replay, None)
        agent_api.note_options(*source)
        asked = {"topic": wanted.topic, "partitions": str(wanted.partitions), "seed": str(choice.seed)}
        if wanted.replication_factor is not None:
            asked["replication_factor"] = str(wanted.replication_factor)
        rows, look = session.ShownLook(*agent_api.answer("/new-partitions", {**asked, "placer": choice.placer.value}))
    else:
        rows, look = _placed(wanted, source, replay, choice)
    if choice.reassignment_json is not None:
        _write(next(row for row in rows if row["placement"] == choice.placement.value), choice.reassignment_json)
    _emit_placements(rows, output, every=every)
    session.leave_look(look)


def _placed(
    wanted: NewPartitionsRequest, source: options.SettingsOptions, replay: Path | None, choice: PlacementOptions
) -> session.ShownLook:
    """Both placements by one look at the cluster or by a telemetry file."""
    from random import Random

    from agent.documents.plan import placement_to_json
    from agent.plan.advice import bootstrap_of
    from agent.plan.new_partitions import ClusterPlacer, KafkaPlacer, place_added, place_new_topic

    if replay is not None:
        remember_replay(replay)
        evaluation = session.replayed(replay)
        servers = None
    else:
        loaded = options.settings(source)
        evaluation = session.look(loaded, planning=False)
        servers = str(loaded.settings.kafka.root[BOOTSTRAP_SERVERS])
    snapshot = evaluation.snapshot
    kafka = ClusterPlacer(KafkaPlacer(choice.placer.value), Random(choice.seed).randrange)  # noqa: S311 (as Kafka draws: no secret)
    if wanted.replication_factor is None:
        both = place_added(snapshot, wanted.topic, wanted.partitions, kafka)
    else:
        both = place_new_topic(snapshot, wanted.topic, wanted.partitions, wanted.replication_factor, kafka)
    command = _kafka_topics(servers or bootstrap_of(snapshot), source.properties or ())
    return session.shown_of(evaluation, lambda _: [placement_to_json(one, command) for one in both])


def _emit_placements(rows: Sequence[NewPlacementRow], output: OutputFormat | None, *, every: bool) -> None:
    match chosen(output):
        case OutputFormat.TABLE:
            _show(rows, every=every)
        case OutputFormat.CSV:
            fields = ("most_in_a_rack", "against_the_rule", *(f"{name}_{end}" for name in _EXTENTS for end in _ENDS))
            emit([_flat(row) for row in rows], ("placement", "sentence", *fields, "command"), output)
        case _:
            emit(rows, ("placement", "sentence", "spread", "command"), output)


def _write(row: NewPlacementRow, file: Path) -> None:
    if row["reassignment"] is None:
        raise BadInput(
            "there is no placement by Kafka to write",
            why=row["sentence"],
            todo="Write the optimum: --placement optimum",
        )
    write_text(file, json.dumps(row["reassignment"], separators=(",", ":")) + "\n")


def _kafka_topics(servers: str | None, properties: Sequence[Path]) -> str:
    """The beginning of the command. The tool takes one properties file, and rackwise the last of several as such."""
    from agent.plan.advice import tool

    config = str(properties[-1]) if properties else None
    return "kafka-topics.sh" if servers is None else tool("kafka-topics", servers, config)


def _show(rows: Sequence[NewPlacementRow], *, every: bool) -> None:
    """The placements as a table, and each command below it as one line, to be copied."""
    cells = [{**row, "spread": None if row["spread"] is None else _spread_words(row["spread"])} for row in rows]
    emit(cells, ("placement", "sentence", "spread"), OutputFormat.TABLE, every=every)
    for row in rows:
        if row["command"] is not None:
            emit_text(f"command for placement {row['placement']}:")
            emit_command(row["command"])


def _spread_words(spread: PlacementSpread) -> str:
    broken = spread["against_the_rule"]
    rule = f", {broken} of the new partitions with more than needed" if broken else ""
    most = spread["most_in_a_rack"]
    return (
        f"at most {most} {'replica' if most == 1 else 'replicas'} of a partition in one rack{rule}; per broker: "
        f"{_range(spread['topic_replicas'])} of the topic's replicas "
        f"(as preferred leader: {_range(spread['topic_leaders'])}), "
        f"{_range(spread['cluster_replicas'])} of all topics (as preferred leader: {_range(spread['cluster_leaders'])})"
    )


def _range(extent: BrokerExtent) -> str:
    low, high = extent["least"], extent["most"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _flat(row: NewPlacementRow) -> dict[str, object]:
    """Every number in a field of its own."""
    spread: Mapping[str, Any] = row["spread"] or {}
    numbers: dict[str, object] = {
        f"{name}_{end}": spread[name][end] for name in _EXTENTS for end in _ENDS if name in spread
    }
    return {**row, **spread, **numbers}
