"""Predictions of small groups: who gets what, how sure that is, and why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.detect.find import detect
from agent.plan.gain_thresholds import group_comparison
from agent.predict.applications import SHARED_BUCKET
from agent.predict.predict import predict, predict_groups
from agent.values.limits import GroupLimits, Limits, PlanLimits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.plan import NotPredicted, Prediction, PredictionBasis, PredictionCertainty
from agent.values.snapshot import ConsumerGroup, GroupKind, MemberTasks, TaskStatefulness
from assignors.problem import TaskId
from tests.snapshots import Builder, a_cluster, member, process, task, tp, tps
from tests.snapshots import tasks as named

JAVA = Limits(groups={"g": GroupLimits(client_software_name="apache-kafka-java")})
ONE, TWO, THREE = (f"{number:08x}-0000-0000-0000-000000000000" for number in (1, 2, 3))
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def told(built: Builder, limits: Limits = JAVA, **changes: object) -> Prediction:
    snapshot = built.snapshot(**changes)
    return predict(snapshot.groups["g"], snapshot, limits)


def swapped(assignor: str = "cooperative-sticky", **changes: object) -> Builder:
    """Two members that read each other's partition."""
    built = a_cluster().topic("t", (1,), (2,))
    return built.group("g", member("m1", "b", "t-0", **changes), member("m2", "a", "t-1", **changes), assignor=assignor)


# --- consumer groups --------------------------------------------------------------------------------------------


def test_a_cooperative_group_holds_back_first_and_hands_over_in_the_follow_up():
    prediction = told(swapped())
    assert prediction.first is not None
    assert prediction.settled is not None
    assert dict(prediction.first.reads) == {"m1": (), "m2": ()}
    assert dict(prediction.settled.reads) == {"m1": tps("t-1"), "m2": tps("t-0")}
    assert (prediction.rebalances, prediction.certainty, prediction.basis) == (
        2,
        PredictionCertainty.EXACT,
        PredictionBasis.READ,
    )


@pytest.mark.parametrize(
    ("assignor", "first"),
    [
        pytest.param("range", "t-1", id="range follows racks"),
        pytest.param("sticky", "t-1", id="so does sticky"),
        pytest.param("roundrobin", "t-0", id="round-robin deals by name"),
    ],
)
def test_eager_groups_get_everything_at_once(assignor, first):
    prediction = told(swapped(assignor))
    assert prediction.settled is not None
    assert prediction.settled.reads["m1"] == tps(first)
    assert prediction.rebalances == 1


@pytest.mark.parametrize(
    ("built", "limits", "certainty", "note"),
    [
        pytest.param(
            swapped(), Limits(), PredictionCertainty.COST_EQUAL, "leads the group is unknown", id="an unknown leader"
        ),
        pytest.param(
            swapped(),
            Limits(groups={"g": GroupLimits(client_software_name="librdkafka")}),
            PredictionCertainty.COST_EQUAL,
            "librdkafka leads",
            id="the user says librdkafka",
        ),
        pytest.param(
            swapped(client_id="consumer-g-1"), Limits(), PredictionCertainty.EXACT, "", id="Java by its own client ids"
        ),
        pytest.param(
            swapped(client_id="rdkafka"), Limits(), PredictionCertainty.COST_EQUAL, "librdkafka", id="librdkafka's ids"
        ),
        pytest.param(
            swapped(client_id="kafka-python-3.0.12"),
            Limits(),
            PredictionCertainty.COST_EQUAL,
            "ignores racks",
            id="a Python client ignores racks",
        ),
    ],
)
def test_the_leaders_client_decides_how_far_it_can_be_told(built, limits, certainty, note):
    prediction = told(built, limits)
    assert prediction.certainty is certainty
    assert note in " ".join(prediction.notes)


def test_a_python_leader_brings_nothing_home():
    limits = Limits(groups={"g": GroupLimits(client_software_name="kafka-python")})
    prediction = told(swapped(), limits)
    assert prediction.settled is not None
    assert dict(prediction.settled.reads) == {"m1": tps("t-0"), "m2": tps("t-1")}


def test_where_the_order_of_a_bucket_decides_it_is_cost_equal_only():
    # "Aa" and "BB" have one hash in Java; of three partitions one of the two gets two.
    built = a_cluster().topic("t", (1,), (1,), (1,))
    built.group("g", member("Aa", "a", "t-0"), member("BB", "a", "t-1 t-2"))
    prediction = told(built)
    assert prediction.certainty is PredictionCertainty.COST_EQUAL
    assert SHARED_BUCKET in prediction.notes


def test_a_broker_group_ignores_racks_and_sticks_to_its_target():
    built = a_cluster().topic("t", (1,), (2,), topic_id=TOPIC_ID)
    members = [member("m1", "b", "t-0", target=tps("t-0")), member("m3", "a", "t-1", target=tps("t-1"))]
    prediction = told(built.group("g", *members, kind=GroupKind.CONSUMER, assignor="uniform"))
    assert prediction.settled is not None, prediction
    assert dict(prediction.settled.reads) == {"m1": tps("t-0"), "m3": tps("t-1")}
    # one member less: what it had goes to the other
    snapshot = built.snapshot()
    group = snapshot.groups["g"]
    assert isinstance(group, ConsumerGroup)
    fewer = predict(group._replace(members=group.members[:1]), snapshot, JAVA)
    assert fewer.settled is not None
    assert dict(fewer.settled.reads) == {"m1": tps("t-0 t-1")}


@pytest.mark.parametrize(
    ("built", "limits", "why"),
    [
        pytest.param(swapped("my-own"), JAVA, NotPredicted.UNKNOWN_ASSIGNOR, id="an assignor of the user's own"),
        pytest.param(
            swapped(), replace(JAVA, plan=PlanLimits(predict_limit=3)), NotPredicted.TOO_LARGE, id="too large"
        ),
        pytest.param(
            a_cluster().topic("t", (1,)).group("g", hidden=True), JAVA, NotPredicted.HIDDEN, id="rebalancing"
        ),
        pytest.param(a_cluster().topic("t", (1,)).group("g"), JAVA, NotPredicted.EMPTY, id="without members"),
        pytest.param(
            a_cluster().group("g", member("m", "a", ""), kind=GroupKind.CONSUMER, assignor="mine"), JAVA,
            NotPredicted.UNKNOWN_ASSIGNOR, id="a broker's assignor of the user's own",
        ),
        pytest.param(
            a_cluster().topic("t", (1,), topic_id="no id").group(
                "g", member("m", "a", "t-0"), kind=GroupKind.CONSUMER, assignor="uniform"
            ),
            JAVA, NotPredicted.REFUSED, id="a topic id that is none",
        ),
    ],
)  # fmt: skip
def test_a_group_without_a_prediction_says_why(built, limits, why):
    prediction = told(built, limits)
    assert prediction.why_not is why
    assert prediction.settled is None


# --- Streams ----------------------------------------------------------------------------------------------------

LOGGED = [task(f"0_{n}", f"t-{n}", TaskStatefulness.CHANGELOG, f"app-changelog-{n}") for n in range(2)]
STRATEGY = GroupLimits(rack_aware_assignment_strategy="min_traffic", known=True)


def application(*, ends: int, kind: GroupKind = GroupKind.CLASSIC_STREAMS, **changes: object) -> tuple[Builder, dict]:
    built = a_cluster().topic("t", (1,), (2,)).topic("app-changelog", (1,), (2,), size=700)
    built.streams("g", process(ONE, "b", "0_0"), process(TWO, "a", "0_1"), topology=LOGGED, kind=kind, **changes)
    return built, {"end_offsets": {tp("app-changelog-0"): ends, tp("app-changelog-1"): ends}}


def test_an_application_moves_at_once_what_is_caught_up():
    built, ends = application(ends=10)
    prediction = told(built, Limits(groups={"g": STRATEGY}), **ends)
    assert prediction.first is not None
    assert dict(prediction.first.active) == {ONE: named("0_1"), TWO: named("0_0")}
    assert (prediction.rebalances, prediction.warmups, prediction.certainty) == (1, None, PredictionCertainty.EXACT)
    assert (prediction.assignor, prediction.basis) == ("HighAvailabilityTaskAssignor", PredictionBasis.SET)


def test_an_application_warms_up_first_and_what_that_takes_is_told():
    built, ends = application(ends=1_000_000)
    prediction = told(built, Limits(groups={"g": STRATEGY}), **ends)
    assert prediction.first is not None
    assert prediction.settled is not None
    assert dict(prediction.first.active) == {ONE: named("0_0"), TWO: named("0_1")}, "tasks stay where their state is"
    assert dict(prediction.first.warmup) == {ONE: named("0_1"), TWO: named("0_0")}
    assert dict(prediction.settled.active) == {ONE: named("0_1"), TWO: named("0_0")}
    assert prediction.rebalances == 2
    warmups = prediction.warmups
    assert warmups is not None
    assert (warmups.at_once, warmups.tasks, warmups.disk_bytes, warmups.read_bytes) == (2, 2, 1400, 1400)


@pytest.mark.parametrize("warmups", [1, 2])
def test_the_end_is_the_same_however_many_warm_ups_there_are_at_once(warmups):
    built, ends = application(ends=1_000_000)
    limits = Limits(groups={"g": replace(STRATEGY, max_warmup_replicas=warmups)})
    prediction = told(built, limits, **ends)
    assert prediction.settled is not None
    assert dict(prediction.settled.active) == {ONE: named("0_1"), TWO: named("0_0")}


def test_what_is_assumed_of_an_application_is_said():
    built, ends = application(ends=10)
    prediction = told(built, Limits(), **ends)
    assert prediction.basis is PredictionBasis.ASSUMED
    assert "rack.aware.assignment.strategy none" in prediction.settings


def test_a_task_assignor_of_the_users_own_is_not_predicted():
    built, ends = application(ends=10)
    limits = Limits(groups={"g": GroupLimits(task_assignor_class="com.example.Mine", known=True)})
    prediction = told(built, limits, **ends)
    assert (prediction.why_not, prediction.assignor) == (NotPredicted.UNKNOWN_ASSIGNOR, "Mine")


@pytest.mark.parametrize(
    ("configs", "certainty", "note"),
    [
        pytest.param(
            {1: {"group.streams.initial.rebalance.delay.ms": "3000", "group.streams.num.standby.replicas": "0"}},
            PredictionCertainty.EXACT,
            "",
            id="4.2 and later are deterministic",
        ),
        pytest.param(
            {1: {"group.streams.num.standby.replicas": "0"}},
            PredictionCertainty.COST_EQUAL,
            "older than 4.2",
            id="4.1 is not",
        ),
        pytest.param({}, PredictionCertainty.EXACT, "4.2 or later is assumed", id="configs are not shown"),
    ],
)
def test_the_brokers_release_decides_what_a_streams_group_gets(configs, certainty, note):
    topology = [replace_task(one) for one in LOGGED]
    built = a_cluster().topic("t", (1,), (2,)).topic("app-changelog", (1,), (2,))
    processes = process(ONE, "b", ""), process(TWO, "a", "")
    built.streams(
        "g", *processes, topology=topology, kind=GroupKind.STREAMS,
        targets=(MemberTasks(f"{ONE}-m0", (TaskId("0", 0), TaskId("0", 1)), ()),),
    )  # fmt: skip
    built.broker_configs = configs
    prediction = told(built)
    assert prediction.settled is not None, prediction
    assert sorted(map(len, prediction.settled.active.values())) == [1, 1]
    assert prediction.certainty is certainty
    assert note in " ".join(prediction.notes)


def replace_task(one):
    return one._replace(id=TaskId(str(one.id.subtopology), one.id.partition))


# --- columns, reuse ---------------------------------------------------------------------------------------------


def test_what_did_not_change_is_not_worked_out_again():
    built, ends = application(ends=10)
    built.group("h", member("m1", "b", "t-0"), member("m2", "a", "t-1"))
    snapshot, memo = built.snapshot(**ends), Memo()
    first = predict_groups(snapshot.groups.values(), snapshot, JAVA, memo)
    memo.turn()
    again = predict_groups(snapshot.groups.values(), snapshot, JAVA, memo)
    assert again == first
    assert all(again[name] is first[name] for name in first)
    assert again == {name: predict(group, snapshot, JAVA) for name, group in snapshot.groups.items()}


def test_a_group_stands_in_three_columns():
    snapshot = swapped().snapshot()
    group = snapshot.groups["g"]
    assessment = detect(snapshot, Memory(), JAVA, None).assessments["g"]
    columns = group_comparison(group, assessment, predict(group, snapshot, JAVA), snapshot, JAVA)
    assert columns.now is not None
    assert columns.own is not None
    assert columns.optimum is not None
    assert (columns.now.crossing, columns.own.crossing, columns.optimum.crossing) == (2, 0, 0)
    assert (columns.now.moved, columns.own.moved, columns.optimum.moved) == (0, 2, 2)
    assert columns.worth.startswith(
        "Worth a rebalance by the thresholds: its own assignor would make 2 more of 2 reads local"
    )
