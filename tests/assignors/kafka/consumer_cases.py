"""Random rebalances as cases of ``consumer.*``, with everything that may be amiss in real ones: racks unknown, topics
gone, claims contested or repeated, generations old or absent, subscriptions that name a topic twice."""

from __future__ import annotations

from random import Random
from typing import Any

SMALL, LARGE = (1, 2, 3, 5, 8, 13), (1, 5, 20, 60, 200)


def random_case(rng: Random, *, large: bool = False) -> dict[str, Any]:
    """The input of one case; up to eight members and six topics, or forty and twelve."""
    racks = [f"r{number}" for number in range(rng.choice((0, 0, 1, 2, 3, 3, 5)))]
    topics = [
        {"name": f"t{number}", "partitions": count, "replica_racks": _replica_racks(rng, racks, count)}
        for number, count in enumerate(rng.choices(LARGE if large else SMALL, k=rng.randint(1, 12 if large else 6)))
    ]
    members = _members(rng, [topic["name"] for topic in topics], racks, rng.randint(1, 40 if large else 8))
    _claim(rng, topics, members)
    case: dict[str, Any] = {"topics": topics, "members": members}
    if rng.random() < 0.15:
        case["prefer_rack_aware_logic"] = True
    if rng.random() < 0.15:
        case["max_generation_before"] = rng.choice((0, 5, 9))
    return case


def _replica_racks(rng: Random, racks: list[str], count: int) -> list[list[str | None]] | None:
    if not racks or rng.random() < 0.1:
        return None
    some = [*racks, None] if rng.random() < 0.3 else racks
    return [rng.choices(some, k=rng.randint(0 if rng.random() < 0.1 else 1, 3)) for _ in range(count)]


def _members(rng: Random, topics: list[str], racks: list[str], count: int) -> list[dict[str, Any]]:
    names = [*topics, "gone"]
    alike = rng.random() < 0.35
    subscriptions = [rng.sample(names, rng.randint(0, len(names))) for _ in range(1 if alike else rng.randint(1, 4))]
    usual = rng.choice((None, -1, 1, 5))
    members = []
    for number in range(count):
        mine = list(rng.choice(subscriptions))
        rng.shuffle(mine)
        generation = usual if rng.random() < 0.7 else rng.choice((None, -1, 0, 1, 4, 5, 6))
        in_subscription = generation is not None and generation >= 0 and rng.random() < 0.7
        members.append(
            {
                "id": f"{rng.choice(('C', 'consumer-', 'x'))}{number:02}-{rng.getrandbits(32):x}",
                "instance_id": f"i{rng.randint(0, 99):02}-{number}" if rng.random() < 0.2 else None,
                "rack": rng.choice([*racks, None, ""]),
                "topics": mine + mine[: rng.random() < 0.03],
                "generation": generation if rng.random() < 0.8 else None,
                "subscription_generation": generation if in_subscription else None,
                "owned": {},
            }
        )
    return members


def _claim(rng: Random, topics: list[dict[str, Any]], members: list[dict[str, Any]]) -> None:
    skewed = rng.random() < 0.4
    for topic in topics:
        for number in range(topic["partitions"]):
            for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 2, 3))):
                place = rng.random() ** 2.5 if skewed else rng.random()
                member = members[int(len(members) * place)]
                if topic["name"] in member["topics"] or rng.random() < 0.15:
                    member["owned"].setdefault(topic["name"], []).append(number)
    if rng.random() < 0.2:
        members[0]["owned"]["gone"] = [0, 3]
