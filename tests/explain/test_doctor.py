"""The doctor says ok only of what was seen: each check by itself, and all of them when parts are hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from agent.explain.doctor import BEST_FIRST, CheckState, DoctorCheck, diagnose, risks
from agent.simulate.evaluation import StageEvaluation, evaluate
from agent.values.assessment import NotAssessed
from agent.values.finding import FindingReason, FindingSeverity
from agent.values.limits import Limits, ScopeLimits
from agent.values.memory import Memory
from agent.values.observation import GapCause, ObservationPart, PrincipalRights, RawMember
from agent.values.plan import Plan
from tests.builders import (
    SELECTOR,
    Answers,
    Run,
    an_observation,
    consumer,
    instance,
    process_id,
    reader,
    streams_member,
    subtopology,
)

LEADER_THROTTLE = "leader.replication.throttled.replicas"
Lessen = Callable[[Answers], object]


def looked(answers: Answers, limits: Limits | None = None) -> StageEvaluation:
    return evaluate(answers.at(), Memory(), limits or Limits())


def checks_of(answers: Answers, limits: Limits | None = None) -> dict[str, DoctorCheck]:
    return checks_in(looked(answers, limits))


def checks_in(seen: StageEvaluation) -> dict[str, DoctorCheck]:
    every = (*diagnose(seen.snapshot, seen.detection, seen.plan or Plan(), seen.limits), *risks(seen.snapshot))
    assert len({check.key for check in every}) == len(every)
    return {check.key: check for check in every}


def fine() -> Answers:
    """Three racks, replicas and readers spread, nothing wrong."""
    answers = an_observation(a=(1,), b=(2,), c=(3,)).topic(
        "orders", (1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 2, 3), (2, 3, 1), (3, 1, 2)
    )
    answers.group("readers", *(reader(f"m{n}", rack, f"orders-{n} orders-{n + 3}") for n, rack in enumerate("abc")))
    answers.topic("app-store-changelog", (1, 2, 3), (2, 3, 1))
    answers.streams(
        "app",
        instance(1, "a", {"0_0": "orders-0"}, {"0_1": "orders-1"}, sums={"0_0": -2}),
        instance(2, "b", {"0_1": "orders-1"}, {"0_0": "orders-0"}, sums={"0_1": -2}),
    )
    answers.says("app", process_id(1), "0_1", "standby", 0, at_s=0)
    return answers.says("app", process_id(2), "0_0", "standby", 0, at_s=0)


def test_a_world_in_which_all_is_well_is_ok_throughout() -> None:
    assert {check.state for check in checks_of(fine()).values()} == {CheckState.OK}


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
    answers = fine()
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
    answers = fine().broker(1, "a")
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
    check = checks_of(fine().selector("com.acme.Selector"))["reads go to the nearest replica"]
    assert check.state is CheckState.UNKNOWN
    assert check.sentence == "it is unknown whether replica.selector.class=com.acme.Selector looks at racks"


def test_an_assignor_of_the_users_own_is_not_known_to_look_at_racks() -> None:
    answers = fine().without_group("app").group("own", reader("m", "a", "orders-0"), assignor="acme")
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("own",))


def test_a_group_that_rebalances_now_is_not_ok_by_the_others() -> None:
    answers = fine().group("busy", reader("m", None, "orders-0"), state="PreparingRebalance")
    check = checks_of(answers)["clients send client.rack"]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("busy",))
    assert check.sentence == "group busy shows no racks or assignments of its members: rebalancing"


def test_what_the_settings_leave_out_counts_neither_as_seen_nor_as_hidden() -> None:
    limits = Limits(scope=ScopeLimits(exclude_groups=("*",), exclude_topics=("*",)))
    states = {check.key: check.state for check in checks_of(fine(), limits).values()}
    nothing = {key for key, state in states.items() if state is CheckState.NOTHING}
    assert nothing >= {"clients send client.rack", "replicas are spread over racks", "assignments are consistent"}


# --- in-sync replicas -------------------------------------------------------------------------------------------


IN_SYNC = "partitions have enough in-sync replicas"


def test_partitions_that_refuse_writes_are_a_fault_and_those_one_replica_before_it_a_risk() -> None:
    strict = fine().topic("strict", (1, 2), (2, 3), isr={0: (1,), 1: (2,)}, min_insync_replicas="2")
    check = checks_of(strict)[IN_SYNC]
    assert (check.state, check.who) == (CheckState.FAULT, ("strict",))
    assert check.sentence == (
        "strict has 2 of 2 partitions under min ISR; min.insync.replicas is 2: strict-0 and strict-1"
    )
    near = fine().topic("near", (1, 2, 3), isr={0: (1, 2)}, min_insync_replicas="2")
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
    answers = fine().topic("lost", (1,), (2,), offline=(1,))
    assert "1 of 2 partitions under min ISR (1 without a leader)" in checks_of(answers)[IN_SYNC].sentence
    answers.topic_configs = {}
    check = checks_of(answers)[IN_SYNC]
    assert check.state is CheckState.FAULT
    assert check.sentence == "lost has 1 of 2 partitions without a leader; min.insync.replicas is unknown: lost-0"


def test_min_isr_that_was_not_read_is_unknown_and_no_topic_is_nothing_to_check() -> None:
    unread = fine()
    del unread.topic_configs["orders"]
    check = checks_of(unread)[IN_SYNC]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("orders",))
    assert check.sentence == "min.insync.replicas of 1 topic (orders) was not read"
    hidden = an_observation().gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED)
    assert checks_of(hidden)[IN_SYNC].state is CheckState.UNKNOWN
    assert checks_of(an_observation())[IN_SYNC].state is CheckState.NOTHING


# --- a fault is a finding that is at least a warning ------------------------------------------------------------


def test_a_group_with_nothing_to_gain_is_no_fault_of_its_protocol() -> None:
    answers = fine().kip848("best", *(consumer(f"b{n}", rack, f"orders-{n}") for n, rack in enumerate("abc")))
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who, check.fixes) == (CheckState.OK, (), ())
    assert check.sentence.startswith("info: group best is assigned by the broker")
    assert check.tells, "it is worth reading"
    answers.topic("few", (1,), (2,))
    answers.group("old", reader("m", "b", "few-0"), reader("n", "a", "few-1"), assignor="roundrobin")
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who) == (CheckState.FAULT, ("old",))
    assert {name for fix in check.fixes for name in fix.who} == {"group old"}
    assert check.sentences[-1].startswith("info: group best is assigned by the broker")


def test_a_group_of_unknown_gain_is_neither_a_fault_nor_fine() -> None:
    answers = fine().topic("few", (1,), (2,))
    answers.group("silent", reader("m", None, "few-0"), reader("n", None, "few-1"))
    check = checks_of(answers)["assignors cost no local reads"]
    assert (check.state, check.who) == (CheckState.UNKNOWN, ("silent",))
    assert check.sentences[0] == "it is unknown whether group silent would gain from an assignor that looks at racks"
    assert [fix.lines for fix in check.fixes] == [("client.rack=<a|b|c>",)]


@pytest.mark.parametrize("severity", [FindingSeverity.WARNING, FindingSeverity.INFO])
def test_a_check_is_a_fault_only_with_a_finding_that_is_at_least_a_warning(severity: FindingSeverity) -> None:
    answers = fine().topic("orders", *[(1, 2)] * 6).kip848("new", consumer("m", "c", "orders-0 orders-1"))
    seen = looked(answers)
    graded = tuple(replace(finding, severity=severity) for finding in seen.detection.findings)
    checks = diagnose(seen.snapshot, replace(seen.detection, findings=graded), Plan(), seen.limits)
    faults = {check.key for check in checks if check.state is CheckState.FAULT}
    assert bool(faults) is (severity is FindingSeverity.WARNING)


def test_replicas_and_preferred_leaders_are_mended_by_a_proposal_that_is_named() -> None:
    answers = an_observation(a=(1, 4), b=(2, 5), c=(3, 6)).topic("crowded", *[(1, 4)] * 6)
    seen = looked(answers)
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
    assert known.sentences == ("no member was seen", "brokers: 2 by broker.rack")
    spelled = checks["racks have one spelling"]
    assert (spelled.state, spelled.name) == (CheckState.NOTHING, "racks have one spelling")


def test_every_state_has_its_place() -> None:
    assert set(BEST_FIRST) == set(CheckState)
    assert len(BEST_FIRST) == len(CheckState)


# --- who sees less never hears better ---------------------------------------------------------------------------


RACKS = st.sampled_from(["a", "b", "c", "C", None])


@st.composite
def worlds(draw: st.DrawFn) -> Answers:
    """Small clusters with anything wrong that a check is about."""
    answers = Answers()
    count = draw(st.integers(1, 4))
    for broker in range(1, count + 1):
        answers.broker(broker, draw(RACKS))
        if draw(st.integers(0, 5)) == 0:
            answers.broker_configs[broker]["leader.replication.throttled.rate"] = "1000"
    selector = draw(st.sampled_from([SELECTOR, SELECTOR, None, "com.acme.Selector"]))
    for configs in answers.broker_configs.values():
        if selector is None:
            configs.pop("replica.selector.class")
        else:
            configs["replica.selector.class"] = selector
    topics: list[str] = []
    for name in draw(st.sampled_from([(), ("t",), ("t", "u")])):
        lists = draw(
            st.lists(
                st.lists(st.integers(1, count), min_size=1, max_size=count, unique=True).map(tuple),
                min_size=1,
                max_size=6,
            )
        )
        throttle = {LEADER_THROTTLE.replace(".", "_"): "0:1"} if draw(st.integers(0, 4)) == 0 else {}
        answers.topic(name, *lists, min_insync_replicas=str(draw(st.integers(1, 2))), **throttle)
        topics += [f"{name}-{number}" for number in range(len(lists))]
    for name in ("g", "h") if topics else ():
        _group(name, topics, answers, draw)
    if len(topics) > 1 and draw(st.booleans()):
        held = {number: {f"0_{number}": topics[number]} for number in (0, 1)}
        answers.streams(
            "app",
            *(
                instance(n + 1, draw(RACKS), held[n], held[1 - n] if draw(st.booleans()) else {}, sums={f"0_{n}": -2})
                for n in (0, 1)
            ),
        )
    if topics and draw(st.integers(0, 4)) == 0:
        answers.moving(topics[0], (1, 2), (2,), (1,))
    return answers


def _group(name: str, topics: list[str], answers: Answers, draw: st.DrawFn) -> None:
    kind = draw(st.sampled_from(["none", "classic", "classic", "kip848", "hidden"]))
    reads: list[list[str]] = [[], []]
    for number, partition in enumerate(topics):
        reads[number % 2].append(partition)
    if draw(st.integers(0, 4)) == 0:
        reads[1].append(topics[0])
    if draw(st.integers(0, 5)) == 0:
        reads[0].append("t-99")
    racks = [draw(RACKS), draw(RACKS)]
    if kind == "kip848":
        answers.kip848(name, *(consumer(f"m{n}", racks[n], " ".join(reads[n])) for n in (0, 1)))
    elif kind != "none":
        members: list[RawMember] = []
        for number in (0, 1):
            version = draw(st.sampled_from([3, 3, 1, 0]))
            rack = racks[number] if version == 3 else None
            member = reader(f"m{number}", rack, " ".join(reads[number]), version=version)
            members.append(member._replace(metadata=b"\x00") if draw(st.integers(0, 7)) == 0 else member)
        assignor = draw(st.sampled_from(["range", "cooperative-sticky", "roundrobin", "acme"]))
        state = "PreparingRebalance" if kind == "hidden" else "Stable"
        answers.group(name, *members, assignor=assignor, state=state)


def _no_topics(answers: Answers) -> None:
    answers.topics, answers.topic_configs, answers.ends = {}, {}, {}


def _no_groups(answers: Answers) -> None:
    answers.groups, answers.listed = {}, {}


def _no_broker_racks(answers: Answers) -> None:
    answers.brokers = {broker: row._replace(rack=None) for broker, row in answers.brokers.items()}


def _no_brokers(answers: Answers) -> None:
    answers.brokers = {}


def _no_broker_configs(answers: Answers) -> None:
    answers.broker_configs = {}


def _no_topic_configs(answers: Answers) -> None:
    answers.topic_configs = {}


def _no_moves(answers: Answers) -> None:
    answers.moves = {}


def _nothing(_answers: Answers) -> None:
    """The part comes with no data that a check looks at."""


WHOLE: dict[ObservationPart, Lessen] = {
    ObservationPart.TOPICS: _no_topics,
    ObservationPart.GROUPS: _no_groups,
    ObservationPart.BROKERS: _no_brokers,
    ObservationPart.BROKER_CONFIGS: _no_broker_configs,
    ObservationPart.TOPIC_CONFIGS: _no_topic_configs,
    ObservationPart.REASSIGNMENTS: _no_moves,
    ObservationPart.LOG_DIRS: _nothing,
    ObservationPart.END_OFFSETS: lambda answers: answers.ends.clear(),
    ObservationPart.RIGHTS: lambda answers: setattr(answers, "rights", PrincipalRights()),
}


def refused(draw: st.DrawFn, answers: Answers) -> Iterable[tuple[str, Answers]]:
    """The same world with a part, or one thing of it, that did not answer and is named by a gap."""
    part = draw(st.sampled_from(sorted(WHOLE)))
    cause = draw(st.sampled_from([GapCause.NOT_ALLOWED, GapCause.TIMED_OUT, GapCause.UNSUPPORTED]))
    less = deepcopy(answers)
    WHOLE[part](less)
    yield f"{part}: {cause}", less.gap(part, cause)
    for kind, names in (("brokers", answers.brokers), ("topics", answers.topics), ("groups", answers.groups)):
        if names:
            name = draw(st.sampled_from(sorted(names, key=str)))
            less = deepcopy(answers)
            del getattr(less, kind)[name]
            if kind == "groups":
                del less.listed[str(name)]
            yield f"{kind} {name}: {cause}", less.gap(ObservationPart[kind.upper()], cause, str(name))


def silenced(answers: Answers) -> Iterable[tuple[str, Answers]]:
    """The same world where a part says of itself that it is empty."""
    for lessen in (_no_topics, _no_groups, _no_broker_racks, _no_broker_configs, _no_topic_configs):
        less = deepcopy(answers)
        lessen(less)
        yield lessen.__name__, less


def glanced(answers: Answers) -> StageEvaluation:
    """A look without planning."""
    return evaluate(answers.at(), Memory(), Limits(), planning=False)


def better(
    before: dict[str, DoctorCheck], after: dict[str, DoctorCheck], floor: CheckState, *, no_tasks: bool
) -> list[str]:
    """The checks that reassure more than they did, and more than what is not seen may.

    Where a cluster says with full rights that it has no application, no task can be at risk.
    """
    return [
        f"{key}: {before[key].state} ({before[key].sentence}) -> {check.state} ({check.sentence})"
        for key, check in after.items()
        if key in before
        and check.state.rank < min(before[key].state.rank, floor.rank)
        and not (no_tasks and key.startswith("losing rack "))
    ]


@pytest.mark.timeout(1_800)  # at night it sees 5,000 worlds, each a dozen times
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_who_sees_less_never_hears_better(data: st.DataObject) -> None:
    answers = data.draw(worlds())
    full = glanced(answers)
    before = checks_in(full)
    event(f"states: {sorted({check.state.value for check in before.values()})}")
    hidden = [(what, less, CheckState.UNKNOWN) for what, less in refused(data.draw, answers)]
    gone = [(what, less, CheckState.NOTHING) for what, less in silenced(answers)]
    for what, less, floor in (*hidden, *gone):
        seen = glanced(less)
        assert not better(before, checks_in(seen), floor, no_tasks=what == _no_groups.__name__), what
        _no_group_gets_to_its_optimum(full, seen, what)


FOLLOWS_FROM_LESS = {
    FindingReason.RIGHTS_MISSING,
    FindingReason.PART_MISSING,
    FindingReason.STATE_UNKNOWN,
    FindingReason.BROKER_RACK_MISSING,  # of a broker that holds replicas and did not answer
    FindingReason.RACK_AWARENESS_OFF,  # of a group that may have something to gain after all
}
"""What may be found because something was not seen; of all else a gap makes no finding."""
BY_OLD_AND_NEW = {FindingReason.REPLICAS_SHARE_RACK, FindingReason.LEADER_SKEW, FindingReason.AT_MIN_ISR}
"""Judged by old and new replicas together where reassignments are hidden; the guard holds all moves then."""


@pytest.mark.timeout(1_800)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_is_not_seen_makes_no_other_finding(data: st.DataObject) -> None:
    answers = data.draw(worlds())
    known = {finding.id for finding in glanced(answers).detection.findings}
    for what, less in refused(data.draw, answers):
        new = [one for one in glanced(less).detection.findings if one.id not in known]
        event(f"new: {sorted({one.reason.name for one in new})}")
        allowed = FOLLOWS_FROM_LESS | (BY_OLD_AND_NEW if what.startswith(ObservationPart.REASSIGNMENTS) else set())
        assert {one.reason for one in new} <= allowed, f"{what}: {[one.sentence for one in new]}"


def _no_group_gets_to_its_optimum(full: StageEvaluation, less: StageEvaluation, what: str) -> None:
    for name, assessment in less.detection.assessments.items():
        known = full.detection.assessments.get(name)
        assert not assessment.at_optimum or (known is not None and known.at_optimum), f"{what}: {name}"


# --- brokers that are absent ------------------------------------------------------------------------------------


def test_an_absent_broker_is_told_of_at_once_and_is_a_fault_once_it_has_lasted() -> None:
    answers = fine()
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
    checks = checks_of(fine().without_broker(3))
    assert checks["brokers with replicas are live"].state is CheckState.SEEN_ONCE
    racks = checks["brokers have a rack"]
    assert (racks.state, racks.sentence) == (CheckState.UNKNOWN, "broker 3 is absent, its rack was never seen")
    assert racks.line is None


def test_members_of_rackwise_itself_and_of_excluded_groups_are_not_counted_as_unknown() -> None:
    answers = fine()
    answers.group("rackwise-leader", reader("agent", None, "")).group("left-out", reader("m", None, "orders-0"))
    seen = looked(answers, Limits(scope=ScopeLimits(exclude_groups=("left-out",))))
    known = checks_in(seen)["racks are known"]
    assert [one for one in known.sentences if one.startswith("members")] == [
        one for one in checks_of(fine())["racks are known"].sentences if one.startswith("members")
    ]
    why = {name: seen.detection.assessments[name].why_not for name in ("rackwise-leader", "left-out")}
    assert why == {"rackwise-leader": NotAssessed.OWN, "left-out": NotAssessed.EXCLUDED}
