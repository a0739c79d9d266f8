"""Advice on settings of clients and brokers, and on drop-in assignors of Python clients, with the exact line.

There is one per subject and reason. Advice on a missing rack is always given; advice on a gain (`advice_assignors`)
only above the thresholds.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from agent.detect.members import is_away, is_too_old, libraries_of, likely_rack, python_library, rack_aware_arguments
from agent.plan.advice_assignors import Advised, change_assignors, findings_by_group, racks_to_choose, unless_held
from agent.plan.placements import Skipped
from agent.plan.plan_context import PlanContext
from agent.values.finding import Finding, FindingReason, FindingSeverity
from agent.values.kafka import (
    BROKER_RACK,
    CLIENT_RACK,
    FIRST_WITH_RACK,
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    RACK_AWARE_SELECTOR,
    RACK_AWARE_TAGS,
    REPLICA_SELECTOR,
)
from agent.values.number_format import listed
from agent.values.plan import AdvicePlan, Unplanned
from agent.values.proposal import ProposalReason
from agent.values.snapshot import GroupKind, Member, OtherGroup, RackState, ReaderGroup, Snapshot, StreamsGroup
from agent.values.throttles import BROKER_RATES


def bootstrap_of(snapshot: Snapshot) -> str | None:
    """``host:port`` of a live broker, by its advertised listener; None where no broker shows one."""
    for broker in snapshot.brokers:
        if broker.alive and broker.host and broker.port:
            host = f"[{broker.host}]" if ":" in broker.host else broker.host
            return f"{host}:{broker.port}"
    return None


def tool(name: str, servers: str, command_config: str | None = None) -> str:
    """The beginning of a command of that tool; ``command_config`` is a client's properties file."""
    config = "" if command_config is None else f" --command-config {shlex.quote(command_config)}"
    return f"{name}.sh --bootstrap-server {shlex.quote(servers)}{config}"


_GUESSED = 5
"""The most unknown racks that are compared with the brokers'; members may send any number."""
_UNHEARD = (
    "a member that sends no rack is assigned partitions without regard to racks, "
    "and fetches from the leader even when its own rack has a replica"
)


def plan_advice(context: PlanContext) -> tuple[list[AdvicePlan], Skipped]:
    """All advice, and which findings were left out and why."""
    advised: Advised = []
    for advise in (_broker_racks, _selector, _client_racks, _upgrades, _drop_ins, _standbys, plan_throttles):
        advised += advise(context)
    advised += change_assignors(context)
    plans = [item for item in advised if isinstance(item, AdvicePlan)]
    return plans, [skip for item in advised if not isinstance(item, AdvicePlan) for skip in item]


def _broker_racks(context: PlanContext) -> Advised:
    findings = context.found.of(FindingReason.BROKER_RACK_MISSING)
    who = tuple(sorted({finding.subject.name for finding in findings}, key=lambda name: (len(name), name)))
    located = {str(b.id): b.rack.name for b in context.snapshot.brokers if b.rack.silent and b.rack.name is not None}
    known = {located.get(name) for name in who}
    # What a locator knows of all of them need not be chosen.
    choice = next((rack for rack in known if len(known) == 1 and rack), None) or racks_to_choose(context.snapshot)

    def plan(ids: tuple[str, ...]) -> AdvicePlan:
        return AdvicePlan(
            subject_kind="cluster",
            subject=context.snapshot.cluster_id,
            reason=ProposalReason.SET_BROKER_RACK,
            setting=BROKER_RACK,
            now=None,
            wanted=choice,
            lines=(f"{BROKER_RACK}={choice}",),
            why="without it new topics ignore racks, and no partition with a replica there can be called local",
            who_kind="broker",
            who=tuple(f"broker {name}" + (f" ({located[name]})" if name in located else "") for name in who),
            findings=ids,
        )

    return unless_held(findings, plan)


def _selector(context: PlanContext) -> Advised:
    findings = context.found.of(FindingReason.SELECTOR_NOT_RACK_AWARE)
    setting = REPLICA_SELECTOR
    configs = {broker: of.get(setting) for broker, of in context.snapshot.broker_configs.items()}
    lacking = [broker for broker in sorted(configs) if configs[broker] != RACK_AWARE_SELECTOR]
    values = sorted({value for broker, value in configs.items() if broker in lacking and value})

    def plan(ids: tuple[str, ...]) -> AdvicePlan:
        return AdvicePlan(
            subject_kind="cluster",
            subject=context.snapshot.cluster_id,
            reason=ProposalReason.SET_SELECTOR,
            setting=setting,
            now=", ".join(values) or None,
            wanted=RACK_AWARE_SELECTOR,
            lines=(f"{setting}={RACK_AWARE_SELECTOR}",),
            why="until then every consumer reads from the leader, whichever rack it is in, even with client.rack set",
            who_kind="broker",
            who=tuple(f"broker {broker}" for broker in lacking),
            findings=ids,
        )

    return unless_held(findings, plan)


def _client_racks(context: PlanContext) -> Advised:
    """For members that send no rack, and for those that send one that no broker has."""
    choice = racks_to_choose(context.snapshot)
    racks = tuple(sorted({b.rack.name for b in context.snapshot.brokers if b.rack.name is not None}))

    def concerned(member: Member) -> bool:
        return _sends_no_rack(member) or is_away(member, racks)

    def plan(group: ReaderGroup, who: tuple[str, ...], ids: tuple[str, ...]) -> AdvicePlan:
        sent_racks = sorted({str(m.rack.rack_id or m.rack.name) for m in group.members if is_away(m, racks)})
        silent = any(map(_sends_no_rack, group.members))
        meant = {likely_rack(rack, racks) for rack in sent_racks[:_GUESSED]} if len(sent_racks) <= _GUESSED else {None}
        wanted = next((rack for rack in meant if len(meant) == 1 and rack and not silent), None) or choice
        no_broker = f"no broker is in rack {listed(sent_racks)}, so none of their reads can be local"
        why = "; ".join([_UNHEARD] * silent + [no_broker] * bool(sent_racks))
        return AdvicePlan(
            subject_kind="group",
            subject=group.id,
            reason=ProposalReason.SET_CLIENT_RACK,
            setting=CLIENT_RACK,
            now=listed(sent_racks) or None,
            wanted=wanted,
            lines=(f"{CLIENT_RACK}={wanted}",),
            why=why,
            who=who,
            findings=ids,
        )

    reasons = (FindingReason.MEMBER_WITHOUT_RACK, FindingReason.MEMBER_IN_NO_BROKERS_RACK)
    return _by_group(context, reasons, concerned, plan)


def _upgrades(context: PlanContext) -> Advised:
    choice = racks_to_choose(context.snapshot)

    def plan(group: ReaderGroup, who: tuple[str, ...], ids: tuple[str, ...]) -> AdvicePlan:
        software = context.limits.group(group.id).client_software_name
        old = [member for member in group.members if is_too_old(member) and not python_library(member, software)]
        oldest = min(member.subscription_version or 0 for member in old)
        return AdvicePlan(
            subject_kind="group",
            subject=group.id,
            reason=ProposalReason.UPGRADE_CLIENT,
            setting="client version",
            now=f"subscription version {oldest}",
            wanted=f"{FIRST_WITH_RACK}, or newer",
            lines=(
                f"{CLIENT_RACK}={choice}  # after an upgrade to {FIRST_WITH_RACK}, or newer"
                + (" (kafka-python, aiokafka: docs/clients.md)" if oldest == 0 else ""),
            ),
            why="subscriptions below version 3 have no room for a rack, so client.rack is not sent even when it is set",
            who=who,
            findings=ids,
        )

    return _by_group(context, (FindingReason.SUBSCRIPTION_TOO_OLD,), is_too_old, plan, python=False)


def _drop_ins(context: PlanContext) -> Advised:
    """kafka-python and aiokafka send a rack in no version; an assignor of `assignors.clients` does it for them."""
    choice = racks_to_choose(context.snapshot)

    def plan(group: ReaderGroup, who: tuple[str, ...], ids: tuple[str, ...]) -> AdvicePlan:
        software = context.limits.group(group.id).client_software_name
        libraries = libraries_of([member for member in group.members if is_too_old(member)], software)
        return AdvicePlan(
            subject_kind="group",
            subject=group.id,
            reason=ProposalReason.USE_DROP_IN_ASSIGNOR,
            setting="partition_assignment_strategy",
            now=group.assignor,
            wanted=f"Strategy of assignors.clients for {listed(libraries)}",
            lines=tuple(rack_aware_arguments(library, group.assignor, choice) for library in libraries),
            why=f"no version of {listed(libraries)} sends a rack in its subscription, and their assignors ignore racks",
            who=who,
            findings=ids,
        )

    return _by_group(context, (FindingReason.SUBSCRIPTION_TOO_OLD,), is_too_old, plan, python=True)


def _by_group(
    context: PlanContext,
    reasons: tuple[FindingReason, ...],
    concerned: Callable[[Member], bool],
    plan: Callable[[ReaderGroup, tuple[str, ...], tuple[str, ...]], AdvicePlan],
    *,
    python: bool | None = None,
) -> Advised:
    """One advice per group with such a member; Python clients alone, or all others, by the parameter."""
    advised: Advised = []
    by_group: dict[str, list[Finding]] = {}
    for reason in reasons:
        for group_id, found in findings_by_group(context, reason).items():
            by_group.setdefault(group_id, []).extend(found)
    for group_id, findings in sorted(by_group.items()):
        group = context.snapshot.groups[group_id]
        if isinstance(group, OtherGroup):
            continue
        if context.limits.excludes_group(group_id):
            advised.append([(finding.id, Unplanned.EXCLUDED) for finding in findings])
            continue
        software = context.limits.group(group_id).client_software_name
        members = [member for member in group.members if concerned(member)]
        if python is not None:
            members = [member for member in members if (python_library(member, software) is not None) is python]
        who = tuple(sorted({member.client_id for member in members}))
        if who:
            advised += unless_held(findings, partial(plan, group, who))
    return advised


def _sends_no_rack(member: Member) -> bool:
    return member.rack.state is RackState.UNKNOWN and not is_too_old(member)


def _standbys(context: PlanContext) -> Advised:
    advised: Advised = []
    for group_id, findings in findings_by_group(context, FindingReason.COPIES_SHARE_RACK).items():
        group = context.snapshot.groups[group_id]
        configured = context.limits.group(group_id).rack_aware_assignment_tags
        if context.limits.excludes_group(group_id):
            advised.append([(finding.id, Unplanned.EXCLUDED) for finding in findings])
        elif not isinstance(group, StreamsGroup) or group.kind is not GroupKind.CLASSIC_STREAMS or configured:
            # KIP-1071 brokers have no released setting for it; where tags are set, only the next rebalance shows it.
            advised.append([(finding.id, Unplanned.NO_LEVER) for finding in findings])
        else:
            # A tag by which no spread is asked for may be shared on purpose.
            asked = [finding for finding in findings if finding.severity is not FindingSeverity.INFO]
            advised.append([(f.id, Unplanned.MAY_BE_MEANT) for f in findings if f.severity is FindingSeverity.INFO])
            advised += unless_held(asked, partial(_tags, group, context.snapshot))
    return advised


def _tags(group: StreamsGroup, snapshot: Snapshot, ids: tuple[str, ...]) -> AdvicePlan:
    """The processes' tag with the same values as their racks, else a new one."""
    telling = _tag_of_racks(group)
    wanted = telling or "rack"
    lines = [f"{RACK_AWARE_TAGS}={wanted}"]
    if telling is None:
        lines.append(f"client.tag.rack={racks_to_choose(snapshot)}")
    return AdvicePlan(
        subject_kind="group",
        subject=group.id,
        reason=ProposalReason.SET_STANDBYS,
        setting=RACK_AWARE_TAGS,
        now=None,
        wanted=wanted,
        lines=tuple(lines),
        why="without it standbys are assigned by load alone, and one rack can hold every copy of a task (KIP-708)",
        who=tuple(sorted({client for process in group.processes for client in process.client_ids})),
        findings=ids,
    )


def _tag_of_racks(group: StreamsGroup) -> str | None:
    """The first tag by name of which each rack has one value of its own."""
    for key in sorted({key for process in group.processes for key, _ in process.tags}):
        pairs = {(process.rack.name, dict(process.tags).get(key)) for process in group.processes}
        racks, values = {rack for rack, _ in pairs}, {value for _, value in pairs}
        if None not in racks and None not in values and len(pairs) == len(racks) == len(values) > 1:
            return key
    return None


_WHY = "no reassignment runs any more, and a throttled follower that falls out of the ISR may never catch up"


class _Left(NamedTuple):
    finding: str
    name: str
    values: tuple[str, ...]


def plan_throttles(context: PlanContext) -> Advised:
    """One advice for all brokers, and for all topics, on which the same settings are left."""
    advised: Advised = []
    alike: dict[tuple[str, tuple[str, ...]], list[_Left]] = {}
    servers = bootstrap_of(context.snapshot)
    for finding in context.found.of(FindingReason.THROTTLE_LEFT_BEHIND):
        values = _values(finding, context.snapshot)
        if finding.held:
            advised.append([(finding.id, Unplanned.HELD)])
        elif servers is None or not values or "*" in values.values():
            # A wildcard throttles every replica, which no reassignment asks for: it was set by hand.
            advised.append([(finding.id, Unplanned.MAY_BE_MEANT if values else Unplanned.NO_LEVER)])
        else:
            left = _Left(finding.id, finding.subject.name, tuple(values.values()))
            alike.setdefault((finding.subject.kind, tuple(values)), []).append(left)
    if servers is None:
        return advised
    return [*advised, *(_advice(kind, keys, left, context.snapshot, servers) for (kind, keys), left in alike.items())]


def _values(finding: Finding, snapshot: Snapshot) -> dict[str, str]:
    """Throttles on the finding's subject; only visible ones are removed."""
    kind, name = finding.subject
    values: dict[str, str | None] = {}
    topic = snapshot.topics.get(name)
    if kind == "topic" and topic is not None:
        values[LEADER_REPLICAS] = topic.leader_throttle
        values[FOLLOWER_REPLICAS] = topic.follower_throttle
    elif finding.broker is not None:
        values = {key: snapshot.broker_configs.get(finding.broker, {}).get(key) for key in BROKER_RATES}
    return {key: value for key, value in values.items() if value}


def _advice(kind: str, keys: tuple[str, ...], left: list[_Left], snapshot: Snapshot, servers: str) -> AdvicePlan:
    command = f"{tool('kafka-configs', servers)} --entity-type {kind}s"
    change = f"--alter --delete-config {','.join(keys)}"
    if len(left) == 1:
        (one,) = left
        subject_kind, subject, now = kind, one.name, ", ".join(one.values)
        line = f"{command} --entity-name {shlex.quote(one.name)} {change}"
    else:
        left = sorted(left, key=lambda one: (len(one.name) if kind == "broker" else 0, one.name))
        subject_kind, subject = "cluster", snapshot.cluster_id
        values = sorted({", ".join(one.values) for one in left})
        now = values[0] if len(values) == 1 else f"{len(values)} values"
        line = f"echo {' '.join(shlex.quote(one.name) for one in left)} | xargs -n 1 {command} {change} --entity-name"
    return AdvicePlan(
        subject_kind=subject_kind,
        subject=subject,
        reason=ProposalReason.REMOVE_THROTTLE,
        setting=",".join(keys),
        now=now,
        wanted="not set",
        lines=(line,),
        why=_WHY,
        who_kind=kind,
        who=tuple(f"{kind} {one.name}" for one in left),
        findings=tuple(one.finding for one in left),
    )
