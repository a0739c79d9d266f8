"""Assignments that do not add up: partitions with two readers, and readers of what is not there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.values.assessment import NotAssessed
from agent.values.finding import FindingReason as Reason
from agent.values.observation import GapCause, ObservationPart, PrincipalRights
from tests.builders import Answers, Run, an_observation, consumer, instance, reader

Prepare = Callable[[Answers], object]


def a_cluster() -> Answers:
    return an_observation().topic("orders", (1,), (2,), (3,))


@pytest.mark.parametrize(
    ("prepare", "found"),
    [
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0"), reader("m2", "b", "orders-1")),
            0,
            id="one reader each",
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0"), reader("m2", "b", "orders-0 orders-1")),
            1,
            id="two readers",
        ),
        pytest.param(
            lambda a: a.kip848("g", consumer("m1", "a", "orders-0"), consumer("m2", "b", "orders-0")), 1, id="KIP-848"
        ),
        pytest.param(
            lambda a: a.kip848(
                "g", consumer("m1", "a", "orders-0"), consumer("m2", "b", "orders-0"), state="Reconciling"
            ),
            0,
            id="while it reconciles, the old reader and the new one may both be listed",
        ),
        pytest.param(
            lambda a: a.streams("g", instance(1, "a", {"0_0": "orders-0"}), instance(2, "b", {"0_0": "orders-0"})),
            1,
            id="a task that runs twice",
        ),
        pytest.param(
            lambda a: a.streams(
                "g",
                instance(1, "a", {"0_0": "orders-0"}),
                instance(2, "b", {"0_1": "orders-1"}, {"0_0": "orders-0"}),
            ),
            0,
            id="a standby is no second reader",
        ),
        pytest.param(
            lambda a: a.group(
                "g", reader("m1", "a", "orders-0"), reader("m2", "b", "orders-0"), state="CompletingRebalance"
            ),
            0,
            id="a rebalance hides all assignments",
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0"), reader("m2", "b", "orders-0", assignment=b"\0")),
            0,
            id="bytes that cannot be read claim nothing",
        ),
    ],
)
def test_partitions_that_more_than_one_member_is_assigned(prepare: Prepare, found: int) -> None:
    answers = a_cluster()
    prepare(answers)
    assert len(Run().look(answers.at()).of(Reason.PARTITION_CLAIMED_TWICE)) == found


def test_one_finding_counts_the_partitions_and_names_the_first_with_its_readers() -> None:
    names = " ".join(f"orders-{n}" for n in range(3))
    run = Run().look(a_cluster().group("g", *(reader(f"m{n}", "a", names) for n in range(9))).at())
    (finding,) = run.of(Reason.PARTITION_CLAIMED_TWICE)
    assert finding.sentence == (
        "group g has 3 partitions that more than one member is assigned: orders-0 is assigned to m0, m1, m2 and 6 "
        "more, and each of them reads it"
    )
    evidence = dict(finding.evidence)
    assert evidence["partitions"] == 3
    assert evidence["members"] == ("m0", "m1", "m2", "m3", "m4")
    assert run.detection.assessments["g"].why_not is NotAssessed.CONTRADICTORY, "twice the reads are no measure"


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0 orders-7")),
            "group g has 1 of 2 assigned partitions that does not exist: orders-7 is assigned to m1, and orders has "
            "3 partitions",
            id="beyond the partitions of its topic",
        ),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-0 ghosts-0 ghosts-1")),
            "group g has 2 of 3 assigned partitions that do not exist: ghosts-0 is assigned to m1, and no broker shows "
            "a topic ghosts",
            id="of a topic that no broker shows",
        ),
        pytest.param(lambda a: a.group("g", reader("m1", "a", "orders-0")), None, id="all there"),
        pytest.param(
            lambda a: a.group("g", reader("m1", "a", "orders-7"), state="PreparingRebalance"), None, id="in a rebalance"
        ),
    ],
)
def test_assignments_of_what_is_not_there(prepare: Prepare, sentence: str | None) -> None:
    answers = a_cluster()
    prepare(answers)
    found = Run().look(answers.at()).of(Reason.ASSIGNED_WHAT_IS_NOT_THERE)
    assert [finding.sentence for finding in found] == ([] if sentence is None else [sentence])


@pytest.mark.parametrize(
    "hide",
    [
        pytest.param(
            lambda a: a.gap(ObservationPart.TOPICS, GapCause.TIMED_OUT, "ghosts"), id="a topic that did not answer"
        ),
        pytest.param(lambda a: a.gap(ObservationPart.TOPICS, GapCause.NOT_ALLOWED), id="topics that may not be seen"),
        pytest.param(lambda a: a.extra.update(vanished_topics=("ghosts",)), id="a topic that was deleted just now"),
        pytest.param(
            lambda a: setattr(a, "rights", PrincipalRights(cluster_describe=False, cluster_describe_configs=True)),
            id="rights that may hide topics without a word",
        ),
    ],
)
def test_a_topic_that_may_only_be_hidden_is_not_called_missing(hide: Prepare) -> None:
    answers = a_cluster().group("g", reader("m1", "a", "orders-0 ghosts-0"))
    hide(answers)
    assert Run().look(answers.at()).of(Reason.ASSIGNED_WHAT_IS_NOT_THERE) == []


def test_partitions_that_were_added_meanwhile_are_seen_by_the_next_look() -> None:
    run = Run()
    answers = a_cluster().group("g", reader("m1", "a", "orders-0 orders-3"))
    assert run.look(answers.at(0)).of(Reason.ASSIGNED_WHAT_IS_NOT_THERE)
    answers.topic("orders", (1,), (2,), (3,), (1,))
    assert run.look(answers.at(10)).of(Reason.ASSIGNED_WHAT_IS_NOT_THERE) == []
