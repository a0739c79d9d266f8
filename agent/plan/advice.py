"""What the owners of clients and brokers should change, with the exact line: settings nobody can set from outside.

One advice per subject and reason, however many members or brokers it concerns. Advice about a missing rack is given
always, as without it nothing else can be told; advice about a gain (in `advice_assignors`) only above the thresholds.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial

from agent.detect.finding import Finding, FindingReason, Severity
from agent.detect.members import is_too_old
from agent.model.snapshot import ConsumerGroup, GroupKind, Member, OtherGroup, RackState, Snapshot, StreamsGroup
from agent.plan.advice_assignors import change_assignors
from agent.plan.found import Scene
from agent.plan.owners import Advised, findings_by_group, racks_to_choose, unless_held
from agent.plan.placements import Skipped
from agent.plan.plan import AdvicePlan, Unplanned
from agent.propose.proposal import ProposalReason

ReaderGroup = ConsumerGroup | StreamsGroup

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
FIRST_WITH_RACK = "kafka-clients 3.5 or librdkafka 2.2"
"""The releases that first sent a rack in their subscription (KIP-881, subscription version 3)."""


def plan_advice(scene: Scene) -> tuple[list[AdvicePlan], Skipped]:
    """All advice, and which findings were left out and why."""
    advised: Advised = []
    for advise in (_broker_racks, _selector, _client_racks, _upgrades, _standbys, _throttles):
        advised += advise(scene)
    advised += change_assignors(scene)
    plans = [item for item in advised if isinstance(item, AdvicePlan)]
    return plans, [skip for item in advised if not isinstance(item, AdvicePlan) for skip in item]


# --- brokers ----------------------------------------------------------------------------------------------------


def _broker_racks(scene: Scene) -> Advised:
    findings = scene.found.of(FindingReason.BROKER_RACK_MISSING)
    who = tuple(sorted({finding.subject.name for finding in findings}, key=lambda name: (len(name), name)))
    located = {str(b.id): b.rack.name for b in scene.snapshot.brokers if b.rack.silent and b.rack.name is not None}
    known = {located.get(name) for name in who}
    # What a locator knows of all of them need not be chosen.
    choice = next((rack for rack in known if len(known) == 1 and rack), None) or racks_to_choose(scene.snapshot)

    def plan(ids: tuple[str, ...]) -> AdvicePlan:
        return AdvicePlan(
            subject_kind="cluster",
            subject=scene.snapshot.cluster_id,
            reason=ProposalReason.SET_BROKER_RACK,
            setting="broker.rack",
            now=None,
            wanted=choice,
            line=f"broker.rack={choice}",
            why="without it new topics ignore racks, and no partition with a replica there can be called local",
            who=tuple(f"broker {name}" + (f" ({located[name]})" if name in located else "") for name in who),
            findings=ids,
        )

    return unless_held(findings, plan)


def _selector(scene: Scene) -> Advised:
    findings = scene.found.of(FindingReason.SELECTOR_NOT_RACK_AWARE)
    setting = "replica.selector.class"
    configs = {broker: of.get(setting) for broker, of in scene.snapshot.broker_configs.items()}
    lacking = [broker for broker in sorted(configs) if configs[broker] != SELECTOR]
    values = sorted({value for broker, value in configs.items() if broker in lacking and value})

    def plan(ids: tuple[str, ...]) -> AdvicePlan:
        return AdvicePlan(
            subject_kind="cluster",
            subject=scene.snapshot.cluster_id,
            reason=ProposalReason.SET_SELECTOR,
            setting=setting,
            now=", ".join(values) or None,
            wanted=SELECTOR,
            line=f"{setting}={SELECTOR}",
            why="until then every consumer reads from the leader, in whatever rack that is, also with client.rack set",
            who=tuple(f"broker {broker}" for broker in lacking),
            findings=ids,
        )

    return unless_held(findings, plan)


def _throttles(scene: Scene) -> Advised:
    advised: Advised = []
    for finding in scene.found.of(FindingReason.THROTTLE_LEFT_BEHIND):
        plan = _throttle(finding, scene.snapshot)
        if finding.held:
            advised.append([(finding.id, Unplanned.HELD)])
        elif plan is None or "*" in (plan.now or ""):
            # A wildcard throttles every replica, which no reassignment asks for: somebody set it by hand.
            advised.append([(finding.id, Unplanned.NO_LEVER if plan is None else Unplanned.MAY_BE_MEANT)])
        else:
            advised.append(plan)
    return advised


def _throttle(finding: Finding, snapshot: Snapshot) -> AdvicePlan | None:
    kind, name = finding.subject
    values: dict[str, str | None] = {}
    topic = snapshot.topics.get(name)
    if kind == "topic" and topic is not None:
        values["leader.replication.throttled.replicas"] = topic.leader_throttle
        values["follower.replication.throttled.replicas"] = topic.follower_throttle
    elif kind == "broker" and name.isdecimal():
        values = {key: snapshot.broker_configs.get(int(name), {}).get(key) for key in RATES}
    left = {key: value for key, value in values.items() if value}
    if not left:
        return None
    keys = ",".join(left)
    line = (
        f"kafka-configs.sh --bootstrap-server {_bootstrap(snapshot)} --entity-type {kind}s "
        f"--entity-name {shlex.quote(name)} --alter --delete-config {keys}"
    )
    return AdvicePlan(
        subject_kind=kind,
        subject=name,
        reason=ProposalReason.REMOVE_THROTTLE,
        setting=keys,
        now=", ".join(str(value) for value in left.values()),
        wanted="not set",
        line=line,
        why="no reassignment runs any more, and a throttled follower that falls out of the ISR may never catch up",
        who=(f"{kind} {name}",),
        findings=(finding.id,),
    )


def _bootstrap(snapshot: Snapshot) -> str:
    for broker in snapshot.brokers:
        if broker.alive and broker.host and broker.port:
            host = f"[{broker.host}]" if ":" in broker.host else broker.host
            return shlex.quote(f"{host}:{broker.port}")
    return "<bootstrap server>"


# --- members ----------------------------------------------------------------------------------------------------


def _client_racks(scene: Scene) -> Advised:
    choice = racks_to_choose(scene.snapshot)

    def plan(group: ReaderGroup, who: tuple[str, ...], ids: tuple[str, ...]) -> AdvicePlan:
        return AdvicePlan(
            subject_kind="group",
            subject=group.id,
            reason=ProposalReason.SET_CLIENT_RACK,
            setting="client.rack",
            now=None,
            wanted=choice,
            line=f"client.rack={choice}",
            why="a member that does not tell its rack is never given partitions for their nearness, "
            "and fetches from the leader even when a replica is next door",
            who=who,
            findings=ids,
        )

    return _by_group(scene, FindingReason.MEMBER_WITHOUT_RACK, _sends_no_rack, plan)


def _upgrades(scene: Scene) -> Advised:
    choice = racks_to_choose(scene.snapshot)

    def plan(group: ReaderGroup, who: tuple[str, ...], ids: tuple[str, ...]) -> AdvicePlan:
        oldest = min(m.subscription_version for m in group.members if m.subscription_version is not None)
        return AdvicePlan(
            subject_kind="group",
            subject=group.id,
            reason=ProposalReason.UPGRADE_CLIENT,
            setting="client version",
            now=f"subscription version {oldest}",
            wanted=f"{FIRST_WITH_RACK}, or newer",
            line=f"client.rack={choice}  # after an upgrade to {FIRST_WITH_RACK}, or newer",
            why="subscriptions below version 3 have no room for a rack, so client.rack is not sent even when it is set",
            who=who,
            findings=ids,
        )

    return _by_group(scene, FindingReason.SUBSCRIPTION_TOO_OLD, is_too_old, plan)


def _by_group(
    scene: Scene,
    reason: FindingReason,
    concerned: Callable[[Member], bool],
    plan: Callable[[ReaderGroup, tuple[str, ...], tuple[str, ...]], AdvicePlan],
) -> Advised:
    """One advice per group of which a member is concerned."""
    advised: Advised = []
    for group_id, findings in findings_by_group(scene, reason).items():
        group = scene.snapshot.groups[group_id]
        if isinstance(group, OtherGroup):
            continue
        if scene.limits.excludes_group(group_id):
            advised.append([(finding.id, Unplanned.EXCLUDED) for finding in findings])
            continue
        who = tuple(sorted({member.client_id for member in group.members if concerned(member)}))
        if who:
            advised += unless_held(findings, partial(plan, group, who))
    return advised


def _sends_no_rack(member: Member) -> bool:
    return member.rack.state is RackState.UNKNOWN and not is_too_old(member)


# --- standbys ---------------------------------------------------------------------------------------------------


def _standbys(scene: Scene) -> Advised:
    advised: Advised = []
    for group_id, findings in findings_by_group(scene, FindingReason.COPIES_SHARE_RACK).items():
        group = scene.snapshot.groups[group_id]
        configured = scene.limits.group(group_id).rack_aware_assignment_tags
        if scene.limits.excludes_group(group_id):
            advised.append([(finding.id, Unplanned.EXCLUDED) for finding in findings])
        elif not isinstance(group, StreamsGroup) or group.kind is not GroupKind.CLASSIC_STREAMS or configured:
            # KIP-1071 brokers have no released setting for it; and where tags are set, only the next rebalance tells.
            advised.append([(finding.id, Unplanned.NO_LEVER) for finding in findings])
        else:
            # A tag that nobody asked to spread by may be shared on purpose.
            asked = [finding for finding in findings if finding.severity is not Severity.INFO]
            advised.append([(f.id, Unplanned.MAY_BE_MEANT) for f in findings if f.severity is Severity.INFO])
            advised += unless_held(asked, partial(_tags, group, scene.snapshot))
    return advised


def _tags(group: StreamsGroup, snapshot: Snapshot, ids: tuple[str, ...]) -> AdvicePlan:
    """The tag that the processes have and that says the same as their racks, if there is one; else a new one."""
    telling = _tag_of_racks(group)
    wanted = telling or "rack"
    line = f"rack.aware.assignment.tags={wanted}"
    if telling is None:
        line += f"\nclient.tag.rack={racks_to_choose(snapshot)}"
    return AdvicePlan(
        subject_kind="group",
        subject=group.id,
        reason=ProposalReason.SET_STANDBYS,
        setting="rack.aware.assignment.tags",
        now=None,
        wanted=wanted,
        line=line,
        why="without it standbys are dealt out by load alone, and one rack can hold every copy of a task (KIP-708)",
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
