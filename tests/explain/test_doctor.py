"""The doctor says ok only of what was seen: each check by itself."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest

from agent.explain.doctor import BEST_FIRST, CheckState, DoctorCheck, diagnose
from agent.values.assessment import NotAssessed
from agent.values.finding import FindingReason, FindingSeverity
from agent.values.limits import Limits, ScopeLimits
from agent.values.memory import Memory
from agent.values.observation import GapCause, ObservationPart, PrincipalRights
from agent.values.plan import Plan
from tests.builders import (
    SELECTOR,
    Answers,
    Run,
    an_observation,
    consumer,
    instance,
    reader,
    streams_member,
    subtopology,
)
from tests.explain.doctor_checks import LEADER_THROTTLE, checks_in, checks_of, evaluated, healthy_cluster


def test_a_world_in_which_all_is_well_is_ok_throughout() -> None:
    assert {check.state for check in checks_of(healthy_cluster()).values()} == {CheckState.OK}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(
            an_observation(),
            {
                "brokers have a rack": CheckState.OK,
                "reads go to the nearest replica": CheckState.OK,
                "rights suffice": CheckState.OK,
            },
            id="an empty cluster: brokers are seen, and nothing else",
        ),
        pytest.param(
            an_observation(a=(1, 2, 3)).topic("t", (1, 2, 3)).group("g", reader("m", "a", "t-0")),
            {
                "brokers with replicas are live": CheckState.OK,
                "partitions have enough in-sync replicas": CheckState.OK,
                "brokers have a rack": CheckState.OK,
                "racks are known": CheckState.OK,
                "racks have one spelling": CheckState.OK,
                "assignments are consistent": CheckState.OK,
                "no throttles are left over": CheckState.OK,
                "metadata of group members can be read": CheckState.OK,
                "rights suffice": CheckState.OK,
                "losing rack a": CheckState.RISK,
            },
            id="one rack: nothing is nearer than something else, and losing it stops everything",
        ),
    ],
)
def test_what_is_not_there_is_not_ok(answers: Answers, expected: dict[str, CheckState]) -> None:
    checks = checks_of(answers)
    assert {key: check.state for key, check in checks.items() if check.state is not CheckState.NOTHING} == expected
    assert all(check.sentence for check in checks.values() if check.key != "racks are known")


def test_a_world_that_may_not_be_seen_has_no_ok_but_for_its_brokers() -> None:
    hidden = an_observation()
    hidden.broker_configs = {}
    hidden.rights = PrincipalRights(cluster_describe=False, cluster_describe_configs=False)
    for part in (
        ObservationPart.TOPICS,
        ObservationPart.GROUPS,
        ObservationPart.BROKER_CONFIGS,
        ObservationPart.REASSIGNMENTS,
    ):
        hidden.gap(part, GapCause.NOT_ALLOWED)
    states = {check.key: check.state for check in checks_of(hidden).values()}
    assert {key for key, state in states.items() if state is CheckState.OK} == {"brokers have a rack"}
    assert {key for key, state in states.items() if state is CheckState.FAULT} == {"rights suffice"}
    assert states["losing rack a"] is CheckState.UNKNOWN


def test_throttles_that_are_set_while_nothing_moves_are_seen_once_by_one_look() -> None:
    answers = healthy_cluster()
    for number in range(12):
        answers.topic(f"t{number:02}", (1, 2, 3), **{LEADER_THROTTLE.replace(".", "_"): "0:1"})
    check = checks_of(answers)["no throttles are left over"]
    assert check.state is CheckState.SEEN_ONCE
    assert check.sentence == (
        "12 throttles are set and no reassignment runs (topic/t00, topic/t01, topic/t02 and 9 more), seen once: "
        "a throttle that is still set after 120 s counts as left over"
    )
    assert len(check.who) == 12
    answers.moving("orders-0", (1, 2, 3), (3,), ())
    busy = answers.moving("t00-0", (1, 2, 3), (3,), ())
    assert checks_of(busy)["no throttles are left over"].sentence.startswith("11 throttles are set")
    hidden = busy.gap(ObservationPart.REASSIGNMENTS, GapCause.NOT_ALLOWED)
    assert checks_of(hidden)["no throttles are left over"].state is CheckState.UNKNOWN, "something may be moving"


def test_a_throttle_that_outlasts_the_grace_is_a_fault_and_one_that_may_be_meant_a_risk() -> None:
    answers = healthy_cluster().broker(1, "a")
    answers.broker_configs[1]["leader.replication.throttled.rate"] = "1000"
    run = Run().look(answers.at(0)).look(answers.at(60))
    soon = diagnose(run.snapshot, run.detection, Plan(), memory=run.memory)
    (check,) = [one for one in soon if one.key == "no throttles are left over"]
    assert (check.state, check.who) == (CheckState.SEEN_ONCE, ("broker/1",))
    assert "seen for 60 s" in check.sentence
    run.look(answers.at(130))
    (late,) = [one for one in diagnose(run.snapshot, run.detection, Plan()) if one.key == "no throttles are left over"]
    assert late.state is CheckState.RISK, "the rate of a broker alone throttles nothing"
    answers.topic("slow", (1, 2, 3), **{LEADER_THROTTLE.replace(".", "_"): "0:1"})
    run.look(answers.at(140)).look(answers.at(280))
    (late,) = [one for one in diagnose(run.snapshot, run.detection, Plan()) if one.key == "no throttles are left over"]
    assert late.state is CheckState.FAULT


def test_the_same_of_nine_brokers_is_one_sentence_and_one_line() -> None:
    answers = Answers()
    for broker in range(1, 10):
        answers.broker(broker, None)
    check = checks_of(answers)["brokers have a rack"]
    assert check.sentence == (
        "broker 1 has no broker.rack, and no other broker has one: set broker.rack (the same for brokers 2 to 9)"
    )
    assert check.line == "broker.rack=<rack>"
    assert check.who == tuple("123456789")
    selector = checks_of(an_observation(a=(1, 2, 3), b=(4, 5, 6), c=(7, 8, 10)).selector(None))
    one = selector["reads go to the nearest replica"]
    assert one.sentence.startswith("9 brokers (1 to 8 and 10) let consumers read from leaders only")
    assert one.who == tuple(f"broker {number}" for number in (*range(1, 9), 10))
    assert one.line == f"replica.selector.class={SELECTOR}"


def test_each_cause_has_its_own_fix_and_names_all_groups_that_share_it() -> None:
    topics = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 2), (2, 3), (3, 1))
    for name in ("new", "newer"):
        topics.kip848(name, consumer("m1", "a", "orders-1"), consumer("m2", "b", "orders-0 orders-2"))
    topics.group("old", reader("m", "b", "orders-2 orders-0"), reader("n", "a", "orders-1"), assignor="roundrobin")
    topics.group("silent", reader("m", None, "orders-0 orders-1 orders-2"))
    topics.streams("app", instance(1, "a", {"0_1": "orders-1"}), instance(2, "b", {"0_2": "orders-2"}))
    check = checks_of(topics)["assignors cost no local reads"]
    assert check.state is CheckState.FAULT
    cooperative = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    assert {fix.lines: set(fix.who) for fix in check.fixes} == {
        ("group.protocol=classic",): {"group new", "group newer"},
        (f"partition.assignment.strategy={cooperative}",): {"group old"},
        ("client.rack=<a|b|c>",): {"group silent"},
        ("rack.aware.assignment.strategy=min_traffic",): {"group app"},
    }
    assert check.line is None, "no single line mends all of it"


def test_a_rack_with_a_line_feed_is_no_setting_of_its_own() -> None:
    topics = an_observation(**{"a": (1,), "b": (2,), "c\nsecurity.protocol=PLAINTEXT": (3,)})
    topics.topic("orders", (1, 2), (2, 3), (3, 1)).group("silent", reader("m", None, "orders-0 orders-1 orders-2"))
    (fix,) = checks_of(topics)["clients send client.rack"].fixes
    assert fix.lines == ("client.rack=<a|b|c\nsecurity.protocol=PLAINTEXT>",)


def test_another_protocol_without_client_rack_is_no_fix() -> None:
    topics = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 2), (2, 3), (3, 1)).selector(SELECTOR)
    topics.kip848("silent", consumer("m1", None, "orders-1"), consumer("m2", None, "orders-0 orders-2"))
    topics.kip848("sends", consumer("m1", "a", "orders-1"), consumer("m2", "b", "orders-0 orders-2"))
    fixes = [
        fix for check in checks_of(topics).values() for fix in check.fixes if "group.protocol=classic" in fix.lines
    ]
    assert {fix.who: fix.lines for fix in fixes} == {
        ("group silent",): ("group.protocol=classic", "client.rack=<a|b|c>"),
        ("group sends",): ("group.protocol=classic",),
    }


def test_a_streams_group_of_the_broker_needs_both_lines() -> None:
    topics = an_observation(a=(1,), b=(2,), c=(3,)).topic("orders", (1, 2), (2, 3), (3, 1))
    topics.kip1071(
        "next",
        streams_member(1, "a", active="0_1"),
        streams_member(2, "b", active="0_2"),
        subtopologies=(subtopology("0", "orders"),),
    )
    (fix,) = checks_of(topics)["assignors cost no local reads"].fixes
    assert fix.lines == ("group.protocol=classic", "rack.aware.assignment.strategy=min_traffic")


def test_findings_whose_figures_differ_are_not_the_same() -> None:
    """Also where the figure of each is the number of its broker."""
    answers, run = Answers(), Run()
    for broker in (3, 4):
        answers.broker(broker, None)
    run.look(answers.at())
    told = tuple(
        replace(one, sentence=f"broker {one.subject.name} has no rack in {one.subject.name} looks")
        for one in run.detection.findings
        if one.reason is FindingReason.BROKER_RACK_MISSING
    )
    checks = diagnose(run.snapshot, replace(run.detection, findings=told), Plan())
    check = next(one for one in checks if one.key == "brokers have a rack")
    assert check.sentence == "broker 3 has no rack in 3 looks; broker 4 has no rack in 4 looks"


def test_a_selector_that_is_not_kafkas_own_is_not_known_to_be_rack_aware() -> None:
    check = checks_of(healthy_cluster().selector("com.acme.Selector"))["reads go to the nearest replica"]
    assert check.state is CheckState.UNKNOWN
    assert check.sentence == "it is unknown whether replica.selector.class=com.acme.Selector looks at racks"


def test_an_assignor_of_the_users_own_is_not_known_to_look_at_racks() -> None:
    answers = healthy_cluster().without_group("app").group("own", reader("m", "a", "orders-0"), assignor="acme")
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("own",))


def test_a_group_that_rebalances_now_is_not_ok_by_the_others() -> None:
    answers = healthy_cluster().group("busy", reader("m", None, "orders-0"), state="PreparingRebalance")
    check = checks_of(answers)["clients send client.rack"]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("busy",))
    assert check.sentence == "group busy shows no racks or assignments of its members: rebalancing"


def test_what_the_settings_leave_out_counts_neither_as_seen_nor_as_hidden() -> None:
    limits = Limits(scope=ScopeLimits(exclude_groups=("*",), exclude_topics=("*",)))
    states = {check.key: check.state for check in checks_of(healthy_cluster(), limits).values()}
    nothing = {key for key, state in states.items() if state is CheckState.NOTHING}
    assert nothing >= {"clients send client.rack", "replicas are spread over racks", "assignments are consistent"}


# --- in-sync replicas -------------------------------------------------------------------------------------------


IN_SYNC = "partitions have enough in-sync replicas"


def test_partitions_that_refuse_writes_are_a_fault_and_those_one_replica_before_it_a_risk() -> None:
    strict = healthy_cluster().topic("strict", (1, 2), (2, 3), isr={0: (1,), 1: (2,)}, min_insync_replicas="2")
    check = checks_of(strict)[IN_SYNC]
    assert (check.state, check.who) == (CheckState.FAULT, ("strict",))
    assert check.sentence == (
        "strict has 2 of 2 partitions under min ISR; min.insync.replicas is 2: strict-0 and strict-1"
    )
    near = healthy_cluster().topic("near", (1, 2, 3), isr={0: (1, 2)}, min_insync_replicas="2")
    check = checks_of(near)[IN_SYNC]
    assert (check.state, check.who) == (CheckState.RISK, ("near",))
    assert "at min ISR: with one in-sync replica less, writes with acks=all stop" in check.sentence
    both = strict.topic("strict", (1, 2), (1, 2, 3), isr={0: (1,), 1: (1, 2)}, min_insync_replicas="2")
    check = checks_of(both)[IN_SYNC]
    assert check.state is CheckState.FAULT
    assert [sentence.split(";")[0] for sentence in check.sentences] == [
        "strict has 1 of 2 partitions under min ISR",
        "strict has 1 of 2 partitions at min ISR: with one in-sync replica less, writes with acks=all stop",
    ]


def test_a_partition_without_a_leader_is_a_fault_whether_or_not_its_min_isr_was_read() -> None:
    answers = healthy_cluster().topic("lost", (1,), (2,), offline=(1,))
    assert "1 of 2 partitions under min ISR (1 without a leader)" in checks_of(answers)[IN_SYNC].sentence
    answers.topic_configs = {}
    check = checks_of(answers)[IN_SYNC]
    assert check.state is CheckState.FAULT
    assert check.sentence == "lost has 1 of 2 partitions without a leader; min.insync.replicas is unknown: lost-0"


def test_min_isr_that_was_not_read_is_unknown_and_no_topic_is_nothing_to_check() -> None:
    unread = healthy_cluster()
    del unread.topic_configs["orders"]
    check = checks_of(unread)[IN_SYNC]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("orders",))
    assert check.sentence == "min.insync.replicas of 1 topic (orders) was not read"
    hidden = an_observation().gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED)
    assert checks_of(hidden)[IN_SYNC].state is CheckState.UNKNOWN
    assert checks_of(an_observation())[IN_SYNC].state is CheckState.NOTHING


# --- a fault is a finding that is at least a warning ------------------------------------------------------------


def test_a_group_with_nothing_to_gain_is_no_fault_of_its_protocol() -> None:
    answers = healthy_cluster().kip848(
        "best", *(consumer(f"b{n}", rack, f"orders-{n}") for n, rack in enumerate("abc"))
    )
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who, check.fixes) == (CheckState.OK, (), ())
    assert check.sentence.startswith("info: group best is assigned by the broker")
    assert check.always_shown, "it is worth reading"
    answers.topic("few", (1,), (2,))
    answers.group("old", reader("m", "b", "few-0"), reader("n", "a", "few-1"), assignor="roundrobin")
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who) == (CheckState.FAULT, ("old",))
    assert {name for fix in check.fixes for name in fix.who} == {"group old"}
    assert check.sentences[-1].startswith("info: group best is assigned by the broker")


def test_a_group_of_unknown_gain_is_neither_a_fault_nor_fine() -> None:
    answers = healthy_cluster().topic("few", (1,), (2,))
    answers.group("silent", reader("m", None, "few-0"), reader("n", None, "few-1"))
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("silent",))
    assert check.sentences[0] == "it is unknown whether group silent would gain from an assignor that looks at racks"
    assert [fix.lines for fix in check.fixes] == [("client.rack=<a|b|c>",)]


@pytest.mark.parametrize("severity", [FindingSeverity.WARNING, FindingSeverity.INFO])
def test_a_check_is_a_fault_only_with_a_finding_that_is_at_least_a_warning(severity: FindingSeverity) -> None:
    answers = healthy_cluster().topic("orders", *[(1, 2)] * 6).kip848("new", consumer("m", "c", "orders-0 orders-1"))
    seen = evaluated(answers)
    graded = tuple(replace(finding, severity=severity) for finding in seen.detection.findings)
    checks = diagnose(seen.snapshot, replace(seen.detection, findings=graded), Plan(), seen.limits)
    faults = {check.key for check in checks if check.state is CheckState.FAULT}
    assert bool(faults) is (severity is FindingSeverity.WARNING)


def test_replicas_and_preferred_leaders_are_mended_by_a_proposal_that_is_named() -> None:
    answers = an_observation(a=(1, 4), b=(2, 5), c=(3, 6)).topic("crowded", *[(1, 4)] * 6)
    seen = evaluated(answers)
    checks = diagnose(seen.snapshot, seen.detection, seen.plan or Plan(), seen.limits, proposals=seen.proposals)
    spread = next(check for check in checks if check.key == "replicas are spread over racks")
    (moving,) = [one.id for one in seen.proposals if "replicas_share_rack:topic/crowded" in one.findings]
    assert [(fix.who, fix.lines) for fix in spread.fixes] == [(("topic crowded",), (f"rackwise plan  # {moving}",))]
    skewed = checks_of(an_observation(a=(1,), b=(2,), c=(3,)).topic("views", *[(1, 2, 3)] * 6))
    leaders = skewed["preferred leaders are spread over racks"]
    assert leaders.state is CheckState.RISK, "status has it as info"
    assert [fix.lines for fix in leaders.fixes] == [("rackwise plan",)]


def test_a_check_keeps_its_name_whatever_its_state() -> None:
    checks = checks_of(an_observation(a=(1,), b=(2,)).topic("t", (1, 2)))
    known = checks["racks are known"]
    assert (known.state, known.name) == (CheckState.NOTHING, "racks are known")
    assert known.sentences == (
        "the racks of all brokers are known, and no member was seen",
        "brokers: 2 by broker.rack",
    )
    spelled = checks["racks have one spelling"]
    assert (spelled.state, spelled.name) == (CheckState.NOTHING, "racks have one spelling")


def test_every_state_has_its_place() -> None:
    assert set(BEST_FIRST) == set(CheckState)
    assert len(BEST_FIRST) == len(CheckState)


# --- brokers that are absent ------------------------------------------------------------------------------------


def test_an_absent_broker_is_told_of_at_once_and_is_a_fault_once_it_has_lasted() -> None:
    answers = healthy_cluster()
    run = Run().look(answers.at(0))
    gone = deepcopy(answers).without_broker(3)

    def there(run: Run, memory: Memory) -> DoctorCheck:
        checks = diagnose(run.snapshot, run.detection, Plan(), run.limits, memory)
        return next(check for check in checks if check.key == "brokers with replicas are live")

    before = run.memory
    check = there(run.look(gone.at(10)).look(gone.at(22)), before)
    assert check.state is CheckState.SEEN_ONCE
    assert check.sentence.startswith("broker 3 has been absent for 12 s; it holds 8 replicas")
    assert check.who == ("broker 3",)
    check = there(run.look(gone.at(1_810)), before)
    assert check.state is CheckState.FAULT
    assert check.sentence.startswith("broker 3 has been absent for 30 min; it holds 8 replicas")


def test_one_look_at_an_absent_broker_is_no_fault_and_asks_no_rack_of_it() -> None:
    checks = checks_of(healthy_cluster().without_broker(3))
    assert checks["brokers with replicas are live"].state is CheckState.SEEN_ONCE
    racks = checks["brokers have a rack"]
    assert (racks.state, racks.sentence) == (CheckState.UNKNOWN, "broker 3 is absent, its rack was never seen")
    assert racks.line is None


def test_members_of_rackwise_itself_and_of_excluded_groups_are_not_counted_as_unknown() -> None:
    answers = healthy_cluster()
    answers.group("rackwise-leader", reader("agent", None, "")).group("left-out", reader("m", None, "orders-0"))
    seen = evaluated(answers, Limits(scope=ScopeLimits(exclude_groups=("left-out",))))
    known = checks_in(seen)["racks are known"]
    assert [one for one in known.sentences if one.startswith("members")] == [
        one for one in checks_of(healthy_cluster())["racks are known"].sentences if one.startswith("members")
    ]
    why = {name: seen.detection.assessments[name].why_not for name in ("rackwise-leader", "left-out")}
    assert why == {"rackwise-leader": NotAssessed.OWN, "left-out": NotAssessed.EXCLUDED}
