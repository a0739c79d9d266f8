"""Instances join and leave: the local share and the moves of `rackwise` beside those of Kafka's default assignor.

    python -m tests.jvm.churn_tasks --events 300

Prints the table of docs/plugin.md. Kafka's are those of ``HighAvailabilityTaskAssignor`` as ``assignors`` has it,
without racks and with ``balance_subtopology``. A move is a task that is with another process than before, which is
still there.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from assignors import TaskId, TopicPartition
from assignors.kafka.high_availability import high_availability
from assignors.kafka.streams_problem import (
    LONG_MAX,
    RUNNING_ACTIVE,
    AssignmentConfigs,
    RackFacts,
    RackStrategy,
    StreamsClient,
    StreamsProblem,
)
from tests.jvm.applications import END, task_id
from tests.jvm.churn import ChurnFigures
from tests.jvm.compare import Ask, assignor
from tests.jvm.compare_tasks import MAIN

Owners = dict[str, str]
"""Task -> process."""
Place = Callable[["World", Owners], Owners]


class ApplicationShape(NamedTuple):
    """An application in a steady size; all its tasks have state, in three subtopologies."""

    tasks: int
    processes: int
    replicas: int
    racks: int


SHAPES = (
    ApplicationShape(12, 3, 2, 3),
    ApplicationShape(60, 6, 2, 3),
    ApplicationShape(60, 6, 1, 3),
    ApplicationShape(60, 6, 3, 6),
    ApplicationShape(60, 6, 3, 3),
)


class World(NamedTuple):
    """What is there at one time."""

    sources: dict[str, list[str]]
    """Task -> racks with a replica of its source partition."""
    rack: dict[str, str]
    """Process -> its rack."""


def rackwise(ask: Ask) -> Place:
    """The plug-in, where every copy counts as caught up, so that targets are reached at once."""

    def place(world: World, owner: Owners) -> Owners:
        processes = {
            process: {
                "rack": rack,
                "threads": 1,
                "tags": {},
                "active": [task for task, runs in owner.items() if runs == process],
                "standby": [],
                "lags": {task: RUNNING_ACTIVE for task, runs in owner.items() if runs == process},
            }
            for process, rack in world.rack.items()
        }
        tasks = {
            task: {"stateful": True, "sources": [racks], "changelogs": [racks]} for task, racks in world.sources.items()
        }
        settings = {"traffic_cost": 10, "move_cost": 1, "standbys": 0, "warmups": 2, "acceptable_lag": LONG_MAX}
        settings |= {"end": END}
        answer: dict[str, Any] = ask({"tasks": tasks, "processes": processes, "settings": {**settings, "tags": []}})
        assert not answer["fallback"]
        assert not answer["follows"]
        return {task: process for process, tasks in answer["active"].items() for task in tasks}

    return place


def kafka(strategy: RackStrategy) -> Place:
    """Kafka's default, likewise."""

    def place(world: World, owner: Owners) -> Owners:
        ids = {task: task_id(task) for task in world.sources}
        partitions: dict[TaskId, tuple[TopicPartition, ...]] = {
            each: (TopicPartition(f"in-{each.subtopology}", each.partition),) for each in ids.values()
        }
        topics: dict[str, list[tuple[str, ...]]] = {}
        for task, racks in world.sources.items():
            topics.setdefault(f"in-{ids[task].subtopology}", []).append(tuple(racks))
        clients = tuple(
            StreamsClient(
                id=process,
                capacity=1,
                prev_active=tuple(sorted(ids[task] for task, runs in owner.items() if runs == process)),
                lags={ids[task]: RUNNING_ACTIVE if owner.get(task) == process else END for task in ids},
            )
            for process in world.rack
        )
        given = high_availability(
            StreamsProblem(
                tasks=tuple(ids.values()),
                stateful=tuple(ids.values()),
                clients=clients,
                configs=AssignmentConfigs(acceptable_recovery_lag=LONG_MAX, rack_aware_assignment_strategy=strategy),
                racks=RackFacts(
                    consumer_racks={process: {process: rack} for process, rack in world.rack.items()},
                    cluster={topic: tuple(rows) for topic, rows in topics.items()},
                    described={topic: tuple(rows) for topic, rows in topics.items()},
                    task_partitions=partitions,
                    changelog_partitions=partitions,
                ),
            )
        )
        assert not given.warnings
        return {str(task): process for process, tasks in given.active.items() for task in tasks}

    return place


def churn(shape: ApplicationShape, events: int, place: Place) -> ChurnFigures:
    """Each event is a join or a leave of a random process; the number of processes stays near the shape's."""
    rng = random.Random(924)
    racks = "abcdef"[: shape.racks]
    sources = {f"{n % 3}_{n // 3}": sorted(rng.sample(racks, shape.replicas)) for n in range(shape.tasks)}
    rack = {str(uuid.UUID(int=rng.getrandbits(128))): racks[n % len(racks)] for n in range(shape.processes)}
    owner: Owners = {}
    local = moved = 0
    for event in range(events + 1):
        if event:
            if len(rack) < shape.processes or (len(rack) == shape.processes and rng.random() < 0.5):
                rack[str(uuid.UUID(int=rng.getrandbits(128)))] = rng.choice(racks)
            else:
                del rack[rng.choice(sorted(rack))]
        before = {task: process for task, process in owner.items() if process in rack}
        owner = place(World(sources, rack), before)
        if event:
            local += sum(rack[process] in sources[task] for task, process in owner.items())
            moved += sum(owner[task] != process for task, process in before.items())
    return ChurnFigures(local / (events * shape.tasks), moved / events)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=300)
    events: int = parser.parse_args().events
    print("| tasks, processes | replicas of racks | default: local, moved | with racks: local, moved | `rackwise` |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory, assignor(Path(directory), MAIN) as ask:
        for shape in SHAPES:
            found = [
                churn(shape, events, place) for place in (kafka("none"), kafka("balance_subtopology"), rackwise(ask))
            ]
            cells = " | ".join(f"{each.local_share:.1%}, {each.moved_per_event:.2f}" for each in found)
            print(f"| {shape.tasks}, {shape.processes} | {shape.replicas} of {shape.racks} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
