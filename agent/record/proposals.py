"""Records for the proposals topic: new, changed and refreshed proposals, and void ones.

A proposal is written when new or changed, when its figures changed materially, and before it expires. The key is its
slot (subject, kind, reason), so compaction keeps one state per slot, equal for two agents with the same snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from agent.errors import reason
from agent.propose.codec import BadProposalDocument, proposal_from_json, proposal_to_bytes
from agent.record.librdkafka import ProducerRecord
from agent.record.reader import ConsumerRecord
from agent.telemetry.topic_records import (
    CREATED,
    ProposalFigures,
    created_headers,
    differ,
    figures_of,
    life_headers,
    slot,
    source,
)
from agent.values.proposal import LifecycleStep, Proposal
from agent.values.typed_json import ForeignJsonError, UnreadableError, from_json, is_time, read_json, to_json

FIGURES_MS = 180_000
"""A proposal whose figures change all the time is written again no more often; one whose figures become known is."""
_REPLACED = "another proposal replaced it"
_GONE = "the state that it was made from has changed, so it is no longer proposed"
_EXPIRED = "it expired unused, and it is no longer proposed"


class PublishedProposal(NamedTuple):
    """The state of a slot in the topic."""

    id: str
    kind: str
    subject: str
    created_ms: int
    expires_ms: int
    figures: ProposalFigures = ProposalFigures()
    """Figures as the record has them."""


class ProposalStates(NamedTuple):
    """The topic's state."""

    states: tuple[Proposal | LifecycleStep, ...]
    """The newest state of every slot, sorted by key: a proposal, or the step that ended it. After them the steps that
    ended what was replaced, as far as the topic still has them."""
    left_out: tuple[str, ...]
    """One sentence for each slot whose newest record is neither; it hides no other one."""


class ProposalsUpdate(NamedTuple):
    """The records to write, and the topic's state by slot after them."""

    records: tuple[ProducerRecord, ...]
    standing: Mapping[str, PublishedProposal]
    created: int
    void: int


def update(
    published: Mapping[str, PublishedProposal],
    proposals: Sequence[Proposal],
    *,
    now_ms: int,
    topic: str,
    cluster: str,
    agent: str,
) -> ProposalsUpdate:
    """The records that lead from the topic's state to these proposals."""
    here = source(cluster, agent)
    after = {slot(proposal): proposal for proposal in proposals}
    void: list[ProducerRecord] = []
    for key, old in published.items():
        new = after.get(key)
        if new is None or new.id != old.id:
            sentence = _REPLACED if new is not None else (_EXPIRED if now_ms > old.expires_ms else _GONE)
            life = LifecycleStep(old.id, old.kind, old.subject, "void", sentence, now_ms)
            void.append(_void(life, key, topic, here))
    created = [
        ProducerRecord(topic, key, proposal_to_bytes(proposal), created_headers(proposal, here))
        for key, proposal in after.items()
        if key not in published or published[key].id != proposal.id or _stale(published[key], proposal, now_ms)
    ]
    written = {record.key for record in created}
    stands = {key: _published(proposal) if key in written else published[key] for key, proposal in after.items()}
    return ProposalsUpdate((*void, *created), stands, len(created), len(void))


def standing_in(records: Iterable[ConsumerRecord], cluster: str) -> dict[str, PublishedProposal]:
    """The topic's state by slot after its records, in their order.

    Records of other clusters are ignored; an unreadable record clears its slot, which is then written anew.
    """
    standing: dict[str, PublishedProposal] = {}
    for read in records:
        if not _is_of(read, cluster):
            continue
        state = None if read.value is None else _state(read, read.value)
        if isinstance(state, Proposal):
            standing[read.key] = _published(state)
        elif read.key in standing and (not isinstance(state, LifecycleStep) or state.id == standing[read.key].id):
            del standing[read.key]
    return standing


def proposals_in(records: Iterable[ConsumerRecord], cluster: str) -> ProposalStates:
    """The topic's proposals of one cluster: a topic may be mirrored, and slots of clusters have equal names."""
    every = tuple(read for read in records if _is_of(read, cluster))
    newest = {read.key: read for read in every}
    states = [_state(read, read.value) for _, read in sorted(newest.items()) if read.value is not None]
    known = [state for state in states if not isinstance(state, str)]
    return ProposalStates(
        (*known, *_replaced(every, {state.id for state in known})),
        tuple(state for state in states if isinstance(state, str)),
    )


def _is_of(read: ConsumerRecord, cluster: str) -> bool:
    return read.headers.get("ce_source", "").startswith(source(cluster, ""))


def _replaced(records: Sequence[ConsumerRecord], known: AbstractSet[str]) -> Iterable[LifecycleStep]:
    """The latest step of each proposal that is not ``known``; unreadable records are ignored."""
    steps = (read for read in records if read.value is not None and read.headers.get("ce_type") != CREATED)
    lives = (state for read in steps if isinstance(state := _state(read, read.value or b""), LifecycleStep))
    return {life.id: life for life in lives if life.id not in known}.values()


def _state(read: ConsumerRecord, value: bytes) -> Proposal | LifecycleStep | str:
    """A record's proposal or step, or why it is unreadable."""
    try:
        return proposal_from_json(value) if read.headers.get("ce_type") == CREATED else _life(value)
    except (UnreadableError, BadProposalDocument) as error:
        return f"the record at offset {read.offset} of partition {read.partition} cannot be read: {reason(error)}"


def _life(value: bytes) -> LifecycleStep:
    try:
        life = from_json(LifecycleStep, read_json(value))
    except ForeignJsonError as error:
        raise UnreadableError(str(error)) from error
    if not is_time(life.at_ms):
        raise UnreadableError(f"{life.at_ms} is not a time in epoch milliseconds")
    return life


def _stale(published: PublishedProposal, proposal: Proposal, now_ms: int) -> bool:
    """Whether half of its time is over, so that it never looks expired, or its figures have changed."""
    now, age_ms = figures_of(proposal), now_ms - published.created_ms
    if age_ms > (published.expires_ms - published.created_ms) / 2 or now.adds_to(published.figures):
        return True
    return age_ms >= FIGURES_MS and differ(published.figures, now)


def _published(proposal: Proposal) -> PublishedProposal:
    return PublishedProposal(
        proposal.id,
        proposal.kind.value,
        str(proposal.subject),
        proposal.created_ms,
        proposal.expires_ms,
        figures_of(proposal),
    )


def _void(life: LifecycleStep, key: str, topic: str, here: str) -> ProducerRecord:
    value = json.dumps(to_json(LifecycleStep, life), separators=(",", ":"), sort_keys=True)
    return ProducerRecord(topic, key, value.encode(), life_headers(life, here))
