"""Whose advice it is: findings gathered by group, and the words that every advice shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agent.plan.found import Scene, answered
from agent.plan.placements import Skipped
from agent.values.finding import Finding, FindingReason, Subject
from agent.values.plan import AdvicePlan, Unplanned
from agent.values.snapshot import RackState, Snapshot

Advised = list[AdvicePlan | Skipped]


def findings_by_group(scene: Scene, reason: FindingReason) -> dict[str, list[Finding]]:
    """Group -> its findings of that reason, also those about its members and tasks; groups that are gone left out."""
    by_group: dict[str, list[Finding]] = {}
    for finding in scene.found.of(reason):
        group_id = group_of(finding.subject, scene.snapshot)
        if group_id is not None:
            by_group.setdefault(group_id, []).append(finding)
    return dict(sorted(by_group.items()))


def group_of(subject: Subject, snapshot: Snapshot) -> str | None:
    """The group of a subject named ``group``, ``group/member`` or ``group/task/process``; ids may hold slashes too."""
    if subject.kind not in ("group", "member", "task"):
        return None
    name = subject.name
    while name not in snapshot.groups:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return None
    return name


def unless_held(findings: Iterable[Finding], plan: Callable[[tuple[str, ...]], AdvicePlan]) -> Advised:
    """The plan that answers these findings, or that they are held, or nothing where there are none."""
    answers = answered(findings)
    if answers is None:
        return []
    return [[(name, Unplanned.HELD) for name in answers.ids]] if answers.held else [plan(answers.ids)]


def racks_to_choose(snapshot: Snapshot) -> str:
    """The racks of the brokers, as a choice to fill in: ``<a|b|c>``."""
    names = {b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN and b.rack.name is not None}
    return f"<{'|'.join(sorted(names))}>" if names else "<rack>"
