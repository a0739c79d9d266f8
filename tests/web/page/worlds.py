"""Clusters that the page is looked at with, each as the evaluation of its second look; and the agent around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from agent.guard.judge import guard
from agent.simulate.evaluation import StageEvaluation, first_memory, second_look
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import GapCause, Observation, ObservationPart
from agent.web.agent_view import AgentView, LoopState
from assignors.problem import TopicPartition
from config.load import LoadedSettings
from config.settings import Settings
from tests.builders import TAKEN_MS, Answers, an_observation, consumer, instance, process_id, reader, with_group
from tests.hostile_cluster import observation as hostile_observation
from tests.hostile_cluster import poisoned
from tests.synthetic_cluster import next_look, synthetic_cluster

NOW = ClockReading(1_760_000_063_000, 50_063_000)
"""Three seconds after the second look."""
RECORD_BYTES = 1_000


def viewed(look: StageEvaluation | None, *, age_ms: int = 3_000, **settings: object) -> AgentView:
    """A running agent whose last finished cycle gave this look, as API and page read it."""
    loaded = LoadedSettings(
        settings=Settings.model_validate({"kafka": {"bootstrap.servers": "kafka:9092"}, **settings})
    )
    ended = ClockReading(NOW.wall_ms - age_ms, NOW.monotonic_ms - age_ms)
    state = LoopState(started=ClockReading(0, 0))
    if look is not None:
        cycle = cycle_of(look)
        state = replace(state, cycle=cycle, planned=cycle, last_end=ended, last_success=ended)
    return AgentView(state=lambda: state, settings=loaded, read_journal=dict, journal_name="rackwise.journal")


def cycle_of(look: StageEvaluation) -> Cycle:
    """A cycle of the loop that gave this look."""
    return Cycle(
        number=7,
        look="rackwise/7",
        limits=look.limits,
        observation=Answers().at(),
        before=look.before,
        after=look.before,
        snapshot=look.snapshot,
        detection=look.detection,
        plan=look.plan,
        proposals=look.proposals,
        verdicts=guard(look.proposals, look.snapshot, look.before, look.limits),
    )


def clock() -> ClockReading:
    """Always the same instant."""
    return NOW


def sized(answers: Answers) -> Answers:
    """The same, with a size for every replica: a kilobyte a record."""
    for name, topic in answers.topics.items():
        for row in topic.partitions:
            for broker in row.replicas:
                partition = TopicPartition(name, row.partition)
                answers.sizes[broker, partition] = answers.ends.get(partition, 0) * RECORD_BYTES
    return answers


def watched(answers: Answers, limits: Limits | None = None, *, per_s: int = 400) -> StageEvaluation:
    """The second of two looks a minute apart, between which every partition took in so many records a second."""
    limits = limits or Limits()
    memory = first_memory(sized(answers).at(0), limits)
    for number, partition in enumerate(sorted(answers.ends)):
        answers.ends[partition] += 60 * per_s * (1 + number % 5)
    return second_look(sized(answers).at(60), memory, limits)


@cache
def empty() -> StageEvaluation:
    """Three brokers, no topic and no group."""
    return watched(an_observation(a=(1,), b=(2,), c=(3,)))


def _three_racks() -> Answers:
    return an_observation(**{"eu-1a": (1, 4), "eu-1b": (2, 5), "eu-1c": (3, 6)})


@cache
def healthy() -> StageEvaluation:
    """Every read in its own rack, nothing to find."""
    answers = _three_racks()
    answers.topic("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2), min_insync_replicas="2")
    answers.topic("clicks", (4, 5, 6), (5, 6, 4), (6, 4, 5), min_insync_replicas="2")
    for topic, name in (("orders", "billing"), ("clicks", "analytics")):
        answers.group(
            name,
            *(reader(f"m{n}", rack, f"{topic}-{n}") for n, rack in enumerate(("eu-1a", "eu-1b", "eu-1c"))),
        )
    return watched(answers)


@cache
def sick() -> StageEvaluation:
    """Misplaced reads, a group without racks, one of KIP-848, an application that warms up, a topic in one rack."""
    answers = _three_racks()
    spread = ((1, 2, 3), (2, 3, 1), (3, 1, 2), (4, 5, 6), (5, 6, 4), (6, 4, 5))
    answers.topic("orders", *spread, min_insync_replicas="2")
    answers.topic("payments", *spread[:3], min_insync_replicas="2", isr={1: (2,)})
    answers.topic("clicks", (1, 4), (2, 5), (1, 4), (3, 6), min_insync_replicas="1")
    answers.topic("shop-app-store-changelog", (1, 2), (2, 3), (3, 1), (1, 2), cleanup_policy="compact")
    answers.topic("shop", (1, 2), (2, 3), (3, 1), (1, 2))
    answers.moving("clicks-3", (3, 6, 5), (5,), (6,))
    answers.group(
        "billing",
        reader("m1", "eu-1a", "clicks-1 orders-0"),
        reader("m2", "eu-1b", "clicks-0 orders-1"),
        reader("m3", "eu-1c", "clicks-2 clicks-3 orders-2"),
    )
    answers.group(
        "legacy-reports", *(reader(f"r{n}", None, f"orders-{n}", version=1) for n in range(3)), assignor="range"
    )
    answers.kip848(
        "fraud-check", consumer("f1", "eu-1c", "payments-0 payments-1"), consumer("f2", "eu-1a", "payments-2")
    )
    answers.group("rebalancing", reader("x", "eu-1a", "orders-5"), state="PreparingRebalance")
    answers.streams(
        "shop-app",
        instance(
            1,
            "eu-1a",
            {"0_0": "shop-0", "0_1": "shop-1"},
            {"0_2": "shop-2"},
            sums={"0_0": 0, "0_1": 0, "0_2": 900},
            next_rebalance_ms=TAKEN_MS + 500_000,
        ),
        instance(
            2, "eu-1b", {"0_2": "shop-2", "0_3": "shop-3"}, {"0_0": "shop-0"}, sums={"0_2": 0, "0_3": 0, "0_0": 5}
        ),
        instance(3, "eu-1c", {}, {"0_1": "shop-1", "0_3": "shop-3"}, sums={"0_1": 100}),
    )
    for number in range(4):
        answers.ends[TopicPartition("shop-app-store-changelog", number)] = 60_000
    for process, task, lag in ((3, "0_1", 21_400), (3, "0_3", 48_000), (1, "0_2", 1_200), (2, "0_0", 300)):
        answers.says("shop-app", process_id(process), task, "standby", lag, at_s=0)
    for name in ("billing", "legacy-reports", "fraud-check"):
        answers.committed[name] = {
            partition: end - 200 * (1 + number)
            for number, (partition, end) in enumerate(sorted(answers.ends.items()))
            if partition.topic in ("orders", "clicks", "payments")
        }
    limits = with_group("shop-app", max_warmup_replicas=2, rack_aware_assignment_strategy="min_traffic")
    memory = first_memory(sized(answers).at(0), limits)
    for process, task, lag in ((3, "0_1", 15_100), (3, "0_3", 52_000), (1, "0_2", 400), (2, "0_0", 0)):
        answers.says("shop-app", process_id(process), task, "standby", lag, at_s=58)
    for number, partition in enumerate(sorted(answers.ends)):
        answers.ends[partition] += 24_000 * (1 + number % 5)
    return second_look(sized(answers).at(60), memory, limits)


@cache
def unknown() -> StageEvaluation:
    """No rack is known, and topics and groups did not answer in full."""
    answers = an_observation(_=(1, 2, 3)).selector(None)
    answers.topic("orders", (1, 2), (2, 3), (3, 1))
    answers.group("billing", reader("m1", None, "orders-0 orders-1"), reader("m2", None, "orders-2"))
    answers.ends.clear()
    for part in (
        ObservationPart.TOPICS,
        ObservationPart.GROUPS,
        ObservationPart.LOG_DIRS,
        ObservationPart.BROKER_CONFIGS,
    ):
        answers.gap(part, GapCause.NOT_ALLOWED)
    observed = answers.at(60)
    return second_look(observed, Memory(), Limits())


@cache
def hostile() -> StageEvaluation:
    """Every name is chosen to do harm."""
    return second_look(hostile_observation(poisoned), Memory(), Limits())


@cache
def many(groups: int) -> StageEvaluation:
    """So many groups, a third of them worse than their optimum."""
    first: Observation = synthetic_cluster(groups)
    limits = Limits()
    return second_look(next_look(first), first_memory(first, limits), limits)


WORLDS: dict[str, Callable[[], StageEvaluation]] = {
    "empty": empty,
    "healthy": healthy,
    "sick": sick,
    "unknown": unknown,
    "hostile": hostile,
}
