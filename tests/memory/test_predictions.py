"""A wrong guess is noticed: what was predicted of a group is remembered and compared after its next rebalance."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.memory.codec import memory_from_json, memory_to_json
from agent.values.finding import Finding
from agent.values.finding import FindingReason as Reason
from tests.builders import Answers, Run, an_observation, instance, with_group

SETTINGS = with_group("app", rack_aware_assignment_strategy="min_traffic")


def world() -> Answers:
    answers = an_observation(a=(1, 4), b=(2, 5), c=(3, 6)).topic("orders", (1, 2), (2, 3), (3, 1))
    return answers.topic("app-store-changelog", (1, 2), (2, 3), (3, 1), ends=[900] * 3)


def app(*tasks: str, generation: int, racks: str = "abc") -> Callable[[Answers], Answers]:
    """Instances in their racks, the n-th with the n-th word of tasks (``"0 1"`` runs 0_0 and 0_1)."""

    def put(answers: Answers) -> Answers:
        rows = []
        for number, (rack, words) in enumerate(zip(racks, tasks, strict=True), start=1):
            active = {f"0_{word}": f"orders-{word}" for word in words.split()}
            sums = dict.fromkeys(active, -2)
            owned = " ".join(active.values())
            rows.append(
                instance(number, rack, active, sums=sums, owned=owned, generation=generation, topics=("orders",))
            )
        return answers.streams("app", *rows)

    return put


def looks(*changes: Callable[[Answers], Answers]) -> list[list[Finding]]:
    """The findings that a prediction was missed, look by look."""
    answers, run, found = world(), Run(SETTINGS), []
    for number, change in enumerate(changes):
        run.look(change(answers).at(10 * number))
        assert memory_from_json(memory_to_json(run.memory)).predictions == run.memory.predictions
        found.append(run.of(Reason.PREDICTION_MISSED))
    return found


ASTRAY = ("1", "2", "0")
"""Every task in a rack without its partition."""
AT_HOME = ("0", "1", "2")


def test_an_assignment_that_was_not_predicted_is_said_and_stays_said_until_the_next_rebalance() -> None:
    before, after, still = looks(app(*ASTRAY, generation=4), app(*ASTRAY, generation=5), app(*ASTRAY, generation=5))
    assert before == []
    (finding,) = after
    assert "0 reads across racks; after the rebalance the group has another assignment, with 3" in finding.sentence
    assert "the configured or assumed settings are probably not those that it runs with" in finding.sentence
    assert dict(finding.evidence)["known from"] == "set by the user"
    assert [one.sentence for one in still] == [finding.sentence]


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(app(*ASTRAY, generation=4), id="no rebalance since"),
        pytest.param(app("1 2", "0", generation=5, racks="ab"), id="another set of instances"),
        pytest.param(app("1", "2", "", generation=5), id="a task is still being handed over"),
    ],
)
def test_nothing_is_said_of_what_proves_nothing(then: Callable[[Answers], Answers]) -> None:
    assert looks(app(*ASTRAY, generation=4), then)[-1] == []


def test_a_prediction_that_came_true_is_forgotten() -> None:
    answers, run = world(), Run(SETTINGS)
    run.look(app(*ASTRAY, generation=4)(answers).at(0))
    assert run.memory.predictions["app"].crossing == 0
    run.look(app(*AT_HOME, generation=5)(answers).at(10))
    assert run.of(Reason.PREDICTION_MISSED) == []
    assert run.memory.predictions == {}
