"""Coverage of doctor's checks of groups: racks, subscriptions, assignors, assignments, task copies. Pure.

Groups that rebalance (no racks, no assignments), that are undecodable (no racks) or that read hidden topics are named,
never counted as fine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from agent.detect.members import is_away, is_too_old
from agent.detect.rights import vanished
from agent.explain.doctor_coverage import (
    CheckCoverage,
    DoctorContext,
    all_of,
    blind_brokers,
    brokers_named,
    clause,
    each_named,
    racks_matter,
)
from agent.values.cycle import hidden_groups
from agent.values.finding import FindingReason, FindingSeverity
from agent.values.kafka import RACK_AWARE_ASSIGNORS, RACK_BLIND_ASSIGNORS, STABLE
from agent.values.number_format import counted, listed
from agent.values.snapshot import (
    COORDINATOR_KINDS,
    GroupKind,
    Member,
    RackState,
    ReaderGroup,
    StreamsGroup,
    StreamsProcess,
)
from assignors.problem import TaskId

_HIDDEN = "shows no racks or assignments of its members", "show no racks or assignments of their members"
_BLIND = frozenset({FindingReason.GROUP_KIND_IGNORES_RACKS, FindingReason.RACK_AWARENESS_OFF})


def known_racks(context: DoctorContext) -> CheckCoverage:
    """Whether the racks of brokers and members are known, from wherever."""
    if not context.alive:
        return CheckCoverage("", ("no broker answered",))
    brokers = _rackless(context)
    groups = [g.id for g in context.groups if any(m.rack.state is not RackState.KNOWN for m in g.members)]
    unseen = (
        *clause("the racks of {} are not known", brokers, brokers_named),
        *clause("the racks of some members of {} are not known", groups, _groups),
        *_hidden_groups(context),
    )
    return CheckCoverage(
        "",
        unseen,
        "" if context.groups or unseen else "the racks of all brokers are known, and no member was seen",
        who=(*(f"broker {b}" for b in brokers), *groups),
    )


def spellings(context: DoctorContext) -> CheckCoverage:
    """Whether brokers and members write each rack one way."""
    coverage = known_racks(context)
    broken = [g.id for g in context.groups if not g.hidden and any(not _readable(g, m) for m in g.members)]
    unknown = _rackless(context)
    sentences = clause("the racks of {} are not known", unknown, brokers_named)
    sentences += clause("the subscriptions of some members of {} cannot be read", broken, _groups)
    away = coverage.unseen if not context.alive else ()
    unseen = (*away, *sentences, *_hidden_groups(context))
    nothing = "" if context.groups or unseen else "no member was seen"
    return CheckCoverage(
        "brokers and members write each rack one way", unseen, nothing, who=(*each_named("broker", unknown), *broken)
    )


def client_racks(context: DoctorContext) -> CheckCoverage:
    """Whether members that can send a rack do, and send one that a broker has."""
    brokers = context.snapshot.brokers
    racks = {broker.rack.name for broker in brokers}
    lost = [str(broker.id) for broker in brokers if not broker.alive and broker.rack.name is None]
    away = lost and any(is_away(member, racks) for group in context.groups for member in group.members)
    coverage = _of_members(
        context,
        lambda group, member: _readable(group, member) and not is_too_old(member),
        "all members that could send their rack do ({})",
        "no member that could send its rack was seen",
    )
    if not away:
        return coverage
    absent = f"{brokers_named(lost)} {'is' if len(lost) == 1 else 'are'} absent, and members are in racks no other has"
    return coverage._replace(unseen=(*coverage.unseen, absent), who=(*coverage.who, *each_named("broker", lost)))


def subscriptions(context: DoctorContext) -> CheckCoverage:
    """Whether subscriptions have room for a rack."""
    return _of_members(
        context, _readable, "the subscriptions of all members have room for a rack ({})", "no member was seen"
    )


def group_protocols(context: DoctorContext) -> CheckCoverage:
    """Whether assignors look at racks."""
    coverage = _of_members(
        context,
        lambda _group, _member: True,
        "every group's assignor looks at racks, or loses nothing by it now ({})",
        "no group with members was seen",
    )
    if coverage.nothing:
        return coverage
    blind = blind_brokers(context.snapshot)
    absent = [str(broker.id) for broker in context.snapshot.brokers if not broker.alive]
    away = (
        [f"{brokers_named(absent)} {'is' if len(absent) == 1 else 'are'} absent"] if absent and not blind.unseen else []
    )
    dark = _with_hidden_topics(context)
    custom = [
        group.id
        for group in context.groups
        if group.kind is GroupKind.CLASSIC_CONSUMER
        and not group.hidden
        and group.assignor not in RACK_AWARE_ASSIGNORS | RACK_BLIND_ASSIGNORS
    ]
    unsure = of_unknown_gain(context)
    why = clause("topics of {} are not shown", dark, _groups)
    why += clause("it is unknown whether {} would gain from an assignor that looks at racks", unsure, _groups)
    why += clause("it is unknown whether the assignor of {} looks at racks", custom, _groups)
    if context.snapshot.selector_is_rack_aware is None:  # by leaders alone, an assignor's choices may all cost the same
        why.append("it is not known whether reads go to the nearest replica")
    return coverage._replace(
        unseen=(*coverage.unseen, *blind.unseen, *away, *why), who=(*coverage.who, *blind.who, *dark, *unsure, *custom)
    )


def of_unknown_gain(context: DoctorContext) -> tuple[str, ...]:
    """Groups with assignments blind to racks that are not certainly at their optimum."""
    assessments = context.detection.assessments
    names = [
        finding.subject.name
        for finding in context.detection.findings
        if finding.reason in _BLIND and finding.severity is FindingSeverity.INFO
    ]
    return tuple([name for name in dict.fromkeys(names) if not assessments[name].at_optimum])


def readable(context: DoctorContext) -> CheckCoverage:
    """Whether members' metadata can be decoded."""
    groups = context.groups
    hidden = _hidden_groups(context)
    fine = f"the bytes of {all_of(sum(len(group.members) for group in groups), 'member')} can be read"
    nothing = "" if groups or hidden else "no group with members was seen"
    return CheckCoverage(fine, hidden, nothing, who=_hiding(context))


def assignments(context: DoctorContext) -> CheckCoverage:
    """Whether each partition has one reader, and exists."""
    groups = context.groups
    held = sum(len(member.assigned or ()) for group in groups for member in group.members)
    undescribed = [g.id for g in groups if not g.hidden and any(member.assigned is None for member in g.members)]
    moving = [g.id for g in groups if not g.hidden and g.id not in undescribed and g.state != STABLE]
    dark = _with_hidden_topics(context)
    sentences = clause("assignments of {} are not shown", undescribed, _groups)
    sentences += [f"{_groups(moving)} {'is' if len(moving) == 1 else 'are'} not Stable"] if moving else []
    sentences += clause("topics of {} are not shown", dark, _groups)
    unseen = (*_hidden_groups(context), *sentences)
    return CheckCoverage(
        f"{all_of(held, 'assigned partition')} {'exists' if held == 1 else 'exist'}, each with one reader",
        unseen,
        "" if held or unseen else "no assigned partition was seen",
        who=(*_hiding(context), *undescribed, *moving, *dark),
    )


def task_copies(context: DoctorContext) -> CheckCoverage:
    """Whether copies of a task are in different racks."""
    streams = [group for group in context.groups if isinstance(group, StreamsGroup)]
    twice: set[tuple[str, TaskId]] = set()
    dark: list[str] = []
    for group in streams:
        copied = _copied(group.processes)
        twice |= {(group.id, task) for task in copied}
        broken = any(member.defects for member in group.members) or group.topology is None
        rackless = any(process.rack.state is not RackState.KNOWN for process in group.processes)
        if not group.hidden and (broken or (rackless and copied)):
            dark.append(group.id)
    unseen = (*_hidden_groups(context), *clause("racks or tasks of {} are not known", dark, _groups))
    nothing = "" if twice or unseen else "no task with a second copy was seen"
    with_standbys = counted(len(twice), "task")
    fine = f"no two copies of a task share a rack or tag while another is free ({with_standbys} with standbys)"
    return CheckCoverage(fine, unseen, nothing, who=(*_hiding(context), *dark))


def _copied(processes: Iterable[StreamsProcess]) -> list[TaskId]:
    held = Counter(task for process in processes for task in (*process.active, *process.standby))
    return [task for task, times in held.items() if times > 1]


def _of_members(
    context: DoctorContext, counts: Callable[[ReaderGroup, Member], bool], fine: str, nothing: str
) -> CheckCoverage:
    """The coverage of a check of members; ``counts`` selects its members."""
    racks = racks_matter(context.snapshot)
    if racks.nothing:
        return racks
    groups = context.groups
    seen = sum(counts(group, member) for group in groups if not group.hidden for member in group.members)
    broken = [group.id for group in groups if any(not _readable(group, m) for m in group.members) and not group.hidden]
    sentences = clause("the subscriptions of some members of {} cannot be read", broken, _groups)
    unseen = (*racks.unseen, *_hidden_groups(context), *sentences)
    return CheckCoverage(
        fine.format(counted(seen, "member")),
        unseen,
        "" if seen or unseen else nothing,
        who=(*racks.who, *_hiding(context), *broken),
    )


def _rackless(context: DoctorContext) -> list[str]:
    """Ids of live brokers whose rack is not known."""
    return [str(broker.id) for broker in context.alive if broker.rack.state is not RackState.KNOWN]


def _with_hidden_topics(context: DoctorContext) -> list[str]:
    """Ids of groups that read topics which are not shown."""
    shown, read = context.snapshot.topics.keys(), context.detection.topics
    return [group.id for group in context.groups if not shown >= {*read.get(group.id, ())}]


def _readable(group: ReaderGroup, member: Member) -> bool:
    """True for a member whose subscription was read: the coordinator describes those of KIP-848 and KIP-1071."""
    return group.kind in COORDINATOR_KINDS or member.subscription_version is not None


def _hiding(context: DoctorContext) -> tuple[str, ...]:
    return hidden_groups(context.snapshot, context.limits)


def _hidden_groups(context: DoctorContext) -> tuple[str, ...]:
    hiding = _hiding(context)
    sentences = [f"{_groups(hiding)} {_HIDDEN[len(hiding) > 1]}: rebalancing"] if hiding else []
    lost = context.snapshot.rights.groups_hidden
    return (*sentences, *([vanished(lost, "group")] if lost else []))


def _groups(names: Iterable[str]) -> str:
    of = list(names)
    return f"group{'' if len(of) == 1 else 's'} {listed(of)}"
