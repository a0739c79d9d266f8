"""Proposals as JSON documents, and replica lists as JSON of kafka-reassign-partitions: written and read.

Proposal documents (docs/schemas/proposal.v1.json): fields in the order of the classes below, canonical bytes; changes
are additive within a schema version, unknown fields are ignored, newer versions refused.

Reassignment files: a reassignment moves replicas; a leaders proposal only reorders them, which Kafka applies at once
(the leader follows at the next preferred election). The tool refuses a partition that is listed twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise
from typing import Any, Literal, TypeGuard

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from agent.values.assessment import LocalityMeasure
from agent.values.proposal import (
    SCHEMA_VERSION,
    PlacementChange,
    Proposal,
    ProposalKind,
    ProposalReason,
    ProposalRow,
)
from agent.values.typed_json import ForeignJsonError, from_json, is_time, read_json, to_json
from assignors.problem import TopicPartition

MOST_BYTES = 64 * 1024 * 1024
_MOST_NUMBER = 2**31 - 1
"""Numbers of brokers and partitions have 32 bits in Kafka."""


class BadReassignmentFile(ValueError):  # noqa: N818 (it names the file, as BadProblem names the problem)
    """A file that ``kafka-reassign-partitions`` would not take; the sentence names the place."""


def reassignment_json(proposals: Iterable[Proposal]) -> str:
    """The replica lists after the proposals, as ``--reassignment-json-file`` reads them."""
    return _written(proposals, "after")


def rollback_json(proposals: Iterable[Proposal]) -> str:
    """The replica lists before the proposals, in the same form."""
    return _written(proposals, "before")


def read_reassignment_json(text: str | bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """Partition -> replicas of such a file, sorted; ``log_dirs`` are left to the brokers.

    Raises ``BadReassignmentFile``.
    """
    try:
        data = read_json(text, most_bytes=MOST_BYTES)
    except ForeignJsonError as error:
        raise BadReassignmentFile(str(error)) from error
    if not isinstance(data, dict) or data.get("version", 1) != 1 or not isinstance(data.get("partitions"), list):
        raise BadReassignmentFile('expected {"version": 1, "partitions": [...]}')
    placements: dict[TopicPartition, tuple[int, ...]] = {}
    for number, entry in enumerate(data["partitions"]):
        partition, replicas = _entry(entry, number)
        if partition in placements:
            raise BadReassignmentFile(f"{partition} is listed twice")
        placements[partition] = replicas
    return dict(sorted(placements.items()))


def _written(proposals: Iterable[Proposal], side: Literal["before", "after"]) -> str:
    changes = sorted(chain.from_iterable(proposal.placements for proposal in proposals))
    twice = sorted({str(a.id) for a, b in pairwise(changes) if a.id == b.id})
    if twice:
        raise BadReassignmentFile(f"more than one proposal changes {', '.join(twice)}; choose one of them")
    return placements_json({change.id: change.after if side == "after" else change.before for change in changes})


def placements_json(placements: Mapping[TopicPartition, tuple[int, ...]]) -> str:
    """Partition -> replicas, as ``--reassignment-json-file`` reads it."""
    partitions = [
        {"topic": one.topic, "partition": one.partition, "replicas": list(replicas)}
        for one, replicas in placements.items()
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def _entry(entry: Any, number: int) -> tuple[TopicPartition, tuple[int, ...]]:
    where = f"partitions[{number}]"
    if not isinstance(entry, dict):
        raise BadReassignmentFile(f"{where} is no object")
    topic: Any
    partition: Any
    topic, partition, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    if not isinstance(topic, str) or not topic:
        raise BadReassignmentFile(f"{where}.topic is no name")
    if not is_id(partition):
        raise BadReassignmentFile(f"{where}.partition is no number from 0")
    if not isinstance(replicas, list) or not replicas or not all(is_id(broker) for broker in replicas):
        raise BadReassignmentFile(f"{where}.replicas is no list of broker ids")
    if len(set(replicas)) != len(replicas):
        raise BadReassignmentFile(f"{where}.replicas names a broker twice")
    return TopicPartition(topic, partition), tuple(replicas)


def is_id(value: object) -> TypeGuard[int]:
    """Whether Kafka can have a broker or partition of that number."""
    return type(value) is int and 0 <= value <= _MOST_NUMBER


_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_DOCUMENT = ConfigDict(use_attribute_docstrings=True, extra="ignore", strict=True)


@with_config(_DOCUMENT)
class SubjectDocument(TypedDict):
    """What the proposal is about, written kind/name."""

    kind: str
    """cluster, broker, rack, topic, group, member or task."""
    name: str


@with_config(_DOCUMENT)
class RowDocument(TypedDict):
    """One line of the comparison of before and after; only what changes is listed."""

    key: str
    """A partition (topic-0), a member id, "process task role", or the name of a setting."""
    value: list[str | int]
    """Replicas in order (the first is the preferred leader), partitions, a rack, or the setting's value."""


@with_config(_DOCUMENT)
class MoveDocument(TypedDict):
    """One elementary change."""

    what: str
    """replica, leader, partition, task or setting."""
    subject: str
    source: str | None
    target: str | None
    bytes: int | None
    """Bytes copied or restored by it; null when unknown."""


@with_config(_DOCUMENT)
class LocalityDocument(TypedDict):
    """How much of the subject's work is local, by one named measure."""

    measure: Literal["kafka", "read-local"]
    """kafka: any replica is in the reader's rack. read-local: the leader is, or an in-sync replica where the brokers
    have a rack-aware selector and the client sends its rack."""
    unit: str
    """partitions or bytes_per_s."""
    local: float
    total: float
    unknown: float
    """Part of the total of which locality is unknown."""


@with_config(_DOCUMENT)
class PredictedDocument(TypedDict):
    """What is expected to follow; null is unknown, never zero."""

    before: list[LocalityDocument]
    after: list[LocalityDocument]
    cross_rack_bytes_per_s_before: float | None
    cross_rack_bytes_per_s_after: float | None
    usd_per_day_before: float | None
    usd_per_day_after: float | None
    moves: int
    bytes_to_move: int | None
    seconds: float | None


@with_config(_DOCUMENT)
class FactDocument(TypedDict):
    """A named fact; facts come in the order in which a reader wants them."""

    name: str
    value: str | int | float | bool | list[str | int] | None


@with_config(_DOCUMENT)
class ProposalDocument(TypedDict):
    """What rackwise would do about a finding: before, after, gain, cost, reason and expiry."""

    schema_version: int
    id: str
    """p- and 12 hex digits; the same snapshot gives the same id in every agent and command."""
    kind: Literal["reassign", "leaders", "trigger", "advise"]
    reason: str
    """Name of the reason, in lower case with underscores."""
    reason_text: str
    """The reason as people read it."""
    subject: SubjectDocument
    sentence: str
    before: list[RowDocument]
    after: list[RowDocument]
    moves: list[MoveDocument]
    predicted: PredictedDocument
    lower_bound: float | None
    """No change of this kind can reach less: crossing reads, or bytes copied for a reassignment."""
    optimal: bool | None
    """Whether the lower bound is reached; null where there is none."""
    evidence: list[FactDocument]
    findings: list[str]
    """Ids of the findings that it answers."""
    line: str | None
    """The exact configuration line to set, or command to run."""
    snapshot_hash: str
    """Digest of what the proposal rests on; the proposal is void when it no longer holds."""
    created_ms: int
    """Epoch milliseconds."""
    expires_ms: int
    """Epoch milliseconds; not to be used later."""


class BadProposalDocument(ValueError):  # noqa: N818 (it names the document, as BadProblem names the problem)
    """A document that is no proposal of a version that this release reads; the sentence names the place."""


def proposal_to_json(proposal: Proposal) -> dict[str, Any]:
    """The document of a proposal, fields in their fixed order."""
    value = to_json(Proposal, proposal._replace(placements=()))
    for share in (*value["predicted"]["before"], *value["predicted"]["after"]):
        share["measure"] = LocalityMeasure[share["measure"]].value
    value |= {
        "kind": proposal.kind.value,
        "reason": proposal.reason.name.lower(),
        "reason_text": proposal.reason.value,
        "evidence": [{"name": name, "value": fact} for name, fact in value["evidence"]],
    }
    return {name: value[name] for name in ProposalDocument.__annotations__}


def proposal_to_bytes(proposal: Proposal) -> bytes:
    """The canonical bytes of a proposal: UTF-8, no spaces, fields in their fixed order."""
    return json.dumps(proposal_to_json(proposal), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def proposal_from_json(document: str | bytes | Mapping[str, Any]) -> Proposal:
    """The proposal of a document or of its JSON text; unknown fields are left aside.

    Raises ``BadProposalDocument`` for anything that is not a proposal of this schema version or an older one.
    """
    try:
        read = _READER.validate_python(read_json(document) if isinstance(document, str | bytes) else dict(document))
    except ForeignJsonError as error:
        raise BadProposalDocument(f"not a proposal: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the document"
        raise BadProposalDocument(f"not a proposal: {where}: {first['msg']}") from error
    if not 1 <= read["schema_version"] <= SCHEMA_VERSION:
        raise BadProposalDocument(
            f"the proposal has schema version {read['schema_version']} and this release reads up to {SCHEMA_VERSION}; "
            "use a newer release of rackwise"
        )
    if not (is_time(read["created_ms"]) and is_time(read["expires_ms"])):
        raise BadProposalDocument("not a proposal: created_ms and expires_ms are not times in epoch milliseconds")
    return _proposal(read)


_READER: TypeAdapter[ProposalDocument] = TypeAdapter(ProposalDocument)


def _proposal(read: ProposalDocument) -> Proposal:
    reason = read["reason"].upper()
    if reason not in ProposalReason.__members__:
        raise BadProposalDocument(f"not a proposal: reason: there is no reason {read['reason'][:80]!r}")
    predicted = read["predicted"]
    value = {
        **read,
        "kind": ProposalKind(read["kind"]).name,
        "reason": reason,
        "predicted": {**predicted, "before": _shares(predicted["before"]), "after": _shares(predicted["after"])},
        "evidence": [[fact["name"], fact["value"]] for fact in read["evidence"]],
    }
    proposal = from_json(Proposal, value)
    return proposal._replace(placements=_placements(proposal))


def _shares(shares: list[LocalityDocument]) -> list[dict[str, Any]]:
    return [{**share, "measure": LocalityMeasure(share["measure"]).name} for share in shares]


def _placements(proposal: Proposal) -> tuple[PlacementChange, ...]:
    """The replica lists that its rows name. Raises BadProposalDocument."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return ()
    before = {row.key: _brokers(row) for row in proposal.before}
    try:
        return tuple(PlacementChange(_partition(row.key), before[row.key], _brokers(row)) for row in proposal.after)
    except KeyError as error:
        raise BadProposalDocument(f"not a proposal: before: there is no row {str(error)[:80]}") from error


def _partition(key: str) -> TopicPartition:
    topic, _, number = key.rpartition("-")
    if not topic or _NUMBER.fullmatch(number) is None or not is_id(int(number)):
        raise BadProposalDocument(f"not a proposal: {key[:80]!r} is no partition")
    return TopicPartition(topic, int(number))


def _brokers(row: ProposalRow) -> tuple[int, ...]:
    brokers = tuple(filter(is_id, row.value))
    if not brokers or len(set(brokers)) != len(row.value):
        raise BadProposalDocument(f"not a proposal: {row.key[:80]!r} has no list of different brokers")
    return brokers
