"""Advice: who should change which setting, with the exact line."""

from __future__ import annotations

import pytest

from agent.detect.find import detect
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.assessment import DetectionResult
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.limits import GainLimits, GroupLimits, Limits
from agent.values.memory import Memory
from agent.values.plan import AdvicePlan, Plan, Unplanned
from agent.values.proposal import ProposalReason
from agent.values.snapshot import GroupKind
from tests.snapshots import NOW_MS, Builder, a_cluster, member, process, task

LIMITS = Limits()


def planned(built: Builder, *extra: Finding, limits: Limits = LIMITS) -> Plan:
    snapshot = built.snapshot()
    detection = detect(snapshot, Memory(), limits, None)
    detection = DetectionResult(findings=(*detection.findings, *extra), assessments=detection.assessments)
    return make_plan(snapshot, detection, limits, None)


def advised(plan: Plan, reason: ProposalReason) -> AdvicePlan:
    found = [advice for advice in plan.advice if advice.reason is reason]
    assert len(found) == 1, f"one advice with {reason.name}, but {plan.advice}"
    return found[0]


def finding(reason: FindingReason, kind: str, name: str, **changes: object) -> Finding:
    return Finding(
        reason=reason, subject=SubjectId(kind, name), sentence=reason.value, evidence=(), since_ms=NOW_MS,
        broker=int(name) if kind == "broker" else None,
        **{"severity": FindingSeverity.WARNING, **changes},
    )  # fmt: skip


def test_members_without_rack_are_told_to_send_one():
    built = a_cluster().topic("t", (1,), (2,), (3,))
    built.group("g", member("m1", None, "t-0"), member("m2", None, "t-1"), member("m3", "c", "t-2"))
    advice = advised(planned(built), ProposalReason.SET_CLIENT_RACK)
    assert (advice.subject_kind, advice.subject) == ("group", "g")
    assert advice.line == "client.rack=<a|b|c>"
    assert advice.who == ("client-m1", "client-m2")
    assert advice.findings == ("member_without_rack:group/g",)


def test_members_that_are_too_old_are_told_to_upgrade_instead():
    built = a_cluster().topic("t", (1,), (2,))
    built.group("g", member("m1", None, "t-0", subscription_version=1), member("m2", "b", "t-1"))
    plan = planned(built)
    advice = advised(plan, ProposalReason.UPGRADE_CLIENT)
    assert advice.who == ("client-m1",)
    assert advice.now == "subscription version 1"
    assert "kafka-clients 3.5 or librdkafka 2.2" in advice.line
    assert [a.reason for a in plan.advice] == [ProposalReason.UPGRADE_CLIENT]


def test_brokers_without_rack_are_named_together():
    built = a_cluster(a=(1,), b=(2,)).broker(3, None).broker(10, None).topic("t", (1, 3), (2, 10))
    advice = advised(planned(built), ProposalReason.SET_BROKER_RACK)
    assert (advice.line, advice.who) == ("broker.rack=<a|b>", ("broker 3", "broker 10"))


def test_brokers_without_a_selector_are_named_with_the_line():
    built = a_cluster().topic("t", (1, 2, 3))
    built.selector = False
    built.broker_configs = {
        1: {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
        2: {"replica.selector.class": ""},
        3: {},
    }
    advice = advised(planned(built), ProposalReason.SET_SELECTOR)
    assert advice.line == "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert advice.who == ("broker 2", "broker 3")


def test_roundrobin_is_told_to_go_to_cooperative_sticky():
    built = a_cluster().topic("t", (1,), (2,))
    built.group("g", member("m1", "b", "t-0"), member("m2", "a", "t-1"), assignor="roundrobin")
    advice = advised(planned(built), ProposalReason.CHANGE_ASSIGNOR)
    line = "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert (advice.now, advice.line) == ("roundrobin", line)
    assert "2 of its 2 reads cross racks" in advice.why


def test_a_kip_848_group_is_advised_by_its_measured_gap_and_left_alone_without_one():
    members = (member("m1", "b", "t-0"), member("m2", "a", "t-1"))
    built = a_cluster().topic("t", (1,), (2,)).group("g", *members, kind=GroupKind.CONSUMER, assignor="uniform")
    advice = advised(planned(built), ProposalReason.CHANGE_ASSIGNOR)
    assert (advice.setting, advice.now, advice.wanted) == ("group.protocol", "consumer", "classic")
    plan = planned(built, limits=Limits(gain=GainLimits(min_partitions=3)))
    assert plan.advice == ()
    assert Unplanned.BELOW_THRESHOLD in dict(plan.unplanned).values()
    at_home = (member("m1", "a", "t-0"), member("m2", "b", "t-1"))
    built.group("g", *at_home, kind=GroupKind.CONSUMER, assignor="uniform")
    assert planned(built).advice == ()


def crowded_standbys(**tags: tuple[tuple[str, str], ...]) -> Builder:
    processes = (
        process("p1", "a", "0_0", tags=tags.get("p1", ())),
        process("p2", "a", "", standby="0_0", tags=tags.get("p2", ())),
        process("p3", "b", "", tags=tags.get("p3", ())),
    )
    return a_cluster().topic("t", (1,)).streams("g", *processes, topology=[task("0_0", "t-0")])


def test_standbys_beside_their_active_get_a_tag_of_the_rack():
    advice = advised(planned(crowded_standbys()), ProposalReason.SET_STANDBYS)
    assert advice.line == "rack.aware.assignment.tags=rack\nclient.tag.rack=<a|b|c>"


def test_a_tag_that_says_the_same_as_the_rack_is_used():
    built = crowded_standbys(
        p1=(("team", "x"), ("zone", "za")), p2=(("team", "x"), ("zone", "za")), p3=(("team", "x"), ("zone", "zb"))
    )
    advice = advised(planned(built), ProposalReason.SET_STANDBYS)
    assert advice.line == "rack.aware.assignment.tags=zone"


def test_where_tags_are_set_already_no_setting_is_missing():
    limits = Limits(groups={"g": GroupLimits(rack_aware_assignment_tags=("zone",), known=True)})
    tags = {"p1": (("zone", "za"),), "p2": (("zone", "za"),), "p3": (("zone", "zb"),)}
    plan = planned(crowded_standbys(**tags), limits=limits)
    assert plan.advice == ()
    assert Unplanned.NO_LEVER in dict(plan.unplanned).values()


def test_a_throttle_left_behind_comes_with_the_command_that_removes_it():
    built = a_cluster().topic("t", (1,), leader_throttle="0:1", follower_throttle="0:2")
    left = finding(FindingReason.THROTTLE_LEFT_BEHIND, "topic", "t")
    advice = advised(planned(built, left), ProposalReason.REMOVE_THROTTLE)
    assert advice.line == (
        "kafka-configs.sh --bootstrap-server host1:9092 --entity-type topics --entity-name t --alter --delete-config "
        "leader.replication.throttled.replicas,follower.replication.throttled.replicas"
    )


def test_a_broker_rate_left_behind_names_only_what_is_set():
    built = a_cluster().topic("t", (1,))
    built.broker_configs = {2: {"leader.replication.throttled.rate": "1000"}}
    left = finding(FindingReason.THROTTLE_LEFT_BEHIND, "broker", "2")
    advice = advised(planned(built, left), ProposalReason.REMOVE_THROTTLE)
    assert advice.line.endswith(
        "--entity-type brokers --entity-name 2 --alter --delete-config leader.replication.throttled.rate"
    )


def test_a_wildcard_throttle_may_be_meant_to_stay():
    built = a_cluster().topic("t", (1,), leader_throttle="*")
    left = finding(FindingReason.THROTTLE_LEFT_BEHIND, "topic", "t")
    plan = planned(built, left)
    assert plan.advice == ()
    assert plan.unplanned == ((left.id, Unplanned.MAY_BE_MEANT),)


@pytest.mark.parametrize(
    "reason",
    [FindingReason.BROKER_RACK_MISSING, FindingReason.SELECTOR_NOT_RACK_AWARE, FindingReason.THROTTLE_LEFT_BEHIND],
)
def test_nothing_is_advised_from_a_held_finding(reason):
    built = a_cluster().topic("t", (1,), leader_throttle="0:1")
    kind, name = ("topic", "t") if reason is FindingReason.THROTTLE_LEFT_BEHIND else ("broker", "1")
    held = finding(reason, kind, name, held=True)
    plan = planned(built, held)
    assert plan.advice == ()
    assert (held.id, Unplanned.HELD) in plan.unplanned


def test_findings_about_tasks_are_gathered_by_group():
    built = a_cluster().topic("t", (1,), (2,)).group("a/b", member("m1", None, "t-0"), member("m2", "b", "t-1"))
    snapshot = built.snapshot()
    about_task = finding(FindingReason.MEMBER_WITHOUT_RACK, "task", "a/b/0_1/p1", task_of="a/b")
    gone = finding(FindingReason.MEMBER_WITHOUT_RACK, "task", "gone/0_1/p1", task_of="gone")
    plan = make_plan(snapshot, DetectionResult(findings=(about_task, gone)), LIMITS, None)
    assert [(a.subject, a.findings) for a in plan.advice] == [("a/b", (about_task.id,))]


def test_the_same_throttle_on_nine_brokers_is_one_advice_with_one_line():
    built = a_cluster().topic("t", (1,))
    brokers = (*range(1, 9), 10)
    built.broker_configs = {broker: {"leader.replication.throttled.rate": "1000"} for broker in brokers}
    left = [finding(FindingReason.THROTTLE_LEFT_BEHIND, "broker", str(broker)) for broker in brokers]
    advice = advised(planned(built, *left), ProposalReason.REMOVE_THROTTLE)
    assert advice.who == tuple(f"broker {broker}" for broker in brokers)
    assert (advice.subject_kind, advice.now) == ("cluster", "1000")
    assert advice.line == (
        "echo 1 2 3 4 5 6 7 8 10 | xargs -n 1 kafka-configs.sh --bootstrap-server host1:9092 --entity-type brokers "
        "--alter --delete-config leader.replication.throttled.rate --entity-name"
    )
    assert set(advice.findings) == {one.id for one in left}


def test_throttles_of_other_settings_are_other_advice():
    built = a_cluster().topic("t", (1,), leader_throttle="0:1").topic("u", (2,), leader_throttle="0:2")
    built.broker_configs = {n: {"leader.replication.throttled.rate": "1000"} for n in (1, 2)}
    left = [finding(FindingReason.THROTTLE_LEFT_BEHIND, "topic", name) for name in "tu"]
    left += [finding(FindingReason.THROTTLE_LEFT_BEHIND, "broker", name) for name in "12"]
    snapshot = built.snapshot()
    detection = DetectionResult(findings=tuple(left), assessments={})
    plan = make_plan(snapshot, detection, LIMITS, None)
    assert sorted(advice.who for advice in plan.advice) == [("broker 1", "broker 2"), ("topic t", "topic u")]
    proposals = propose(snapshot, plan, detection, LIMITS, None)
    assert len({proposal.id for proposal in proposals}) == len(proposals) == 2
    assert {proposal.sentence.partition(":")[0] for proposal in proposals} == {
        "Remove the throttles left behind on 2 brokers",
        "Remove the throttles left behind on 2 topics",
    }


def test_a_group_that_sends_no_rack_and_a_rack_without_brokers_is_one_advice():
    built = a_cluster().topic("t", (1,), (2,), (3,))
    built.group("g", member("m1", None, "t-0"), member("m2", "zone-9", "t-1"), member("m3", "c", "t-2"))
    advice = advised(planned(built), ProposalReason.SET_CLIENT_RACK)
    assert advice.who == ("client-m1", "client-m2")
    assert (advice.now, advice.line) == ("zone-9", "client.rack=<a|b|c>")
    assert advice.why.startswith("a member that sends no rack is assigned partitions without regard to racks")
    assert advice.why.endswith("; no broker is in rack zone-9, so none of their reads can be local")
    assert set(advice.findings) == {"member_without_rack:group/g", "member_in_no_brokers_rack:group/g"}


def test_roundrobin_of_kafka_python_is_told_of_the_drop_in_and_not_of_a_java_class():
    built = a_cluster().topic("t", (1,), (2,))
    members = (member("m1", "b", "t-0", client_id="kafka-python-3.0"), member("m2", "a", "t-1"))
    built.group("g", *members, assignor="roundrobin")
    advice = advised(planned(built), ProposalReason.CHANGE_ASSIGNOR)
    assert "assignors.clients.kafka_python import Strategy" in advice.line
