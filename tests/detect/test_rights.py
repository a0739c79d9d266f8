"""What could not be seen: every part and cause says once what is missing and what it keeps silent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.values.finding import FindingReason as Reason
from agent.values.finding import FindingSeverity
from agent.values.limits import AgentMode, Limits
from agent.values.observation import GapCause, ObservationPart, PrincipalRights
from tests.builders import Answers, Run, an_observation, reader

Prepare = Callable[[Answers], object]


@pytest.mark.parametrize("part", list(ObservationPart))
@pytest.mark.parametrize("cause", [c for c in GapCause if c not in (GapCause.NOT_ASKED, GapCause.VANISHED)])
def test_every_missing_part_is_one_finding_with_its_effect(part: ObservationPart, cause: GapCause) -> None:
    answers = an_observation()
    for subject in ("one", "two", "three", "four"):
        answers.gap(part, cause, subject)
    reason = Reason.RIGHTS_MISSING if cause is GapCause.NOT_ALLOWED else Reason.PART_MISSING
    (found,) = Run().look(answers.at(0)).of(reason)
    assert f"{part} of four, one, three and 1 more" in found.sentence
    assert ("grant " in found.sentence) is (cause is GapCause.NOT_ALLOWED)
    assert dict(found.evidence)["gaps"] == 4


@pytest.mark.parametrize("cause", [GapCause.NOT_ASKED, GapCause.VANISHED])
def test_what_was_not_asked_for_or_vanished_is_no_fault(cause: GapCause) -> None:
    run = Run().look(an_observation().gap(ObservationPart.GROUPS, cause, "g").at(0))
    assert run.detection.findings == ()


@pytest.mark.parametrize("part", [ObservationPart.BROKERS, ObservationPart.TOPICS, ObservationPart.GROUPS])
def test_a_world_that_did_not_answer_comes_first(part: ObservationPart) -> None:
    answers = an_observation().topic("orders", (1, 1)).gap(part).gap(ObservationPart.LOG_DIRS)
    first = Run().look(answers.at(0)).detection.findings[0]
    assert (first.reason, first.severity, dict(first.evidence)["part"]) == (
        Reason.PART_MISSING, FindingSeverity.CRITICAL, str(part),
    )  # fmt: skip


def test_the_error_as_the_client_gave_it_is_in_the_sentence() -> None:
    (found,) = Run().look(an_observation().gap(ObservationPart.LOG_DIRS).at(0)).of(Reason.PART_MISSING)
    assert found.sentence == (
        "log dirs: no answer in time, so sizes are unknown there, and so are byte rates "
        "(the call for log dirs gave nothing)"
    )


@pytest.mark.parametrize(
    ("rights", "mode", "found"),
    [
        pytest.param(PrincipalRights(), AgentMode.PROPOSE, [], id="the brokers did not tell: nothing is claimed"),
        pytest.param(
            PrincipalRights(cluster_describe=True, cluster_describe_configs=True),
            AgentMode.PROPOSE,
            [],
            id="all that is needed",
        ),
        pytest.param(
            PrincipalRights(cluster_describe=False),
            AgentMode.PROPOSE,
            ["cluster_describe"],
            id="no DESCRIBE on the cluster",
        ),
        pytest.param(
            PrincipalRights(cluster_describe_configs=False),
            AgentMode.PROPOSE,
            ["cluster_describe_configs"],
            id="no DESCRIBE_CONFIGS",
        ),
        pytest.param(
            PrincipalRights(cluster_alter=False), AgentMode.PROPOSE, [], id="no ALTER, and nothing is altered"
        ),
        pytest.param(
            PrincipalRights(cluster_alter=False), AgentMode.EXECUTE, ["cluster_alter"], id="no ALTER where it is needed"
        ),
        pytest.param(
            PrincipalRights(topics_hidden=3), AgentMode.PROPOSE, ["topics_hidden"], id="topics are no longer shown"
        ),
        pytest.param(
            PrincipalRights(groups_hidden=1), AgentMode.PROPOSE, ["groups_hidden"], id="groups are no longer shown"
        ),
    ],
)
def test_rights_that_are_known_to_be_missing(rights: PrincipalRights, mode: AgentMode, found: list[str]) -> None:
    answers = an_observation()
    answers.rights = rights
    assert [finding.detail for finding in Run(Limits(mode=mode)).look(answers.at(0)).of(Reason.RIGHTS_MISSING)] == found


def test_groups_that_a_failed_question_hides_show_no_missing_right() -> None:
    answers = an_observation().gap(ObservationPart.GROUPS, GapCause.DOUBTED)
    answers.rights = PrincipalRights(groups_hidden=7)
    look = Run().look(answers.at(0))
    assert look.of(Reason.RIGHTS_MISSING) == []
    assert len(look.of(Reason.PART_MISSING)) == 1


def test_a_refusal_and_the_right_that_explains_it_are_one_finding() -> None:
    answers = an_observation().gap(ObservationPart.BROKER_CONFIGS, GapCause.NOT_ALLOWED)
    answers.rights = PrincipalRights(cluster_describe=True, cluster_describe_configs=False)
    (found,) = Run().look(answers.at(0)).of(Reason.RIGHTS_MISSING)
    assert found.sentence == (
        "rackwise may not see broker configs, so it is unknown whether reads go to the nearest replica: "
        "grant DESCRIBE_CONFIGS on the cluster"
    )


@pytest.mark.parametrize(
    ("part", "hide", "silent"),
    [
        pytest.param(ObservationPart.TOPICS, lambda a: a.topics.clear(), Reason.REPLICAS_SHARE_RACK, id="topics"),
        pytest.param(
            ObservationPart.TOPIC_CONFIGS, lambda a: a.topic_configs.clear(), Reason.UNDER_MIN_ISR, id="topic configs"
        ),
        pytest.param(
            ObservationPart.BROKER_CONFIGS,
            lambda a: a.broker_configs.clear(),
            Reason.SELECTOR_NOT_RACK_AWARE,
            id="broker configs",
        ),
        pytest.param(
            ObservationPart.GROUPS,
            lambda a: (a.groups.clear(), a.listed.clear()),
            Reason.MEMBER_WITHOUT_RACK,
            id="groups",
        ),
        pytest.param(
            ObservationPart.REASSIGNMENTS, lambda a: a.moves.clear(), Reason.FOREIGN_REASSIGNMENT, id="reassignments"
        ),
    ],
)
def test_detectors_that_need_a_missing_part_are_silent_and_say_so_once(
    part: ObservationPart, hide: Prepare, silent: Reason
) -> None:
    def a_world() -> Answers:
        answers = an_observation(a=(1, 4), b=(2,), c=(3,)).selector(None)
        answers.topic("orders", (1, 4), isr={0: (1,)}, min_insync_replicas="2")
        return answers.moving("orders-0", (1, 4), (), ()).group("g", reader("m", None, "orders-0"))

    assert Run().look(a_world().at(0)).of(silent)
    answers = a_world()
    hide(answers)
    run = Run().look(answers.gap(part).at(0))
    assert not run.of(silent)
    assert [dict(finding.evidence)["part"] for finding in run.of(Reason.PART_MISSING)] == [str(part)]
