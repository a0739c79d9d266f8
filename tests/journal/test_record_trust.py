"""Which records of the journal count: those with a code of a known key, each at its place, each once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.journal.entries import JournalKey, JournalTrust
from agent.journal.record_trust import (
    RecordVerifier,
    RejectedRecord,
    RejectionReason,
    VerifiedRecord,
    checked_watermark,
    distinct_ids,
    rejection_sentence,
    signed_watermark,
)

NEW, OLD = JournalKey(b"a key that is in force"), JournalKey(b"a key from before that")
TRUST = JournalTrust((NEW,), "c-1")
KEY, VALUE = b"plan/p-1", b'{"v":1}'
CODES = TRUST.signed(KEY, (3, 4), VALUE) or ""


def weigh(
    trust: JournalTrust, *, key: bytes = KEY, value: bytes | None = VALUE, at: str = "3-4", codes: str = CODES
) -> VerifiedRecord:
    return RecordVerifier(trust).weigh(100, key, value, at, codes)


def test_a_record_with_its_code_counts() -> None:
    assert weigh(TRUST) == VerifiedRecord((3, 4), None, current=True)


@pytest.mark.parametrize(
    ("found", "doubt"),
    [
        pytest.param(weigh(TRUST, codes=""), RejectionReason.UNSIGNED, id="no code"),
        pytest.param(weigh(TRUST, codes="x" * 5_000), RejectionReason.UNSIGNED, id="no code, but many letters"),
        pytest.param(weigh(TRUST, value=b'{"v":2}'), RejectionReason.FORGED, id="another value"),
        pytest.param(weigh(TRUST, value=None), RejectionReason.FORGED, id="a deletion instead"),
        pytest.param(weigh(TRUST, key=b"plan/p-2"), RejectionReason.FORGED, id="another key"),
        pytest.param(weigh(TRUST, at="3-5"), RejectionReason.FORGED, id="another place"),
        pytest.param(weigh(TRUST, at="soon"), RejectionReason.FORGED, id="no place"),
        pytest.param(weigh(TRUST._replace(cluster="c-2")), RejectionReason.FORGED, id="another cluster"),
        pytest.param(weigh(TRUST, codes=f"{NEW.id}:{'0' * 64}"), RejectionReason.FORGED, id="a made-up code"),
        pytest.param(weigh(JournalTrust((OLD,), "c-1")), RejectionReason.OTHER_KEY, id="a key that is not known here"),
        pytest.param(weigh(TRUST, codes=f"{CODES[:-1]}ü"), RejectionReason.UNSIGNED, id="a code that is no ASCII"),
    ],
)
def test_any_other_record_does_not_count(found: VerifiedRecord, doubt: RejectionReason) -> None:
    assert (found.doubt, found.current) == (doubt, False)


def test_a_deletion_has_a_code_too() -> None:
    codes = TRUST.signed(KEY, (3, 4), None) or ""
    assert weigh(TRUST, value=None, codes=codes).doubt is None
    assert weigh(TRUST, value=b"", codes=codes).doubt is RejectionReason.FORGED, "an empty value is no deletion"


def test_an_old_record_that_is_written_once_more_does_not_count() -> None:
    weigher = RecordVerifier(TRUST)
    records = [((3, 4), "first"), ((3, 5), "second"), ((4, 0), "third"), ((3, 5), "again"), ((4, 0), "the last again")]
    found = []
    for offset, (place, text) in enumerate(records):
        value = text.encode()
        found.append(weigher.weigh(offset, KEY, value, f"{place[0]}-{place[1]}", TRUST.signed(KEY, place, value) or ""))
    assert [one.doubt for one in found] == [None, None, None, RejectionReason.REPLAYED, RejectionReason.REPLAYED]
    assert [one.place for one in found] == [place for place, _ in records], "a replayed one is named by its place"


def test_while_a_key_is_replaced_agents_with_either_key_go_on() -> None:
    both, old, new = JournalTrust((NEW, OLD), "c-1"), JournalTrust((OLD,), "c-1"), JournalTrust((NEW,), "c-1")
    by_both = both.signed(KEY, (3, 4), VALUE) or ""
    assert weigh(old, codes=by_both) == VerifiedRecord((3, 4), None, current=True)
    assert weigh(new, codes=by_both) == VerifiedRecord((3, 4), None, current=True)
    by_old = old.signed(KEY, (3, 4), VALUE) or ""
    assert weigh(both, codes=by_old) == VerifiedRecord((3, 4), None, current=False), (
        "it is written anew with the new one"
    )


def test_a_wrong_code_is_not_made_good_by_another_one() -> None:
    both = JournalTrust((NEW, OLD), "c-1")
    right = JournalTrust((OLD,), "c-1").signed(KEY, (3, 4), VALUE)
    assert weigh(both, codes=f"{NEW.id}:{'0' * 64} {right}").doubt is RejectionReason.FORGED


def test_records_from_before_there_was_a_key_count_up_to_the_offset_that_a_person_gave() -> None:
    trust = TRUST._replace(unsigned_below=101)
    assert RecordVerifier(trust).weigh(100, KEY, VALUE, "3-4", "") == VerifiedRecord((3, 4), None, current=False)
    assert RecordVerifier(trust).weigh(101, KEY, VALUE, "3-4", "").doubt is RejectionReason.UNSIGNED
    assert RecordVerifier(trust).weigh(100, KEY, VALUE, "3-4", f"{NEW.id}:{'0' * 64}").doubt is RejectionReason.FORGED


def test_without_a_key_every_record_counts() -> None:
    assert weigh(JournalTrust(), codes="") == VerifiedRecord((3, 4), None, current=True)
    assert JournalTrust().signed(KEY, (3, 4), VALUE) is None


@given(st.binary(max_size=20), st.binary(max_size=20) | st.none(), st.text(max_size=30), st.text(max_size=200))
def test_whatever_others_write_is_weighed_and_never_counts(
    key: bytes, value: bytes | None, at: str, codes: str
) -> None:
    assert RecordVerifier(TRUST).weigh(0, key, value, at, codes).doubt is not None


@given(
    st.lists(st.tuples(st.binary(max_size=6), st.binary(max_size=6) | st.none()), min_size=2, max_size=2, unique=True)
)
def test_no_two_records_have_the_same_code(records: list[tuple[bytes, bytes | None]]) -> None:
    one, two = (TRUST.signed(key, (1, 1), value) for key, value in records)
    assert one != two


def test_what_is_remembered_outside_of_the_journal_is_checked_by_the_same_key() -> None:
    data = signed_watermark(TRUST, "7 120")
    assert checked_watermark(TRUST, data) == ("7 120", None)
    assert checked_watermark(TRUST, data.replace("7 120", "0 0"))[1] is RejectionReason.FORGED
    assert checked_watermark(TRUST, "0 0")[1] is RejectionReason.UNSIGNED
    assert checked_watermark(JournalTrust((OLD,), "c-1"), data)[1] is RejectionReason.OTHER_KEY
    assert checked_watermark(TRUST._replace(unsigned_below=1), "7 120") == ("7 120", None), (
        "from before there was a key"
    )
    assert checked_watermark(JournalTrust(), "7 120") == ("7 120", None)
    assert signed_watermark(JournalTrust(), "7 120") == "7 120"


def test_the_keys_that_records_of_others_claim_are_named_once_and_sorted() -> None:
    claimed = (("b",), ("a", "b"), (), ("c", "a"))
    records = [RejectedRecord(0, "plan/p-1", RejectionReason.OTHER_KEY, ids) for ids in claimed]
    assert distinct_ids(records) == ("a", "b", "c")
    assert distinct_ids([]) == ()


def test_records_of_others_are_named_and_counted_and_no_key_is_ever_shown() -> None:
    assert rejection_sentence([], 0, "t") is None
    one = RejectedRecord(17, "plan/p-1", RejectionReason.UNSIGNED)
    assert rejection_sentence([one], 1, "rackwise.journal") == (
        "1 record of rackwise.journal ignored, not written by an agent of this cluster (offset 17, key 'plan/p-1': it"
        " carries no code); only the executor needs Write on rackwise.journal: docs/operations.md, Rights"
    )
    assert "2,000 records of t ignored" in (rejection_sentence([one], 2_000, "t") or "")
    assert "force" not in f"{NEW!r} {TRUST!r} {CODES}"
