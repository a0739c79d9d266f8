"""The proposals topic: what is written when, so that its compacted state is what rackwise would do now."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import jsonschema
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary_event

from agent.journal.approvals import plan_hash
from agent.propose.codec import proposal_from_json, proposal_to_bytes
from agent.record.librdkafka import ProducerRecord
from agent.record.proposals import ProposalsUpdate, PublishedProposal, proposals_in, standing_in, update
from agent.record.reader import ConsumerRecord
from agent.telemetry.topic_records import CREATED, VOID, slot
from agent.values.finding import SubjectId
from agent.values.proposal import LifecycleStep, PredictedEffect, Proposal, ProposalKind, ProposalReason
from tests.docs.schemas import life_schema, proposal_schema

NOW = 1_760_000_000_123
TTL = 900_000


def a_proposal(name: str = "orders", number: int = 1, created_ms: int = NOW, **other: object) -> Proposal:
    values: dict[str, object] = {
        "id": f"p-{number:012x}",
        "kind": ProposalKind.TRIGGER,
        "reason": ProposalReason.REBALANCE_IMPROVES,
        "subject": SubjectId("group", name),
        "sentence": "one rebalance brings 3 partitions home",
        "before": (),
        "after": (),
        "moves": (),
        "predicted": PredictedEffect(),
        "lower_bound": None,
        "optimal": None,
        "evidence": (),
        "findings": (),
        "snapshot_hash": "h",
        "created_ms": created_ms,
        "expires_ms": created_ms + TTL,
        **other,
    }
    return Proposal(**values)  # type: ignore[arg-type] # a builder's keywords


def step(standing: dict[str, PublishedProposal] | None, *proposals: Proposal, now_ms: int = NOW) -> ProposalsUpdate:
    return update(standing or {}, proposals, now_ms=now_ms, topic="t", cluster="c/1", agent="a b")


def header(record: ProducerRecord, name: str) -> str:
    return dict(record.headers)[name].decode()


def told(change: ProposalsUpdate) -> list[tuple[str, str]]:
    return [(header(record, "ce_type"), header(record, "ce_id")) for record in change.records]


STANDS = dict(step(None, a_proposal()).standing)


@pytest.mark.parametrize(
    ("standing", "proposals", "now_ms", "records"),
    [
        pytest.param({}, [a_proposal()], NOW, [(CREATED, "p-000000000001")], id="a new proposal is written"),
        pytest.param(STANDS, [a_proposal()], NOW + 1, [], id="one that stands is not written again"),
        pytest.param(
            STANDS, [a_proposal(created_ms=NOW + TTL // 2)], NOW + TTL // 2, [], id="not at half of its time either"
        ),
        pytest.param(
            STANDS,
            [a_proposal(created_ms=NOW + TTL // 2 + 1)],
            NOW + TTL // 2 + 1,
            [(CREATED, "p-000000000001")],
            id="but soon after, so that it never looks expired",
        ),
        pytest.param(
            STANDS,
            [a_proposal(number=2)],
            NOW,
            [(VOID, "p-000000000001.void"), (CREATED, "p-000000000002")],
            id="another answer in its slot makes it void first",
        ),
        pytest.param(STANDS, [], NOW, [(VOID, "p-000000000001.void")], id="one that no longer holds is void"),
        pytest.param(
            STANDS,
            [a_proposal(kind=ProposalKind.ADVISE, reason=ProposalReason.SET_CLIENT_RACK, number=3), a_proposal()],
            NOW,
            [(CREATED, "p-000000000003")],
            id="another kind about the same subject has a slot of its own",
        ),
        pytest.param({}, [], NOW, [], id="nothing to say"),
    ],
)
def test_what_is_written(
    standing: dict[str, PublishedProposal], proposals: list[Proposal], now_ms: int, records: list[tuple[str, str]]
) -> None:
    change = step(standing, *proposals, now_ms=now_ms)
    assert told(change) == records
    assert {key: one.id for key, one in change.standing.items()} == {slot(one): one.id for one in proposals}


FIRST_FIGURES = PredictedEffect(bytes_to_move=349_000, usd_per_day_before=0.10, usd_per_day_after=0.0)
MINUTE = 60_000


@pytest.mark.parametrize(
    ("before", "after", "later_ms", "again"),
    [
        pytest.param(FIRST_FIGURES, replace(FIRST_FIGURES, bytes_to_move=13_600_000), 3 * MINUTE, True, id="copies"),
        pytest.param(FIRST_FIGURES, replace(FIRST_FIGURES, usd_per_day_before=0.2), 3 * MINUTE, True, id="money"),
        pytest.param(FIRST_FIGURES, replace(FIRST_FIGURES, bytes_to_move=13_600_000), 2 * MINUTE, False, id="too soon"),
        pytest.param(FIRST_FIGURES, replace(FIRST_FIGURES, bytes_to_move=400_000), 3 * MINUTE, False, id="by less"),
        pytest.param(replace(FIRST_FIGURES, bytes_to_move=None), FIRST_FIGURES, 10_000, True, id="becomes known"),
        pytest.param(FIRST_FIGURES, replace(FIRST_FIGURES, bytes_to_move=None), 3 * MINUTE, False, id="known before"),
    ],
)
def test_the_same_plan_is_written_again_once_its_figures_have_changed_materially(
    before: PredictedEffect, after: PredictedEffect, later_ms: int, again: bool
) -> None:
    old = a_proposal(predicted=before)
    new = a_proposal(predicted=after, created_ms=NOW + later_ms)
    first = step(None, old)
    change = step(dict(first.standing), new, now_ms=NOW + later_ms)
    assert told(change) == ([(CREATED, old.id)] if again else [])
    assert plan_hash(new) == plan_hash(old), "an approval of the one is an approval of the other"
    stands = standing_in(as_read((*first.records, *change.records)), "c/1")
    assert stands == change.standing, "a restarted agent knows which figures were written"
    later = NOW + later_ms + 10_000
    assert told(step(stands, a_proposal(predicted=after, created_ms=later), now_ms=later)) == []


@pytest.mark.parametrize(
    ("proposals", "now_ms", "sentence"),
    [
        pytest.param([a_proposal(number=2)], NOW, "another proposal replaced it", id="replaced"),
        pytest.param([], NOW, "the state that it was made from has changed", id="no longer proposed"),
        pytest.param([], NOW + TTL + 1, "it expired unused", id="expired"),
    ],
)
def test_a_void_record_says_why(proposals: list[Proposal], now_ms: int, sentence: str) -> None:
    record = step(STANDS, *proposals, now_ms=now_ms).records[0]
    document = json.loads(record.value or b"")
    assert sentence in document["sentence"]
    jsonschema.Draft202012Validator(life_schema()).validate(document)
    assert header(record, "ce_dataschema") == life_schema()["$id"]


def test_a_created_record_is_a_cloud_event_whose_value_is_the_canonical_proposal() -> None:
    proposal = a_proposal("zahlungen/ä")
    (record,) = step(None, proposal).records
    event = from_binary_event(KafkaMessage(headers=dict(record.headers), key=record.key, value=record.value or b""))
    assert event.get_specversion() == "1.0"
    assert event.get_id() == proposal.id
    assert event.get_source() == "/clusters/c%2F1/agents/a%20b"
    assert event.get_type() == "rackwise.proposal.created.v1"
    assert event.get_subject() == "group/zahlungen/ä"
    assert event.get_time() == datetime.fromtimestamp(NOW / 1_000, UTC)
    assert event.get_datacontenttype() == "application/json"
    assert event.get_dataschema() == proposal_schema()["$id"]
    assert event.get_extension("partitionkey") == record.key == "group/zahlungen/ä#trigger/rebalance_improves"
    assert record.value == proposal_to_bytes(proposal)
    jsonschema.Draft202012Validator(proposal_schema()).validate(event.get_data())
    assert proposal_from_json(record.value) == proposal


def as_read(records: tuple[ProducerRecord, ...]) -> list[ConsumerRecord]:
    return [
        ConsumerRecord(0, offset, record.key, record.value, {name: value.decode() for name, value in record.headers})
        for offset, record in enumerate(records)
    ]


def test_what_stands_is_read_back_from_the_records() -> None:
    first = step(None, a_proposal("a", 1), a_proposal("b", 2), a_proposal("c", 3))
    second = step(dict(first.standing), a_proposal("a", 1), a_proposal("b", 4))
    read = as_read((*first.records, *second.records))
    assert standing_in(read, "c/1") == second.standing
    assert standing_in(read, "c") == {}, "another cluster whose id begins alike"
    assert [(type(one).__name__, one.id) for one in proposals_in(read, "c/1").states] == [
        ("Proposal", "p-000000000001"),
        ("Proposal", "p-000000000004"),
        ("LifecycleStep", "p-000000000003"),
        ("LifecycleStep", "p-000000000002"),
    ]


def test_another_clusters_proposal_is_not_open_here_and_hides_none_in_its_slot() -> None:
    """A mirrored topic holds what agents of other clusters propose."""
    own = as_read(step(None, a_proposal("a", 1)).records)
    other = update({}, [a_proposal("a", 2), a_proposal("b", 3)], now_ms=NOW, topic="t", cluster="c/2", agent="b")
    read = [*own, *as_read(other.records)]
    assert [one.id for one in proposals_in(read, "c/1").states] == ["p-000000000001"]
    assert [one.id for one in proposals_in(read, "c/2").states] == ["p-000000000002", "p-000000000003"]


def test_compaction_in_any_state_gives_the_same_standing() -> None:
    first = step(None, a_proposal("a", 1), a_proposal("b", 2))
    second = step(dict(first.standing), a_proposal("b", 4))
    read = as_read((*first.records, *second.records))
    newest = {one.key: one for one in read}
    assert standing_in(newest.values(), "c/1") == standing_in(read, "c/1") == second.standing
    tombstone = ConsumerRecord(0, 9, read[1].key, None, read[1].headers)
    assert standing_in([*read, tombstone], "c/1") == {}


def test_a_void_that_comes_late_does_not_end_what_took_its_place() -> None:
    old, new = step(None, a_proposal(number=1)), step(None, a_proposal(number=2))
    void = step(dict(old.standing)).records
    assert [one.id for one in standing_in(as_read((*old.records, *new.records, *void)), "c/1").values()] == [
        "p-000000000002"
    ]


NEITHER = [
    pytest.param(b"", "not JSON", id="nothing"),
    pytest.param(b"{}", "without id", id="an empty object"),
    pytest.param(b"\xff", "not UTF-8", id="no text"),
    pytest.param(b"[]", "", id="a list"),
    pytest.param(b'{"id":1}', "", id="an id that is a number"),
    pytest.param(b"[" * 100_000, "deep", id="nested without end"),
    pytest.param(b'{"a":' + b"9" * 400 + b"}", "64 bits", id="a number of 400 digits"),
    pytest.param(b'{"a":1e400}', "too large", id="infinity"),
    pytest.param(b'{"a":"\\ud800"}', "surrogate", id="half a character"),
]


@pytest.mark.parametrize("kind", [VOID, CREATED, "", None])
@pytest.mark.parametrize(("value", "why"), NEITHER)
def test_a_record_that_is_neither_is_left_out_and_hides_no_other_one(value: bytes, why: str, kind: str | None) -> None:
    others = as_read(step(None, a_proposal("a", 1), a_proposal("z", 2)).records)
    headers = {"ce_source": others[0].headers["ce_source"]} | ({} if kind is None else {"ce_type": kind})
    junk = ConsumerRecord(0, 7, "m", value, headers)
    found = proposals_in([others[0], junk, others[1]], "c/1")
    assert [one.id for one in found.states] == ["p-000000000001", "p-000000000002"]
    (sentence,) = found.left_out
    assert sentence.startswith("the record at offset 7 of partition 0 cannot be read: ")
    assert why in sentence or kind == CREATED
    assert set(standing_in([others[0], junk, others[1]], "c/1")) == {others[0].key, others[1].key}


def test_junk_in_the_slot_of_a_proposal_has_it_written_again() -> None:
    (read,) = as_read(step(None, a_proposal()).records)
    assert standing_in([read, read._replace(offset=1, value=b"junk")], "c/1") == {}


@pytest.mark.parametrize("name", ["created_ms", "expires_ms"])
@pytest.mark.parametrize("value", [2**62, -1, "7", 1.5, True])
def test_a_proposal_whose_times_are_none_is_left_out(name: str, value: object) -> None:
    (read,) = as_read(step(None, a_proposal()).records)
    document = {**json.loads(read.value or b""), name: value}
    found = proposals_in([read._replace(value=json.dumps(document).encode())], "c/1")
    assert found.states == ()
    assert name in found.left_out[0]


def test_two_agents_write_the_same_record_but_for_their_names() -> None:
    one, other = step(None, a_proposal()), update({}, [a_proposal()], now_ms=NOW, topic="t", cluster="c/1", agent="b")
    assert one.records[0]._replace(headers=()) == other.records[0]._replace(headers=())
    assert a_proposal()._replace(id="x") != a_proposal()
    assert isinstance(proposals_in(as_read(step(STANDS).records), "c/1").states[0], LifecycleStep)


def test_what_became_of_a_replaced_proposal_is_found_beside_the_one_that_replaced_it() -> None:
    first = step(None, a_proposal())
    second = step(first.standing, a_proposal(number=2))
    found = proposals_in(as_read((*first.records, *second.records)), "c/1")
    assert [(type(one).__name__, one.id) for one in found.states] == [
        ("Proposal", "p-000000000002"), ("LifecycleStep", "p-000000000001"),
    ]  # fmt: skip
    again = step(second.standing, a_proposal())
    found = proposals_in(as_read((*first.records, *second.records, *again.records)), "c/1")
    assert [one.id for one in found.states] == ["p-000000000001", "p-000000000002"], "it is open again"
