"""Which groups are not triggered: each reason, in its order, and how it is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.execute.trigger_refusals import OPEN_MS, RefusalCause, RefusalReason, RefusalSource, refusal
from agent.journal.entries import Entry, JournalState, JournalWrite
from agent.journal.triggers import (
    LearnedGroup,
    TriggerEffect,
    TriggerEntry,
    TriggerExpectation,
    TriggerJudgement,
    TriggerVerdict,
    intent,
    judged,
    learned,
    outcome,
)
from agent.values.limits import GroupLimits, Limits, TriggerLimits, TriState
from agent.values.memory import ChangeCause, Memory, RackChange
from agent.values.proposal import ProposalKind, ProposalReason
from agent.values.snapshot import GroupKind, Member, MemberDefect
from tests.act.triggers import a_proposal
from tests.snapshots import NOW_MS, Builder, a_cluster, member, process, task

PLAIN = TriggerLimits(transactional=TriState.NO)
SEEN = "seen on the wire"
SECOND = 1_000
MONOTONIC_MS = 5_000_000
NOTHING = TriggerExpectation(generation=4, readers=(), holds={}, moves=(), items=0)


def a_group(*members: Member, **changes: object) -> Builder:
    members = members or (member("m1", "a", "t-0"), member("m2", "b", "t-1"))
    return a_cluster().topic("t", (1,), (2,)).group("g", *members, **changes)  # type: ignore[arg-type]


def an_app(**changes: object) -> Builder:
    built = a_cluster().topic("t", (1,), (2,))
    return built.streams(
        "g", process("p1", "a", "0_0"), process("p2", "b", "0_1"),
        topology=(task("0_0", "t-0"), task("0_1", "t-1")), **changes,  # type: ignore[arg-type]
    )  # fmt: skip


def judge(
    built: Builder,
    allowed: TriggerLimits = PLAIN,
    *,
    memory: Memory | None = None,
    view: JournalState | None = None,
    reason: ProposalReason = ProposalReason.REBALANCE_IMPROVES,
    moved: dict[str, int] | None = None,
    client: str | None = None,
) -> RefusalCause | None:
    groups = {"g": GroupLimits(client_software_name=client)}
    limits = Limits(groups=groups, trigger=allowed)
    proposal = a_proposal("g", reason=reason)
    return refusal(proposal, built.snapshot(), memory or Memory(), view or {}, limits, moved=moved or {})


def view_of(*writes: JournalWrite) -> JournalState:
    return {w.key: Entry(w.key, w.kind, w.value or {}, NOW_MS, 1, at) for at, w in enumerate(writes)}


def knowing(**what: object) -> JournalState:
    return view_of(learned(LearnedGroup(group_id="g", **what)))  # type: ignore[arg-type]


STATIC = member("m1", "a", "t-0", instance_id="one")
OLDER = member("m1", "a", "t-0", generation=3)
NEWCOMER = member("m1", "a", "t-0", generation=None)
BROKEN = member("m1", "a", "t-0", defects=(MemberDefect("subscription", "truncated", "it ends too early"),))
OTHER = member("m2", "b", "t-1")


@pytest.mark.parametrize(
    ("built", "reason", "says"),
    [
        pytest.param(a_group(kind=GroupKind.CONSUMER), RefusalReason.NOT_CLASSIC, "consumer group", id="KIP-848"),
        pytest.param(an_app(kind=GroupKind.STREAMS), RefusalReason.NOT_CLASSIC, "streams group", id="KIP-1071"),
        pytest.param(a_cluster(), RefusalReason.GONE, "does not know", id="gone"),
        pytest.param(a_group(state="Empty"), RefusalReason.EMPTY, "is Empty", id="empty"),
        pytest.param(a_group(state="Dead"), RefusalReason.EMPTY, "is Dead", id="dead"),
        pytest.param(a_group(state="PreparingRebalance"), RefusalReason.NOT_STABLE, "PreparingRe", id="rebalancing"),
        pytest.param(a_group(hidden=True), RefusalReason.NOT_STABLE, "hidden", id="members are hidden"),
        pytest.param(a_group(BROKEN, OTHER), RefusalReason.UNREADABLE, "ends too early", id="a poisoned member"),
        pytest.param(a_group(assignor="range"), RefusalReason.EAGER, "gives up all", id="range"),
        pytest.param(a_group(assignor="roundrobin"), RefusalReason.EAGER, "gives up all", id="roundrobin"),
        pytest.param(a_group(assignor="sticky"), RefusalReason.EAGER, "gives up all", id="sticky"),
        pytest.param(a_group(assignor="mine"), RefusalReason.UNKNOWN_ASSIGNOR, "mine", id="an assignor of their own"),
        pytest.param(a_group(STATIC, OTHER), RefusalReason.STATIC, "such as one", id="a static member"),
        pytest.param(a_group(OLDER, OTHER), RefusalReason.MIXED_GENERATIONS, "3, 4", id="two generations"),
        pytest.param(an_app(metadata_versions=(10, 11)), RefusalReason.ROLLING, "10, 11", id="two metadata versions"),
    ],
)
def test_what_the_brokers_show(built: Builder, reason: RefusalReason, says: str) -> None:
    refused = judge(built)
    assert refused is not None
    assert (refused.reason, refused.known_by) == (reason, SEEN)
    assert says in refused.sentence


@pytest.mark.parametrize(
    ("built", "allowed"),
    [
        pytest.param(a_group(), PLAIN, id="a cooperative group"),
        pytest.param(a_group(NEWCOMER, OTHER), PLAIN, id="a newcomer, who comes from no generation"),
        pytest.param(an_app(), TriggerLimits(), id="an application of which nothing is said"),
        pytest.param(a_group(assignor="range"), replace(PLAIN, allow_eager=True), id="an eager group, allowed"),
        pytest.param(a_group(STATIC, OTHER), replace(PLAIN, allow_static=True), id="static members, allowed"),
        pytest.param(
            an_app(metadata_versions=(10, 11)), replace(PLAIN, allow_rolling=True), id="two metadata versions, allowed"
        ),
    ],
)
def test_what_may_be_triggered(built: Builder, allowed: TriggerLimits) -> None:
    assert judge(built, allowed) is None


def test_other_proposals_are_none_of_its_business() -> None:
    proposal = a_proposal("g")._replace(kind=ProposalKind.ADVISE)
    assert refusal(proposal, a_cluster().snapshot(), Memory(), {}, Limits()) is None


# --- set by the user --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "allowed", "reason", "known_by"),
    [
        pytest.param(
            a_group(), TriggerLimits(), RefusalReason.TRANSACTIONAL, "not set by trigger.transactional",
            id="of a plain consumer, not to know about transactions counts as yes",
        ),
        pytest.param(
            an_app(), TriggerLimits(transactional=TriState.YES), RefusalReason.TRANSACTIONAL,
            "set by trigger.transactional", id="an application that writes in transactions",
        ),
        pytest.param(
            a_group(), replace(PLAIN, long_poll=TriState.YES), RefusalReason.LONG_POLL, "set by trigger.long_poll",
            id="long polls",
        ),
        pytest.param(
            a_group(), replace(PLAIN, rolling=TriState.YES), RefusalReason.ROLLING, "set by trigger.rolling",
            id="a rolling restart",
        ),
    ],
)  # fmt: skip
def test_what_the_user_sets(built: Builder, allowed: TriggerLimits, reason: RefusalReason, known_by: str) -> None:
    refused = judge(built, allowed)
    assert refused is not None
    assert (refused.reason, refused.known_by) == (reason, known_by)
    names = {
        RefusalReason.TRANSACTIONAL: {"allow_transactional": True},
        RefusalReason.LONG_POLL: {"allow_long_poll": True},
        RefusalReason.ROLLING: {"allow_rolling": True},
    }
    assert judge(built, replace(allowed, **names[reason])) is None, "unless it is allowed all the same"


# --- learned ----------------------------------------------------------------------------------------------------

WINDOW_MS = PLAIN.rolling_window_ms
IMPROVES, PROMOTES = ProposalReason.REBALANCE_IMPROVES, ProposalReason.WARMUP_PROMOTABLE


@pytest.mark.parametrize(
    ("came_s", "went_s", "reason", "held_s"),
    [
        pytest.param(None, None, IMPROVES, None, id="no member came or went"),
        pytest.param(20, None, IMPROVES, 280, id="a member joined 20 s ago"),
        pytest.param(None, 20, IMPROVES, 280, id="a member left 20 s ago"),
        pytest.param(20, None, PROMOTES, None, id="a member joined, as before every promotion"),
        pytest.param(None, 20, PROMOTES, None, id="an application was scaled in"),
        pytest.param(20, 40, PROMOTES, 260, id="one went and one came: an application is restarted"),
        pytest.param(20, 400, PROMOTES, None, id="one went long ago and one came now"),
        pytest.param(400, 500, IMPROVES, None, id="all that is long ago"),
    ],
)
def test_a_rolling_restart_is_told_by_who_came_and_went(
    came_s: int | None, went_s: int | None, reason: ProposalReason, held_s: int | None
) -> None:
    ago = {"came_ms": came_s, "went_ms": went_s}
    times = {name: None if at is None else NOW_MS - at * SECOND for name, at in ago.items()}
    refused = judge(an_app(), view=knowing(**times), reason=reason)
    if held_s is None:
        assert refused is None
    else:
        assert refused is not None
        assert (refused.reason, refused.until_ms) == (RefusalReason.ROLLING, NOW_MS + held_s * SECOND)
        assert judge(an_app(), replace(PLAIN, rolling=TriState.NO), view=knowing(**times), reason=reason) is None


@pytest.mark.parametrize(
    ("lasted_ms", "refused"),
    [
        pytest.param((), False, id="nothing is known of its rebalances"),
        pytest.param((2_000, 9_000), False, id="they were over in time"),
        pytest.param((2_000, 11_000), True, id="the last one lasted eleven seconds"),
        pytest.param((60_000, 2_000, 2_000, 2_000), False, id="a long one is too many rebalances ago"),
    ],
)
def test_long_polls_are_told_by_how_long_rebalances_last(lasted_ms: tuple[int, ...], refused: bool) -> None:
    answer = judge(a_group(), view=knowing(slow_rebalances_ms=lasted_ms))
    assert (answer is not None) is refused
    if answer is not None:
        assert answer.reason is RefusalReason.LONG_POLL
        assert answer.known_by.startswith("learned from")


def test_transactions_that_were_seen_are_remembered() -> None:
    view = knowing(transactional=True, transactional_how="the application writes in transactions, such as g-1")
    answer = judge(an_app(), TriggerLimits(), view=view)
    assert answer is not None
    assert (answer.reason, answer.known_by) == (RefusalReason.TRANSACTIONAL, "learned from ListTransactions")
    assert judge(an_app(), TriggerLimits(transactional=TriState.NO), view=view) is None, "the user knows better"


# --- its own rebalance ------------------------------------------------------------------------------------------


def changed(cause: ChangeCause, subject: int | str, ago_s: int = 30) -> Memory:
    return Memory(changes=(RackChange(cause, subject, 0, MONOTONIC_MS - ago_s * SECOND, 1, 1, ()),))


RACKLESS = a_group(member("m1", None, "t-0"), member("m2", None, "t-1"))


@pytest.mark.parametrize(
    ("built", "memory", "more", "held"),
    [
        pytest.param(a_group(), changed(ChangeCause.REASSIGNED, "t"), {}, True, id="a topic that it reads moved"),
        pytest.param(a_group(), changed(ChangeCause.REASSIGNED, "u"), {}, False, id="another topic moved"),
        pytest.param(a_group(), changed(ChangeCause.RELABELLED, 2), {}, True, id="a broker of it has a new rack"),
        pytest.param(a_group(), changed(ChangeCause.RELABELLED, 3), {}, False, id="another broker has a new rack"),
        pytest.param(a_group(), changed(ChangeCause.REASSIGNED, "t", 301), {}, False, id="the time is over"),
        pytest.param(RACKLESS, changed(ChangeCause.REASSIGNED, "t"), {}, False, id="its members send no rack"),
        pytest.param(
            a_group(), changed(ChangeCause.REASSIGNED, "t"), {"client": "librdkafka"}, False,
            id="its members are not Java's",
        ),
        pytest.param(a_group(), Memory(), {"moved": {"t": NOW_MS - 30_000}}, True, id="rackwise moved the topic"),
        pytest.param(
            an_app(), changed(ChangeCause.REASSIGNED, "t"), {"reason": PROMOTES}, False,
            id="warm-ups wait for the application's own deadline, not for its metadata",
        ),
    ],
)  # fmt: skip
def test_after_a_rack_change_the_group_is_left_to_rebalance_by_itself(
    built: Builder, memory: Memory, more: dict[str, object], held: bool
) -> None:
    answer = judge(built, memory=memory, **more)  # type: ignore[arg-type]
    assert (answer is not None) is held
    if answer is not None:
        assert answer.reason is RefusalReason.OWN_REBALANCE
        assert answer.until_ms == NOW_MS + 270_000


# --- the journal ------------------------------------------------------------------------------------------------


def entry(ago_s: int, effect: TriggerEffect | None = TriggerEffect.REBALANCING) -> TriggerEntry:
    at = NOW_MS - ago_s * SECOND
    return TriggerEntry(
        group_id="g", proposal_id="p-1", reason="REBALANCE_IMPROVES", intended_ms=at, expected=NOTHING, effect=effect,
        acted_ms=at if effect is not None else None,
    )  # fmt: skip


DONE = TriggerJudgement(TriggerVerdict.AS_PREDICTED, NOW_MS, "as predicted", 1)


@pytest.mark.parametrize(
    ("write", "reason", "left_s"),
    [
        pytest.param(intent(entry(5, None)), RefusalReason.UNJUDGED, OPEN_MS // SECOND - 5, id="one is under way"),
        pytest.param(outcome(entry(5)), RefusalReason.UNJUDGED, OPEN_MS // SECOND - 5, id="one is not judged yet"),
        pytest.param(judged(entry(5), DONE), RefusalReason.COOLING_DOWN, 55, id="one was judged right now"),
        pytest.param(judged(entry(61), DONE), None, None, id="one is long ago"),
        pytest.param(judged(entry(5, TriggerEffect.NOT_SENT), DONE), None, None, id="one was never sent"),
        pytest.param(
            judged(entry(5, TriggerEffect.REFUSED), DONE), None, None, id="one was refused by the coordinator"
        ),
        pytest.param(
            judged(entry(5, TriggerEffect.NOTHING), DONE), RefusalReason.COOLING_DOWN, 55, id="one had no effect"
        ),
    ],
)
def test_one_trigger_per_group_and_cooldown(
    write: JournalWrite, reason: RefusalReason | None, left_s: int | None
) -> None:
    answer = judge(a_group(), view=view_of(write))
    assert (None if answer is None else answer.reason) is reason
    if answer is not None and left_s is not None:
        assert answer.until_ms == NOW_MS + left_s * SECOND


def test_promotions_cool_down_as_fast_as_probing_may_be() -> None:
    view = view_of(judged(entry(5), DONE))
    answer = judge(an_app(), view=view, reason=PROMOTES)
    assert answer is not None
    assert answer.until_ms == NOW_MS + 5 * SECOND
    assert judge(an_app(), view=view_of(judged(entry(11), DONE)), reason=PROMOTES) is None


def test_the_gravest_reason_is_the_answer() -> None:
    answer = judge(a_group(STATIC, OTHER, assignor="range"), TriggerLimits(long_poll=TriState.YES))
    assert answer is not None
    assert answer.reason is RefusalReason.EAGER


RESTARTS = {"came_ms": NOW_MS - 20 * SECOND, "went_ms": NOW_MS - 40 * SECOND}


@pytest.mark.parametrize(
    ("built", "known", "known_by", "left_s", "sentence"),
    [
        pytest.param(
            a_group(BROKEN, OTHER), {}, SEEN, None,
            "the bytes of 1 member cannot be read: client-m1: it ends too early", id="unreadable",
        ),
        pytest.param(
            a_group(assignor=None), {}, SEEN, None, "its protocol is hidden, which is not one of Kafka's",
            id="no assignor",
        ),
        pytest.param(a_group(STATIC, OTHER), {}, SEEN, None, "1 static member, such as one", id="static"),
        pytest.param(
            a_group(OLDER, OTHER), {}, SEEN, None, "its members joined the last rebalance from generations 3, 4",
            id="generations",
        ),
        pytest.param(
            an_app(), {"came_ms": NOW_MS - 20 * SECOND}, "learned from the last looks", 280,
            "members joined within the last 20 s", id="came",
        ),
        pytest.param(
            an_app(), {"went_ms": NOW_MS - 20 * SECOND}, "learned from the last looks", 280,
            "members left within the last 20 s", id="went",
        ),
        pytest.param(
            an_app(), {"came_ms": NOW_MS}, "learned from the last looks", 300, "members joined within the last 0 s",
            id="came this moment",
        ),
        pytest.param(
            an_app(), RESTARTS, "learned from the last looks", 280,
            "members left and others joined within the last 20 s", id="came and went",
        ),
        pytest.param(
            a_group(), {"slow_rebalances_ms": (2_000, 600_000)}, "learned from 2 slow rebalances", None,
            "one of its last rebalances lasted 600 s or more, and a rebalance waits for the slowest", id="slow",
        ),
        pytest.param(
            an_app(), {"transactional": True, "transactional_how": "it writes in transactions, such as g-1"},
            "learned from ListTransactions", None, "it writes in transactions, such as g-1", id="transactions",
        ),
    ],
)  # fmt: skip
def test_a_refusal_says_by_which_numbers_and_until_when(
    built: Builder, known: dict[str, object], known_by: str, left_s: int | None, sentence: str
) -> None:
    answer = judge(built, replace(PLAIN, transactional=TriggerLimits().transactional), view=knowing(**known))
    assert answer is not None
    assert (answer.known_by, answer.sentence) == (known_by, sentence)
    assert answer.until_ms == (None if left_s is None else NOW_MS + left_s * SECOND)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        pytest.param("rolling", "its members are being restarted", id="rolling"),
        pytest.param("long_poll", "its members take long between two polls, and a rebalance waits for the slowest",
                     id="long_poll"),
        pytest.param("transactional", "its members write in transactions", id="transactional"),
    ],
)  # fmt: skip
def test_what_was_set_is_said_in_a_sentence(setting: str, sentence: str) -> None:
    answer = judge(a_group(), replace(PLAIN, **{setting: TriState.YES}))  # type: ignore[arg-type] # a table's row
    assert answer is not None
    assert (answer.known_by, answer.sentence) == (f"set by trigger.{setting}", sentence)


def test_a_restart_is_over_after_its_window_and_one_of_the_future_is_none() -> None:
    assert judge(an_app(), view=knowing(came_ms=NOW_MS - WINDOW_MS)) is None
    assert judge(an_app(), view=knowing(came_ms=NOW_MS + SECOND)) is None


def test_waits_of_the_journal_say_how_long_ago_it_was() -> None:
    unjudged = judge(a_group(), view=view_of(outcome(entry(5))))
    assert unjudged is not None
    assert unjudged.sentence == "the trigger of 5 s ago has not been judged yet"
    cooling = judge(a_group(), view=view_of(judged(entry(5), DONE)))
    assert cooling is not None
    assert cooling.sentence == "its last trigger was 5 s ago, and the cooldown is 60 s"
    own = judge(a_group(), moved={"t": NOW_MS - 30 * SECOND})
    assert own is not None
    assert own.sentence == (
        "the racks of t changed 30 s ago; within metadata.max.age.ms (300 s) the group notices that and rebalances "
        "by itself"
    )


@pytest.mark.parametrize(
    ("cause", "known_by", "lasting"),
    [
        pytest.param(
            RefusalCause(RefusalReason.ROLLING, "s", RefusalSource.SETTING, "trigger.rolling"),
            "set by trigger.rolling", True, id="a setting ends it",
        ),
        pytest.param(
            RefusalCause(RefusalReason.ROLLING, "s", RefusalSource.LEARNED, "set by set"),
            "learned from set by set", False, id="it passes",
        ),
        pytest.param(
            RefusalCause(RefusalReason.TRANSACTIONAL, "s", RefusalSource.NO_SETTING, "trigger.transactional"),
            "not set by trigger.transactional", True, id="its reason lasts",
        ),
        pytest.param(
            RefusalCause(RefusalReason.UNJUDGED, "s", RefusalSource.JOURNAL), "known from the journal", False,
            id="the next judgement ends it",
        ),
    ],
)  # fmt: skip
def test_whether_a_refusal_lasts_is_of_its_reason_and_source(cause: RefusalCause, known_by: str, lasting: bool) -> None:
    assert (cause.known_by, cause.lasting) == (known_by, lasting)
