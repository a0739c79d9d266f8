"""Random histories of a cluster for property tests: steps that change what the brokers answer, between looks.

A step is a name with two numbers, so that Hypothesis can shrink a failing history to the few steps that matter.
"""

from __future__ import annotations

from hypothesis import strategies as st

from agent.values.observation import GapCause, ObservationPart
from tests.builders import Answers, an_observation, consumer, instance, process_id, reader

RACKS = ("a", "b", "c", "A", None)
Step = tuple[str, int, int]


def a_lively_cluster() -> Answers:
    """A bit of everything: groups of every kind, two applications, topics well and badly placed."""
    answers = an_observation(a=(1, 4), b=(2, 5), c=(3, 6))
    answers.topic("orders", (1, 2, 3), (2, 3, 1), (1, 4, 2)).topic("payments", (1, 4), (2, 5))
    answers.topic("app-store-changelog", (1, 2), (2, 3), ends=[50_000, 60_000])
    answers.group("readers", *(reader(f"m{n}", RACKS[n], f"orders-{n}") for n in range(3)))
    answers.kip848("modern", consumer("c1", "a", "payments-0"), consumer("c2", "b", "payments-1"))
    return application(answers, 1, 0)


def application(answers: Answers, generation: int, offset_sum: int) -> Answers:
    """Instance 1 runs both tasks, instance 2 holds a copy of the second."""
    return answers.streams(
        "app",
        instance(1, "a", {"0_0": "payments-0", "0_1": "payments-1"}, sums={"0_0": -2, "0_1": -2},
                 generation=generation, owned="payments-0 payments-1", next_rebalance_ms=1_760_000_600_000),
        instance(2, "b", {}, {"0_1": "payments-1"}, sums={"0_1": offset_sum} if offset_sum else {},
                 topics=("payments",), generation=generation),
    )  # fmt: skip


def apply(step: Step, answers: Answers, second: float) -> None:
    """Change what the brokers answer."""
    name, one, two = step
    broker = 1 + one % 6
    match name:
        case "relabel":
            answers.broker(broker, RACKS[two % len(RACKS)])
        case "stop":
            if len(answers.brokers) > 1:
                answers.brokers.pop(broker, None)
        case "move":
            replicas = tuple(dict.fromkeys((broker, 1 + two % 6)))
            answers.topic("payments", replicas, (2, 5))
        case "start moving":
            answers.moving("orders-0", (4, 1, 2, 3), (4,), (3,))
            answers.topic("orders", (4, 1, 2, 3), (2, 3, 1), (1, 4, 2))
        case "end moving":
            answers.moves.clear()
            answers.topic("orders", (4, 1, 2) if one % 2 else (1, 2, 3), (2, 3, 1), (1, 4, 2))
        case "add partitions":
            answers.topic("payments", *[(1 + n % 6, 1 + (n + two) % 6) for n in range(2 + one % 4)])
        case "create":
            answers.topic(f"new-{one % 3}", tuple(dict.fromkeys((broker, 1 + two % 6))))
        case "delete":
            answers.topics.pop(f"new-{one % 3}", None)
        case "recreate":
            answers.topic("orders", (broker, 1 + broker % 6), topic_id=f"id-{two}")
        case "lose replicas":
            answers.topic("orders", (1, 2, 3), (2, 3, 1), (1, 4, 2), isr={0: (1,)}, min_insync_replicas="2")
        case "rebalance":
            answers.group(
                "readers", *(reader(f"m{n}", RACKS[(n + one) % 5], f"orders-{(n + two) % 3}") for n in range(3))
            )
        case "hide":
            answers.group("readers", reader("m0", None, "orders-0"), state="PreparingRebalance")
        case "poison":
            answers.group("readers", reader("m0", "a", "orders-0", metadata=bytes([one % 256, two % 256])))
        case "join":
            application(answers, 1 + one % 4, 100 * two)
        case "restore":
            answers.says("app", process_id(2), "0_1", "standby", 100 * one, at_s=second)
            answers.ends = {partition: end + two for partition, end in answers.ends.items()}
        case "throttle":
            answers.topic("payments", (1, 4), (2, 5), leader_replication_throttled_replicas="0:1" if one % 2 else "")
        case "gap":
            answers.gap(
                list(ObservationPart)[one % len(ObservationPart)],
                list(GapCause)[two % len(GapCause)],
                ("", "orders")[one % 2],
            )
        case "no gaps":
            answers.gaps.clear()
        case _:
            raise AssertionError(name)


NAMES = (
    "relabel", "stop", "move", "start moving", "end moving", "add partitions", "create", "delete", "recreate",
    "lose replicas", "rebalance", "hide", "poison", "join", "restore", "throttle", "gap", "no gaps",
)  # fmt: skip

steps = st.tuples(st.sampled_from(NAMES), st.integers(0, 400), st.integers(0, 400))
waits = st.sampled_from((1, 10, 10, 10, 40, 400, 2_000))
histories = st.lists(st.tuples(st.lists(steps, max_size=3), waits), min_size=1, max_size=8)
"""Between two looks: some steps, then a wait in seconds."""
