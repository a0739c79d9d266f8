"""Records of the proposals topic and of the weights topic.

A proposal's record has a key, CloudEvents attributes, and a step of the proposal's life. Weights: `weights_of` reads
all that `to_records` writes; equal weights give equal bytes. Bad bytes raise only `UnreadableWeightsError`, as do
impossible rates (negative, infinite, NaN), because plans rest on them. Unknown fields are ignored; a newer version is
refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from agent.values.kafka import MAX_TOPIC_CHARS
from agent.values.proposal import SCHEMA_ID, SCHEMA_VERSION, LifecycleStep, Proposal
from agent.values.typed_json import ForeignJsonError, UnreadableError, from_json, read_json, to_json
from agent.values.weights import GroupWeights, PartitionWeight, ReadWeight, RestoreWeight, TopicWeights, Weights

CONTENT_TYPE = "application/json"


def headers(
    *, event_id: str, source: str, kind: str, subject: str, time_ms: int, schema: str
) -> Sequence[tuple[str, bytes]]:
    """The headers of one event; ``schema`` is the URI of the data's JSON Schema."""
    attributes = {
        "ce_specversion": "1.0",
        "ce_id": event_id,
        "ce_source": source,
        "ce_type": kind,
        "ce_subject": subject,
        "ce_time": _timestamp(time_ms),
        "ce_dataschema": schema,
        "content-type": CONTENT_TYPE,
    }
    return tuple((name, value.encode("utf-8", "backslashreplace")) for name, value in attributes.items())


def source(cluster_id: str, agent: str) -> str:
    """The URI reference of an agent beside a cluster."""
    return f"/clusters/{quote(cluster_id, safe='')}/agents/{quote(agent, safe='')}"


def _timestamp(epoch_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds; whole numbers only, so that equal times give equal text."""
    seconds, millis = divmod(epoch_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{millis:03d}Z"


CREATED = f"rackwise.proposal.created.v{SCHEMA_VERSION}"
VOID = "rackwise.proposal.void.v1"
LIFE_SCHEMA = "urn:rackwise:proposal-life:v1"


def slot(proposal: Proposal) -> str:
    """The record's key: subject, kind and reason."""
    return f"{proposal.subject}#{proposal.kind.value}/{proposal.reason.name.lower()}"


def created_headers(proposal: Proposal, source: str) -> Sequence[tuple[str, bytes]]:
    """The attributes of a proposal that ``source`` publishes."""
    return headers(
        event_id=proposal.id,
        source=source,
        kind=CREATED,
        subject=str(proposal.subject),
        time_ms=proposal.created_ms,
        schema=SCHEMA_ID,
    )


def life_headers(life: LifecycleStep, source: str) -> Sequence[tuple[str, bytes]]:
    """The attributes of a step in a proposal's life."""
    return headers(
        event_id=f"{life.id}.{life.state}",
        source=source,
        kind=VOID,
        subject=life.subject,
        time_ms=life.at_ms,
        schema=LIFE_SCHEMA,
    )


MATERIAL_SHARE = 0.2
"""A figure that changes by more than this share has changed materially."""


class ProposalFigures(NamedTuple):
    """Figures that change from look to look. None is unknown, never zero."""

    bytes_to_move: int | None = None
    cross_rack_bytes_per_s_before: float | None = None
    cross_rack_bytes_per_s_after: float | None = None
    usd_per_day_before: float | None = None
    usd_per_day_after: float | None = None

    def adds_to(self, before: ProposalFigures) -> bool:
        """Whether a figure that was unknown is known now."""
        return any(old is None and new is not None for old, new in zip(before, self, strict=True))


def figures_of(proposal: Proposal) -> ProposalFigures:
    """The figures of the look that it was made from, which is of its ``created_ms``."""
    return ProposalFigures(*(getattr(proposal.predicted, name) for name in ProposalFigures._fields))


def differ(before: ProposalFigures, after: ProposalFigures) -> bool:
    """Whether a figure known in both differs materially; an unknown one leaves the older figure in place."""
    pairs = zip(before, after, strict=True)
    return any(old is not None and new is not None and abs(new - old) > MATERIAL_SHARE * abs(old) for old, new in pairs)


VERSION = 1
WEIGHTS_SCHEMA_ID = f"urn:rackwise:weights:v{VERSION}"
MAX_ROWS = 2_000
"""Rows of one record: at the longest name of a topic still less than a broker takes by default."""
_MOST_PER_S = 1e15
_MOST_PARTITION = 2**31 - 1
_LATEST_MS = 2**53
_NAME_CHARS = {"topic": MAX_TOPIC_CHARS, "group": 32_767}


class UnreadableWeightsError(ValueError):
    """The bytes are no weights that this version can use; the sentence has the reason."""


class TopicRecord(NamedTuple):
    """Bytes per second of a topic's partitions."""

    v: int
    """Version of this layout."""
    kind: str
    cluster: str
    subject: str
    """``kind/name``."""
    computed_ms: int
    from_ms: int
    to_ms: int
    partitions: tuple[PartitionWeight, ...]


class GroupRecord(NamedTuple):
    """What a group reads, in bytes per second, and how fast it restores."""

    v: int
    """Version of this layout."""
    kind: str
    cluster: str
    subject: str
    """``kind/name``."""
    computed_ms: int
    from_ms: int
    to_ms: int
    reads: tuple[ReadWeight, ...]
    restores: tuple[RestoreWeight, ...]


def to_records(weights: Weights) -> Iterator[tuple[str, bytes]]:
    """(key, value) of each record that the weights need: one, but for subjects with very many rows."""
    if isinstance(weights, TopicWeights):
        for part, rows in enumerate(_pieces(weights.partitions)):
            piece = weights._replace(partitions=rows, part=weights.part + part)
            yield key_of(piece), _to_bytes(piece)
        return
    for part, reads in enumerate(_pieces(weights.reads)):
        restores = weights.restores if part == 0 else ()
        piece_of_group = weights._replace(reads=reads, restores=restores, part=weights.part + part)
        yield key_of(piece_of_group), _to_bytes(piece_of_group)


def key_of(weights: Weights) -> str:
    """``cluster/topic/name`` or ``cluster/group/name``; with many rows ``cluster/topic.1/name`` and so on follow."""
    kind, name = weights.subject
    return f"{weights.cluster}/{kind}{f'.{weights.part}' if weights.part else ''}/{name}"


def weights_of(key: str, value: bytes) -> Weights:
    """The weights of one record. Raises UnreadableWeightsError."""
    try:
        data = read_json(value)
    except ForeignJsonError as error:
        raise UnreadableWeightsError(f"{key[:80]!r} cannot be read: {error}") from error
    version = data.get("v") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UnreadableWeightsError(f"{key[:80]!r} has no version, so it is not a record of weights")
    if version > VERSION:
        raise UnreadableWeightsError(
            f"{key[:80]!r} has version {version} and needs a newer rackwise; this one reads up to {VERSION}"
        )
    try:
        match data.get("kind"):
            case "topic":
                return _topic(key, data)
            case "group":
                return _group(key, data)
            case kind:
                raise UnreadableWeightsError(f"{key[:80]!r} is of kind {str(kind)[:20]!r}, which is not known")
    except (UnreadableError, ValueError) as error:
        raise UnreadableWeightsError(f"{key[:80]!r} is not a record of weights: {error}") from error


def _to_bytes(weights: Weights) -> bytes:
    """One line of JSON, ASCII, its fields in the schema's order. Raises ValueError for rates that are no numbers."""
    fields = (VERSION, weights.subject.kind, weights.cluster, str(weights.subject))
    times = (weights.computed_ms, weights.from_ms, weights.to_ms)
    data: Any
    if isinstance(weights, TopicWeights):
        data = to_json(TopicRecord, TopicRecord(*fields, *times, weights.partitions))
    else:
        data = to_json(GroupRecord, GroupRecord(*fields, *times, weights.reads, weights.restores))
    return json.dumps(data, separators=(",", ":"), allow_nan=False).encode()


def _pieces(rows: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The rows in pieces that fit into a record; one empty piece where there are none."""
    for at in range(0, max(1, len(rows)), MAX_ROWS):
        yield rows[at : at + MAX_ROWS]


def _topic(key: str, data: dict[str, Any]) -> TopicWeights:
    record = from_json(TopicRecord, data)
    name, part = _checked(key, record)
    for row in record.partitions:
        _check_partition(row.partition)
        for rate in (row.bytes_per_s, row.records_per_s, row.bytes_per_record):
            _check_rate(rate)
    times = (record.computed_ms, record.from_ms, record.to_ms)
    return TopicWeights(record.cluster, name, *times, record.partitions, part)


def _group(key: str, data: dict[str, Any]) -> GroupWeights:
    record = from_json(GroupRecord, data)
    name, part = _checked(key, record)
    for read in record.reads:
        _check_partition(read.partition)
        _check_rate(read.bytes_per_s)
    for restore in record.restores:
        for rate in (restore.low, restore.median, restore.high, restore.stalled_share):
            _check_rate(rate)
        if not restore.low <= restore.median <= restore.high or min(restore.samples, restore.subtopology) < 0:
            raise ValueError(f"the restore rates of subtopology {restore.subtopology} contradict themselves")
    times = (record.computed_ms, record.from_ms, record.to_ms)
    return GroupWeights(record.cluster, name, *times, record.reads, record.restores, part)


def _checked(key: str, record: TopicRecord | GroupRecord) -> tuple[str, int]:
    """(name of the subject, part). Raises ValueError where key, subject and times contradict each other."""
    kind, _, name = record.subject.partition("/")
    if record.v != VERSION or kind != record.kind or not 0 < len(name) <= _NAME_CHARS.get(kind, 0):
        raise ValueError(f"version {record.v}, kind {record.kind[:20]!r}, subject {record.subject[:80]!r}")
    head, tail = f"{record.cluster}/{kind}", f"/{name}"
    if not (key.startswith(head) and key.endswith(tail)):
        raise ValueError(f"it is about {record.subject[:80]!r} of cluster {record.cluster[:40]!r}")
    between = key[len(head) : len(key) - len(tail)]
    if between and not (between[0] == "." and between[1:].isascii() and between[1:].isdecimal() and len(between) < 8):
        raise ValueError(f"{between[:20]!r} is not the number of a part")
    if not 0 <= record.from_ms <= record.to_ms <= _LATEST_MS or not 0 <= record.computed_ms <= _LATEST_MS:
        raise ValueError(f"from {record.from_ms} to {record.to_ms} is not a period of time")
    return name, int(between[1:]) if between else 0


def _check_partition(number: int) -> None:
    if not 0 <= number <= _MOST_PARTITION:
        raise ValueError(f"{number} is not a partition")


def _check_rate(rate: float | None) -> None:
    if rate is not None and not 0 <= rate <= _MOST_PER_S:
        raise ValueError(f"{rate} is not a rate")
