"""A person who signed in at an agent's page: the agent vouches, and nothing else makes such a command that person's."""

from __future__ import annotations

from typing import Any

import pytest

from agent.execute.commands.apply import apply_commands
from agent.execute.commands.command_context import (
    SIGNED_FOR_MS,
    CommandOrigin,
    CommandSender,
    CommandSigner,
    CommandWitness,
    same_person,
    sender_of,
    signed,
    witnessed,
)
from agent.journal.approvals import ApprovalState, approval_of
from agent.journal.commands import MAX_TEXT, CommandVerb, answer_to, pause_in
from agent.journal.entries import JournalKey, JournalState, JournalTrust
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.values.limits import Limits
from tests.execute.commands import MOVE, STANDING, TWO, InboxEntry, ask, done
from tests.journals import journal
from tests.snapshots import NOW_MS

CLUSTER = "c-1"
KEY, FORMER, OTHER = (JournalKey(f"key {n} of the executors, 32 long".encode()) for n in range(3))
PAGE = CommandWitness("rw-2", (KEY,))
ANN_S = JournalKey(b"the key of ann herself")
VIEW = journal(leader_write(LeaderEntry("rw-1", "host", 1, CLUSTER, 0)), at_ms=NOW_MS)
LIVE = CommandOrigin(live=True)
AGENT_S_FILE = CommandOrigin(live=True, at_ms=NOW_MS, owner="rackwise@host")


def given(
    verb: CommandVerb, who: str = "ann", *, by: CommandWitness = PAGE, cluster: str = CLUSTER, **more: Any
) -> InboxEntry:
    about = None if verb in (CommandVerb.PAUSE, CommandVerb.RESUME) else MOVE
    one = ask(verb, about, who=who, **more)
    return one._replace(value=witnessed(one.value, by, cluster), came=LIVE)


def obeyed(*commands: InboxEntry, view: JournalState = VIEW, limits: Limits = TWO, people: Any = None) -> Any:
    return apply_commands(commands, view, STANDING, limits, NOW_MS, people=people or {}, witnesses=(KEY, FORMER))


@pytest.mark.parametrize("key", [KEY, FORMER], ids=["the key in force", "a former key"])
def test_the_person_of_a_page_is_proven_by_a_key_of_the_executors(key: JournalKey) -> None:
    one = given(CommandVerb.APPROVE, by=CommandWitness("rw-2", (key,)))
    assert sender_of(one, {}, CLUSTER, (KEY, FORMER)) == CommandSender("ann", signed=True, witness="rw-2")


@pytest.mark.parametrize("more", [0, 1])
def test_a_name_of_a_page_has_a_bound_of_its_length(more: int) -> None:
    one = given(CommandVerb.APPROVE, "a" * (MAX_TEXT + more))
    assert (sender_of(one, {}, CLUSTER, (KEY,)).person is None) == bool(more)


@pytest.mark.parametrize("has", [(KEY,), (FORMER,), (KEY, FORMER), (FORMER, KEY)])
def test_while_keys_are_changed_each_agent_believes_the_others(has: tuple[JournalKey, ...]) -> None:
    """Of two agents one has only the former key, or only the new one, while files are changed one after the other."""
    one = given(CommandVerb.APPROVE, by=CommandWitness("rw-2", (KEY, FORMER)))
    assert sender_of(one, {}, CLUSTER, has).person == "ann"
    assert sender_of(one, {}, CLUSTER, (OTHER,)).person is None
    many = " ".join(["0" * 64] * 16 + [one.value["code"]])
    assert sender_of(one._replace(value={**one.value, "code": many}), {}, CLUSTER, has).person is None


def test_who_why_and_what_was_seen_are_in_the_journal() -> None:
    result = obeyed(given(CommandVerb.APPROVE, reason="after the sale"), limits=Limits())
    after = journal(*result.writes, at_ms=NOW_MS, view=VIEW)
    command = answer_to(after, "c1").command
    approval = approval_of(after, MOVE.id)
    assert (command.who, command.person, command.witness, command.reason) == ("ann", "ann", "rw-2", "after the sale")
    assert command.plan_hash == approval.plan_hash
    assert (approval.by, approval.person, approval.reason) == ("ann", "ann", "after the sale")


def test_two_sign_ins_are_two_persons_and_one_person_twice_is_not() -> None:
    first = obeyed(given(CommandVerb.APPROVE))
    view = journal(*first.writes, at_ms=NOW_MS, view=VIEW)
    assert approval_of(view, MOVE.id).state is ApprovalState.REQUESTED
    again = done(obeyed(given(CommandVerb.APPROVE, id_="c2"), view=view), view, "c2")
    assert (again.done, "another person must approve it" in again.sentence) == (False, True)
    second = obeyed(given(CommandVerb.APPROVE, "bob", id_="c3"), view=view)
    approval = approval_of(journal(*second.writes, at_ms=NOW_MS, view=view), MOVE.id)
    assert (approval.state, approval.by, approval.requested_by) == (ApprovalState.APPROVED, "bob", "ann")


@pytest.mark.parametrize("name", ["ann", "Ann", "ann@example.org", "ANN@desk"])
def test_one_person_by_two_ways_is_one(name: str) -> None:
    """By a key of her own on the command line, and by signing in at the page."""
    one = ask(CommandVerb.APPROVE, MOVE, who="ann@desk")
    own = one._replace(value=signed(one.value, CommandSigner("ann", ANN_S), CLUSTER), came=LIVE)
    people = {"ann": ANN_S}
    view = journal(*obeyed(own, people=people).writes, at_ms=NOW_MS, view=VIEW)
    answer = done(obeyed(given(CommandVerb.APPROVE, name, id_="c2"), view=view, people=people), view, "c2")
    assert (answer.done, "another person" in answer.sentence) == (False, True)
    assert same_person("ann", name)
    assert not same_person("ann", "bob@ann")


FORGED: list[tuple[str, InboxEntry]] = [
    ("a key that no executor has", given(CommandVerb.APPROVE, by=CommandWitness("rw-2", (OTHER,)))),
    ("another cluster", given(CommandVerb.APPROVE, cluster="c-2")),
    ("no code", (one := given(CommandVerb.APPROVE))._replace(value={**one.value, "code": None})),
    ("another person's name", one._replace(value={**one.value, "who": "bob"})),
    ("another agent's name", one._replace(value={**one.value, "witness": "rw-3"})),
    ("another plan", one._replace(value={**one.value, "plan_hash": "0" * 32})),
    ("another command", one._replace(value={**one.value, "verb": "ROLLBACK"})),
    ("no name", given(CommandVerb.APPROVE, "")),
    ("a name of 10,000 characters", given(CommandVerb.APPROVE, "x" * 10_000)),
    ("a code of other letters", one._replace(value={**one.value, "code": "ß" * 64})),
]


@pytest.mark.parametrize("one", [one for _, one in FORGED], ids=[name for name, _ in FORGED])
@pytest.mark.parametrize("came", [LIVE, AGENT_S_FILE], ids=["a record", "a file of the agent's user"])
def test_what_the_agent_did_not_sign_is_no_one_s(one: InboxEntry, came: CommandOrigin) -> None:
    """Not even the file's owner's: that is the agent itself."""
    for limits in (Limits(), TWO):
        result = obeyed(one._replace(came=came), limits=limits)
        answer = done(result, VIEW)
        assert not answer.done
        assert approval_of(journal(*result.writes, at_ms=NOW_MS, view=VIEW), MOVE.id) is None


def test_a_person_s_own_key_and_a_journal_record_s_code_vouch_for_no_one() -> None:
    """Codes of one kind are none of another, also where the keys are the same."""
    one = ask(CommandVerb.APPROVE, MOVE, who="ann")
    as_signer = signed({**one.value, "witness": "rw-2"}, CommandSigner("ann", KEY), CLUSTER)
    del as_signer["signer"]
    assert sender_of(one._replace(value=as_signer), {}, CLUSTER, (KEY,)).person is None
    code = JournalTrust((KEY,), CLUSTER).signed(b"command/c1", (1, 1), b"x")
    for text in (code, code.partition(":")[2]):
        stolen = one._replace(value={**one.value, "witness": "rw-2", "code": text})
        assert sender_of(stolen, {}, CLUSTER, (KEY,)).person is None


def test_a_person_s_own_signature_comes_before_a_witness() -> None:
    one = ask(CommandVerb.APPROVE, MOVE, who="eve")
    both = signed({**one.value, "witness": "rw-2"}, CommandSigner("ann", ANN_S), CLUSTER)
    assert sender_of(one._replace(value=both), {"ann": ANN_S}, CLUSTER, (KEY,)).person == "ann"


def test_what_stops_something_is_obeyed_also_from_a_page_that_is_not_known() -> None:
    result = obeyed(given(CommandVerb.PAUSE, by=CommandWitness("rw-2", (OTHER,))))
    view = journal(*result.writes, at_ms=NOW_MS, view=VIEW)
    assert pause_in(view).who == "ann (self-declared)"
    assert answer_to(view, "c1").command.witness is None


def test_a_copy_of_a_signed_command_counts_no_second_time() -> None:
    one = given(CommandVerb.RESUME)
    first = obeyed(given(CommandVerb.PAUSE, id_="c0"), one)
    view = journal(*first.writes, at_ms=NOW_MS, view=VIEW)
    assert obeyed(one, view=view).writes == ()
    old = given(CommandVerb.APPROVE, id_="c2", at_ms=NOW_MS - SIGNED_FOR_MS - 1)
    assert "it was signed" in done(obeyed(old, limits=Limits()), VIEW, "c2").sentence
