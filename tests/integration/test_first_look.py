"""What one look shows of the demo's scene, compared with what was really put there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import pytest

from agent.explain.doctor import CheckState, diagnose
from agent.values.assessment import LocalityMeasure
from agent.values.cycle import Cycle
from agent.values.finding import FindingReason
from agent.values.plan import Plan
from agent.values.proposal import ProposalKind, ProposalReason
from agent.values.snapshot import ConsumerGroup, GroupKind, LagSource, StreamsGroup
from testbed.cluster import EmbeddedCluster
from testbed.demo.workload import ClusterWorkload
from testbed.demo.workload.plan import WorkloadFaultKind
from tests.watching_agent import cycle_text, findings_of

QUESTION_OF = {
    WorkloadFaultKind.REPLICAS_SHARE_RACK: "replicas are spread over racks",
    WorkloadFaultKind.LEADERS_IN_ONE_RACK: "preferred leaders are spread over racks",
    WorkloadFaultKind.MEMBER_WITHOUT_RACK: "clients send client.rack",
    WorkloadFaultKind.GROUP_IGNORES_RACKS: "assignors cost no local reads",
}

GROUPS = {
    **dict.fromkeys(("audit", "billing", "exports", "ledger", "mailer"), GroupKind.CLASSIC_CONSUMER),
    "search": GroupKind.CONSUMER,
    "shop": GroupKind.CLASSIC_STREAMS,
    "shop-next": GroupKind.STREAMS,
}
"""The groups of the scene."""

WRONG = frozenset({CheckState.FAULT, CheckState.RISK})


def test_the_doctor_names_exactly_the_seeded_faults(still: Cycle, work: ClusterWorkload) -> None:
    best = {name for name, of in still.detection.assessments.items() if of.at_optimum}
    seeded = {
        (QUESTION_OF[fault.kind], fault.subject)
        for fault in work.plan.faults
        if fault.kind is not WorkloadFaultKind.GROUP_IGNORES_RACKS or fault.subject not in best  # nothing to gain there
    }
    checks = diagnose(still.snapshot, still.detection, still.plan or Plan())
    named = {(check.name, who) for check in checks if check.state in WRONG for who in check.who}
    assert named == seeded, cycle_text(still)
    others = {check.name: check.state for check in checks if check.name not in set(QUESTION_OF.values())}
    assert others.pop("racks are known") is CheckState.UNKNOWN, "a member was put there without a rack"
    assert set(others.values()) == {CheckState.OK}


def test_the_scene_runs_on_the_cluster_that_is_looked_at(still: Cycle, demo_cluster: EmbeddedCluster) -> None:
    racks = [(broker.id, broker.rack.name) for broker in still.snapshot.brokers]
    assert still.snapshot.cluster_id == demo_cluster.cluster_id
    assert racks == [(1, "a"), (2, "b"), (3, "c"), (4, "a")]


def test_everything_answers(still: Cycle) -> None:
    assert still.snapshot.gaps == ()


def test_every_group_is_seen_with_its_kind(still: Cycle) -> None:
    assert {name: still.snapshot.groups[name].kind for name in GROUPS} == GROUPS


@pytest.mark.parametrize("group", ["audit", "billing", "ledger", "search"])
def test_the_gap_of_a_consumer_group_is_that_of_trying_every_assignment(
    still: Cycle, work: ClusterWorkload, group: str
) -> None:
    """Of equal balance; by Kafka's measure."""
    held = held_by_rack(work, group)
    topic = next(one for one in (*work.plan.librdkafka_groups, *work.plan.java_groups) if one.group == group).topic
    racks_of = replica_racks(work, topic)
    assessment = still.detection.assessments[group]
    assert assessment.crossing == sum(crossings(racks_of, rack, partitions) for rack, partitions in held.items())
    assert assessment.optimal_crossing == fewest_crossings(racks_of, {rack: len(of) for rack, of in held.items()})
    kafka = next(row for row in assessment.current if row.measure is LocalityMeasure.KAFKA and row.unit == "partitions")
    assert (kafka.total, kafka.total - kafka.local, kafka.unknown) == (6, assessment.crossing, 0)


def test_the_gap_of_the_kip_848_group_is_found_and_its_owner_advised(still: Cycle) -> None:
    gap = still.detection.assessments["search"].gap
    group = still.snapshot.groups["search"]
    assert isinstance(group, ConsumerGroup)
    assert (group.assignor, {member.rack.name for member in group.members}) == ("uniform", {"a", "b", "c"})
    assert group.epoch is not None
    assert bool(findings_of(still, FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM, "group/search")) == (gap > 0)
    assert findings_of(still, FindingReason.GROUP_KIND_IGNORES_RACKS, "group/search")


def test_a_kip_1071_group_is_described_as_its_application_tells_it(still: Cycle, work: ClusterWorkload) -> None:
    group = still.snapshot.groups["shop-next"]
    assert isinstance(group, StreamsGroup)
    assert group.topology is not None
    assert (group.state, group.topology.source, len(group.topology.tasks)) == ("Stable", "declared", 9)
    assert tasks_seen(group) == tasks_told(work, "shop-next")
    assert {(process.rack.name, process.tags) for process in group.processes} == {
        ("a", (("zone", "a"),)),
        ("b", (("zone", "b"),)),
    }
    sources = {copy.lag_source for copy in still.snapshot.copies["shop-next"]}
    assert sources <= {LagSource.BROKER, None}


def test_a_classic_streams_group_is_read_out_of_its_members_bytes(still: Cycle, work: ClusterWorkload) -> None:
    group = still.snapshot.groups["shop"]
    assert isinstance(group, StreamsGroup)
    assert group.topology is not None
    assert (group.topology.source, len(group.topology.tasks)) == ("inferred", 9)
    assert tasks_seen(group) == tasks_told(work, "shop")
    changelogs = {changelog.topic for task in group.topology.tasks for changelog in task.changelogs}
    assert changelogs == {"shop-customers-changelog", "shop-regions-changelog"}


@pytest.mark.parametrize("group", ["exports", "mailer"])
def test_clients_without_a_rack_are_advised_with_the_line_to_set(still: Cycle, group: str) -> None:
    (proposal,) = (
        one
        for one in still.proposals
        if one.reason is ProposalReason.SET_CLIENT_RACK and str(one.subject) == f"group/{group}"
    )
    assert (proposal.kind, proposal.line) == (ProposalKind.ADVISE, "client.rack=<a|b|c>")
    assert findings_of(still, FindingReason.MEMBER_WITHOUT_RACK, f"group/{group}")


def test_replicas_that_share_a_rack_are_moved_with_as_few_moves_as_there_are_partitions(
    still: Cycle, work: ClusterWorkload
) -> None:
    (proposal,) = (one for one in still.proposals if one.kind is ProposalKind.REASSIGN)
    racks = work.facts.racks
    assert str(proposal.subject) == "topic/payments"
    assert len(proposal.moves) == 6
    for row in proposal.after:
        assert len({racks[int(broker)] for broker in row.value}) == len(row.value)


def test_rackwise_proposes_nothing_about_itself(still: Cycle) -> None:
    assert [one for one in still.proposals if one.subject.name.startswith("rackwise")] == []


def held_by_rack(work: ClusterWorkload, group: str) -> dict[str, frozenset[int]]:
    """Rack -> partitions that its one member holds, as the members themselves know it."""
    if group in work.groups:
        return {str(member.rack): member.partitions for member in work.groups[group].members}
    rows = [one for one in work.java.assignment()["consumers"] if one["group"] == group]
    plan = next(one for one in work.plan.java_groups if one.group == group)
    by_name = {row["id"]: frozenset(int(name.rpartition("-")[2]) for name in row["partitions"]) for row in rows}
    return {str(rack): by_name[name] for rack, name in zip(plan.racks, sorted(by_name, key=number), strict=True)}


def number(name: str) -> int:
    return int(name.rpartition("-")[2])


def replica_racks(work: ClusterWorkload, topic: str) -> list[set[str | None]]:
    plan = next(one for one in work.plan.topics if one.name == topic)
    return [{work.facts.racks[broker] for broker in replicas} for replicas in plan.replicas]


def crossings(racks_of: list[set[str | None]], rack: str, partitions: frozenset[int] | tuple[int, ...]) -> int:
    return sum(rack not in racks_of[partition] for partition in partitions)


def fewest_crossings(racks_of: list[set[str | None]], counts: Mapping[str, int]) -> int:
    """Over all ways to give each rack's member as many partitions as it has."""

    def best(racks: tuple[str, ...], free: frozenset[int]) -> int:
        if not racks:
            return 0
        rack, *others = racks
        return min(
            crossings(racks_of, rack, chosen) + best(tuple(others), free - set(chosen))
            for chosen in combinations(sorted(free), counts[rack])
        )

    return best(tuple(counts), frozenset(range(len(racks_of))))


def tasks_seen(group: StreamsGroup) -> dict[str, tuple[set[str], set[str]]]:
    return {
        process.id: ({str(task) for task in process.active}, {str(task) for task in process.standby})
        for process in group.processes
    }


def tasks_told(work: ClusterWorkload, application: str) -> dict[str, tuple[set[str], set[str]]]:
    """Process -> active and standby tasks, as the application itself tells them."""
    return {
        one["process_id"]: (
            {task["task"] for task in one["tasks"] if task["role"] == "active"},
            {task["task"] for task in one["tasks"] if task["role"] == "standby"},
        )
        for one in work.lags(application)["instances"]
    }
