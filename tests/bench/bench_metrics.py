"""What ``/metrics`` costs in a very large cluster, as a scraper sees it, and what its samples cost beside it.

``clients``: 10,000 groups with 100,000 members. ``names``: 100,000 groups of random names, each with two copies of a
task. An agent answers over HTTP: the first scrape of all waits for its samples and has no bound; a scrape after a new
look and one between two looks have the bound. The samples of a look are made beside the answers, and have no bound.
"""

from __future__ import annotations

import json
import random
import time
import urllib.request
from dataclasses import replace

from agent.loop import CycleStages, run_cycle
from agent.process import collect_seldom
from agent.values.assessment import Assessment, Locality, LocalityMeasure
from agent.values.clock import ClockReading
from agent.values.cycle import Cycle
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.snapshot import ConsumerGroup, TaskRole
from agent.web.agent_view import LoopState
from agent.web.app import WebServer, make_app
from agent.web.metrics import RackwiseCollector, SeriesCaps
from assignors.problem import TaskId
from tests.synthetic_cluster import POLL_MS, synthetic_cluster
from tests.web.test_metrics import CYCLE, a_copy, series, state

NAMES = 100_000
ROUNDS = 5
GOAL_MS, GOAL_SERIES = 200.0, 5_000
AT = b"\nrackwise_samples_timestamp_seconds "


def main() -> None:
    collect_seldom()  # as every process of rackwise does at its start
    tell("clients", with_rates(a_planning_cycle(synthetic_cluster(NAMES // 10))))
    tell("names", crowded(NAMES))


def tell(case: str, cycle: Cycle) -> None:
    """Print the figures of one case."""
    looks = [later(cycle, number) for number in range(ROUNDS + 1)]
    first, after_a_look, between = answers(looks)
    show(f"{case}: the first answer of all", wall_ms=first)
    show(f"{case}: answer after a new look", wall_ms=after_a_look, goal=GOAL_MS, ok=after_a_look <= GOAL_MS)
    show(f"{case}: answer between two looks", wall_ms=between, goal=GOAL_MS, ok=between <= GOAL_MS)
    show(f"{case}: samples of a look, made beside", cpu_ms=min(made_ms(later(cycle, 1)) for _ in range(ROUNDS)))
    count = len(series(state(cycle)))
    show(f"{case}: series", series=count, goal=GOAL_SERIES, ok=count <= GOAL_SERIES)


def show(case: str, **figures: float) -> None:
    """Print one figure."""
    print(json.dumps({"bench": "metrics", "size": NAMES, "case": case, **figures}), flush=True)


def answers(looks: list[Cycle]) -> tuple[float, float, float]:
    """Milliseconds of the first answer, and the best ones of those right after a look and of those between two."""
    seen = state(looks[0])
    app = make_app(lambda: seen, lambda: ClockReading(0, 0), fresh_ms=30_000, stall_ms=60_000, caps=SeriesCaps())
    after_a_look, between = list[float](), list[float]()
    with WebServer(app, "127.0.0.1", 0) as server:
        first, _ = scraped(server)
        for look in looks[1:]:
            seen = replace(seen, cycle=look)
            spent, samples_at = scraped(server)
            assert samples_at < look.snapshot.taken_ms / 1_000, "it is answered from the look before"
            after_a_look.append(spent)
            while samples_at < look.snapshot.taken_ms / 1_000:
                time.sleep(0.5)
                _, samples_at = scraped(server)
            between.append(scraped(server)[0])
    return first, min(after_a_look), min(between)


def scraped(server: WebServer) -> tuple[float, float]:
    """(milliseconds until a scraper has the whole answer, Unix time of the look of its samples)."""
    began = time.perf_counter()
    with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=120) as answer:
        text = answer.read()
    spent = (time.perf_counter() - began) * 1_000
    return spent, float(text.split(AT)[1].split(b"\n")[0])


def made_ms(look: Cycle) -> float:
    """CPU milliseconds of the samples of a look whose costs were not worked out before."""
    seen = LoopState(started=ClockReading(0, 0), cycle=look)
    collector = RackwiseCollector(lambda: seen, "1", SeriesCaps())
    began = time.process_time()
    collector.catch_up()
    return (time.process_time() - began) * 1_000


def later(cycle: Cycle, number: int) -> Cycle:
    """The look after so many polls, with the same figures."""
    taken_ms = cycle.snapshot.taken_ms + number * POLL_MS
    return replace(cycle, number=number + 1, snapshot=replace(cycle.snapshot, taken_ms=taken_ms))


def with_rates(cycle: Cycle) -> Cycle:
    """The look with the rates that an agent knows from its second look on."""
    draw = random.Random(1)
    rates = {row.id: draw.random() * 1e6 for topic in cycle.snapshot.topics.values() for row in topic.partitions}
    return replace(cycle, snapshot=replace(cycle.snapshot, bytes_per_s=rates))


def a_planning_cycle(look: Observation) -> Cycle:
    """The whole cycle of a look."""
    line = CycleStages(Limits())
    return run_cycle(line, lambda: look, look, Memory(), number=1, name="look-1", planning=False)


def crowded(number: int) -> Cycle:
    """A look at so many groups without members."""
    draw = random.Random(1)
    names = [f"{draw.getrandbits(64):x}" for _ in range(number)]
    one = Locality(LocalityMeasure.KAFKA, "partitions", 1.0, 2.0, 0.0)
    copies = {
        name: (a_copy(name, TaskId(name, 0)), a_copy(name, role=TaskRole.WARMUP, caught_up=True)) for name in names
    }
    assessments = {name: Assessment(group_id=name, current=(one,), optimal=(one,)) for name in names}
    a_group = next(one for one in CYCLE.snapshot.groups.values() if isinstance(one, ConsumerGroup))
    groups = {name: a_group._replace(id=name, members=()) for name in names}
    return replace(
        CYCLE,
        detection=replace(CYCLE.detection, assessments=assessments),
        snapshot=replace(CYCLE.snapshot, groups=groups, copies=copies),
    )


if __name__ == "__main__":
    main()
