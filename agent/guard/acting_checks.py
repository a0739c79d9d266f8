"""The checks of mode execute, whatever a change is worth: leadership, what was begun, settings.

Order: another agent leads, or its journal cannot be read; another cluster; what was begun already; what no plan can
hold; a group that is not to be asked; warm-ups that are not worth asking for yet; a pause; what the settings leave out;
the time of day.
"""

from __future__ import annotations

from agent.execute.refusals import LASTING, refusal
from agent.guard.ground import Check, Ground
from agent.journal.attempts import said_of
from agent.journal.commands import pause_in
from agent.journal.leader import leader_in
from agent.journal.room import likely_need, no_room, too_large
from agent.journal.targets import MOST_TARGETS
from agent.probing.check import PROBED, probing_check
from agent.values.limits import any_of
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from agent.values.verdict import Fine, Hold, HoldReason
from agent.values.windows import closed
from agent.values.words import counted, lasted


def _leading(proposal: Proposal, ground: Ground) -> Hold | Fine:
    leader = leader_in(ground.records.view)
    if not ground.leads:
        return Hold(
            proposal.id,
            HoldReason.NOT_LEADING,
            "held: this agent does not lead: another agent does, or none; it only observes",
        )
    if (why := ground.records.unreadable) is not None:
        sentence = f"held: the plans cannot be read from the journal ({why})"
        return Hold(proposal.id, HoldReason.UNKNOWN, sentence, lasting=True)
    return Fine("this agent leads" if leader is None else f"{leader.agent} on {leader.host} leads")


def _cluster(proposal: Proposal, ground: Ground) -> Hold | Fine:
    wanted, here = ground.limits.execute.cluster_id, ground.fresh.cluster_id
    leader = leader_in(ground.records.view)
    if wanted is not None and here != wanted:
        sentence = f"held: this is cluster {here}, and cluster.id allows changes of {wanted} only"
        return Hold(proposal.id, HoldReason.WRONG_CLUSTER, sentence)
    if leader is not None and leader.cluster and leader.cluster != here:
        sentence = f"held: this is cluster {here}, and the journal is of cluster {leader.cluster}"
        return Hold(proposal.id, HoldReason.WRONG_CLUSTER, sentence)
    return Fine(f"this is cluster {here}")


def _begun(proposal: Proposal, ground: Ground) -> Hold | Fine | None:
    """One attempt at a time; an ended one is in the way of none, and its approval is good for no other."""
    if proposal.kind is ProposalKind.TRIGGER:
        return None
    newest = ground.records.newest(proposal.id)
    if newest is None:
        return Fine("no attempt has begun")
    if newest.ended:
        return Fine(f"{said_of(newest)}; {ground.records.next(proposal.id).number} is the next attempt")
    how = ", paused" if newest.paused else ""
    sentence = (
        f"held: it is in progress ({newest.state.value}{how}), approved by {newest.approved_by or 'an unknown user'}"
    )
    return Hold(proposal.id, HoldReason.BEGUN, sentence)


def _size(proposal: Proposal, ground: Ground) -> Hold | Fine | None:
    """What no plan can hold is not approved: an approval of it would lead to nothing."""
    if proposal.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS):
        return None
    need = likely_need(proposal)
    if (why := too_large(need)) is not None:
        return Hold(proposal.id, HoldReason.TOO_LARGE, f"held: {why}; lower proposals.max_moves", lasting=True)
    if (why := no_room(ground.records.view, need)) is not None:
        return Hold(proposal.id, HoldReason.TOO_LARGE, f"held: {why}")
    return Fine(f"{counted(need.partitions, 'partition')} of at most {MOST_TARGETS:,} in one plan")


def _group(proposal: Proposal, ground: Ground) -> Hold | Fine | None:
    if proposal.kind is not ProposalKind.TRIGGER:
        return None
    view, limits = ground.records.view, ground.limits
    if proposal.reason is ProposalReason.WARMUP_PROMOTABLE and not limits.execute.probing:
        sentence = "held: triggers for warm-ups are switched off (probing.enabled)"
        return Hold(proposal.id, HoldReason.GROUP_REFUSED, sentence, lasting=True)
    found = refusal(proposal, ground.fresh, ground.memory, view, limits, moved=ground.records.moved)
    if found is None:
        return Fine(f"no known reason forbids a trigger of group {proposal.subject.name}")
    sentence = f"held: {found.reason.value}: {found.sentence} ({found.known_by})"
    lasting = found.reason in LASTING or found.known_by.startswith("set by")
    return Hold(proposal.id, HoldReason.GROUP_REFUSED, sentence, found.until_ms, lasting=lasting)


def _probing(proposal: Proposal, ground: Ground) -> Hold | Fine | None:
    """Whether it is time for a trigger for warm-ups (KIP-441); other proposals do not wait for any."""
    if proposal.kind is not ProposalKind.TRIGGER or proposal.reason not in PROBED:
        return None
    held = probing_check(proposal, ground.fresh, ground.memory, ground.records.view, ground.limits)
    if held is None:
        return Fine("its warm-ups are worth a rebalance now")
    return Hold(proposal.id, HoldReason.PROBING, held.sentence, held.until_ms)


def _paused(proposal: Proposal, ground: Ground) -> Hold | Fine:
    pause = pause_in(ground.records.view)
    if pause is None:
        return Fine("acting is not paused")
    why = f" ({pause.reason})" if pause.reason else ""
    since = lasted(ground.now_ms - pause.since_ms)
    sentence = f"held: {pause.who} paused acting {since} ago{why}; resume with: rackwise resume"
    return Hold(proposal.id, HoldReason.PAUSED, sentence)


def _left_out(proposal: Proposal, ground: Ground) -> Hold | Fine:
    execute, name = ground.limits.execute, proposal.subject.name
    kind = "groups" if proposal.kind is ProposalKind.TRIGGER else "topics"
    include = execute.include_groups if kind == "groups" else execute.include_topics
    exclude = execute.exclude_groups if kind == "groups" else execute.exclude_topics
    if any_of(exclude).fullmatch(name):
        sentence = f"held: {name} is excluded (execute.exclude_{kind})"
        return Hold(proposal.id, HoldReason.EXCLUDED, sentence)
    if include and not any_of(include).fullmatch(name):
        sentence = f"held: {name} matches no pattern of execute.include_{kind} ({len(include)})"
        return Hold(proposal.id, HoldReason.EXCLUDED, sentence)
    return Fine(f"{name} is not excluded (patterns: {len(include)} include, {len(exclude)} exclude)")


def _window(proposal: Proposal, ground: Ground) -> Hold | Fine:
    windows = ground.limits.execute.windows
    shut = closed(windows, proposal.kind.value, ground.now_ms)
    if shut is not None:
        never = shut.until_ms is None
        return Hold(proposal.id, HoldReason.OUTSIDE_WINDOW, f"held: {shut.sentence}", shut.until_ms, lasting=never)
    return Fine(f"allowed at this time (windows set: {len(windows.allow)} allow, {len(windows.blackout)} black out)")


ACTING_CHECKS: tuple[Check, ...] = (
    _leading,
    _cluster,
    _begun,
    _size,
    _group,
    _probing,
    _paused,
    _left_out,
    _window,
)
"""Gravest first."""

JOURNAL_CHECKS: tuple[Check, ...] = (_leading, _cluster, _begun, _size, _paused, _left_out, _window)
"""Those whose answer may change without a look at the cluster."""
