"""Random consumer groups as JSON, and the golden file that the Java assignor is compared with.

    python -m tests.jvm.groups    writes jvm/src/test/resources/groups.jsonl anew

Equal seeds give equal groups. Owners may be gone, contested or no longer subscribed, racks unknown, topics unread.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assignors import ConsumerMember, ConsumerProblem, TopicPartition, measure_consumer, optimal_consumer

GOLDEN = Path(__file__).parents[2] / "jvm" / "src" / "test" / "resources" / "groups.jsonl"
GOLDEN_SEED = 848
GOLDEN_GROUPS = 500

Figures = dict[str, Any]


def random_groups(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Groups from two partitions to some hundreds; two of three have members that subscribe to different topics."""
    rng = random.Random(seed)
    for _ in range(count):
        size = rng.choice(("tiny", "small", "small", "wide"))
        yield _group(rng, *{"tiny": (3, 2, 4), "small": (8, 4, 10), "wide": (24, 6, 40)}[size])


def _group(rng: random.Random, most_members: int, most_topics: int, most_partitions: int) -> dict[str, Any]:
    racks = "abcdef"[: rng.randint(1, rng.choice((3, 3, 6)))]
    factor = rng.randint(1, 3)
    topics = {
        f"t{number}": [_racks(rng, racks, factor) for _ in range(rng.randint(1, most_partitions))]
        for number in range(rng.randint(1, most_topics))
    }
    if rng.random() < 0.3:
        topics["same"] = [list(each) for each in topics["t0"]]
    names = [*topics, "unknown"]
    subscriptions = [names]
    if rng.random() < 2 / 3:
        subscriptions = [rng.sample(names, rng.randint(0 if rng.random() < 0.1 else 1, len(names))) for _ in range(4)]
    members = [
        {
            "id": f"m{number}",
            "rack": None if rng.random() < 0.1 else rng.choice(racks),
            "topics": rng.choice(subscriptions),
            "owned": {},
        }
        for number in range(rng.randint(1, most_members))
    ]
    rng.shuffle(members)
    _own(rng, members, topics)
    return {"topics": topics, "members": members}


def _racks(rng: random.Random, racks: str, factor: int) -> list[str]:
    if rng.random() < 0.03:
        return []
    places = [*racks, "elsewhere"] if rng.random() < 0.1 else [*racks]
    return sorted(rng.sample(places, min(factor, len(places))))


def _own(rng: random.Random, members: list[dict[str, Any]], topics: dict[str, list[list[str]]]) -> None:
    """Give the group a history: none, balanced by topic, local, or anything."""
    history = rng.choice(("none", "dealt", "local", "any", "any"))
    claims = [(topic, number) for topic, partitions in topics.items() for number in range(len(partitions))]
    if history == "any":
        claims += [("gone", 0), ("t0", 999)]
    for place, (topic, number) in enumerate(claims):
        if history == "none" or rng.random() < 0.05:
            continue
        if history == "dealt":
            owners = [members[place * len(members) // len(claims)]]
        elif history == "local":
            owners = [each for each in members if each["rack"] in topics[topic][number]][:1]
        else:
            owners = rng.sample(members, min(len(members), 2 if rng.random() < 0.03 else 1))
        for owner in owners:
            owner["owned"].setdefault(topic, []).append(number)


def problem_of(group: dict[str, Any]) -> ConsumerProblem:
    """The group as a problem of ``assignors``."""
    return ConsumerProblem(
        members=tuple(
            ConsumerMember(
                id=each["id"],
                rack=each["rack"],
                topics=tuple(each["topics"]),
                owned=tuple(TopicPartition(topic, n) for topic, numbers in each["owned"].items() for n in numbers),
            )
            for each in group["members"]
        ),
        racks={topic: tuple(frozenset(racks) for racks in sets) for topic, sets in group["topics"].items()},
    )


def figures(problem: ConsumerProblem, assignment: dict[str, tuple[TopicPartition, ...]]) -> Figures:
    """Loads descending, partitions read across racks and partitions that moved."""
    measured = measure_consumer(problem, assignment)
    return {
        "loads": sorted(measured.loads.values(), reverse=True),
        "crossing": measured.crossing,
        "moved": measured.moved,
    }


def optimum(group: dict[str, Any]) -> Figures:
    """The figures of ``optimal_consumer``."""
    problem = problem_of(group)
    return figures(problem, dict(optimal_consumer(problem).assignment))


def golden_lines() -> list[str]:
    """The golden file, line by line: a group and the figures of its optimum."""
    return [
        json.dumps({**group, "optimum": optimum(group)}, separators=(",", ":"))
        for group in random_groups(GOLDEN_SEED, GOLDEN_GROUPS)
    ]


if __name__ == "__main__":
    GOLDEN.write_text("".join(line + "\n" for line in golden_lines()), "utf-8")
    print(f"{GOLDEN.name}: {GOLDEN_GROUPS} groups")
