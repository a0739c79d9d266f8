"""Parts of a plan that are not settled yet, one sentence each.

Two questions: has every member joined and been given its part (`unready`), and have the Streams applications worked
off what was written ahead, with their standbys close behind (`unsettled`)? Pure: the answers of the JVM and of the
members come in as values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent.values.number_format import counted
from testbed.demo.workload.plan import StreamsPlan, WorkloadPlan

Json = Mapping[str, Any]

_STANDBY_CLOSE = 1_000


def unready(plan: WorkloadPlan, held: Mapping[str, int], assignment: Json) -> tuple[str, ...]:
    """Groups that hold too few partitions, instances that do not run, applications that run too few tasks.

    `held` is librdkafka group -> partitions held by its members; `assignment` what the JVM serves under that name.
    """
    return (
        *_unready_groups(plan, {**held, **_held_by_java(assignment)}),
        *(sentence for app in plan.streams for sentence in _unready_application(plan, app, assignment)),
    )


def unsettled(plan: WorkloadPlan, lags: Mapping[str, Json]) -> tuple[str, ...]:
    """Applications that have not stored what was written ahead, and standbys far behind.

    `lags` is application -> what the JVM serves for it.
    """
    return tuple(
        sentence for app in plan.streams for sentence in _unsettled_application(plan, app, lags[app.application])
    )


def partitions(plan: WorkloadPlan, topic: str) -> int:
    """How many partitions the plan gives a topic."""
    return next(len(one.replicas) for one in plan.topics if one.name == topic)


def _held_by_java(assignment: Json) -> dict[str, int]:
    held: dict[str, set[str]] = {}
    for consumer in assignment["consumers"]:
        held.setdefault(consumer["group"], set()).update(consumer["partitions"])
    return {group: len(names) for group, names in held.items()}


def _unready_groups(plan: WorkloadPlan, held: Mapping[str, int]) -> Iterator[str]:
    for group in (*plan.librdkafka_groups, *plan.java_groups):
        has, expected = held.get(group.group, 0), partitions(plan, group.topic)
        if has < expected:
            yield f"group {group.group} holds {has} of {counted(expected, 'partition')}"


def _unready_application(plan: WorkloadPlan, app: StreamsPlan, assignment: Json) -> Iterator[str]:
    mine = [one for one in assignment["instances"] if one["application"] == app.application]
    active = {task for one in mine for task in one["active"]}
    expected = partitions(plan, app.topology.input) + app.topology.region_partitions
    waiting = [one["id"] for one in mine if one["state"] != "RUNNING"]
    if waiting:
        yield f"instances {', '.join(waiting)} are not running"
    elif len(active) < expected:
        yield f"application {app.application} runs {len(active)} of at least {counted(expected, 'task')}"


def _unsettled_application(plan: WorkloadPlan, app: StreamsPlan, lags: Json) -> Iterator[str]:
    tasks = [task for one in lags["instances"] for task in one["tasks"]]
    ends = [task["stores"].get("customers", {}).get("end") for task in tasks if task["role"] == "active"]
    stored = sum(end for end in ends if end is not None)
    expected = sum(load.preload_records for load in plan.loads if load.topic == app.topology.input)
    if stored < expected:
        yield f"application {app.application} has stored {stored} of {counted(expected, 'record')}"
    for task in tasks:
        if task["role"] == "standby" and (task["lag"] or 0) > _STANDBY_CLOSE:
            yield f"standby {task['task']} of {app.application} is {counted(task['lag'], 'record')} behind"
