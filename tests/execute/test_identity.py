"""Whose command it is, and how old: nothing is believed that its sender alone says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.execute.commands.apply import CommandEffects, apply_commands
from agent.execute.commands.command_context import (
    LATER_MS,
    SIGNED_FOR_MS,
    CommandOrigin,
    CommandSender,
    CommandSigner,
    sender_of,
    signed,
)
from agent.journal.approvals import approval_of
from agent.journal.commands import (
    KEPT,
    CommandVerb,
    ExecutionPause,
    LeaderAnswer,
    OperatorCommand,
    answer_to,
    answered,
    command_cleanup,
    command_to_json,
    pause_in,
    paused,
)
from agent.journal.entries import JournalKey, JournalState
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.values.limits import Limits
from tests.execute.commands import MOVE, STANDING, TWO, InboxEntry, ask, done, plan
from tests.journals import journal
from tests.snapshots import NOW_MS

CLUSTER = "c-1"
ANN, BOB = JournalKey(b"the key of ann herself"), JournalKey(b"the key of bob himself")
PEOPLE = {"ann": ANN, "bob": BOB}
LIMITS = Limits()
VIEW = journal(leader_write(LeaderEntry("rw-1", "host", 1, CLUSTER, 0)), at_ms=NOW_MS)
HOUR = 3_600_000
LONG_AGO = LIMITS.approve.valid_ms + 1
STARTS = (CommandVerb.APPROVE, CommandVerb.APPLY, CommandVerb.ROLLBACK)


LIVE = CommandOrigin(live=True)


def wish(
    verb: CommandVerb,
    *,
    came: CommandOrigin = LIVE,
    by: CommandSigner | None = None,
    cluster: str = CLUSTER,
    **more: Any,
) -> InboxEntry:
    about = None if verb in (CommandVerb.PAUSE, CommandVerb.RESUME) else MOVE
    one = ask(verb, about, **more)
    value = one.value if by is None else signed(one.value, by, cluster)
    return one._replace(value=value, came=came)


def obeyed(
    *wishes: InboxEntry, view: JournalState = VIEW, limits: Limits = LIMITS, people: Mapping[str, Any] = {}
) -> CommandEffects:
    return apply_commands(wishes, view, STANDING, limits, NOW_MS, people=people)


def answer(one: InboxEntry, view: JournalState = VIEW, **more: Any) -> LeaderAnswer:
    return done(obeyed(one, view=view, **more), view, one.id)


# --- who ----------------------------------------------------------------------------------------------------------


def test_a_name_that_only_its_sender_tells_is_marked_wherever_it_is_written() -> None:
    result = obeyed(wish(CommandVerb.APPROVE, who="the boss"))
    assert done(result, VIEW).sentence.startswith("approved by the boss (self-declared); void")
    given_ = approval_of(journal(*result.writes, at_ms=NOW_MS), MOVE.id)
    assert given_ is not None
    assert (given_.by, given_.person) == ("the boss (self-declared)", None)


def test_a_sender_cannot_write_that_it_is_proven() -> None:
    forged = wish(CommandVerb.PAUSE, who="ann")
    forged = forged._replace(value={**forged.value, "person": "ann"})
    view = journal(*obeyed(forged, people=PEOPLE).writes, at_ms=NOW_MS)
    found, told = answer_to(view, "c1"), pause_in(view)
    assert found is not None
    assert told is not None
    assert (found.command.person, told.who) == (None, "ann (self-declared)")


def test_a_file_is_of_its_owner_whatever_it_says() -> None:
    result = obeyed(wish(CommandVerb.APPROVE, who="the boss", came=CommandOrigin(live=True, owner="carl@host")))
    assert done(result, VIEW).sentence.startswith("approved by carl@host; void")


def test_a_signed_command_is_of_the_one_who_has_the_key() -> None:
    result = obeyed(wish(CommandVerb.APPROVE, who="root@box", by=CommandSigner("ann", ANN)), people=PEOPLE)
    assert done(result, VIEW).sentence.startswith("approved by ann; void")


UNPROVEN = [
    pytest.param(wish(CommandVerb.APPROVE), "", id="not signed"),
    pytest.param(
        wish(CommandVerb.APPROVE, by=CommandSigner("eve", ANN)),
        "'eve' is not in approve.people",
        id="an unknown person",
    ),
    pytest.param(
        wish(CommandVerb.APPROVE, by=CommandSigner("ann", BOB)),
        "is not made with the key of ann",
        id="with the key of another",
    ),
    pytest.param(
        wish(CommandVerb.APPROVE, by=CommandSigner("ann", ANN), cluster="c-2"),
        "not made with the key",
        id="for another cluster",
    ),
    pytest.param(
        wish(CommandVerb.APPROVE, came=CommandOrigin(live=True, owner="ann@host")),
        "",
        id="an account is not a person as well",
    ),
]


@pytest.mark.parametrize(("one", "doubt"), UNPROVEN)
def test_where_people_have_keys_nothing_is_set_going_without_one(one: InboxEntry, doubt: str) -> None:
    found = answer(one, people=PEOPLE)
    assert (found.done, "needs a command signed by a person of approve.people" in found.sentence) == (False, True)
    assert doubt in found.sentence


@pytest.mark.parametrize("verb", list(CommandVerb))
def test_without_a_signature_only_what_stops_something_is_obeyed(verb: CommandVerb) -> None:
    view = journal(plan(), paused(ExecutionPause("ann", "", NOW_MS)), at_ms=NOW_MS, view=VIEW)
    allowed = verb in (CommandVerb.PAUSE, CommandVerb.CANCEL)
    assert answer(wish(verb), view, people=PEOPLE).done is allowed
    assert answer(wish(verb, by=CommandSigner("bob", BOB)), view, people=PEOPLE).done


@given(
    st.sampled_from(["verb", "who", "at_ms", "proposal_id", "plan_hash", "throttle_bytes_per_s", "attempt", "signer"])
)
def test_no_part_of_a_signed_command_can_be_changed(field: str) -> None:
    one = wish(CommandVerb.APPROVE, by=CommandSigner("ann", ANN))
    assert sender_of(one, PEOPLE, CLUSTER) == CommandSender("ann", None, signed=True)
    changed = one._replace(value={**one.value, field: "bob"})
    assert sender_of(changed, PEOPLE, CLUSTER).person is None
    without = one._replace(value={name: value for name, value in one.value.items() if name != field})
    assert sender_of(without, PEOPLE, CLUSTER).person is None


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4), st.text(max_size=80))
def test_made_up_signatures_prove_nothing(value: dict[str, Any], code: str) -> None:
    one = InboxEntry("c1", {**value, "signer": "ann", "code": code}, ask(CommandVerb.PAUSE).after)
    assert sender_of(one, PEOPLE, CLUSTER).person is None


# --- two persons --------------------------------------------------------------------------------------------------


def test_two_names_of_one_account_are_not_two_persons() -> None:
    for first, second in (
        (CommandOrigin(live=True), CommandOrigin(live=True)),
        (CommandOrigin(owner="a@h"), CommandOrigin(owner="a@h")),
    ):
        view = journal(
            *obeyed(wish(CommandVerb.APPROVE, who="ann@desk", came=first), limits=TWO).writes, at_ms=NOW_MS, view=VIEW
        )
        again = answer(wish(CommandVerb.APPROVE, who="bob@desk", came=second, id_="c2"), view, limits=TWO)
        assert not again.done


def test_a_name_that_is_not_proven_is_refused_where_two_persons_are_counted() -> None:
    found = answer(wish(CommandVerb.APPROVE, who="ann@desk"), limits=TWO)
    assert found == LeaderAnswer(
        False,
        "approve.second_person counts proven persons, and ann@desk (self-declared) is not one",
        NOW_MS,
        todo="Sign in at the page, or set operator.name and operator.key_file, and approve.people at the agents.",
    )


def test_two_keys_are_two_persons_and_one_key_is_one() -> None:
    ann, bob = CommandSigner("ann", ANN), CommandSigner("bob", BOB)
    view = journal(
        *obeyed(wish(CommandVerb.APPROVE, by=ann), limits=TWO, people=PEOPLE).writes, at_ms=NOW_MS, view=VIEW
    )
    again = answer(wish(CommandVerb.APPROVE, by=ann, who="bob", id_="c2"), view, limits=TWO, people=PEOPLE)
    assert "another person must approve it" in again.sentence
    other = answer(wish(CommandVerb.APPROVE, by=bob, id_="c3"), view, limits=TWO, people=PEOPLE)
    assert other.sentence.startswith("approved by bob, requested by ann")


def test_a_request_that_was_not_proven_is_not_the_first_of_two() -> None:
    result = obeyed(wish(CommandVerb.APPROVE, by=CommandSigner("ann", ANN)), limits=TWO, people=PEOPLE)
    (asked,) = [write for write in result.writes if write.key.startswith("approval/")]
    older = asked._replace(value={name: value for name, value in (asked.value or {}).items() if name != "person"})
    view = journal(older, at_ms=NOW_MS, view=VIEW)
    found = answer(wish(CommandVerb.APPROVE, by=CommandSigner("bob", BOB), id_="c2"), view, limits=TWO, people=PEOPLE)
    assert found.sentence.startswith("requested by bob")


# --- how old ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off_ms", [-HOUR * 24 * 365, -LONG_AGO, LONG_AGO, HOUR * 24 * 3_650])
@pytest.mark.parametrize("verb", STARTS)
def test_a_command_that_comes_while_an_agent_leads_is_not_old_whatever_its_clock_says(
    verb: CommandVerb, off_ms: int
) -> None:
    view = VIEW if verb is not CommandVerb.ROLLBACK else journal(plan(), at_ms=NOW_MS, view=VIEW)
    assert answer(wish(verb, at_ms=NOW_MS + off_ms), view).done


@pytest.mark.parametrize("off_ms", [-LONG_AGO, 0, LONG_AGO, HOUR * 24 * 3_650])
def test_a_command_that_waited_is_as_old_as_the_broker_says_whatever_its_clock_says(off_ms: int) -> None:
    old, young = CommandOrigin(at_ms=NOW_MS - LONG_AGO), CommandOrigin(at_ms=NOW_MS - LONG_AGO + 1)
    refused = answer(wish(CommandVerb.APPROVE, came=old, at_ms=NOW_MS + off_ms))
    assert (refused.done, "min ago and no agent led" in refused.sentence) == (False, True)
    assert answer(wish(CommandVerb.APPROVE, came=young, at_ms=NOW_MS + off_ms)).done


def test_a_brokers_time_of_the_future_counts_as_now() -> None:
    assert answer(wish(CommandVerb.APPROVE, came=CommandOrigin(at_ms=NOW_MS + HOUR * 24 * 3_650))).done


def test_a_command_that_waited_with_no_clock_but_its_own_ages_by_it_and_never_if_that_is_ahead() -> None:
    assert answer(wish(CommandVerb.APPROVE, came=CommandOrigin(), at_ms=NOW_MS)).done
    assert answer(wish(CommandVerb.APPROVE, came=CommandOrigin(), at_ms=NOW_MS + LATER_MS)).done, (
        "clocks are never quite the same"
    )
    assert (
        "60 min ago and no agent led"
        in answer(wish(CommandVerb.APPROVE, came=CommandOrigin(), at_ms=NOW_MS - LONG_AGO)).sentence
    )
    ahead = answer(wish(CommandVerb.APPROVE, came=CommandOrigin(), at_ms=NOW_MS + HOUR))
    assert (ahead.done, "its age is unknown: its sender's clock is 60 min ahead" in ahead.sentence) == (False, True)


@pytest.mark.parametrize("off_ms", [-HOUR * 20, -LONG_AGO, LONG_AGO, HOUR * 24 * 3_650])
def test_pause_and_resume_count_in_the_order_of_the_topic_however_old(off_ms: int) -> None:
    came = CommandOrigin(at_ms=NOW_MS - HOUR * 20)
    stop, go = wish(CommandVerb.PAUSE, came=came, at_ms=NOW_MS + off_ms), wish(CommandVerb.RESUME, came=came, id_="c2")
    assert pause_in(journal(*obeyed(stop, go).writes, at_ms=NOW_MS, view=VIEW)) is None
    assert pause_in(journal(*obeyed(go, stop).writes, at_ms=NOW_MS, view=VIEW)) is not None


def test_a_time_of_the_future_is_written_down_as_now() -> None:
    view = journal(*obeyed(wish(CommandVerb.APPROVE, at_ms=NOW_MS + HOUR * 24 * 3_650)).writes, at_ms=NOW_MS, view=VIEW)
    found = answer_to(view, "c1")
    assert found is not None
    assert found.command.at_ms == NOW_MS


@pytest.mark.parametrize(
    "came", [CommandOrigin(live=True, owner="mallory@host"), CommandOrigin(owner="mallory@host", at_ms=NOW_MS)]
)
@pytest.mark.parametrize("verb", STARTS)
def test_a_signed_file_that_was_held_back_is_as_old_as_its_signature_however_new_it_is(
    verb: CommandVerb, came: CommandOrigin
) -> None:
    """A member of the directory's group may copy what another one laid down: a copy is a new file."""
    ann = CommandSigner("ann", ANN)
    view = journal(plan(), at_ms=NOW_MS, view=VIEW) if verb is CommandVerb.ROLLBACK else VIEW
    late = answer(wish(verb, came=came, by=ann, at_ms=NOW_MS - LONG_AGO), view, people=PEOPLE)
    says = "was sent 60 min ago and came only now" if came.live else "was sent 60 min ago and no agent led"
    assert (late.done, says in late.sentence) == (False, True)
    assert answer(wish(verb, came=came, by=ann, at_ms=NOW_MS - LONG_AGO + 1), view, people=PEOPLE).done
    record = wish(verb, came=CommandOrigin(live=True), by=ann, at_ms=NOW_MS - LONG_AGO)
    assert answer(record, view, people=PEOPLE).done, "no record is held back, and its sender's clock may be wrong"


def test_a_signed_resume_that_is_laid_down_again_does_not_end_a_later_pause() -> None:
    view = journal(paused(ExecutionPause("bob", "", NOW_MS)), at_ms=NOW_MS, view=VIEW)
    ann, old = CommandSigner("ann", ANN), NOW_MS - LONG_AGO
    for owner, at_ms in (("mallory@host", NOW_MS), ("ann@host", old)):  # copied, and renamed back
        again = wish(CommandVerb.RESUME, came=CommandOrigin(live=True, at_ms=at_ms, owner=owner), by=ann, at_ms=old)
        assert not answer(again, view, people=PEOPLE).done
    unsigned = wish(CommandVerb.RESUME, came=CommandOrigin(live=True, at_ms=old, owner="ann@host"), at_ms=NOW_MS)
    assert not answer(unsigned, view).done, "its file is as old as that"
    assert answer(unsigned._replace(came=CommandOrigin(live=True, at_ms=old + 1, owner="ann@host")), view).done
    waited = wish(CommandVerb.RESUME, came=CommandOrigin(owner="ann@host", at_ms=old), by=ann, at_ms=old)
    assert answer(waited, view, people=PEOPLE).done, "what waited while no agent led counts in its order"
    stop = wish(CommandVerb.PAUSE, came=CommandOrigin(live=True, owner="mallory@host"), by=ann, at_ms=old)
    assert answer(stop, VIEW, people=PEOPLE).done


# --- once ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off_ms", [-SIGNED_FOR_MS - 1, SIGNED_FOR_MS + 1])
@pytest.mark.parametrize("verb", [*STARTS, CommandVerb.RESUME])
def test_a_signature_does_not_count_for_ever(verb: CommandVerb, off_ms: int) -> None:
    found = answer(wish(verb, by=CommandSigner("ann", ANN), at_ms=NOW_MS + off_ms), people=PEOPLE)
    assert (found.done, "from a clock that is right" in found.todo) == (False, True)


@pytest.mark.parametrize("off_ms", [-SIGNED_FOR_MS, SIGNED_FOR_MS])
def test_a_signature_counts_to_the_last_millisecond_of_its_time(off_ms: int) -> None:
    assert answer(wish(CommandVerb.APPROVE, by=CommandSigner("ann", ANN), at_ms=NOW_MS + off_ms), people=PEOPLE).done


def test_a_signature_is_of_what_a_command_says_and_not_of_the_order_in_which_it_says_it() -> None:
    one = wish(CommandVerb.APPROVE, by=CommandSigner("ann", ANN))
    turned = one._replace(value=dict(reversed(one.value.items())))
    assert list(turned.value) != list(one.value)
    assert sender_of(turned, PEOPLE, CLUSTER) == CommandSender("ann", None, signed=True)


def test_a_signed_command_is_known_as_answered_for_as_long_as_it_counts_however_many_come_in_between() -> None:
    signed_one = OperatorCommand("signed", CommandVerb.APPROVE, "ann", NOW_MS, person="ann")
    flood = [OperatorCommand(f"c-{number}", CommandVerb.PAUSE, "x", NOW_MS) for number in range(KEPT + 50)]
    writes = [answered(one, LeaderAnswer(True, "", NOW_MS)) for one in (signed_one, *flood)]
    view = journal(*writes, at_ms=NOW_MS)
    gone = {write.key for write in command_cleanup(view, NOW_MS - SIGNED_FOR_MS)}
    assert (len(gone), "command/signed" in gone) == (50, False)
    assert "command/signed" in {write.key for write in command_cleanup(view, NOW_MS + 1)}
    assert "command/signed" not in {write.key for write in command_cleanup(view, NOW_MS)}
    copied = wish(CommandVerb.APPROVE, by=CommandSigner("ann", ANN), id_="signed")
    assert obeyed(copied, view={**VIEW, **view}, people=PEOPLE) == CommandEffects()


def test_what_is_written_of_a_command_is_read_again() -> None:
    command = OperatorCommand("c1", CommandVerb.PAUSE, "ann", 1, person="ann")
    view = journal(answered(command, LeaderAnswer(True, "", 1)), at_ms=1)
    found = answer_to(view, "c1")
    assert found is not None
    assert (found.command, command_to_json(command)["person"]) == (command, "ann")
