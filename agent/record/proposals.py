"""What to write to the proposals topic, so that its compacted state is what rackwise would do now.

A proposal is written when it is new or changed, and again before it expires; one that no longer holds is written as
void. The key is the proposal's slot (subject, kind and reason), so compaction keeps one state per slot, and what two
agents write about the same snapshot is the same record. Pure but for the two functions that read the topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent.propose.cloud_events import source
from agent.propose.codec import proposal_from_json, proposal_to_bytes
from agent.propose.proposal import Proposal
from agent.propose.published import CREATED, Life, created_headers, life_headers, slot
from agent.record.publisher import Record
from agent.record.reader import Read
from agent.typed_json import UnreadableError, from_json, to_json

_REPLACED = "void: another proposal replaced it"
_GONE = "void: the state that it was made from has changed, so it is no longer proposed"
_EXPIRED = "void: it expired unused, and it is no longer proposed"


class Published(NamedTuple):
    """A proposal that stands in the topic."""

    id: str
    kind: str
    subject: str
    created_ms: int
    expires_ms: int


class Update(NamedTuple):
    """What to write, and what then stands in the topic by slot."""

    records: tuple[Record, ...]
    standing: Mapping[str, Published]
    created: int
    void: int


def update(
    standing: Mapping[str, Published],
    proposals: Sequence[Proposal],
    *,
    now_ms: int,
    topic: str,
    cluster: str,
    agent: str,
) -> Update:
    """The records that lead from what stands in the topic to these proposals."""
    here = source(cluster, agent)
    after = {slot(proposal): proposal for proposal in proposals}
    void: list[Record] = []
    for key, old in standing.items():
        new = after.get(key)
        if new is None or new.id != old.id:
            sentence = _REPLACED if new is not None else (_EXPIRED if now_ms > old.expires_ms else _GONE)
            life = Life(old.id, old.kind, old.subject, "void", sentence, now_ms)
            void.append(_void(life, key, topic, here))
    created = [
        _created(proposal, key, topic, here)
        for key, proposal in after.items()
        if key not in standing or standing[key].id != proposal.id or _ages(standing[key], now_ms)
    ]
    written = {record.key for record in created}
    stands = {key: _published(proposal) if key in written else standing[key] for key, proposal in after.items()}
    return Update((*void, *created), stands, len(created), len(void))


def standing_in(records: Iterable[Read], cluster: str) -> dict[str, Published]:
    """What stands in the topic by slot, as its records tell in their order; other clusters' are left aside."""
    standing: dict[str, Published] = {}
    for read in records:
        if not read.headers.get("ce_source", "").startswith(source(cluster, "")):
            continue
        if read.headers.get("ce_type") == CREATED and read.value is not None:
            standing[read.key] = _published(proposal_from_json(read.value))
        elif read.key in standing and _life_id(read) in (None, standing[read.key].id):
            del standing[read.key]
    return standing


def proposals_in(records: Iterable[Read]) -> tuple[Proposal | Life, ...]:
    """The newest state of every slot, sorted by key: a proposal, or the step that ended it."""
    newest = {read.key: read for read in records}
    return tuple(_state(read) for _, read in sorted(newest.items()) if read.value is not None)


def _state(read: Read) -> Proposal | Life:
    value = read.value or b""
    return proposal_from_json(value) if read.headers.get("ce_type") == CREATED else _life(value)


def _life_id(read: Read) -> str | None:
    """The proposal that a life record is about; a tombstone ends whatever stands in its slot."""
    return None if read.value is None else _life(read.value).id


def _life(value: bytes) -> Life:
    try:
        return from_json(Life, json.loads(value))
    except ValueError as error:
        raise UnreadableError(f"a record is not an event of a proposal: {error}") from error


def _ages(published: Published, now_ms: int) -> bool:
    """More than half of its time is over: it is written again, so that a standing proposal never looks expired."""
    return now_ms - published.created_ms > (published.expires_ms - published.created_ms) / 2


def _published(proposal: Proposal) -> Published:
    return Published(proposal.id, proposal.kind.value, str(proposal.subject), proposal.created_ms, proposal.expires_ms)


def _created(proposal: Proposal, key: str, topic: str, here: str) -> Record:
    return Record(topic, key, proposal_to_bytes(proposal), created_headers(proposal, here))


def _void(life: Life, key: str, topic: str, here: str) -> Record:
    value = json.dumps(to_json(Life, life), separators=(",", ":"), sort_keys=True)
    return Record(topic, key, value.encode(), life_headers(life, here))
