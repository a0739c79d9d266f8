"""How old a command is, to the millisecond, and what is said of one that is too old or of another clock."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from agent.execute.commands.command_context import (
    LATER_MS,
    SIGNED_FOR_MS,
    CommandOrigin,
    CommandSender,
    CommandSigner,
    sender_refusal,
    too_early,
    too_late,
    with_sender,
)
from agent.journal.commands import CommandVerb, OperatorCommand
from agent.journal.entries import JournalKey
from agent.values.limits import Limits
from tests.execute.test_identity import ANN, PEOPLE, answer, wish
from tests.snapshots import NOW_MS

LIMITS = Limits()
VALID_MS = LIMITS.approve.valid_ms
SIGNED, UNSIGNED = CommandSender("ann", None, signed=True), CommandSender(None)
A, R, S, G = CommandVerb.APPROVE, CommandVerb.ROLLBACK, CommandVerb.PAUSE, CommandVerb.RESUME
WAITED = CommandOrigin()


SIGNER = CommandSigner("ann", ANN)


class Envelope(NamedTuple):
    value: dict[str, object]
    came: CommandOrigin


def command(verb: CommandVerb, age_ms: int = 0, **changes: str) -> OperatorCommand:
    return OperatorCommand("c1", verb, "ann@desk", NOW_MS - age_ms, "p")._replace(**changes)  # type: ignore[arg-type]


def late(verb: CommandVerb, age_ms: int, came: CommandOrigin, sender: CommandSender = UNSIGNED) -> str | None:
    return too_late(Envelope({}, came), sender, command(verb, age_ms), LIMITS, NOW_MS)


def at(age_ms: int, **changes: object) -> CommandOrigin:
    """It was taken so long ago."""
    return CommandOrigin(at_ms=NOW_MS - age_ms, **changes)  # type: ignore[arg-type]


LIVE, FILE = CommandOrigin(live=True), CommandOrigin(live=True, owner="ann@desk")


@pytest.mark.parametrize(
    ("verb", "age_ms", "sentence"),
    [
        pytest.param(A, SIGNED_FOR_MS, None, id="a day ago"),
        pytest.param(A, SIGNED_FOR_MS + 1, "it was signed 24 h ago by its sender's clock", id="longer ago"),
        pytest.param(A, -SIGNED_FOR_MS, None, id="a day ahead"),
        pytest.param(A, -SIGNED_FOR_MS - 1, "it was signed 24 h ahead by its sender's clock", id="further ahead"),
        pytest.param(G, SIGNED_FOR_MS + 1, "it was signed 24 h ago by its sender's clock", id="a resume"),
        pytest.param(S, SIGNED_FOR_MS + 1, None, id="what stops something counts whenever it comes"),
    ],
)
def test_a_signed_command_counts_for_a_day_before_and_after_its_time(
    verb: CommandVerb, age_ms: int, sentence: str | None
) -> None:
    assert late(verb, age_ms, LIVE, SIGNED) == sentence
    assert late(verb, age_ms, LIVE) is None, "what is not signed has no time that is proven"


@pytest.mark.parametrize(
    ("verb", "came", "age_ms", "sender", "sentence"),
    [
        pytest.param(A, at(VALID_MS, live=True, owner="a"), 0, UNSIGNED, None, id="as old as an approval lasts"),
        pytest.param(
            A, at(VALID_MS + 1, live=True, owner="a"), 0, UNSIGNED, "it was sent 60 min ago and came only now",
            id="a file from before that",
        ),
        pytest.param(S, at(VALID_MS + 1, live=True, owner="a"), 0, UNSIGNED, None, id="what stops something"),
        pytest.param(
            G, at(VALID_MS + 1, live=True, owner="a"), 0, UNSIGNED, "it was sent 60 min ago and came only now",
            id="a resume from before that",
        ),
        pytest.param(A, at(VALID_MS + 1, live=True), 0, UNSIGNED, None, id="a record has the broker's order"),
        pytest.param(
            A, FILE, VALID_MS + 1, SIGNED, "it was sent 60 min ago and came only now", id="a file signed before that"
        ),
        pytest.param(A, FILE, VALID_MS, SIGNED, None, id="a file signed as long ago as an approval lasts"),
        pytest.param(A, FILE, VALID_MS + 1, UNSIGNED, None, id="a file whose text alone is old"),
    ],
)  # fmt: skip
def test_a_file_that_was_held_back_while_an_agent_led_does_not_count(
    verb: CommandVerb, came: CommandOrigin, age_ms: int, sender: CommandSender, sentence: str | None
) -> None:
    assert late(verb, age_ms, came, sender) == sentence


@pytest.mark.parametrize(
    ("verb", "came", "age_ms", "sentence"),
    [
        pytest.param(A, at(VALID_MS), 0, None, id="taken as long ago as an approval lasts"),
        pytest.param(A, at(VALID_MS + 1), 0, "it was sent 60 min ago and no agent led", id="taken before that"),
        pytest.param(R, at(VALID_MS + 1), 0, "it was sent 60 min ago and no agent led", id="a rollback"),
        pytest.param(G, at(VALID_MS + 1), 0, None, id="a resume"),
        pytest.param(S, at(VALID_MS + 1), 0, None, id="a pause"),
        pytest.param(A, WAITED, VALID_MS, None, id="sent as long ago, by its own clock"),
        pytest.param(A, WAITED, VALID_MS + 1, "it was sent 60 min ago and no agent led", id="sent before that"),
        pytest.param(A, at(0), VALID_MS + 1, None, id="taken now, whatever its own clock says"),
        pytest.param(A, WAITED, -LATER_MS, None, id="a minute ahead"),
        pytest.param(
            A, WAITED, -LATER_MS - 1,
            "it waited while no agent led, and its age is unknown: its sender's clock is 60 s ahead",
            id="further ahead",
        ),
        pytest.param(A, at(0), -LATER_MS - 1, None, id="further ahead, and its time is known"),
    ],
)  # fmt: skip
def test_what_waited_while_no_agent_led_counts_as_long_as_an_approval_lasts(
    verb: CommandVerb, came: CommandOrigin, age_ms: int, sentence: str | None
) -> None:
    assert late(verb, age_ms, came) == sentence


@pytest.mark.parametrize(
    ("sender", "verb", "age_ms", "counts"),
    [
        pytest.param(SIGNED, A, 0, False, id="signed at that time"),
        pytest.param(SIGNED, A, 1, False, id="signed before that time"),
        pytest.param(SIGNED, A, -1, True, id="signed after that time"),
        pytest.param(SIGNED, S, 1, True, id="what stops something"),
        pytest.param(UNSIGNED, A, 1, True, id="not signed"),
    ],
)
def test_no_signed_command_counts_whose_answer_may_be_forgotten(
    sender: CommandSender, verb: CommandVerb, age_ms: int, counts: bool
) -> None:
    assert (too_early(sender, command(verb, age_ms), NOW_MS) is None) is counts


@pytest.mark.parametrize(
    ("sender", "who", "person"),
    [
        pytest.param(CommandSender("ann", "bob@host", signed=True), "ann", "ann", id="a person before an account"),
        pytest.param(CommandSender(None, "bob@host"), "bob@host", None, id="an account"),
        pytest.param(CommandSender("bob@host", "bob@host"), "bob@host", "bob@host", id="an account that is a person"),
        pytest.param(UNSIGNED, "ann@desk (self-declared)", None, id="a name alone"),
    ],
)
def test_a_command_is_written_down_with_who_proved_to_have_sent_it(
    sender: CommandSender, who: str, person: str | None
) -> None:
    written = with_sender(sender, command(A))
    assert (written.who, written.person) == (who, person)
    nameless = with_sender(UNSIGNED, command(A, who=""))
    assert nameless.who == "an unknown operator (self-declared)"


@pytest.mark.parametrize(
    ("sender", "verb", "sentence"),
    [
        pytest.param(UNSIGNED, A, "approve needs a command signed by a person of approve.people", id="unsigned"),
        pytest.param(
            UNSIGNED._replace(doubt="why"), R, "rollback needs a command signed by a person of approve.people (why)",
            id="in doubt",
        ),
        pytest.param(UNSIGNED, S, None, id="what stops something"),
        pytest.param(SIGNED, A, None, id="a person"),
    ],
)  # fmt: skip
def test_where_people_have_keys_an_unproven_sender_starts_nothing(
    sender: CommandSender, verb: CommandVerb, sentence: str | None
) -> None:
    people = {"ann": JournalKey(b"the key of ann herself")}
    assert sender_refusal(sender, command(verb), people) == sentence
    assert sender_refusal(sender, command(verb), {}) is None


@pytest.mark.parametrize(
    ("verb", "changes", "todo"),
    [
        pytest.param(
            A,
            {"came": LIVE},
            "Set operator.name and operator.key_file where it is sent from, or sign in at the page.",
            id="not signed",
        ),
        pytest.param(
            R, {"came": WAITED, "at_ms": NOW_MS - VALID_MS - 1, "by": SIGNER},
            "Send it again if it is still wanted, from a clock that is right.", id="too old",
        ),
    ],
)  # fmt: skip
def test_a_refusal_of_what_is_unproven_or_too_old_says_what_to_do(
    verb: CommandVerb, changes: dict[str, Any], todo: str
) -> None:
    found = answer(wish(verb, **changes), people=PEOPLE)
    assert (found.done, found.todo) == (False, todo)
