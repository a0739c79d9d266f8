"""Every interleaving of agents, faults, late requests and other people, over the very functions that run live.

What is not among them is the one hole that cannot be closed: someone else beginning, or setting, something in the
instant between our last look and the arrival of our request. (The protocol has no compare-and-set.)

Breadth first, so that the way to a violation is the shortest one. From each state a walk follows what happens when
faults stop and everybody gets their turn: it must come to an end. Parts of a system are numbered once, and what a part
becomes is worked out once.
"""

from __future__ import annotations

from collections import deque
from random import Random
from typing import NamedTuple

from tests.execute.invariants import all_ended, broken
from tests.execute.model_steps import Transitions
from tests.execute.model_system import Left, Scenario, System

Packed = tuple[int, ...]


class Exploration(NamedTuple):
    """What an exploration found."""

    states: int
    complete: bool
    """False when the bound on states was reached."""
    violation: str = ""
    trace: tuple[str, ...] = ()


def explore(scenario: Scenario, most: int, *, walks: bool = True) -> Exploration:
    """Look at up to that many states; with ``walks`` also whether each of them leads to an end once faults stop."""
    transitions, numbers = Transitions(scenario), Numbers()
    parents: dict[Packed, tuple[Packed | None, str]] = {numbers.pack(transitions.start()): (None, "start")}
    queue = deque(parents)
    ending: set[Packed] = set()
    while queue:
        packed = queue.popleft()
        system = numbers.unpack(packed)
        violation = broken(system, scenario) or (_walk(transitions, numbers, system, ending) if walks else "")
        if violation:
            return Exploration(len(parents), complete=False, violation=violation, trace=_trace(parents, packed))
        if len(parents) >= most:
            continue
        for label, following in transitions.following(system):
            key = numbers.pack(following)
            if key not in parents:
                parents[key] = (packed, label)
                queue.append(key)
    return Exploration(len(parents), complete=len(parents) < most)


def wander(scenario: Scenario, seed: int, runs: int, longest: int = 400) -> Exploration:
    """Go that many random ways, each as long as something may happen; reaches what lies too deep for `explore`."""
    random, transitions, numbers = Random(seed), Transitions(scenario), Numbers()
    known: set[Packed] = set()
    ending: set[Packed] = set()
    for _ in range(runs):
        system, trace = transitions.start(), ["start"]
        for _ in range(longest):
            violation = broken(system, scenario)
            if violation:
                return Exploration(len(known), complete=False, violation=violation, trace=tuple(trace))
            known.add(numbers.pack(system))
            ways = list(transitions.following(system))
            if not ways or all(after == system for _, after in ways):
                break
            # Faults are rare, so that they also happen late.
            weights = [8 if after.left == system.left else 1 for _, after in ways]
            label, system = random.choices(ways, weights)[0]
            trace.append(label)
        if violation := _walk(transitions, numbers, system, ending):
            return Exploration(len(known), complete=False, violation=violation, trace=tuple(trace))
    return Exploration(len(known), complete=False)


def _walk(transitions: Transitions, numbers: Numbers, start: System, ending: set[Packed]) -> str:
    """Empty when this leads to an end once faults stop; ``ending`` keeps what does."""
    path: dict[Packed, None] = {}
    # What could still have happened makes no difference now that nothing does.
    left = Left(foreign=start.left.foreign, throttles=start.left.throttles)
    packed = numbers.pack(start._replace(left=left, former=None))
    while packed not in ending:
        if packed in path:
            return "it never ends"
        path[packed] = None
        system = numbers.unpack(packed)
        if violation := broken(system, transitions.scenario):
            return violation
        following = next(transitions.fair(system), None)
        if following is None:
            if not all_ended(system, transitions.scenario):
                return "the plan was forgotten"
            break
        packed = numbers.pack(following)
    ending.update(path)
    return ""


def _trace(parents: dict[Packed, tuple[Packed | None, str]], packed: Packed) -> tuple[str, ...]:
    labels: list[str] = []
    at: Packed | None = packed
    while at is not None:
        at, label = parents[at]
        labels.append(label)
    return tuple(reversed(labels))


class Numbers:
    """Values <-> small numbers, so that a system is a short tuple of them."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._values: list[object] = []

    def pack(self, system: System) -> Packed:
        number = self.number
        parts = (
            system.cluster, system.journal, system.wire, system.left, system.ended, system.harm, system.former,
        )  # fmt: skip
        return (system.epoch, *(number(part) for part in parts), *(number(agent) for agent in system.agents))

    def unpack(self, packed: Packed) -> System:
        values = [self._values[number] for number in packed[1:]]
        cluster, journal, wire, left, ended, harm, former = values[:7]
        agents = tuple(values[7:])
        return System(cluster, journal, packed[0], agents, wire, left, ended, harm, former)

    def number(self, value: object) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
        return number
