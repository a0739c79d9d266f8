"""Checks of the doctor by key, and a cluster in which all of them are ok."""

from __future__ import annotations

from agent.explain.doctor import DoctorCheck, diagnose, risks
from agent.simulate.evaluation import StageEvaluation, evaluate
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.plan import Plan
from tests.builders import Answers, an_observation, instance, process_id, reader

LEADER_THROTTLE = "leader.replication.throttled.replicas"


def evaluated(answers: Answers, limits: Limits | None = None) -> StageEvaluation:
    return evaluate(answers.at(), Memory(), limits or Limits())


def checks_of(answers: Answers, limits: Limits | None = None) -> dict[str, DoctorCheck]:
    return checks_in(evaluated(answers, limits))


def checks_in(seen: StageEvaluation) -> dict[str, DoctorCheck]:
    every = (*diagnose(seen.snapshot, seen.detection, seen.plan or Plan(), seen.limits), *risks(seen.snapshot))
    assert len({check.key for check in every}) == len(every)
    return {check.key: check for check in every}


def healthy_cluster() -> Answers:
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
