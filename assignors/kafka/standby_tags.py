"""Kafka's ``ClientTagAwareStandbyTaskAssignor``: standbys spread over the values of client tags (KIP-708).

Each standby goes to the least loaded process that shares no used value with the copies before it. A tag stops counting
once as many copies are placed as it has values. Standbys without such a process are placed by load at the end, in the
order of the hash map that holds them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from assignors.kafka.java import grown_table
from assignors.kafka.load_queue import LoadQueue
from assignors.kafka.standby_steps import StandbyAssignor, by_load, give_standbys, least_without
from assignors.kafka.streams_order import tasks_in_hash_order
from assignors.kafka.streams_problem import ClientState
from assignors.problem import TaskId

Tag = tuple[str, str]
TagsOf = Callable[[ClientState], Mapping[str, str]]


def client_tag_aware(tags: tuple[str, ...], tags_of: TagsOf) -> StandbyAssignor:
    """Return Kafka's ``ClientTagAwareStandbyTaskAssignor`` that spreads over these tags."""

    def assign(clients: Sequence[ClientState], stateful: Iterable[TaskId], replicas: int) -> list[str]:
        return _assign(_Spread(clients, tags, tags_of), list(stateful), replicas)

    def allows(source: ClientState, destination: ClientState) -> bool:
        # All tags of the source, not only those that standbys are spread over.
        theirs = tags_of(destination)
        return all(theirs.get(key) == value for key, value in tags_of(source).items())

    def allows_task(source: ClientState, destination: ClientState, holders: Iterable[ClientState]) -> bool:
        others = {
            tag
            for client in holders
            if client is not source and client is not destination
            for tag in tags_of(client).items()
        }
        # Copies of the task never get fewer different tags.
        return len(others | set(tags_of(destination).items())) >= len(others | set(tags_of(source).items()))

    return StandbyAssignor(
        name="ClientTagAwareStandbyTaskAssignor", assign=assign, allows=allows, allows_task=allows_task
    )


def _assign(spread: _Spread, stateful: list[TaskId], replicas: int) -> list[str]:
    home = {task: client for client in spread.clients for task in client.active}
    warnings = spread.ignored()
    missing = dict.fromkeys(stateful, replicas)
    for task in stateful:
        if task in home:
            missing[task] = spread.place(task, home[task], replicas)
            if missing[task] > 0:
                warnings.append(_not_apart(task, home[task], missing[task], replicas, spread.tags))
    queue = by_load(spread.clients)
    # The map of pending tasks held all of them once, which is the size it keeps.
    for task in tasks_in_hash_order(missing, grown_table(len(missing))):
        warnings += give_standbys(queue, task, missing[task], replicas)
    return warnings


class _Spread:
    """Clients by their values of the tags that count."""

    def __init__(self, clients: Sequence[ClientState], tags: tuple[str, ...], tags_of: TagsOf) -> None:
        self.tags, self.tags_of = tags, tags_of
        self.clients = clients
        self.values: defaultdict[str, set[str]] = defaultdict(set)
        alike: defaultdict[frozenset[Tag], list[ClientState]] = defaultdict(list)
        self.kind: dict[str, frozenset[Tag]] = {}
        for client in clients:
            counted = frozenset((key, value) for key, value in tags_of(client).items() if key in tags)
            for key, value in counted:
                self.values[key].add(value)
            alike[counted].append(client)
            self.kind[client.id] = counted
        self.queues: dict[frozenset[Tag], LoadQueue[ClientState]] = {
            kind: by_load(members) for kind, members in alike.items()
        }

    def ignored(self) -> list[str]:
        """Warnings about tags that do not count, and about those that count and are missing."""
        listed = f"rack.aware.assignment.tags ({', '.join(self.tags)})"
        present = dict.fromkeys(key for client in self.clients for key in self.tags_of(client))
        warnings = [
            f"client tag {key} is not used for standbys: {listed} does not list it"
            for key in present
            if key not in self.tags
        ]
        for key in self.tags:
            without = [client.id for client in self.clients if key not in self.tags_of(client)]
            if without:
                more = f" and {len(without) - 1} more have" if without[1:] else " has"
                warnings.append(f"process {without[0]}{more} no client.tag.{key} of {listed}")
        return warnings

    def place(self, task: TaskId, home: ClientState, replicas: int) -> int:
        """Place standbys apart from the active task and from each other; return how many found no place."""
        used: set[Tag] = set()
        last, placed = home, 0
        # Kafka tries once before it looks at the number.
        while placed == 0 or placed < replicas:
            for key, value in self.kind[last.id]:
                if len(self.values[key]) <= placed + 1:
                    used = {tag for tag in used if tag[0] != key}
                else:
                    used.add((key, value))
            found = self._least(task, used)
            if found is None:
                break
            found.standby.add(task)
            self.queues[self.kind[found.id]].changed(found)
            last, placed = found, placed + 1
        return replicas - placed

    def _least(self, task: TaskId, used: set[Tag]) -> ClientState | None:
        """The least loaded client without a copy and without a used tag."""
        candidates = [
            client
            for kind, queue in self.queues.items()
            if used.isdisjoint(kind) and (client := least_without(queue, task)) is not None
        ]
        return min(candidates, key=lambda client: (client.load, client.key), default=None)


def _not_apart(task: TaskId, home: ClientState, missing: int, total: int, tags: tuple[str, ...]) -> str:
    noun = "standby" if total == 1 else "standbys"
    return (
        f"{missing} of {total} {noun} of task {task}, active on {home.id}, find no process apart from its copies by "
        f"{', '.join(tags)}; they go to the least loaded processes: start instances with other values of these tags"
    )
