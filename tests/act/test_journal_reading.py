"""What records of the journal's topic come to, without brokers: entries, and records that do not count."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from agent.act.journal.journal import JournalCompactor, TopicRead
from agent.act.journal.journal_topic import JournalWatermark, KafkaJournalPlan, TopicOffsets, check
from agent.errors import BadInput
from agent.journal.entries import CODE_HEADER, JournalKey, JournalTrust, JournalWrite, key_bytes, numbered, rewritten
from tests.act.journals import CLUSTER, leader

KEY, FORMER, THEIRS = (JournalKey(text.encode() * 4) for text in ("in force", "formerly", "a foe's "))
TRUST = JournalTrust((KEY,), CLUSTER)


class Record(NamedTuple):
    """A message as the client gives it."""

    at: int
    name: bytes
    data: bytes | None
    attributes: list[tuple[str, bytes]]

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return self.name

    def value(self) -> bytes | None:
        return self.data

    def headers(self) -> list[tuple[str, bytes]]:
        return self.attributes


class Log:
    """The topic, record by record."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, trust: JournalTrust, epoch: int, seq: int, key: str, value: dict[str, Any] | None) -> Record:
        (one,) = numbered([JournalWrite(key, "said", value)], at_ms=1, epoch=epoch, first_seq=seq)
        codes = trust.signed(key_bytes(key), (epoch, seq), one.data)
        signed = [] if codes is None else [(CODE_HEADER, codes.encode())]
        event = ("ce_id", f"{epoch}-{seq}".encode())
        self.records.append(Record(len(self.records) * 2, key.encode(), one.data, [event, *signed]))
        return self.records[-1]

    def again(self, record: Record) -> None:
        self.records.append(record._replace(at=len(self.records) * 2))

    def read(self, trust: JournalTrust) -> TopicRead:
        reading = JournalCompactor("rackwise.journal", trust)
        for record in self.records:
            reading.take(record)
        return reading.result()


def values(told: TopicRead) -> dict[str, Any]:
    return {key: entry.value["n"] for key, entry in told.view.items()}


@pytest.fixture
def log() -> Log:
    one = Log()
    one.write(TRUST, 1, 0, "leader", {"n": 0})
    one.write(TRUST, 1, 1, "plan/a", {"n": 1})
    one.write(TRUST, 1, 2, "plan/b", {"n": 2})
    return one


FORGERIES = [
    pytest.param(JournalTrust(), id="plain, as any producer writes"),
    pytest.param(JournalTrust((THEIRS,), CLUSTER), id="with a key of its own"),
    pytest.param(JournalTrust((KEY,), "another-cluster"), id="of another cluster with the same key"),
]


@pytest.mark.parametrize("forger", FORGERIES)
def test_a_forged_record_is_ignored_named_and_counted_and_a_true_one_before_it_stands(
    log: Log, forger: JournalTrust
) -> None:
    log.write(forger, 9, 9, "plan/evil", {"n": 666})
    log.write(forger, 9, 10, "plan/a", {"n": 666})
    log.write(forger, 9, 11, "plan/b", None)
    told = log.read(TRUST)
    assert values(told) == {"leader": 0, "plan/a": 1, "plan/b": 2}
    assert (told.doubted_count, [one.key for one in told.doubted]) == (3, ["plan/evil", "plan/a", "plan/b"])
    assert told.newest_epoch == 1, "no epoch is taken from it"
    assert told.overwrite == {"plan/evil", "plan/a", "plan/b"}


def test_a_true_record_written_once_more_brings_back_nothing(log: Log) -> None:
    first = log.records[1]
    log.write(TRUST, 2, 0, "plan/a", {"n": 7})
    log.again(first)
    told = log.read(TRUST)
    assert values(told)["plan/a"] == 7
    assert (told.doubted_count, told.overwrite) == (1, {"plan/a"})


def test_whoever_leads_next_writes_everything_anew_so_that_compaction_keeps_no_forgery(log: Log) -> None:
    log.write(JournalTrust(), 9, 9, "plan/evil", {"n": 666})
    log.write(JournalTrust(), 9, 10, "plan/a", {"n": 666})
    told = log.read(TRUST)
    again = rewritten(told.view, told.overwrite, at_ms=5, epoch=2, first_seq=1)
    assert [(one.key, one.seq, data is None) for one, data in again] == [
        ("leader", 1, False), ("plan/a", 2, False), ("plan/b", 3, False), ("plan/evil", 4, True),
    ]  # fmt: skip
    assert {one.at_ms for one, _ in again[:3]} == {1}, "the times of entries stay"
    for one, data in again:
        codes = TRUST.signed(key_bytes(one.key), (one.epoch, one.seq), data) or ""
        log.records.append(
            Record(len(log.records) * 2, one.key.encode(), data,
                   [("ce_id", f"{one.epoch}-{one.seq}".encode()), (CODE_HEADER, codes.encode())])
        )  # fmt: skip
    after = log.read(TRUST)
    assert (values(after), after.overwrite, after.newest_epoch) == (values(told), frozenset(), 2)
    last = {record.name: record for record in log.records}  # what compaction leaves
    log.records = sorted(last.values(), key=lambda record: record.at)
    assert (values(log.read(TRUST)), log.read(TRUST).doubted_count) == (values(told), 0)


def test_after_another_key_everything_is_written_anew_with_it(log: Log) -> None:
    told = log.read(JournalTrust((FORMER, KEY), CLUSTER))
    assert (values(told), told.doubted_count) == ({"leader": 0, "plan/a": 1, "plan/b": 2}, 0)
    assert told.overwrite == {"leader", "plan/a", "plan/b"}


def test_records_of_a_former_key_are_no_forgeries_once_they_were_written_anew(log: Log) -> None:
    new = JournalTrust((FORMER,), CLUSTER)
    assert (log.read(new).doubted_count, values(log.read(new))) == (3, {})
    for seq, (key, number) in enumerate((("leader", 0), ("plan/a", 1), ("plan/b", 2))):
        log.write(new, 2, seq, key, {"n": number})
    assert (log.read(new).doubted_count, log.read(new).overwrite) == (0, frozenset())
    log.write(TRUST, 3, 0, "plan/a", {"n": 666})
    assert (log.read(new).doubted_count, log.read(new).overwrite) == (1, {"plan/a"})


def test_without_a_key_everything_counts_as_before() -> None:
    log = Log()
    log.write(JournalTrust(), 1, 0, "plan/a", {"n": 1})
    log.write(JournalTrust(), 1, 1, "plan/b", {"n": 2})
    log.write(JournalTrust(), 1, 2, "plan/a", None)
    told = log.read(JournalTrust())
    assert (values(told), told.doubted_count, told.overwrite, told.signed) == ({"plan/b": 2}, 0, frozenset(), False)


def test_what_was_written_before_there_was_a_key_is_no_forgery_afterwards() -> None:
    log = Log()
    log.write(JournalTrust(), 1, 0, "plan/a", {"n": 1})
    log.write(TRUST, 2, 0, "plan/a", {"n": 2})
    assert log.read(TRUST).doubted_count == 0
    log.write(JournalTrust(), 1, 0, "plan/a", {"n": 1})
    told = log.read(TRUST)
    assert (told.doubted_count, values(told)) == (1, {"plan/a": 2})


def test_a_flood_of_foreign_records_is_counted_and_takes_no_memory(log: Log) -> None:
    for number in range(3_000):
        log.write(JournalTrust(), 9, number, "plan/evil", {"n": number})
    told = log.read(TRUST)
    assert (told.doubted_count, len(told.doubted)) == (3_000, 1_000)


@pytest.mark.parametrize(
    "headers", [None, [], [("ce_id", None), (CODE_HEADER, b"\xff\xfe")], [(CODE_HEADER, b":" * 9_000)]]
)
def test_odd_headers_are_no_code(log: Log, headers: Any) -> None:
    log.records.append(Record(99, b"\xff", b"junk", headers))
    assert log.read(TRUST).doubted_count == 1


# --- may it be gone on with? --------------------------------------------------------------------------------------


def plan(*keys: JournalKey, below: int = 0) -> KafkaJournalPlan:
    return KafkaJournalPlan(config={}, leader=leader("one"), keys=keys, unsigned_below=below)


def checked(log: Log, asked: KafkaJournalPlan, watermark: JournalWatermark | None = None) -> None:
    end = len(log.records) * 2
    check(asked, TopicOffsets("id", 0, end, end), log.read(asked.trust), watermark or JournalWatermark())


def test_an_agent_without_the_key_of_a_signed_journal_stands_aside(log: Log) -> None:
    with pytest.raises(BadInput, match="is signed, and this agent has no key") as refused:
        checked(log, plan())
    assert "execute.journal_key_file" in refused.value.why


def test_an_agent_with_another_key_stands_aside_and_names_both(log: Log) -> None:
    with pytest.raises(BadInput, match="is signed with another key") as refused:
        checked(log, plan(THEIRS))
    assert (KEY.id in refused.value.why, THEIRS.id in refused.value.why) == (True, True)
    assert "second line" in refused.value.todo


def test_a_journal_from_before_there_was_a_key_is_accepted_by_its_end_alone() -> None:
    log = Log()
    log.write(JournalTrust(), 1, 0, "plan/a", {"n": 1})
    with pytest.raises(BadInput, match=r"No record of the journal rackwise\.journal is signed") as refused:
        checked(log, plan(KEY))
    assert "--set execute.journal_unsigned_below=2" in refused.value.todo
    checked(log, plan(KEY, below=2))
    log.write(JournalTrust(), 1, 1, "plan/evil", {"n": 666})
    checked(log, plan(KEY, below=2))
    told = log.read(plan(KEY, below=2).trust)
    assert (values(told), told.doubted_count) == ({"plan/a": 1}, 1), "what came after the person looked"
    assert told.overwrite == {"plan/a", "plan/evil"}


def test_forgeries_in_a_journal_of_which_nothing_is_known_are_not_taken_for_an_empty_one() -> None:
    log = Log()
    log.write(JournalTrust((KEY,), "another-cluster"), 1, 0, "plan/a", {"n": 1})
    with pytest.raises(BadInput, match="No record of the journal"):
        checked(log, plan(KEY))
    checked(Log(), plan(KEY))


def test_a_journal_whose_tail_was_cut_is_noticed_by_epoch_and_by_offset(log: Log) -> None:
    checked(log, plan(KEY), JournalWatermark(1, 6))
    with pytest.raises(BadInput, match="it ends at offset 6, and offset 7 was reached before"):
        checked(log, plan(KEY), JournalWatermark(1, 7))
    with pytest.raises(BadInput, match="ends with epoch 1, but epoch 2 has begun before"):
        checked(log, plan(KEY), JournalWatermark(2, 0))
