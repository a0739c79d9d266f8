"""Coverage-guided search for bytes that a decoder cannot take: ``python tests/fuzz/fuzz_decode.py -max_total_time=60``.

The first byte chooses a layout or a whole group, the others are what a member stored. Found is whatever

- raises anything at all, takes over five seconds, or makes the process grow beyond half a gibibyte;
- gives neither a value nor `Undecodable` with a place inside the bytes;
- gives a value whose own bytes do not give it back;
- changes how the healthy member of the same group is read.

Every argument is libFuzzer's own. Without a corpus directory one is made for the run, with a seed for every layout.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import atheris

with atheris.instrument_imports(include=["agent.decode"]):
    from agent.decode.members import decode_cooperative_sticky, decode_members, decode_sticky, decode_subscription
    from agent.decode.streams_user_data import decode_assignment_info, decode_subscription_info
    from agent.decode.values import (
        Assignment,
        DecodedMember,
        HostPartitions,
        StickyUserData,
        StreamsAssignment,
        StreamsSubscription,
        Subscription,
        Undecodable,
    )
    from agent.execute.probe_bytes import encode_sticky, encode_subscription, encode_subscription_info
    from tests.decode.assignments import decode_assignment, encode_assignment, encode_assignment_info

from agent.values.observation import Observation, RawClassicGroup, RawMember
from assignors.problem import TaskId, TopicPartition

DEFAULTS = ("-rss_limit_mb=512", "-timeout=5", "-max_len=4096", "-print_final_stats=1")
PROTOCOLS = ("range", "sticky", "cooperative-sticky", "stream", "mine", "")

IN = (TopicPartition("in", 1), TopicPartition("in", 2), TopicPartition("out", 300))
TASKS = (TaskId(0, 1), TaskId("top__1", 2))
PROCESS_ID = "01020304-0506-0708-090a-0b0c0d0e0f10"
HOSTS = (HostPartitions("h", 80, IN),)


class Layout(NamedTuple):
    """A decoder, its inverse, and values that it is sure to know."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    seeds: tuple[Any, ...]


def streams(version: int) -> StreamsSubscription:
    tasks = TASKS if version >= 10 else TASKS[:1]
    return StreamsSubscription(
        version, 11, PROCESS_ID, tasks, tasks, "h:80", dict.fromkeys(tasks, 9), 1, 0, (("z", "a"),)
    )


def streams_assignment(version: int) -> StreamsAssignment:
    tasks = TASKS if version >= 10 else TASKS[:1]
    return StreamsAssignment(version, 11, tasks, ((tasks[0], IN),), HOSTS, HOSTS, 0, 5)


LAYOUTS = (
    Layout(
        decode_subscription,
        encode_subscription,
        tuple(Subscription(version, ("in", "caf\u00e9"), b"\7", IN, 4, "r1") for version in range(4)),
    ),
    Layout(decode_assignment, encode_assignment, (Assignment(3, IN, None),)),
    Layout(decode_sticky, encode_sticky, (StickyUserData(IN, 4),)),
    Layout(decode_cooperative_sticky, encode_sticky, (StickyUserData(None, 4), StickyUserData(IN, 4))),
    Layout(decode_subscription_info, encode_subscription_info, tuple(streams(version) for version in range(1, 12))),
    Layout(
        decode_assignment_info, encode_assignment_info, tuple(streams_assignment(version) for version in range(1, 12))
    ),
)

HEALTHY = RawMember(
    "healthy",
    None,
    "client",
    "/10.0.0.1",
    encode_subscription(Subscription(3, ("in",), encode_subscription_info(streams(11)), IN, 4, "r1")),
    encode_assignment(Assignment(3, IN, encode_assignment_info(streams_assignment(11)))),
)


def one_input(data: bytes) -> None:
    """What the fuzzer calls; an exception is a finding."""
    if not data:
        return
    choice = data[0] % (len(LAYOUTS) + len(PROTOCOLS))
    if choice < len(LAYOUTS):
        one_blob(LAYOUTS[choice], data[1:])
    else:
        one_group(PROTOCOLS[choice - len(LAYOUTS)], data[1:])


def one_blob(layout: Layout, data: bytes) -> None:
    value = layout.decode(data)
    if isinstance(value, Undecodable):
        expect(0 <= value.offset <= len(data), f"a place outside of the bytes: {value}")
    else:
        again = layout.decode(layout.encode(value))
        expect(again == value, f"{value} came back as {again}")


def one_group(protocol: str, data: bytes) -> None:
    middle = len(data) // 2
    broken = RawMember("broken", None, "client", "/10.0.0.1", data[:middle], data[middle:])
    healthy = decode_members(observed(protocol, broken, HEALTHY)).groups[0].members[1]
    expect(healthy == alone(protocol), f"the healthy member was read as {healthy}")


@cache
def alone(protocol: str) -> DecodedMember:
    return decode_members(observed(protocol, HEALTHY)).groups[0].members[0]


def observed(protocol: str, *members: RawMember) -> Observation:
    groups = (RawClassicGroup("g", "Stable", "consumer", protocol, members, 1),)
    return Observation(
        cluster_id="c", controller=1, brokers=(), topics=(), groups=groups, taken_ms=0, monotonic_ms=0, took_ms=0
    )


def expect(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def write_seeds(directory: Path) -> None:
    for number, layout in enumerate(LAYOUTS):
        for i, value in enumerate(layout.seeds):
            (directory / f"layout-{number}-{i}").write_bytes(bytes((number,)) + layout.encode(value))
    for number in range(len(PROTOCOLS)):
        data = HEALTHY.metadata + HEALTHY.assignment
        (directory / f"group-{number}").write_bytes(bytes((len(LAYOUTS) + number,)) + data)


def main() -> int:
    if any(not argument.startswith("-") for argument in sys.argv[1:]):
        atheris.Setup([sys.argv[0], *DEFAULTS, *sys.argv[1:]], one_input)
        atheris.Fuzz()
    # The fuzzer ends its process without unwinding: the seeds are cleared away by a parent.
    with tempfile.TemporaryDirectory(prefix="rackwise-fuzz-") as seeds:
        write_seeds(Path(seeds))
        return subprocess.run([sys.executable, __file__, *sys.argv[1:], seeds], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
