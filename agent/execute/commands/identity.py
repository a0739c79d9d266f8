"""Identity and age of a command: proven by an HMAC or a file owner, else self-declared.

The HMAC-SHA256 covers the whole command and the cluster id. Its key is one that the person and the agents share, or the
executors' own, by which an agent vouches for a person who signed in at its page. Records of a topic carry no principal.
Invariants: two persons are two names, by keys, sign-ins or owners; where persons are configured, an unproven command
may only stop something. Pure.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from agent.journal.commands import MAX_TEXT, CommandVerb, OperatorCommand
from agent.journal.entries import JournalKey
from agent.values.limits import Limits
from agent.values.number_format import lasted

SIGNER, WITNESS, CODE = "signer", "witness", "code"
STARTING = (CommandVerb.APPROVE, CommandVerb.APPLY, CommandVerb.ROLLBACK)
"""Set something going, so they are not obeyed long after they were asked for."""
STOPPING = (CommandVerb.PAUSE, CommandVerb.CANCEL)
"""Obeyed whenever they come, from every sender with the right to write."""
LATER_MS = 60_000
"""A time so far ahead is one of another clock."""
SIGNED_FOR_MS = 86_400_000
"""A signed command counts for so long before and after its time."""
ANSWERED_FOR_MS = 2 * SIGNED_FOR_MS
"""So long its answer is kept, so that none counts twice: also one that was answered a day before its own time."""
_DOMAIN = b"rackwise.command.v1"
_WITNESSED = b"rackwise.witness.v1"
"""Of a key that signs other things too: no code of one kind is one of another."""

_MOST_CODES = 16
"""Of one command: one for each key that its agent has."""
_MOST_WITNESS = 80
"""Characters of an agent's name that are kept."""

OperatorKeys = Mapping[str, JournalKey]
"""Name of a person -> the key."""


class CommandSigner(NamedTuple):
    """Name and key of a person who signs commands."""

    name: str
    key: JournalKey


class CommandWitness(NamedTuple):
    """An agent at whose page people sign in."""

    name: str
    keys: tuple[JournalKey, ...]
    """Those that executors alone have, the one in force first, or of this process where they have none."""


class CommandOrigin(NamedTuple):
    """Transport facts of a command, as the receiving agent knows them."""

    live: bool = False
    """It came while this agent led."""
    at_ms: int | None = None
    """Epoch milliseconds at which the broker, or this machine, took it; None: unknown."""
    owner: str | None = None
    """``user@host`` of the file's owner; None for a record."""


class CommandEnvelope(Protocol):
    """A command as an inbox returns it."""

    @property
    def value(self) -> Mapping[str, Any]:
        """The command."""

    @property
    def came(self) -> CommandOrigin:
        """How and when the command reached this agent."""


class CommandSender(NamedTuple):
    """Who sent it, as far as that is proven."""

    person: str | None
    """Who counts as a person: by a key, or by an account where no keys are set, never by both at a time."""
    account: str | None = None
    """``user@host`` whose file it is."""
    signed: bool = False
    doubt: str = ""
    """Why a signature proves nothing."""
    witness: str | None = None
    """The agent at whose page the person signed in, or that a command names without proof."""


def signed(value: Mapping[str, Any], signer: CommandSigner, cluster: str) -> dict[str, Any]:
    """A command with its signer and code."""
    named = {**value, SIGNER: signer.name}
    return {**named, CODE: signer.key.code(_text(named, cluster))}


def witnessed(value: Mapping[str, Any], witness: CommandWitness, cluster: str) -> dict[str, Any]:
    """A command of a person who signed in, with the agent that vouches for it and its codes, one for each key.

    So a leading agent that has only some of the keys believes it, as it believes records of the journal.
    """
    named = {**value, WITNESS: witness.name}
    text = _text(named, cluster, _WITNESSED)
    return {**named, CODE: " ".join(key.code(text) for key in witness.keys)}


def sender_of(
    one: CommandEnvelope, people: OperatorKeys, cluster: str, witnesses: Sequence[JournalKey] = ()
) -> CommandSender:
    """Who sent a command. ``witnesses`` are the keys of agents that vouch for people who sign in."""
    name, code, owner = one.value.get(SIGNER), one.value.get(CODE), one.came.owner
    if isinstance(one.value.get(WITNESS), str) and name is None:
        return _signed_in(one.value, code, cluster, witnesses)
    unsigned = CommandSender(None if people else owner, owner)
    if not isinstance(name, str) or not isinstance(code, str) or not code.isascii():
        return unsigned
    key = people.get(name)
    if key is None:
        return unsigned._replace(doubt=f"{name[:80]!r} is not in approve.people")
    try:
        text = _text({field: value for field, value in one.value.items() if field != CODE}, cluster)
    except (ValueError, RecursionError):  # nested too deep to be a command
        return unsigned
    if not hmac.compare_digest(key.code(text), code):
        return unsigned._replace(doubt=f"its signature is not made with the key of {name}")
    return CommandSender(name, owner, signed=True)


def _signed_in(value: Mapping[str, Any], code: object, cluster: str, witnesses: Sequence[JournalKey]) -> CommandSender:
    """The person for whom an agent vouches. Without proof it is no one: the file's owner would be the agent."""
    witness, who = str(value[WITNESS])[:_MOST_WITNESS], value.get("who")
    unproven = CommandSender(
        None, doubt=f"the code of agent {witness!r} is not made with this agent's key", witness=witness
    )
    if not isinstance(code, str) or not code.isascii() or not isinstance(who, str) or not 0 < len(who) <= MAX_TEXT:
        return unproven
    try:
        text = _text({field: below for field, below in value.items() if field != CODE}, cluster, _WITNESSED)
    except (ValueError, RecursionError):
        return unproven
    given = code.split()[:_MOST_CODES]
    proven = [hmac.compare_digest(key.code(text), one) for key in witnesses for one in given]
    return CommandSender(who, signed=True, witness=witness) if any(proven) else unproven


def same_person(one: str, other: str) -> bool:
    """Whether two proven names may be one person who came by two ways, as ``ann`` and ``ann@example.org`` may."""
    first, second = one.casefold(), other.casefold()
    return first.partition("@")[0] == second.partition("@")[0]


def with_sender(sender: CommandSender, command: OperatorCommand) -> OperatorCommand:
    """The command with who sent it, as it is written down and shown."""
    proven = sender.person or sender.account
    if proven is not None:
        return command._replace(who=proven, person=sender.person, witness=sender.witness)
    return command._replace(who=f"{command.who or 'an unknown operator'} (self-declared)", person=None, witness=None)


def sender_refusal(sender: CommandSender, command: OperatorCommand, people: OperatorKeys) -> str | None:
    """Why this sender may not send this command; None when the sender may."""
    if command.verb in STOPPING or sender.person is not None:
        return None
    if sender.witness is not None:
        return f"{command.verb.value} was given at a page that is not known: {sender.doubt}"
    if not people:
        return None
    doubt = f" ({sender.doubt})" if sender.doubt else ""
    return f"{command.verb.value} needs a command signed by a person of approve.people{doubt}"


def too_late(
    one: CommandEnvelope, sender: CommandSender, command: OperatorCommand, limits: Limits, now_ms: int
) -> str | None:
    """Why a command is too old, or of an unknown age; None when it is to be obeyed.

    What stops something, and `resume` after it, counts in the order of the topic, by no clock. The sender
    of a file has the agent's clock: one that comes while it leads, and is old or was signed long ago, was held back.
    """
    if sender.signed and command.verb not in STOPPING and abs(now_ms - command.at_ms) > SIGNED_FOR_MS:
        return f"it was signed {_ago(now_ms - command.at_ms)} by its sender's clock"
    late_ms = 0 if one.came.owner is None else _late_ms(one.came.at_ms, sender, command, now_ms)
    if one.came.live and late_ms > limits.approve.valid_ms and command.verb not in STOPPING:
        return f"it was sent {lasted(late_ms)} ago and came only now"
    if command.verb not in STARTING or one.came.live:
        return None
    return _waited_too_long(one.came.at_ms, command, limits, now_ms, late_ms)


def _late_ms(at_ms: int | None, sender: CommandSender, command: OperatorCommand, now_ms: int) -> int:
    """The age of a command in a file, by the file's time and by that which was signed."""
    return max(now_ms - (at_ms or now_ms), now_ms - command.at_ms if sender.signed else 0)


def _waited_too_long(
    at_ms: int | None, command: OperatorCommand, limits: Limits, now_ms: int, late_ms: int
) -> str | None:
    """Why what waited while no agent led is too old, or of an unknown age; None when it still counts."""
    if at_ms is None and command.at_ms > now_ms + LATER_MS:
        return (
            f"it waited while no agent led, and its age is unknown: its sender's clock is"
            f" {lasted(command.at_ms - now_ms)} ahead"
        )
    age_ms = max(late_ms, now_ms - (command.at_ms if at_ms is None else at_ms))
    if age_ms <= limits.approve.valid_ms:
        return None
    return f"it was sent {lasted(age_ms)} ago and no agent led"


def too_early(sender: CommandSender, command: OperatorCommand, until_ms: int) -> str | None:
    """Why a signed command may have been answered before; None when it was signed after ``until_ms``.

    However wrong the agent's own clock is, or was: no copy of a command counts whose answer is forgotten.
    """
    if not sender.signed or command.verb in STOPPING or command.at_ms > until_ms:
        return None
    return (
        "it was signed at or before the time of another signed command whose answer is no longer in the journal, so it"
        " may have been answered before; send it again"
    )


def _ago(age_ms: int) -> str:
    return f"{lasted(abs(age_ms))} {'ago' if age_ms >= 0 else 'ahead'}"


def _text(value: Mapping[str, Any], cluster: str, domain: bytes = _DOMAIN) -> bytes:
    """The bytes that a code is over: equal JSON gives equal bytes."""
    body = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    name = cluster.encode()
    return domain + len(name).to_bytes(4, "big") + name + body
