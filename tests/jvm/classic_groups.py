"""Groups of the classic protocol as their leader sees them, and the golden file that the Java leader is compared with.

    python -m tests.jvm.classic_groups    writes jvm/src/test/resources/classic-groups.jsonl anew

User data are bytes of Python's members; some are of other clients, broken or of an older generation. Equal seeds give
equal groups.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assignors import ConsumerMember, ConsumerProblem, TopicPartition
from assignors.clients.leader import JoinedMember, assign
from assignors.clients.user_data import RackwiseUserData, by_topic, read_user_data, user_data
from tests.decode.generate import mutated
from tests.jvm.groups import figures, random_groups

GOLDEN = Path(__file__).parents[2] / "jvm" / "src" / "test" / "resources" / "classic-groups.jsonl"
GOLDEN_SEED = 429
GOLDEN_GROUPS = 400
GENERATION = 7

Racks = dict[str, tuple[frozenset[str], ...]]
Owned = dict[str, tuple[TopicPartition, ...]]


def classic_groups(seed: int, count: int) -> Iterator[tuple[list[JoinedMember], Racks]]:
    """Groups whose members are eager, cooperative or of both sorts; every third one is settled."""
    rng = random.Random(seed)
    for number, group in enumerate(random_groups(seed, count)):
        racks = {topic: tuple(frozenset(each) for each in sets) for topic, sets in group["topics"].items()}
        ways = rng.choice(((False,), (True,), (True, False)))
        members = [_joined(rng, each, held=rng.choice(ways), noisy=bool(number % 3)) for each in group["members"]]
        yield (members if number % 3 else _settled(members, racks)), racks


def _joined(rng: random.Random, member: dict[str, Any], *, held: bool, noisy: bool) -> JoinedMember:
    owned = tuple(TopicPartition(topic, n) for topic, numbers in member["owned"].items() for n in numbers)
    generation = GENERATION - 1 if noisy and rng.random() < 0.1 else GENERATION
    known = RackwiseUserData(
        rack=member["rack"],
        instance_id=rng.choice((None, "worker-ü")),
        owned=tuple(sorted(owned)),
        generation=generation,
        held=held,
    )
    data = user_data("optimal", known)
    if noisy and rng.random() < 0.15:
        foreign = (b"", b"\0\0\0\7", rng.randbytes(rng.randrange(30)), mutated(rng, data), user_data("sticky", known))
        data = rng.choice(foreign)
    return JoinedMember(
        id=member["id"],
        topics=tuple(member["topics"]),
        rack=member["rack"] if not noisy or rng.random() < 0.9 else None,
        owned=known.owned if held else (),
        generation=generation,
        user_data=data,
    )


def revoked(members: list[JoinedMember]) -> list[JoinedMember]:
    """The same members after each has revoked all that it held: their claims are in their notes alone."""

    def note(member: JoinedMember) -> bytes:
        known = read_user_data("optimal", member.user_data)
        generation = member.generation if known.generation is None else known.generation
        owned = (*(member.owned or ()), *known.owned)
        return user_data("optimal", replace(known, owned=owned, generation=generation, held=False))

    return [replace(each, owned=(), user_data=note(each)) for each in members]


def _settled(members: list[JoinedMember], racks: Racks) -> list[JoinedMember]:
    """The same members after rebalances have brought the optimum."""
    given = assign("optimal", revoked(members), racks).assignment

    def after(member: JoinedMember) -> JoinedMember:
        known = read_user_data("optimal", member.user_data)
        note = replace(known, owned=given[member.id], generation=GENERATION + 1)
        owned = given[member.id] if known.held else ()
        return replace(member, owned=owned, generation=GENERATION + 1, user_data=user_data("optimal", note))

    return [after(each) for each in members]


def sole_claims(members: list[JoinedMember], racks: Racks) -> Owned:
    """Member -> the partitions that it alone claims in the highest generation."""
    claims: dict[TopicPartition, set[tuple[int, str]]] = {}
    for member in members:
        known = read_user_data("optimal", member.user_data)
        generation = member.generation if known.generation is None else known.generation
        for partition in (*(member.owned or ()), *known.owned):
            if 0 <= partition.partition < len(racks.get(partition.topic, ())):
                claims.setdefault(partition, set()).add((-1 if generation is None else generation, member.id))
    owned: dict[str, list[TopicPartition]] = {member.id: [] for member in members}
    for partition, its in claims.items():
        newest = [name for generation, name in its if generation == max(its)[0]]
        if len(newest) == 1:
            owned[newest[0]].append(partition)
    return {name: tuple(sorted(partitions)) for name, partitions in owned.items()}


def golden_line(members: list[JoinedMember], racks: Racks) -> str:
    """A group, and what the Python leader answers: the optimum's figures, and the assignment where it is unique."""
    owned = sole_claims(members, racks)
    problem = ConsumerProblem(
        members=tuple(
            ConsumerMember(
                id=each.id,
                topics=each.topics,
                owned=owned[each.id],
                rack=each.rack or read_user_data("optimal", each.user_data).rack,
            )
            for each in members
        ),
        racks=racks,
    )
    optimum = figures(problem, dict(assign("optimal", revoked(members), racks).assignment))
    answer = assign("optimal", members, racks).assignment
    read = sum(len(racks[topic]) for topic in racks if any(topic in each.topics for each in members))
    all_held = all(set(read_user_data("optimal", each.user_data).owned) <= set(each.owned or ()) for each in members)
    is_unique = sum(map(len, answer.values())) == read and _all(answer) <= _all(owned) and not optimum["moved"]
    line = {
        "topics": {topic: [sorted(each) for each in sets] for topic, sets in racks.items()},
        "members": [
            {
                "id": each.id,
                "topics": each.topics,
                "rack": each.rack,
                "owned": dict(by_topic(each.owned or ())),
                "generation": each.generation,
                "user_data": each.user_data.hex(),
                "understood": _understood(each.user_data),
            }
            for each in members
        ],
        "owned": {name: dict(by_topic(partitions)) for name, partitions in owned.items()},
        "optimum": optimum,
        "waiting": read - sum(map(len, answer.values())) if all_held else None,
        "assignment": {n: dict(by_topic(its)) for n, its in answer.items()} if is_unique else None,
    }
    return json.dumps(line, separators=(",", ":"))


def _all(partitions: Mapping[str, tuple[TopicPartition, ...]]) -> set[TopicPartition]:
    return {each for its in partitions.values() for each in its}


def _understood(data: bytes) -> str | None:
    """The bytes of what Python reads in a member's user data; None when they are the same."""
    read = user_data("optimal", read_user_data("optimal", data))
    return None if read == data else read.hex()


def golden_lines() -> list[str]:
    """The golden file, line by line."""
    return [golden_line(members, racks) for members, racks in classic_groups(GOLDEN_SEED, GOLDEN_GROUPS)]


if __name__ == "__main__":
    GOLDEN.write_text("".join(line + "\n" for line in golden_lines()), "utf-8")
    print(f"{GOLDEN.name}: {GOLDEN_GROUPS} groups")
