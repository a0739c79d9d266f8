"""How long it takes to read members' bytes, how much memory the values keep, and how both grow.

Consumers: groups of ten members; one topic each, every fifth member two; ten owned partitions; a rack; half of the
groups ``cooperative-sticky`` as Java sends it, a quarter as librdkafka sends it, a quarter ``sticky``; the assignment
repeats what is owned. Ten groups read each topic. Streams: groups of a hundred members with a hundred task offsets
each, ten active and ten standby tasks, and every member told who hosts what.

Every size runs in a fresh process. ``cpu_s``, which has the goal, is the CPU time of decoding as a cycle of the agent
does it: inside `no_collection`. ``default_collector_s`` is the same under Python's default collector
settings, as in a program that calls `decode_members` and nothing else.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from agent.decode.members import decode_members
from agent.decode.values import (
    Assignment,
    HostPartitions,
    StickyUserData,
    StreamsAssignment,
    StreamsSubscription,
    Subscription,
)
from agent.execute.probe_bytes import encode_sticky, encode_subscription, encode_subscription_info
from agent.process import no_collection
from agent.values.memo import Memo
from agent.values.observation import Observation, RawClassicGroup, RawMember
from assignors.problem import TaskId, TopicPartition
from tests.decode.assignments import encode_assignment, encode_assignment_info

RACKS = ("eu-1a", "eu-1b", "eu-1c")
CASES = {"consumer members": (100_000, 2.0), "streams members": (10_000, 2.0)}


def main() -> int:
    if len(sys.argv) == 3:
        case, members = sys.argv[1], int(sys.argv[2])
        print(json.dumps(measured(case, members)))
        return 0
    for case, (members, goal_s) in CASES.items():
        small, large = in_fresh_process(case, members // 10), in_fresh_process(case, members)
        growth = {f"growth_{what}": round(large[what] / small[what], 2) for what in ("cpu_s", "kept_mib")}
        line = {"bench": "decode", "case": case, **large, **growth, "goal": goal_s, "ok": large["cpu_s"] <= goal_s}
        print(json.dumps(line), flush=True)
    return 0


def in_fresh_process(case: str, members: int) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_decode", case, str(members)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measured(case: str, members: int) -> dict[str, float]:
    make = consumer_group if case == "consumer members" else streams_group
    members_per_group = 10 if case == "consumer members" else 100
    observation = observed(tuple(make(i) for i in range(members // members_per_group)))

    memo = Memo()
    first_s = cpu_s(observation, memo)
    again = observed(tuple(copied(group) for group in observation.groups))
    memo.turn()
    same_objects_s = cpu_s(observation, memo)
    memo.turn()
    equal_values_s = cpu_s(again, memo)
    del memo, again
    gc.unfreeze()  # what was set aside would spare the collector its walks
    default_collector_s = cpu_s(observation, Memo(), nullcontext)

    tracemalloc.start()
    decoded = decode_members(observation)
    kept_bytes, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(group.members) for group in decoded.groups) == members
    return {
        "size": members,
        "cpu_s": round(first_s, 3),
        "default_collector_s": round(default_collector_s, 3),
        "again_same_objects_s": round(same_objects_s, 4),
        "again_equal_values_s": round(equal_values_s, 4),
        "kept_mib": round(kept_bytes / 2**20, 1),
        "peak_mib": round(peak_bytes / 2**20, 1),
    }


def cpu_s(
    observation: Observation, memo: Memo, around: Callable[[], AbstractContextManager[None]] = no_collection
) -> float:
    began = time.process_time()
    with around():
        decode_members(observation, memo)
    return time.process_time() - began


def observed(groups: tuple[RawClassicGroup, ...]) -> Observation:
    return Observation(
        cluster_id="c", controller=1, brokers=(), topics=(), groups=groups, taken_ms=0, monotonic_ms=0, took_ms=0
    )


def copied(group: RawClassicGroup) -> RawClassicGroup:
    """An equal group of other objects, as the next answer of the broker is."""
    members = tuple(
        member._replace(metadata=bytes(bytearray(member.metadata)), assignment=bytes(bytearray(member.assignment)))
        for member in group.members
    )
    return group._replace(members=members)


def consumer_group(number: int) -> RawClassicGroup:
    topic = f"orders-{number // 10:05d}"
    kind = number % 4
    members = []
    for i in range(10):
        owned = tuple(TopicPartition(topic, 10 * i + j) for j in range(10))
        user_data = encode_sticky(StickyUserData(None if kind < 2 else owned, 17))
        subscription = Subscription(
            version=3,
            topics=(topic, "audit") if i % 5 == 0 else (topic,),
            user_data=user_data,
            owned=() if kind == 3 else owned,
            generation=17,
            rack=RACKS[i % 3],
        )
        assigned = encode_assignment(Assignment(3, owned, None))
        members.append(member(number, i, encode_subscription(subscription), assigned))
    protocol = "sticky" if kind == 3 else "cooperative-sticky"
    return RawClassicGroup(f"group-{number}", "Stable", "consumer", protocol, tuple(members), 1)


def streams_group(number: int) -> RawClassicGroup:
    tasks = [TaskId(i // 100, i % 100) for i in range(1000)]
    hosts = tuple(HostPartitions(f"app-{i}", 8080, tuple(source(tasks[(10 * i + j) % 1000]) for j in range(10)))
                  for i in range(100))  # fmt: skip
    members = []
    for i in range(100):
        active = tuple(tasks[(10 * i + j) % 1000] for j in range(10))
        standby = tuple(tasks[(10 * i + j + 500) % 1000] for j in range(10))
        sums = {tasks[(10 * i + j) % 1000]: -2 if j < 10 else 1_000_000_007 * j + number for j in range(100)}
        info = StreamsSubscription(
            version=11,
            latest_supported=11,
            process_id=f"00000000-0000-0000-0000-{number * 100 + i // 4:012x}",
            prev_tasks=(),
            standby_tasks=(),
            endpoint=f"app-{i}:8080",
            offset_sums=sums,
            unique_field=7,
            error_code=0,
            client_tags=(("zone", RACKS[i % 3]),),
        )
        assignment_info = StreamsAssignment(
            version=11,
            commonly_supported=11,
            active=active,
            standby=tuple((task, (source(task),)) for task in standby),
            partitions_by_host=hosts,
            standby_partitions_by_host=hosts,
            error_code=0,
            next_rebalance_ms=None,
        )
        partitions = tuple(source(task) for task in active)
        subscription = Subscription(
            3, tuple(f"in-{k}" for k in range(10)), encode_subscription_info(info), partitions, 17, RACKS[i % 3]
        )
        assigned = encode_assignment(Assignment(3, partitions, encode_assignment_info(assignment_info)))
        members.append(member(number, i, encode_subscription(subscription), assigned))
    return RawClassicGroup(f"app-{number}", "Stable", "consumer", "stream", tuple(members), 1)


def source(task: TaskId) -> TopicPartition:
    return TopicPartition(f"in-{task.subtopology}", task.partition)


def member(group: int, number: int, metadata: bytes, assignment: bytes) -> RawMember:
    return RawMember(f"client-{group}-{number}-uuid", None, f"client-{number}", "/10.0.0.1", metadata, assignment)


if __name__ == "__main__":
    sys.exit(main())
