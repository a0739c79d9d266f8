"""What groups that were made to do harm cost: CPU time a group, and memory over all of them.

Each group has one member with 1 MiB of the densest bytes of its kind, or of Java's modified UTF-8, of which every
character takes a step of its own. No group is like another, so that nothing is decoded once for many. A second set is
small on the wire: 61 kB a group. ``peak_mib`` is what decoding allocates beside the bytes themselves, as `tracemalloc`
counts it, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from struct import pack

from agent.decode.members import decode_members
from agent.decode.values import Assignment, Subscription
from agent.execute.probe_bytes import encode_subscription
from agent.process import no_collection
from agent.values.memo import Memo
from agent.values.observation import Observation, RawClassicGroup, RawMember
from tests.bench.bench_decode import observed
from tests.decode.assignments import encode_assignment
from tests.decode.test_hostile import (
    many_active_tasks,
    many_client_tags,
    many_hosts,
    many_named_topologies,
    many_offset_sums,
    many_owned_topics,
    many_partitions,
    many_topics,
)

MIB = 1 << 20
LARGE, SMALL = (100, MIB), (1_000, 61_000)
"""Groups, and bytes of each."""
GOAL_MS = 50.0
"""CPU milliseconds a group."""
GOAL_MIB = 256.0
"""Over all groups of a look."""

Make = Callable[[int, int], RawClassicGroup]


def main() -> int:
    if len(sys.argv) == 5:
        _, case, groups, size, how = sys.argv
        print(json.dumps(measured(CASES[case], int(groups), int(size), traced=how == "traced")))
        return 0
    for case in CASES:
        timed = in_fresh_process(case, *LARGE, "timed")
        figures = {"bench": "hostile", "case": f"{case}, 1 MiB a group", "size": LARGE[0], **timed}
        print(json.dumps({**figures, "goal": GOAL_MS, "ok": timed["ms_a_group"] <= GOAL_MS}), flush=True)
        kept = in_fresh_process(case, *SMALL, "traced")
        figures = {"bench": "hostile", "case": f"{case}, 61 kB a group", "size": SMALL[0], **kept}
        print(json.dumps({**figures, "goal": GOAL_MIB, "ok": kept["peak_mib"] <= GOAL_MIB}), flush=True)
    return 0


def in_fresh_process(case: str, groups: int, size: int, how: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_hostile", case, str(groups), str(size), how]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def measured(make: Make, groups: int, size: int, *, traced: bool) -> dict[str, float]:
    seen: Observation = observed(tuple(make(number, size) for number in range(groups)))
    if traced:
        tracemalloc.start()
        decoded = decode_members(seen, Memo())
        peak_bytes = tracemalloc.get_traced_memory()[1]
        assert len(decoded.groups) == groups
        return {"peak_mib": round(peak_bytes / MIB, 1)}
    began = time.process_time()
    with no_collection():
        decode_members(seen, Memo())
    cpu_s = time.process_time() - began
    return {"cpu_s": round(cpu_s, 3), "ms_a_group": round(1e3 * cpu_s / groups, 2)}


def consumer(subscription: bytes, number: int) -> RawClassicGroup:
    member = RawMember(f"m{number}", None, "c", "/10.0.0.1", subscription, b"")
    return RawClassicGroup(f"g{number}", "Stable", "consumer", "range", (member,), 1)


def streams(user_data: bytes, assignment_info: bytes, number: int) -> RawClassicGroup:
    topic = f"t{number}"
    member = RawMember(
        f"m{number}",
        None,
        "c",
        "/10.0.0.1",
        encode_subscription(Subscription(1, (topic,), user_data, (), -1, None)),
        encode_assignment(Assignment(1, (), assignment_info)),
    )
    return RawClassicGroup(f"g{number}", "Stable", "consumer", "stream", (member,), 1)


def java_text(number: int, size: int) -> RawClassicGroup:
    """Hosts of a Streams assignment, each character NUL as Java writes it: two bytes, decoded one by one."""
    name = b"\xc0\x80" * 30_000
    names = size // len(name) or 1
    rows = b"".join(pack(">iH", at + number, len(name)) + name for at in range(names))
    return streams(b"", pack(">iiii", 5, 5, 0, 0) + pack(">i", names) + rows + bytes(8), number)


def dense_subscription(make: Callable[[int], bytes]) -> Make:
    return lambda number, size: consumer(make(size - 20 * number), number)


def dense_user_data(make: Callable[[int], bytes]) -> Make:
    return lambda number, size: streams(make(size - 100 - 20 * number), b"", number)


def dense_assignment(make: Callable[[int], bytes]) -> Make:
    return lambda number, size: streams(b"", make(size - 100 - 20 * number), number)


CASES: dict[str, Make] = {
    "text of Java": java_text,
    "owned partitions": lambda number, size: consumer(many_partitions(size, b"%d" % number), number),
    "topics": dense_subscription(many_topics),
    "owned topics": dense_subscription(many_owned_topics),
    "offset sums": dense_user_data(many_offset_sums),
    "named topologies": dense_user_data(many_named_topologies),
    "client tags": dense_user_data(many_client_tags),
    "active tasks": dense_assignment(many_active_tasks),
    "hosts": dense_assignment(many_hosts),
}

if __name__ == "__main__":
    sys.exit(main())
