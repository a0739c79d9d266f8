"""Properties of all task assignments that Kafka may give where it depends on identity hash codes.

Checked in this order: every task is active once and copies are apart; standby count; balance; stickiness; side results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from assignors.cases.fields import an_object, each, text, whole
from assignors.cases.registry import AssignorCase, Output

_TOTALS_WITHIN = 3
_SIDE_RESULTS = ("followup_rebalance", "validation")


class _Placement(NamedTuple):
    """Process -> active tasks and standbys, as text; a process with several members has what they have together."""

    active: Mapping[str, tuple[str, ...]]
    standby: Mapping[str, tuple[str, ...]]


class _Application(NamedTuple):
    """What the properties ask of an input."""

    tasks: frozenset[str]
    stateful: frozenset[str]
    before: Mapping[str, tuple[str, ...]]
    """Process -> tasks that were active there."""
    slack: int
    """By how much sorted loads may differ in one place, and how many tasks fewer may stay."""


def broken_property(case: AssignorCase, kafka: Output, own: Output) -> str | None:
    """The first property that Kafka's answers have and the own one lacks, in words; None when it has them all.

    Raises ``BadProblem`` when one of the two is not shaped like an output of the case's assignor.
    """
    return next(_broken(case, kafka, own), None)


def _broken(case: AssignorCase, kafka: Output, own: Output) -> Iterator[str]:
    in_group = case.assignor == "group.streams_sticky"
    if in_group:
        application = _of_group(case.input)
        expected, got = _group_placement(case.input, kafka), _group_placement(case.input, own)
    else:
        application = _of_streams(case.input)
        expected, got = _streams_placement(kafka), _streams_placement(own)
    yield from _valid(application, expected, got)
    yield from _same_standbys(expected, got)
    yield from _same_loads(application, expected, got)
    yield from _as_sticky(application, expected, got)
    for name in _SIDE_RESULTS:
        if kafka.get(name) != own.get(name):
            yield f"{name} is {own.get(name)!r}; Kafka has {kafka.get(name)!r}"
    if case.active_part_exact:
        part = "members" if in_group else "clients"
        for name in kafka[part]:
            one, other = own[part].get(name, {}).get("active"), kafka[part][name]["active"]
            if one != other:
                yield f"active tasks of {name} are {one}; Kafka always has {other}"


def _valid(application: _Application, expected: _Placement, got: _Placement) -> Iterator[str]:
    for process in sorted(expected.active.keys() - got.active.keys()):
        yield f"process {process} is missing"
    for process in sorted(got.active.keys() - expected.active.keys()):
        yield f"process {process} is not one of Kafka's"
    active = Counter(task for tasks in got.active.values() for task in tasks)
    for task in sorted(active.keys() - application.tasks):
        yield f"task {task} is unknown"
    for task in sorted(application.tasks):
        if active[task] != 1:
            yield f"task {task} is active {active[task]} times"
    for process, tasks in got.standby.items():
        yield from _valid_standbys(application, process, tasks, got.active.get(process, ()))


def _valid_standbys(
    application: _Application, process: str, standby: tuple[str, ...], active: tuple[str, ...]
) -> Iterator[str]:
    for task in standby:
        if task not in application.stateful:
            yield f"task {task} has a standby on {process} but no state"
    for task, count in Counter(active + standby).items():
        if count > 1:
            yield f"process {process} has {count} copies of task {task}"


def _same_standbys(expected: _Placement, got: _Placement) -> Iterator[str]:
    wanted = Counter(task for tasks in expected.standby.values() for task in tasks)
    given = Counter(task for tasks in got.standby.values() for task in tasks)
    for task in sorted(wanted | given):
        if wanted[task] != given[task]:
            yield f"task {task} has {given[task]} standbys; Kafka gives it {wanted[task]}"


def _same_loads(application: _Application, expected: _Placement, got: _Placement) -> Iterator[str]:
    kafka, own = _loads(expected), _loads(got)
    for name, allowed in (("active", application.slack), ("all", _TOTALS_WITHIN)):
        if any(abs(one - other) > allowed for one, other in zip(own[name], kafka[name], strict=True)):
            yield (
                f"sorted numbers of {name} tasks per process are {own[name]}; "
                f"Kafka has {kafka[name]}, {allowed} apart are allowed"
            )


def _loads(placement: _Placement) -> dict[str, list[int]]:
    active = {process: len(tasks) for process, tasks in placement.active.items()}
    return {
        "active": sorted(active.values()),
        "all": sorted(count + len(placement.standby.get(process, ())) for process, count in active.items()),
    }


def _as_sticky(application: _Application, expected: _Placement, got: _Placement) -> Iterator[str]:
    kafka, own = _kept(application.before, expected), _kept(application.before, got)
    if own < kafka - application.slack or (own != kafka and not application.slack):
        yield f"{own} active tasks stay where they were; with Kafka {kafka} do"


def _kept(before: Mapping[str, tuple[str, ...]], now: _Placement) -> int:
    return sum(len(set(tasks) & set(before.get(process, ()))) for process, tasks in now.active.items())


# --- the two shapes -------------------------------------------------------------------------------------------


def _of_streams(case: Mapping[str, Any]) -> _Application:
    tasks = an_object(case.get("tasks"), "tasks")
    clients = each(case.get("clients"), "clients", an_object)
    return _Application(
        tasks=frozenset(each(tasks.get("all"), "tasks.all", text)),
        stateful=frozenset(each(tasks.get("stateful"), "tasks.stateful", text)),
        before={
            text(client.get("id"), "id"): each(client.get("prev_active"), "prev_active", text) for client in clients
        },
        slack=0,
    )


def _streams_placement(output: Output) -> _Placement:
    clients = {
        name: an_object(client, f"clients.{name}")
        for name, client in an_object(output.get("clients"), "clients").items()
    }
    return _Placement(
        {name: each(client.get("active"), f"clients.{name}.active", text) for name, client in clients.items()},
        {name: each(client.get("standby"), f"clients.{name}.standby", text) for name, client in clients.items()},
    )


def _of_group(case: Mapping[str, Any]) -> _Application:
    tasks: dict[str, bool] = {}
    for subtopology in each(case.get("subtopologies"), "subtopologies", an_object):
        for partition in range(whole(subtopology.get("partitions"), "partitions")):
            tasks[f"{subtopology.get('id')}_{partition}"] = subtopology.get("stateful") is True
    members = {member.get("id"): member for member in each(case.get("members"), "members", an_object)}
    return _Application(
        tasks=frozenset(tasks),
        stateful=frozenset(task for task, stateful in tasks.items() if stateful),
        before=_group_placement(case, {"members": members}).active,
        slack=1,
    )


def _group_placement(case: Mapping[str, Any], output: Output) -> _Placement:
    members = each(case.get("members"), "members", an_object)
    process_of = {member.get("id"): str(member.get("process_id")) for member in members}
    active: dict[str, tuple[str, ...]] = {}
    standby: dict[str, tuple[str, ...]] = {}
    for name, member in an_object(output.get("members"), "members").items():
        process = process_of.get(name, f"of unknown member {name}")
        tasks = an_object(member, f"members.{name}")
        active[process] = active.get(process, ()) + _names(tasks.get("active"), f"members.{name}.active")
        standby[process] = standby.get(process, ()) + _names(tasks.get("standby"), f"members.{name}.standby")
    return _Placement(active, standby)


def _names(tasks: Any, field: str) -> tuple[str, ...]:
    return tuple(
        f"{subtopology}_{partition}"
        for subtopology, partitions in an_object(tasks, field).items()
        for partition in each(partitions, f"{field}.{subtopology}", whole)
    )
