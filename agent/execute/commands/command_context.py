"""Context of one operator's command: who sent it and when, and what is decided about it. Pure.

The sender is proven by an HMAC or a file owner, else self-declared. The HMAC-SHA256 covers the whole command and the
cluster id. Its key is one that the person and the agents share, or the executors' own, by which an agent vouches for a
person who signed in at its page. Records of a topic carry no principal.
Invariants: two persons are two names, by keys, sign-ins or owners; where persons are configured, an unproven command
may only stop something.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from agent.execute.reassign.messages import BatchPermission, CommandReceived, PlanAccepted
from agent.journal.approvals import approvals
from agent.journal.commands import MAX_TEXT, CommandVerb, OperatorCommand
from agent.journal.entries import MOST_EPOCH, Entry, JournalKey, JournalState, JournalWrite
from agent.journal.triggers import triggers
from agent.values.limits import Limits
from agent.values.number_format import lasted, sized_apart
from agent.values.proposal import Proposal
from agent.values.reassignment import ReassignmentPlan, attempt, latest, newest_rollback

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


ExecutorInput = CommandReceived | PlanAccepted
_UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


class ExpectedVerdict(NamedTuple):
    """The guard's verdict on a proposal if its approval were in the journal."""

    allowed: bool
    sentence: str
    """Reason of a verdict that does not allow it; empty when it is allowed."""
    comes: bool = True
    """False when it is held for good: neither time nor the cluster changes that, only settings do."""
    until_ms: int | None = None
    """Epoch milliseconds until when it is held at least; None when unknown."""


VerdictForecast = Callable[[Proposal, JournalState], ExpectedVerdict | None]
"""Returns None before the agent's first look at the cluster."""


BatchPermissionCheck = Callable[[ReassignmentPlan, JournalState], BatchPermission]
"""Whether a new batch of that plan may begin now, with this journal: the machine gets the same answer."""


class CommandContext(NamedTuple):
    """What a command is judged by: journal, open proposals, plans and limits."""

    view: JournalState
    standing: Mapping[str, Proposal]
    plans: tuple[ReassignmentPlan, ...]
    limits: Limits
    now_ms: int
    foresee: VerdictForecast
    begins: BatchPermissionCheck = lambda _plan, _view: BatchPermission(begin=True)
    planned: bool = True
    """False before the first planning: then it is not known what is proposed."""

    def plan(self, name: str | None) -> ReassignmentPlan | None:
        """The plan that an operator means: one named in full, or the newest attempt at a proposal."""
        if name is None:
            return None
        if attempt(name).number > 1:
            return next((plan for plan in self.plans if plan.proposal_id == name), None)
        return latest(self.plans, name)

    def meant(self, name: str | None) -> ReassignmentPlan | None:
        """The plan that a command stops: `plan`, or the rollback that is taking an ended `plan` back."""
        plan = self.plan(name)
        back = newest_rollback(self.plans, plan.proposal_id) if plan is not None and plan.ended else None
        return plan if back is None or back.ended else back

    def can_answer(self, command: OperatorCommand) -> bool:
        """Whether the answer rests on nothing but the journal, or what is proposed is known."""
        if self.planned or command.proposal_id is None:
            return True
        if command.verb in (CommandVerb.APPROVE, CommandVerb.APPLY, CommandVerb.CANCEL):
            plan = (self.meant if command.verb is CommandVerb.CANCEL else self.plan)(command.proposal_id)
            return plan is not None and not plan.ended
        return self.plan(command.proposal_id) is not None

    def knows_nothing_of(self, name: str | None) -> bool:
        """True when the name is none of an open proposal, and the journal has no plan, approval or trigger of it."""
        if name is None:
            return False
        of = attempt(name).of
        if of in self.standing or latest(self.plans, of) is not None:
            return False
        approved = (given.proposal_id for given in approvals(self.view))
        triggered = (entry.proposal_id for entry in triggers(self.view))
        return all(one != of for one in (*approved, *triggered))

    def held(self, plan: ReassignmentPlan) -> str:
        """What keeps new batches of that plan from beginning, as the end of an answer; empty when nothing does."""
        may = self.begins(plan, self.view)
        return "" if may.begin else f"; no new batch begins for now: {may.sentence}"


class CommandDecision(NamedTuple):
    """Effects and answer of one command."""

    done: bool
    sentence: str
    writes: tuple[JournalWrite, ...] = ()
    commands: tuple[ExecutorInput, ...] = ()
    look_now: bool = False
    plan: str | None = None
    """Name of the plan that it is about."""
    unknown: bool = False
    """True when the proposal that the command names is neither open nor in the journal."""
    todo: str = ""
    """The remedy of a refusal, where it is another than the checks of the guard."""


def refused(sentence: str, todo: str = "") -> CommandDecision:
    """The decision to refuse a command, for this reason."""
    return CommandDecision(done=False, sentence=sentence, todo=todo)


def not_begun(name: str | None, why: str, context: CommandContext) -> CommandDecision:
    """The refusal of a command about a proposal that has no plan: it has not begun, or is not known at all."""
    if not context.knows_nothing_of(name):
        return refused(f"{name} has not begun{why}")
    sentence = f"no proposal {name} is known: it is not open, and the journal has no plan or approval of it"
    return refused(sentence)._replace(unknown=True)


def unplanned(command: OperatorCommand) -> CommandDecision:
    """The refusal of a command that waited for the first planning and can wait no longer."""
    return refused(
        f"the leading agent has not planned yet, so it is not known whether {command.proposal_id} is open;"
        " send it again once rackwise proposals shows it"
    )


def with_writes(view: JournalState, writes: Sequence[JournalWrite], now_ms: int) -> JournalState:
    """The journal with these writes, as what is judged after them finds it."""
    after = dict(view)
    for seq, write in enumerate(writes):
        if write.value is None:
            after.pop(write.key, None)
        else:
            after[write.key] = Entry(write.key, write.kind, write.value, now_ms, MOST_EPOCH, seq)
    return after


def limits_refusal(command: OperatorCommand, limits: Limits) -> CommandDecision | None:
    """The refusal where no plan may have the operator's own limits; None when one may."""
    rate, most = command.throttle_bytes_per_s, command.max_moves
    low, high = limits.execute.throttle_floor, limits.execute.throttle_ceiling
    if rate is not None and not low <= rate <= high:
        (asked, floor), (over, ceiling) = sized_apart(rate, low), sized_apart(rate, high)
        fits = f"{_option(low)} or more, or lower execute.throttle_floor"
        if rate > high:
            asked, fits = over, f"{_option(high)} or less, or raise execute.throttle_ceiling"
        bounds = f"execute.throttle_floor ({floor}/s) and execute.throttle_ceiling ({ceiling}/s)"
        return refused(f"a rate of {asked}/s is not between {bounds}", f"Give --throttle {fits}.")
    if most is not None and most > limits.execute.max_moves_per_cluster:
        bound = limits.execute.max_moves_per_cluster
        return refused(
            f"{most} moves at once are more than execute.max_moves_per_cluster ({bound})",
            f"Give --max-moves {bound} or fewer, or raise execute.max_moves_per_cluster.",
        )
    return None


def _option(rate: int) -> str:
    """A rate as ``--throttle`` reads it, exactly: ``1MB/s``."""
    size, unit = next((one for one in _UNITS if rate % one[0] == 0), (1, ""))
    return f"{rate // size}{unit}/s"


def command_reason(command: OperatorCommand) -> str:
    """The operator's reason in brackets, after a blank; empty without one."""
    return in_brackets(command.reason)


def in_brackets(reason: str) -> str:
    """A reason in brackets, after a blank; empty without one."""
    return f" ({reason})" if reason else ""
