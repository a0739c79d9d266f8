"""What the plug-in for brokers would bring a KIP-848 group: every sentence, and figures equal to the Java code's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.detect.find import detect
from agent.plan import plugin_gain
from agent.plan.plugin_gain import PluginQuestion, merged_gains, plugin_answer, plugin_question, plugin_sentence
from agent.predict.broker_groups import NO_LIMITS, OWN_CHOICE
from agent.predict.predict import predict
from agent.simulate.evaluation import evaluate
from agent.values.finding import FindingReason
from agent.values.limits import Limits, LocatorKind, PriceLimits, RackLocator, ScopeLimits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.plan import NotPredicted, PredictionCertainty
from agent.values.proposal import ProposalReason
from agent.values.snapshot import PLUGIN_ASSIGNOR, ConsumerGroup, GroupKind, Snapshot
from assignors.problem import TopicPartition
from tests.builders import WIRE, Answers, an_observation, consumer, reader
from tests.jvm.groups import GOLDEN, figures, problem_of
from tests.snapshots import a_cluster, member

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
PAIRS = ((1, 2), (2, 3), (3, 1))
"""Two replicas in three racks."""
EVERYWHERE = ((1, 2, 3),) * 3
AWAY = (("a", "t-1 t-4"), ("b", "t-2 t-5"), ("c", "t-0 t-3"))
"""Six partitions of `PAIRS`, each in the one rack without a replica of it."""
HOME = (("a", "t-0 t-3"), ("b", "t-1 t-4"), ("c", "t-2 t-5"))
ALIAS = RackLocator(name="alias", kind=LocatorKind.ALIAS, aliases=(("az1", "a"), ("az2", "b"), ("az3", "c")))
CIDR = RackLocator(name="cidr", kind=LocatorKind.CIDR, networks=(("10.0.0.0/24", "a"),))


def cluster(*replicas: tuple[int, ...]) -> Answers:
    return an_observation(a=(1,), b=(2,), c=(3,)).topic("t", *replicas, topic_id=TOPIC_ID)


def grouped(
    *members: tuple[str | None, str], replicas: tuple[tuple[int, ...], ...] = PAIRS * 2, assignor: str = "uniform"
) -> Answers:
    rows = (consumer(f"m{number}", *of) for number, of in enumerate(members))
    return cluster(*replicas).kip848("g", *rows, assignor=assignor)


def asked(answers: Answers, limits: Limits | None = None, rates: Mapping[int, float] | None = None) -> PluginQuestion:
    look = evaluate(answers.at(), Memory(), limits or Limits())
    snapshot: Snapshot = look.snapshot
    if rates is not None:
        snapshot = replace(snapshot, bytes_per_s={TopicPartition("t", n): of for n, of in rates.items()})
    question = plugin_question(snapshot.groups["g"], look.detection.assessments["g"], snapshot, look.limits, Memo())
    assert question is not None
    return question


# --- every sentence ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        pytest.param(grouped(*AWAY), "with the plug-in 6 of 6 local instead of 0 of 6", id="a gain"),
        pytest.param(
            grouped(*AWAY, replicas=EVERYWHERE * 2), "nothing to gain: every rack has a replica", id="all everywhere"
        ),
        pytest.param(
            grouped(("a", "t-0 t-1 t-2"), replicas=((1, 2), (2, 1), (1, 2))),
            "nothing to gain: every rack of its members has a replica of all that it reads",
            id="where its members are",
        ),
        pytest.param(
            grouped(*HOME),
            "nothing to gain now: 6 of 6 are local; uniform does not look at racks when it assigns next",
            id="local already",
        ),
        pytest.param(
            grouped(("a", "t-0 t-1"), ("a", "t-2 t-3"), replicas=((1,), (2,), (1,), (2,))),
            "nothing to gain now: 2 of 4 are local, and with the plug-in no more would be",
            id="no assignment has more",
        ),
        pytest.param(
            grouped(*AWAY).selector(None), "cannot help: no follower fetching (replica.selector.class)",
            id="no selector",
        ),
        pytest.param(
            grouped(*((None, of) for _, of in AWAY)), "cannot help: no member sends client.rack", id="no client.rack"
        ),
        pytest.param(
            grouped(("a", "t-1 t-4"), ("b", "t-2 t-5"), (None, "t-0 t-3")),
            "with the plug-in 4 of 6 local instead of 0 of 6; of 2 it is unknown (1 member sends no client.rack)",
            id="some members without client.rack",
        ),
        pytest.param(
            grouped(("a", "t-0 t-3"), ("b", "t-1 t-4"), (None, "t-2 t-5")),
            "unknown: no gain is known, and 2 reads of 6 may be local or not (1 member sends no client.rack)",
            id="what is unknown is no gain and no lack of one",
        ),
        pytest.param(
            grouped(*AWAY).broker(3, None), "unknown: the rack of broker 3 is not known", id="a rack is unknown"
        ),
        pytest.param(
            grouped(*AWAY).broker(3, None).broker(2, None), "unknown: the racks of brokers 2 and 3 are not known",
            id="two racks are unknown",
        ),
        pytest.param(
            grouped(*AWAY, assignor=PLUGIN_ASSIGNOR),
            "runs the plug-in; its next assignment has 6 of 6 local instead of 0 of 6",
            id="it runs the plug-in, and changes over with its next epoch",
        ),
        pytest.param(grouped(*HOME, assignor=PLUGIN_ASSIGNOR), "runs the plug-in; 6 of 6 local", id="it runs it"),
        pytest.param(
            grouped(*AWAY, assignor=PLUGIN_ASSIGNOR).selector(None),
            "runs the plug-in; cannot help: no follower fetching (replica.selector.class)",
            id="it runs it for nothing",
        ),
        pytest.param(
            grouped(*AWAY).without_topic("t"), "unknown: a subscribed topic could not be described", id="a hidden topic"
        ),
        pytest.param(cluster(*PAIRS).kip848("g", state="Empty"), "unknown: the group has no members", id="no members"),
    ],
)  # fmt: skip
def test_a_sentence_says_what_it_brings_or_why_not(answers: Answers, sentence: str) -> None:
    assert plugin_sentence(asked(answers)) == sentence


def test_an_unknown_selector_leaves_the_gain_unknown() -> None:
    answers = grouped(*AWAY)
    answers.broker_configs = {}
    question = asked(answers)
    assert plugin_sentence(question).startswith("unknown: it is not known whether reads go to the nearest replica")
    assert plugin_answer(question) is None


def test_members_with_different_subscriptions_gain_within_them() -> None:
    """Only m0 reads u, so that all of t goes to the others, wherever it is."""
    answers = cluster(*PAIRS).topic("u", (2, 3), (2, 3), (2, 3))
    both = consumer("m0", "a", "u-0 u-1 u-2")._replace(topics=("t", "u"))
    answers.kip848("g", both, consumer("m1", "a", "t-1 t-2"), consumer("m2", "b", "t-0"))
    question = asked(answers)
    assert plugin_sentence(question) == "with the plug-in 3 of 6 local instead of 2 of 6"
    answer = plugin_answer(question)
    assert answer is not None
    assert {name: len(of) for name, of in answer.given.reads.items()} == {"m0": 3, "m1": 1, "m2": 2}
    assert (answer.cost.crossing, answer.cost.reads) == (3, 6)


def test_only_what_is_known_is_priced() -> None:
    gained = "with the plug-in 6 of 6 local instead of 0 of 6"
    answers, rates = grouped(*AWAY), dict.fromkeys(range(6), 1e6)
    assert (
        plugin_sentence(asked(answers, rates=rates)) == f"{gained}, saves about $10.37/day"
    )  # 6 MB/s, 86,400 s, $0.02/GB
    assert plugin_sentence(asked(answers, rates={**rates, 5: 0.0})) == f"{gained}, saves about $8.64/day"
    del rates[5]
    assert plugin_sentence(asked(answers, rates=rates)) == gained, "one rate is unknown"
    free = Limits(price=PriceLimits(usd_per_gb=None))
    assert plugin_sentence(asked(answers, free, dict.fromkeys(range(6), 1e6))) == gained, "no price is set"


def test_more_local_reads_may_cost_more() -> None:
    """The plug-in counts partitions alike: the first member has one too many, and the busy one is given away."""
    answers = cluster((1,), (3,), (1,), (2, 1), (1,))
    answers.kip848("g", consumer("m0", "a", "t-0 t-2 t-4"), consumer("m1", "b", "t-1"), consumer("m2", "c", "t-3"))
    busy = {0: 1e6, 1: 0.0, 2: 0.0, 3: 0.0, 4: 0.0}
    gained = "with the plug-in 4 of 5 local instead of 3 of 5"
    assert plugin_sentence(asked(answers, rates=busy)) == f"{gained}, costs about $1.73/day more"
    assert plugin_sentence(asked(answers, rates=dict.fromkeys(busy, 0.0))) == f"{gained}, saves about $0.00/day"


def test_reads_count_as_they_go_and_the_column_by_kafkas_rule() -> None:
    """The follower in rack a is not in sync, so the leader in c serves t-2."""
    answers = cluster(*PAIRS)
    answers.topic("t", *PAIRS, topic_id=TOPIC_ID, isr={2: (3,)})
    answers.kip848("g", consumer("m0", "a", "t-1"), consumer("m1", "b", "t-2"), consumer("m2", "c", "t-0"))
    question = asked(answers)
    assert re.fullmatch(r"with the plug-in [23] of 3 local instead of 0 of 3", plugin_sentence(question))
    answer = plugin_answer(question)
    assert answer is not None
    assert (answer.cost.crossing, answer.cost.moved) == (0, 3)


@pytest.mark.parametrize(
    ("racks", "order", "sentence"),
    [
        pytest.param(
            (None, None, None), (WIRE, CIDR), "cannot help: no member sends client.rack", id="locators alone know them"
        ),
        pytest.param(
            ("b", "c", None), (WIRE, CIDR), "unknown: locators know racks of members or brokers that Kafka does not",
            id="locators know one of them",
        ),
        pytest.param(
            ("az2", "az3", "az1"), (WIRE, ALIAS), "cannot help: no client.rack is the broker.rack of a broker",
            id="an alias makes them equal, and Kafka does not",
        ),
        pytest.param(
            ("a", "b", "c"), (WIRE, ALIAS), "with the plug-in 6 of 6 local instead of 0 of 6", id="Kafka has them all"
        ),
    ],
)  # fmt: skip
def test_racks_that_only_locators_know_do_not_help(
    racks: tuple[str | None, ...], order: tuple[RackLocator, ...], sentence: str
) -> None:
    answers = grouped(*zip(racks, ("t-1 t-4", "t-2 t-5", "t-0 t-3"), strict=True))
    assert plugin_sentence(asked(answers, Limits(rack_locators=order))) == sentence


def test_groups_that_it_does_not_concern_have_no_sentence() -> None:
    answers = grouped(*AWAY).group("classic", reader("c", "a", "t-0"))
    snapshot = evaluate(answers.at(), Memory(), Limits()).snapshot
    excluded = Limits(scope=ScopeLimits(exclude_groups=("g",)))
    assert plugin_question(snapshot.groups["classic"], None, snapshot, Limits(), Memo()) is None
    assert plugin_question(snapshot.groups["g"], None, snapshot, excluded, Memo()) is None


def test_groups_with_the_same_sentence_are_named_together() -> None:
    assert merged_gains([("a", "nothing"), ("b", "some"), ("c", "nothing")]) == [
        "plug-in for brokers, groups a and c: nothing",
        "plug-in for brokers, group b: some",
    ]


# --- figures equal to the Java code's ---------------------------------------------------------------------------


def test_the_figures_are_those_that_the_java_code_is_compared_with() -> None:
    """The golden groups of the jar's own tests, as snapshots: predicted, and where it is judged as a gain too."""
    compared = judged = reused = 0
    for line in GOLDEN.read_text("utf-8").splitlines():
        golden = json.loads(line)
        snapshot = _snapshot(golden)
        group = snapshot.groups["g"]
        assert isinstance(group, ConsumerGroup)
        prediction = predict(group, snapshot, Limits())
        if prediction.why_not is NotPredicted.TOPICS_UNKNOWN:
            assert any("gone" in each["owned"] for each in golden["members"])
            continue
        assert prediction.settled is not None, prediction
        compared += 1
        assert figures(problem_of(golden), dict(prediction.settled.reads)) == golden["optimum"]
        limits = Limits()
        assessment = detect(snapshot, Memory(), limits, None).assessments["g"]
        question = plugin_question(group, assessment, snapshot, limits, Memo())
        assert question is not None
        answer = plugin_answer(question)
        if answer is None:
            assert plugin_sentence(question).startswith(("runs the plug-in; unknown", "runs the plug-in; cannot help"))
            continue
        judged += 1
        reused += plugin_gain._as_assessed(question, assessment) is not None
        assert figures(problem_of(golden), dict(answer.given.reads)) == golden["optimum"]
    assert compared >= 300
    assert judged >= 100
    assert reused >= 20


def _snapshot(golden: dict[str, Any]) -> Snapshot:
    """One broker in each rack, whose id is the place of the rack's name."""
    names = sorted({rack for sets in golden["topics"].values() for racks in sets for rack in racks})
    built = a_cluster(**{name: (number,) for number, name in enumerate(names, 1)} or {"a": (1,)})
    for topic, sets in golden["topics"].items():
        built.topic(topic, *(tuple(names.index(rack) + 1 for rack in racks) for racks in sets), topic_id=topic)
    members = []
    for each in golden["members"]:
        owned = tuple(sorted(TopicPartition(topic, n) for topic, numbers in each["owned"].items() for n in numbers))
        one = member(each["id"], each["rack"], "", target=owned)
        members.append(one._replace(topics=tuple(each["topics"]), assigned=owned))
    return built.group("g", *members, kind=GroupKind.CONSUMER, assignor=PLUGIN_ASSIGNOR).snapshot()


@pytest.mark.parametrize(
    ("members", "certainty", "notes"),
    [
        pytest.param(HOME, PredictionCertainty.EXACT, (), id="it keeps what is best"),
        pytest.param(AWAY, PredictionCertainty.COST_EQUAL, (OWN_CHOICE, NO_LIMITS), id="figures are exact"),
    ],
)
def test_the_prediction_of_a_group_on_the_plug_in_is_the_plug_ins_optimum(
    members: tuple[tuple[str, str], ...], certainty: PredictionCertainty, notes: tuple[str, ...]
) -> None:
    question = asked(grouped(*members, assignor=PLUGIN_ASSIGNOR))
    prediction = predict(question.group, question.snapshot, Limits())
    assert (prediction.assignor, prediction.certainty, prediction.notes) == (PLUGIN_ASSIGNOR, certainty, notes)
    assert prediction.settled is not None
    answer = plugin_answer(question)
    assert answer is not None
    assert dict(prediction.settled.reads) == dict(answer.given.reads)
    assert answer.cost.crossing == 0


def test_a_stopped_broker_keeps_its_rack_for_the_plug_in() -> None:
    """The coordinator knows the rack of a broker as long as it is registered, clients do not."""
    question = asked(grouped(*AWAY))
    brokers = tuple(
        broker._replace(alive=False, rack=broker.rack._replace(remembered=True)) if broker.id == 3 else broker
        for broker in question.snapshot.brokers
    )
    snapshot = replace(question.snapshot, brokers=brokers)
    running = question.group._replace(assignor=PLUGIN_ASSIGNOR)
    prediction = predict(running, snapshot, Limits())
    assert prediction.settled is not None
    assert dict(prediction.settled.reads) == dict(predict(running, question.snapshot, Limits()).settled.reads)  # type: ignore[union-attr]


def test_what_the_plug_in_sees_otherwise_than_the_assessment_is_solved_by_itself() -> None:
    """Range keeps equal numbers of two topics together; the plug-in gives that up for racks."""
    answers = cluster((1,), (2,)).topic("u", (2,), (1,))
    answers.kip848("g", consumer("m0", "a", "t-0 u-0"), consumer("m1", "b", "t-1 u-1"), assignor="range")
    answers.brokers.pop(3)
    question = asked(answers)
    assert question.assessment is not None
    assert question.assessment.gap == 0, "together they have one crossing partition each"
    assert plugin_sentence(question) == "with the plug-in 4 of 4 local instead of 2 of 4"
    # a member is on its way to its target
    answers = grouped(("a", "t-0 t-3"), ("b", "t-1 t-4"), ("c", "t-2 t-5"))
    answers.kip848(
        "g",
        consumer("m0", "a", "t-0", target="t-0 t-3"),
        consumer("m1", "b", "t-1 t-4"),
        consumer("m2", "c", "t-2 t-5"),
    )
    answer = plugin_answer(asked(answers))
    assert answer is not None
    assert answer.given.reads["m0"] == (TopicPartition("t", 0), TopicPartition("t", 3))


# --- a group that runs it ---------------------------------------------------------------------------------------


def test_a_group_on_the_plug_in_has_no_finding_that_its_kind_ignores_racks() -> None:
    reasons = {FindingReason.GROUP_KIND_IGNORES_RACKS, FindingReason.ASSIGNOR_WOULD_NOT_FIX}
    for assignor, expected in (("uniform", reasons), (PLUGIN_ASSIGNOR, set())):
        look = evaluate(grouped(*AWAY, assignor=assignor).at(), Memory(), Limits())
        found = {finding.reason for finding in look.detection.findings}
        assert found & reasons == expected
        assert FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM in found, "what it has now is still worse"
        advised = any(one.reason is ProposalReason.CHANGE_ASSIGNOR for one in look.proposals)
        assert advised is bool(expected), "a group on the plug-in has no advice to go back to the classic protocol"
    silent = grouped(*((None, of) for _, of in AWAY), assignor=PLUGIN_ASSIGNOR)
    found = {finding.reason for finding in evaluate(silent.at(), Memory(), Limits()).detection.findings}
    assert FindingReason.MEMBER_WITHOUT_RACK in found, "that it needs racks of its members is still said"


def test_its_name_is_the_one_in_the_jar() -> None:
    source = Path(__file__).parents[2] / "jvm" / "src" / "main" / "java" / "rackwise" / "assignor"
    text = (source / "RackwiseAssignor.java").read_text("utf-8")
    assert f'public static final String NAME = "{PLUGIN_ASSIGNOR}";' in text
