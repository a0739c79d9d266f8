"""Which throttles were left behind, and the command that removes them: one for all brokers, or topics, alike."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from agent.plan.found import Scene
from agent.plan.owners import Advised
from agent.plan.tools import bootstrap_of, tool
from agent.values.finding import Finding, FindingReason
from agent.values.idle_throttles import BROKER_RATES
from agent.values.kafka import FOLLOWER_REPLICAS, LEADER_REPLICAS
from agent.values.plan import AdvicePlan, Unplanned
from agent.values.proposal import ProposalReason
from agent.values.snapshot import Snapshot

_WHY = "no reassignment runs any more, and a throttled follower that falls out of the ISR may never catch up"


class _Left(NamedTuple):
    """A topic or broker with the throttles that are set on it."""

    finding: str
    name: str
    values: tuple[str, ...]


def plan_throttles(scene: Scene) -> Advised:
    """One advice for all brokers, and for all topics, on which the same settings are left."""
    advised: Advised = []
    alike: dict[tuple[str, tuple[str, ...]], list[_Left]] = {}
    servers = bootstrap_of(scene.snapshot)
    for finding in scene.found.of(FindingReason.THROTTLE_LEFT_BEHIND):
        values = _values(finding, scene.snapshot)
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
    return [*advised, *(_advice(kind, keys, left, scene.snapshot, servers) for (kind, keys), left in alike.items())]


def _values(finding: Finding, snapshot: Snapshot) -> dict[str, str]:
    """Throttles that are set on the finding's subject; what rackwise does not see set is not removed."""
    kind, name = finding.subject
    values: dict[str, str | None] = {}
    topic = snapshot.topics.get(name)
    if kind == "topic" and topic is not None:
        values[LEADER_REPLICAS] = topic.leader_throttle
        values[FOLLOWER_REPLICAS] = topic.follower_throttle
    elif kind == "broker" and name.isdecimal():
        values = {key: snapshot.broker_configs.get(int(name), {}).get(key) for key in BROKER_RATES}
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
        line=line,
        why=_WHY,
        who=tuple(f"{kind} {one.name}" for one in left),
        findings=tuple(one.finding for one in left),
    )
