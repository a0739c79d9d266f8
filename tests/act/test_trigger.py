"""A trigger and its journal: nothing is asked that was not written down, and what cannot be written is still closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.act.trigger import RebalanceTrigger
from agent.decode.values import Subscription
from agent.errors import BadInput, FencedOut, JournalUnavailable
from agent.execute.probe_bytes import encode_subscription
from agent.journal.entries import JournalWrite
from agent.journal.triggers import TriggerEffect, TriggerPath, learned_of, path_at, triggers
from agent.values.clock import ClockReading
from agent.values.limits import Limits, TriggerLimits, TriState
from agent.values.observation import GapCause, RawClassicGroup, RawMember
from agent.values.snapshot import PartitionState, Snapshot, TopicState
from agent.wire.admin_client import JoinRequest, JoinResponse, RawTransaction
from agent.wire.failure import CallFailed
from assignors.problem import TopicPartition
from tests.act.triggers import MemoryJournal, a_proposal
from tests.snapshots import NOW_MS, a_cluster, member

BYTES = encode_subscription(Subscription(3, ("t",), b"\0\0\0\4", (TopicPartition("t", 0),), 4, "a"))
MEMBERS = (RawMember("m1", None, "c1", "/h", BYTES, b""), RawMember("m2", None, "c2", "/h", BYTES, b""))
GROUP = RawClassicGroup("g", "Stable", "consumer", "cooperative-sticky", MEMBERS, None)
LIMITS = Limits(trigger=TriggerLimits(transactional=TriState.NO))


@dataclass
class Hand:
    """A cluster with one group, whose coordinator rebalances when a pending id is given back."""

    group: RawClassicGroup = GROUP
    said: list[str] = field(default_factory=list)
    asks: list[JoinRequest] = field(default_factory=list)
    transactions: tuple[RawTransaction, ...] = ()
    unreachable: bool = False
    fingerprint: str = "api-0badcafe"
    quirk: bool = True

    def group_line(self, group_id: str, deadline_ms: int) -> Hand:
        if self.unreachable:
            raise CallFailed(GapCause.UNREACHABLE, "the broker does not answer")
        return self

    def describe(self, deadline_ms: int) -> RawClassicGroup:
        self.said.append("describe")
        return self.group

    def join(self, ask: JoinRequest, member_id: str, deadline_ms: int) -> JoinResponse:
        self.said.append("join")
        self.asks.append(ask)
        return JoinResponse("MEMBER_ID_REQUIRED", "probe")

    def leave(self, member_id: str, reason: str, deadline_ms: int) -> str | None:
        self.said.append("leave")
        if self.quirk:
            self.group = self.group._replace(state="PreparingRebalance")
        return None

    def close(self) -> None:
        self.said.append("close")

    def list_transactions(self, deadline_ms: int) -> tuple[tuple[RawTransaction, ...], dict[int, CallFailed]]:
        return self.transactions, {}

    def describe_transactions(
        self, transactions: Sequence[RawTransaction], deadline_ms: int
    ) -> dict[str, tuple[TopicPartition, ...]]:
        # "g" is 103, so its offsets are in partition 3 of 50.
        return {row.transactional_id: (TopicPartition("__consumer_offsets", 3),) for row in transactions}


class Clock:
    """Runs when the test asks for it."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> ClockReading:
        return ClockReading(NOW_MS + self.now_ms, self.now_ms)


def snapshot() -> Snapshot:
    built = a_cluster().topic("t", (1,), (2,))
    return built.group("g", member("m1", "a", "t-0"), member("m2", "b", "t-1")).snapshot()


def test_the_intent_is_written_before_and_the_outcome_and_the_way_after() -> None:
    hand, journal = Hand(), MemoryJournal()
    steps: list[tuple[str, int]] = []
    trigger = RebalanceTrigger(
        hand, journal, Clock(), LIMITS, on_step=lambda step: steps.append((step, len(journal.kinds)))
    )
    outcome = trigger.carry_out(a_proposal("g"), snapshot())
    assert outcome.done, outcome
    assert steps == [("intended", 1), ("described", 1), ("pending", 1), ("left", 1)]
    assert journal.kinds == ["intent", "outcome", "learned"]
    (entry,) = triggers(journal.view())
    assert (entry.effect, entry.path, entry.open) == (TriggerEffect.REBALANCING, TriggerPath.PENDING_LEAVE, True)
    assert entry.expected.holds == {"m1": ("t-0",), "m2": ("t-1",)}
    assert path_at(journal.view(), "api-0badcafe") is TriggerPath.PENDING_LEAVE
    (ask,) = hand.asks
    assert (ask.session_timeout_ms, ask.rebalance_timeout_ms, ask.protocol) == (6_000, 6_000, "cooperative-sticky")
    assert a_proposal("g").id in ask.reason
    assert hand.said.index("join") < hand.said.index("leave")


def test_without_a_durable_intent_nothing_is_asked() -> None:
    hand, journal = Hand(), MemoryJournal()
    journal.fails = JournalUnavailable("The journal did not answer")
    outcome = RebalanceTrigger(hand, journal, Clock(), LIMITS).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert "could not be written" in outcome.sentence
    assert "join" not in hand.said


@pytest.mark.parametrize("when", ["intended", "left"])
def test_a_fenced_agent_learns_of_it_before_or_after(when: str) -> None:
    hand, journal = Hand(), MemoryJournal()

    def fence(step: str) -> None:
        if step == when and when == "left":
            journal.fails = FencedOut("Another agent took over")

    if when == "intended":
        journal.fails = FencedOut("Another agent took over")
    with pytest.raises(FencedOut):
        RebalanceTrigger(hand, journal, Clock(), LIMITS, on_step=fence).carry_out(a_proposal("g"), snapshot())
    assert ("join" in hand.said) is (when == "left")
    assert hand.said.count("leave") == hand.said.count("join")


def test_an_outcome_that_cannot_be_written_leaves_the_intent_to_be_judged() -> None:
    hand, journal = Hand(), MemoryJournal()

    def fail(step: str) -> None:
        if step == "left":
            journal.fails = JournalUnavailable("The journal did not answer")

    outcome = RebalanceTrigger(hand, journal, Clock(), LIMITS, on_step=fail).carry_out(a_proposal("g"), snapshot())
    assert outcome.done
    assert "not written to the journal" in outcome.sentence
    (entry,) = triggers(journal.view())
    assert (entry.effect, entry.open) == (None, True)


def test_whoever_was_frozen_after_its_intent_does_not_ask_any_more() -> None:
    hand, journal, clock = Hand(), MemoryJournal(), Clock()

    def freeze(step: str) -> None:
        clock.now_ms += 30_000 if step == "intended" else 0

    outcome = RebalanceTrigger(hand, journal, clock, LIMITS, on_step=freeze).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert "30000 ms old" in outcome.sentence
    assert "join" not in hand.said
    assert triggers(journal.view())[0].effect is TriggerEffect.NOT_SENT


def test_an_intent_ages_from_the_begin_of_its_append_and_not_from_the_answer() -> None:
    hand, clock = Hand(), Clock()

    class Slow(MemoryJournal):
        def append(self, *writes: JournalWrite) -> None:
            super().append(*writes)
            clock.now_ms += 30_000 if writes[0].kind == "intent" else 0

    journal = Slow()
    outcome = RebalanceTrigger(hand, journal, clock, LIMITS).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert "30000 ms old" in outcome.sentence
    assert "join" not in hand.said
    assert triggers(journal.view())[0].effect is TriggerEffect.NOT_SENT


def test_an_older_coordinator_that_is_too_slow_for_both_ways_is_asked_in_the_other_one_next_time() -> None:
    hand, journal, clock = Hand(quirk=False), MemoryJournal(), Clock()

    def freeze(step: str) -> None:
        clock.now_ms += 30_000 if step == "left" else 0

    outcome = RebalanceTrigger(hand, journal, clock, LIMITS, on_step=freeze).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert hand.said.count("join") == hand.said.count("leave") == 1
    assert triggers(journal.view())[0].effect is TriggerEffect.NOTHING
    assert path_at(journal.view(), "api-0badcafe") is TriggerPath.PHANTOM_JOIN


STATIC = GROUP._replace(members=(MEMBERS[0], MEMBERS[1]._replace(instance_id="one")))
NEWCOMER = GROUP._replace(members=(*MEMBERS, MEMBERS[0]._replace(member_id="m3")))
LATER = encode_subscription(Subscription(3, ("t",), b"\0\0\0\5", (), 5, "a"))


@pytest.mark.parametrize(
    ("group", "says"),
    [
        pytest.param(GROUP._replace(state="CompletingRebalance"), "CompletingRebalance", id="it is rebalancing"),
        pytest.param(GROUP._replace(protocol="range"), "gives up all its partitions", id="it has become eager"),
        pytest.param(STATIC, "static", id="a member has become static"),
        pytest.param(NEWCOMER, "joined or left", id="a member joined"),
        pytest.param(GROUP._replace(members=MEMBERS[:1]), "joined or left", id="a member left"),
        pytest.param(
            GROUP._replace(members=tuple(one._replace(metadata=LATER) for one in MEMBERS)), "has rebalanced since",
            id="it has rebalanced",
        ),
        pytest.param(
            GROUP._replace(members=(MEMBERS[0], MEMBERS[1]._replace(metadata=b"\xff"))), "cannot be read",
            id="a member is poisoned",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("when", ["before the intent", "after the intent"])
def test_a_group_that_is_not_as_it_was_is_left_alone(group: RawClassicGroup, says: str, when: str) -> None:
    hand, journal = Hand(), MemoryJournal()
    if when == "before the intent":
        hand.group = group

    def change(step: str) -> None:
        if step == "intended":
            hand.group = group

    outcome = RebalanceTrigger(hand, journal, Clock(), LIMITS, on_step=change).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert says in outcome.sentence
    assert "join" not in hand.said
    assert journal.kinds == ([] if when == "before the intent" else ["intent", "outcome"])


def test_a_coordinator_that_cannot_be_reached_is_no_failure_of_the_agent() -> None:
    journal = MemoryJournal()
    outcome = RebalanceTrigger(Hand(unreachable=True), journal, Clock(), LIMITS).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert "the broker does not answer" in outcome.sentence
    assert journal.kinds == []


class SlowJournal(MemoryJournal):
    """Time passes while it writes."""

    def __init__(self, clock: Clock, took_ms: int) -> None:
        super().__init__()
        self._clock, self._took_ms = clock, took_ms

    def append(self, *writes: JournalWrite) -> None:
        super().append(*writes)
        self._clock.now_ms += self._took_ms


@pytest.mark.parametrize(
    ("took_ms", "valid_for_s", "says"),
    [
        pytest.param(
            30_000, 8.0, "the intent in the journal is 30000 ms old", id="frozen while the journal was written"
        ),
        pytest.param(0, 0.0, "this agent's leadership is no longer certain", id="the lease ran out meanwhile"),
        pytest.param(3_000, 8.0, None, id="a journal that is slow is no reason"),
    ],
)
def test_an_intent_is_acted_upon_only_while_it_is_fresh_and_the_lease_is_sure(
    took_ms: int, valid_for_s: float, says: str | None
) -> None:
    clock = Clock()
    hand, journal = Hand(), SlowJournal(clock, took_ms)
    outcome = RebalanceTrigger(hand, journal, clock, LIMITS, leads_for_s=lambda: valid_for_s).carry_out(
        a_proposal("g"), snapshot()
    )
    assert outcome.done is ("join" in hand.said) is (says is None), outcome
    assert says is None or says in outcome.sentence


def test_an_intent_that_no_journal_can_hold_is_told_and_ends_nothing() -> None:
    hand, journal = Hand(), MemoryJournal()
    journal.fails = BadInput("What is to be written is too big")
    outcome = RebalanceTrigger(hand, journal, Clock(), LIMITS).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert "the intent could not be written to the journal (What is to be written is too big" in outcome.sentence
    assert "join" not in hand.said


def test_where_nobody_tells_who_writes_in_transactions_nothing_is_asked() -> None:
    class Deaf(Hand):
        def list_transactions(self, deadline_ms: int) -> tuple[tuple[RawTransaction, ...], dict[int, CallFailed]]:
            raise CallFailed(GapCause.TIMED_OUT, "no answer in time")

    hand, limits = Deaf(), replace(LIMITS, trigger=TriggerLimits())
    outcome = RebalanceTrigger(hand, MemoryJournal(), Clock(), limits).carry_out(a_proposal("g"), snapshot())
    assert not outcome.done
    assert (
        "ListTransactions failed, so it is unknown whether its members write in transactions (no answer in time)"
        in outcome.sentence
    )
    assert "join" not in hand.said


SILENT = CallFailed(GapCause.TIMED_OUT, "no answer in time")


class HalfDeaf(Hand):
    """A cluster in which some questions about transactions fail."""

    silent: Mapping[int, CallFailed] = {}
    described: frozenset[str] = frozenset()

    def list_transactions(self, deadline_ms: int) -> tuple[tuple[RawTransaction, ...], dict[int, CallFailed]]:
        return self.transactions, dict(self.silent)

    def describe_transactions(
        self, transactions: Sequence[RawTransaction], deadline_ms: int
    ) -> dict[str, tuple[TopicPartition, ...]]:
        names = (row.transactional_id for row in transactions)
        return {name: (TopicPartition("elsewhere", 0),) for name in names if name in self.described}


@given(
    silent=st.sets(st.integers(1, 5)),
    ongoing=st.sets(st.sampled_from(["w1", "w2", "w3"])),
    described=st.sets(st.sampled_from(["w1", "w2", "w3"])),
    leaderless=st.booleans(),
)
def test_a_group_is_triggered_only_when_every_question_about_transactions_was_answered(
    silent: set[int], ongoing: set[str], described: set[str], leaderless: bool
) -> None:
    hand, limits = HalfDeaf(), replace(LIMITS, trigger=TriggerLimits())
    hand.transactions = tuple(RawTransaction(name, "Ongoing", 9) for name in sorted(ongoing))
    hand.silent, hand.described = dict.fromkeys(silent, SILENT), frozenset(described)
    seen = snapshot()
    log = TopicState("__transaction_state", None, True, False, (), None, None, None, None)
    row = PartitionState(TopicPartition("__transaction_state", 7), None if leaderless else 1, (1,), (1,), ())
    seen = replace(seen, topics={**seen.topics, "__transaction_state": log._replace(partitions=(row,))})
    outcome = RebalanceTrigger(hand, MemoryJournal(), Clock(), limits).carry_out(a_proposal("g"), seen)
    unanswered = bool(silent) or not ongoing <= described or leaderless
    assert outcome.done is ("join" in hand.said) is not unanswered, outcome
    assert ("it is unknown whether its members write in transactions" in outcome.sentence) is unanswered
    for broker in silent:
        assert str(broker) in outcome.sentence


def test_a_transaction_that_was_seen_counts_although_another_broker_was_silent() -> None:
    hand, journal = HalfDeaf(transactions=(RawTransaction("writer", "Ongoing", 1),)), MemoryJournal()
    hand.silent = {2: SILENT}
    hand.describe_transactions = Hand.describe_transactions.__get__(hand)  # type: ignore[method-assign]
    outcome = RebalanceTrigger(hand, journal, Clock(), replace(LIMITS, trigger=TriggerLimits())).carry_out(
        a_proposal("g"), snapshot()
    )
    assert not outcome.done
    learned = learned_of(journal.view(), "g")
    assert learned is not None
    assert learned.transactional is True


@pytest.mark.parametrize(
    ("state", "allowed", "done"),
    [
        pytest.param("Ongoing", TriggerLimits(), False, id="a transaction that includes its offsets"),
        pytest.param("Empty", TriggerLimits(), True, id="an id without a transaction proves nothing"),
        pytest.param("Ongoing", TriggerLimits(transactional=TriState.NO), True, id="the user knows better"),
        pytest.param("Ongoing", TriggerLimits(allow_transactional=True), True, id="the user allows it all the same"),
    ],
)
def test_transactions_are_looked_for_right_before(state: str, allowed: TriggerLimits, done: bool) -> None:
    hand, journal = Hand(transactions=(RawTransaction("writer", state, 1),)), MemoryJournal()
    limits = replace(LIMITS, trigger=allowed)
    outcome = RebalanceTrigger(hand, journal, Clock(), limits).carry_out(a_proposal("g"), snapshot())
    assert outcome.done is done, outcome
    learned = learned_of(journal.view(), "g")
    assert (learned is not None and learned.transactional is True) is not done
    assert ("join" in hand.said) is done
