"""Explanations: every rule about a subject with yes, no or wait, and the numbers behind it."""

from __future__ import annotations

import pytest

from agent.detect.find import detect
from agent.explain.explain import _unchanged, explain, facts_of, label
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.simulate.evaluation import evaluate
from agent.values.assessment import DetectionResult
from agent.values.finding import SubjectId
from agent.values.limits import Limits, ScopeLimits
from agent.values.memory import Memory
from agent.values.plan import ExplainedRule, Plan, RuleAnswer, Unplanned
from agent.values.snapshot import GroupKind, OtherGroup
from tests.builders import an_observation
from tests.plan.test_placements import share_finding
from tests.plan.test_triggers import copy, warming
from tests.snapshots import NOW_MS, Builder, a_cluster, member, tp

LIMITS = Limits()


def explained(subject: str, built: Builder, *extra: object, limits: Limits = LIMITS) -> tuple[ExplainedRule, ...]:
    snapshot = built.snapshot()
    detection = detect(snapshot, Memory(), limits, None)
    detection = DetectionResult(findings=(*detection.findings, *extra), assessments=detection.assessments)
    plan = make_plan(snapshot, detection, limits, None)
    proposals = propose(snapshot, plan, detection, limits, None)
    if subject == "the proposal":
        (subject,) = [proposal.id for proposal in proposals]
    return explain(subject, snapshot, detection, plan, proposals, limits)


def row(rows: tuple[ExplainedRule, ...], about: str, rule: str) -> ExplainedRule:
    found = [one for one in rows if (one.about, one.rule) == (about, rule)]
    assert len(found) == 1, f"one row {about!r} {rule!r}, but\n" + "\n".join(map(str, rows))
    return found[0]


def shared() -> Builder:
    return a_cluster(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4), (2, 3))


def swapped(**group: object) -> Builder:
    built = a_cluster().topic("t", (1,), (2,))
    return built.group("g", member("m1", "b", "t-0"), member("m2", "a", "t-1"), **group)  # type: ignore[arg-type]


# --- topics ---------------------------------------------------------------------------------------------------


def test_a_topic_tells_what_each_partition_lacks_and_what_is_planned():
    rows = explained("topic/t", shared())
    assert row(rows, "topic/t", "replicas share a rack").answer is RuleAnswer.FOUND
    spread = row(rows, "t-0", "spread over racks")
    assert spread.answer is RuleAnswer.NO
    assert spread.sentence == (
        "its replicas are on brokers 1 (rack a), 4 (rack a): 2 in rack a, while racks b and c could take one"
    )
    assert row(rows, "t-1", "spread over racks").answer is RuleAnswer.YES
    assert row(rows, "t-0", "planned").sentence.startswith("brokers 1, 4 -> ")
    assert row(rows, "t-1", "planned") == ExplainedRule("t-1", "planned", RuleAnswer.NO, "nothing is planned for it")


def test_a_topic_that_is_named_like_a_partition_is_not_explained_with_it() -> None:
    snapshot = shared().topic("t-1", (1, 4), (2, 3)).snapshot()
    detection = detect(snapshot, Memory(), LIMITS, None)
    plan = Plan(unplanned=((SubjectId("topic", "t-1"), Unplanned.CAPPED), (tp("t-1"), Unplanned.RUNNING)))

    def unplanned(subject: str) -> list[tuple[str, str]]:
        rows = explain(subject, snapshot, detection, plan, (), LIMITS)
        return [(one.about, one.sentence) for one in rows if one.about == "topic/t-1" and one.rule == "planned"]

    assert unplanned("topic/t") == [("topic/t-1", Unplanned.RUNNING.value)]
    assert unplanned("topic/t-1") == [("topic/t-1", Unplanned.CAPPED.value)]


def test_a_partition_tells_every_broker_against_every_rule():
    built = shared().broker(5, "b", cordoned=True).broker(6, None).broker(7, "c", fenced=True, alive=False)
    rows = explained("topic/t/0", built)
    assert {r.about for r in rows if " on broker " in r.about} == {f"t-0 on broker {b}" for b in range(1, 8)}
    assert row(rows, "t-0 on broker 1", "holds it").answer is RuleAnswer.YES
    assert row(rows, "t-0 on broker 1", "rack has room").sentence == "rack a holds 2 replicas of it, the fullest rack 2"
    assert row(rows, "t-0 on broker 5", "not cordoned").answer is RuleAnswer.NO
    assert row(rows, "t-0 on broker 6", "rack known").answer is RuleAnswer.NO
    assert row(rows, "t-0 on broker 7", "unfenced").answer is RuleAnswer.WAIT
    assert row(rows, "t-0 on broker 7", "alive").answer is RuleAnswer.NO
    chosen = [r for r in rows if r.rule == "chosen" and "gets a replica" in r.sentence]
    assert len(chosen) == 1
    assert row(rows, chosen[0].about, "rack has room").sentence.endswith("one more helps")


@pytest.mark.parametrize(
    ("built", "extra", "about", "rule", "answer"),
    [
        pytest.param(
            shared().moving("t-0", (1, 4), (), ()), (), "t-0", "no reassignment runs", RuleAnswer.WAIT,
            id="a running reassignment passes",
        ),
        pytest.param(
            shared().broker(4, None), (), "t-0", "all racks known", RuleAnswer.NO, id="an unknown rack does not pass",
        ),
        pytest.param(
            shared(), (share_finding("t", held=True, detail="held"),), "replicas_share_rack:topic/t:held", "planned",
            RuleAnswer.WAIT, id="a held finding passes",
        ),
    ],
)  # fmt: skip
def test_why_a_partition_is_not_moved(built, extra, about, rule, answer):
    assert row(explained("topic/t", built, *extra), about, rule).answer is answer


def test_an_excluded_topic_says_so():
    rows = explained("topic/t", shared(), limits=Limits(scope=ScopeLimits(exclude_topics=("t",))))
    assert row(rows, "topic/t", "not excluded by settings") == ExplainedRule(
        "topic/t", "not excluded by settings", RuleAnswer.NO, "excluded by the settings"
    )


# --- groups ---------------------------------------------------------------------------------------------------


def test_a_group_tells_its_locality_its_rules_and_each_read():
    rows = explained("group/g", swapped())
    assert row(rows, "group/g", "as local as possible by Kafka's rule (a replica in the rack)").sentence == (
        "0 of 2 reads are local now, 2 at best"
    )  # fmt: skip
    assert row(rows, "group/g", "at its optimum").sentence == (
        "2 reads cross racks now, 0 at the optimum (proven), which moves 2 partitions"
    )  # fmt: skip
    for rule in (
        "classic group",
        "stable",
        "keeps partitions in a rebalance",
        "assignor looks at racks",
        "racks known",
    ):
        assert row(rows, "group/g", rule).answer is RuleAnswer.YES
    assert row(rows, "group/g", "gain above the threshold").sentence == (
        "the optimum makes 2 more of 2 reads local by Kafka's rule; the least gain is 1 read and 5 % of them"
    )  # fmt: skip
    assert row(rows, "group/g", "rebalance planned").answer is RuleAnswer.YES
    assert row(rows, "m1 t-0", "local") == ExplainedRule(
        "m1 t-0", "local", RuleAnswer.NO, "reader in rack b, replicas in rack a; the optimum gives it to m2"
    )


@pytest.mark.parametrize(
    ("built", "rule", "answer"),
    [
        pytest.param(swapped(assignor="range"), "keeps partitions in a rebalance", RuleAnswer.NO, id="eager"),
        pytest.param(swapped(assignor="roundrobin"), "assignor looks at racks", RuleAnswer.NO, id="blind to racks"),
        pytest.param(swapped(state="PreparingRebalance"), "stable", RuleAnswer.WAIT, id="rebalancing passes"),
        pytest.param(swapped(kind=GroupKind.CONSUMER), "classic group", RuleAnswer.NO, id="KIP-848"),
        pytest.param(
            swapped().group("g", member("m1", None, "t-0"), member("m2", "a", "t-1")), "racks known", RuleAnswer.NO,
            id="a member without rack",
        ),
    ],
)  # fmt: skip
def test_the_rule_that_stands_against_a_rebalance_says_so(built, rule, answer):
    rows = explained("group/g", built)
    assert row(rows, "group/g", rule).answer is answer
    assert row(rows, "group/g", "rebalance planned").answer is RuleAnswer.NO


def test_a_reader_of_unknown_rack_is_unknown():
    built = swapped().group("g", member("m1", None, "t-0"), member("m2", "a", "t-1"))
    assert row(explained("group/g", built), "m1 t-0", "local").answer is RuleAnswer.UNKNOWN


def test_what_a_rebalancing_group_does_not_show_is_unknown() -> None:
    """Its members' subscriptions and its protocol are shown in state Stable alone."""
    rows = explained("group/g", swapped(state="PreparingRebalance", hidden=True, assignor=None))
    processes: tuple[object, ...] = ()
    streams = a_cluster().topic("t", (1,)).streams(
        "g", *processes, topology=None, members=(member("m1", None, None),), state="PreparingRebalance", hidden=True,
        assignor=None,
    )  # fmt: skip
    for shown, members in ((rows, "2 members"), (explained("group/g", streams), "1 member")):
        known = row(shown, "group/g", "racks known")
        assert known.answer is RuleAnswer.UNKNOWN
        assert known.sentence == f"the racks of {members} are not shown while the group is PreparingRebalance"
        assert row(shown, "group/g", "keeps partitions in a rebalance").answer is RuleAnswer.UNKNOWN
    assert row(rows, "group/g", "assignor looks at racks").answer is RuleAnswer.UNKNOWN


def test_a_group_that_cannot_be_judged_says_why():
    built = a_cluster().topic("t", (1,)).group("g", member("m", None, "t-0"))
    assert row(explained("group/g", built), "group/g", "assessed").sentence == "no member's rack is known"


def test_warm_ups_tell_how_far_they_are():
    rows = explained("group/g", warming(copy("p2", "0_1", caught_up=False, lag=20_000.0)))
    assert row(rows, "0_1 on p2", "warm-up caught up") == ExplainedRule(
        "0_1 on p2", "warm-up caught up", RuleAnswer.WAIT,
        "its lag is 20,000 records (application endpoint), acceptable.recovery.lag is 10,000 records",
    )  # fmt: skip


# --- proposals and the unknown --------------------------------------------------------------------------------


def test_a_proposal_is_explained_by_its_id_with_its_subject():
    rows = explained("the proposal", swapped())
    assert rows[0].sentence.startswith("Rebalance g once")
    sentence = "under any assignment at least 0 reads cross racks; this proposal reaches it"
    assert row(rows, rows[0].about, "lower_bound_cross_rack_reads") == ExplainedRule(
        rows[0].about, "lower_bound_cross_rack_reads", RuleAnswer.YES, sentence, 0.0
    )
    assert row(rows, "group/g", "rebalance planned").answer is RuleAnswer.YES


@pytest.mark.parametrize("subject", ["topic/none", "group/none", "p-000000000000", "nonsense", "", "rack/a"])
def test_nothing_is_known_of_a_subject_that_is_not_there(subject):
    assert explained(subject, swapped()) == ()


def test_without_a_plan_the_rules_are_still_told():
    snapshot = shared().snapshot()
    rows = explain("topic/t", snapshot, detect(snapshot, Memory(), LIMITS, None), None, (), LIMITS)
    assert row(rows, "t-0", "planned").answer is RuleAnswer.NO


def test_a_share_group_is_called_one():
    built = a_cluster().topic("t", (1,))
    built.groups["s"] = OtherGroup("s", GroupKind.SHARE, "Stable", "share", "share")
    (only,) = explained("group/s", built)
    assert (only.rule, only.answer) == ("assessed", RuleAnswer.NO)
    assert only.sentence.startswith("it is a share group (KIP-932)")


def test_leaders_that_a_proposal_leaves_as_they_are_are_no_figure() -> None:
    evidence = (
        ("preferred_leaders_by_broker_before", ("1: 2",)), ("preferred_leaders_by_broker_after", ("1: 2",)),
        ("preferred_leaders_by_rack_before", ("a: 2",)), ("preferred_leaders_by_rack_after", ("a: 1", "b: 1")),
    )  # fmt: skip
    names = ["preferred_leaders_by_rack_before", "preferred_leaders_by_rack_after"]
    assert [name for name, _ in evidence if not _unchanged(name, dict(evidence))] == names
    assert not _unchanged("basis", {"basis": "counts"})


# --- figures in words -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        pytest.param(
            "next_probing_rebalance_ms", NOW_MS + 574_000,
            "the application's next probing rebalance is due in 9 min (probing.rebalance.interval.ms)", id="to come",
        ),
        pytest.param(
            "next_probing_rebalance_ms", NOW_MS - 3_000,
            "the application's next probing rebalance was due 3 s ago (probing.rebalance.interval.ms)", id="over",
        ),
        pytest.param("weights_from_ms", 1_700_000_000_000, "the weights begin at 2023-11-14 22:13:20Z", id="begin"),
        pytest.param("weights_until_ms", 1_700_000_000_000, "the weights end at 2023-11-14 22:13:20Z", id="end"),
    ],
)  # fmt: skip
def test_an_instant_is_told_relative_to_the_look_or_as_a_time(name: str, value: int, sentence: str) -> None:
    snapshot = swapped().snapshot()
    detection = detect(snapshot, Memory(), LIMITS, None)
    (proposal,) = propose(snapshot, make_plan(snapshot, detection, LIMITS, None), detection, LIMITS, None)
    (row, *_) = facts_of(proposal._replace(evidence=((name, value),)), NOW_MS)
    assert (row.rule, row.sentence, row.value) == (name, sentence, value)


def test_the_lag_of_a_warm_up_reads_the_same_in_every_row() -> None:
    built = warming(copy("p2", "0_1", caught_up=True, lag=9_560.0), next_rebalance_ms=NOW_MS + 500_000)
    rows = explained("the proposal", built)
    sentences = [one.sentence for one in rows if "9,560 records" in one.sentence]
    assert sentences[:2] == [
        "their lags: 0_1 on p2: 9,560 records behind (application endpoint)",
        "its lag is 9,560 records (application endpoint), acceptable.recovery.lag is 10,000 records",
    ]
    assert "due in 8 min" in row(rows, rows[0].about, "next_probing_rebalance_ms").sentence


def test_figures_of_reads_are_facts_and_answer_no_question() -> None:
    rows = explained("group/g", swapped())
    figures = {one.rule: one.answer for one in rows if one.rule.startswith("reads across racks")}
    assert len(figures) == 3
    assert set(figures.values()) == {RuleAnswer.FACT}
    worth = row(rows, "group/g", "worth a rebalance for reads across racks")
    assert worth.answer is RuleAnswer.YES


def test_a_rebalance_that_is_planned_for_another_reason_names_it() -> None:
    built = warming(copy("p2", "0_1", caught_up=True, lag=12.0), next_rebalance_ms=NOW_MS + 500_000)
    planned = row(explained("group/g", built), "group/g", "rebalance planned")
    assert planned.sentence == "one rebalance is proposed: warm-ups wait for a rebalance"


def test_a_table_names_figures_in_words() -> None:
    assert label("next_probing_rebalance_ms") == "next probing rebalance"
    assert label("acceptable_recovery_lag_is") == "source of acceptable.recovery.lag"
    assert label("partitions_changed") == "partitions changed"
    assert (label("basis"), label("why_not_weights")) == ("figures rest on", "no weights")
    assert (label("who"), label("count")) == ("concerns", "concerned")


def test_a_topic_of_one_partition_has_no_plural() -> None:
    rows = explained("topic/t", a_cluster().topic("t", (1,)))
    assert row(rows, "topic/t", "not excluded by settings").sentence == (
        "planning includes the topic, and changes 0 of 1 partition"
    )


def test_the_racks_of_a_partition_are_named_once_in_what_explains_its_proposal() -> None:
    seen = evaluate(an_observation(a=(1, 4), b=(2,), c=(3,)).topic("t", (1, 4), (2, 3)).at(), Memory(), Limits())
    (proposal,) = seen.proposals
    rows = explain(proposal.id, seen.snapshot, seen.detection, seen.plan or Plan(), seen.proposals, seen.limits)
    told = [one for one in rows if "t-0: a a" in one.sentence or "1 (rack a), 4 (rack a)" in one.sentence]
    assert [one.rule for one in told] == ["spread over racks"]
    assert "racks of the replicas afterwards: t-0: a b" in {one.sentence for one in rows}
