"""Kafka's ``DefaultStandbyTaskAssignor`` (least loaded processes), and its choice against client tags.

No process gets two copies of a task. Load is active tasks and standbys by thread; ties go to the smaller process id.
A task that finds no further process stays short of standbys, with a warning; nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assignors.kafka.standby_steps import StandbyAssignor, by_load, give_standbys
from assignors.kafka.standby_tags import client_tag_aware
from assignors.kafka.streams_problem import ClientState, StreamsProblem
from assignors.problem import BadProblem, TaskId


def standby_assignor(problem: StreamsProblem, process_racks: Mapping[str, str] | None = None) -> StandbyAssignor:
    """Return the one that Kafka's factory chooses: tags when configured, else racks when given, else the default.

    ``process_racks`` is for an assignor that passes valid racks to the factory. The high-availability one does not, so
    without tags it spreads standbys by load alone. Raises ``BadProblem`` when a process is missing there.
    """
    if tags := problem.configs.rack_aware_assignment_tags:
        return client_tag_aware(tags, lambda client: client.client.tags)
    if process_racks is not None:
        for client in problem.clients:
            if client.id not in process_racks:
                raise BadProblem(f"process {client.id} has no consumer with a rack; list its consumers")
        return client_tag_aware(("rack",), lambda client: {"rack": process_racks[client.id]})
    return StandbyAssignor(name="DefaultStandbyTaskAssignor", assign=assign_by_load)


def assign_by_load(clients: Sequence[ClientState], stateful: Iterable[TaskId], replicas: int) -> list[str]:
    """Add standbys of the tasks, in their order, to the clients; return the warnings."""
    queue = by_load(clients)
    return [warning for task in stateful for warning in give_standbys(queue, task, replicas, replicas)]
