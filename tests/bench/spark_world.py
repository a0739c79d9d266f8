"""What `rackwise spark ingest` takes of the largest world, look by look, and how soon a look is in gold.

``python -m tests.bench.spark_world``: a world is looked at by the agent's own cycle, and its looks are recorded as an
agent does: in full every 20 minutes, by changes in between, 1 % of the groups rebalance from look to look. They are
written first; then the command itself runs beside a real broker and gets one look after the other. CPU and memory are
those of the command and of all its processes: Java, Python, its workers. A look's time is from the broker's
acknowledgement of its last record until the command says that nothing is left to read, which it does when gold is
written. The first looks, in which Java compiles, stand apart. ``--folder`` keeps the looks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple, Self

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from agent.loop import CycleStages, run_cycle
from agent.record.librdkafka import PRODUCER
from agent.telemetry.changes import FullLook
from agent.values.limits import Limits
from agent.values.memory import Memory
from testbed.cluster import ClusterSpec, EmbeddedCluster
from tests.bench import told
from tests.bench.bench_telemetry import (
    MINUTE_MS,
    drawn_flow,
    head_of,
    keyed_lines,
    later_look,
    rows_of,
    with_three_replicas,
)
from tests.bench.process_family import ProcessFamily
from tests.synthetic_cluster import PARTITIONS, synthetic_cluster

TOPIC, TOPIC_PARTITIONS = "rackwise.telemetry", 6
GOAL_CORE, GOAL_MIB, GOAL_S = 0.7, 2_560, 30.0
FULL_LOOKS_AN_HOUR = 3
QUICK_MS = 10_000
INTERVAL_S = 20
"""``spark.interval`` where looks come together; Spark begins its batches at multiples of it."""
PATIENCE_S = 900.0


class World(NamedTuple):
    """Looks of a world, each by its minute or ten seconds: which are recorded, and which of them are measured."""

    groups: int
    every_ms: int
    full: tuple[int, ...]
    recorded: tuple[int, ...]
    warm: int
    """How many of those recorded are not measured."""
    of_a_batch: int = 1
    """How many come at once, after the first."""
    look_every: str = "0s"
    """``spark.look_every``."""


MINUTES = World(10_000, MINUTE_MS, full=(0, 9), recorded=(0, 7, 8, 9, 18, 19, 20), warm=3)
BATCHED = World(10_000, MINUTE_MS, full=(0,), recorded=tuple(range(16)), warm=6, of_a_batch=5)
"""As with ``spark.interval: 5m``: after the first look, five looks a batch."""
PACED = World(10_000, MINUTE_MS, full=(0, 10), recorded=tuple(range(20)), warm=4)
"""Each in its own minute, batches at the command's own pace."""
QUICK = World(10_000, QUICK_MS, full=(0,), recorded=tuple(range(91)), warm=31, of_a_batch=30, look_every="1m")
"""The same where a look is recorded each ten seconds."""
SMALL = World(1_000, QUICK_MS, full=(0,), recorded=tuple(range(16)), warm=5)
WORLDS = {"small": SMALL, "minutes": MINUTES, "batched": BATCHED, "paced": PACED, "quick": QUICK}


class Took(NamedTuple):
    """What a look took."""

    look: int
    seconds: float
    """From its last record's acknowledgement to gold."""
    cpu_s: float
    compilers_s: float
    """Part of it that Java's compilers took, which have less and less to do."""


class Stream(NamedTuple):
    """Looks in their own time."""

    took: list[float]
    """Seconds of each, from the last record's acknowledgement to gold."""
    cpu_s: float
    compilers_s: float
    wall_s: float
    """From the first look until the last is in gold."""


tell = partial(told.tell, "world")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=tuple(WORLDS), action="append")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--make", action="store_true", help="write the looks alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        for name, world in WORLDS.items():
            if given.only and name not in given.only:
                continue
            folder = (given.folder or Path(own)) / name
            if not (folder / "whole").exists():
                made(world, folder)
            if not given.make:
                run(name, world, folder)
    return 0


def made(world: World, folder: Path) -> None:
    """A file for each recorded look; a line is key, tab, value."""
    folder.mkdir(parents=True, exist_ok=True)
    random = Random(7)
    seen = with_three_replicas(synthetic_cluster(world.groups, improvable=0.3))
    flows = {topic.name: drawn_flow(random) for topic in seen.topics}
    stages, memory, full = CycleStages(Limits()), Memory(), None
    for number in range(max(world.recorded) + 1):
        cycle = run_cycle(
            stages, lambda now=seen: now, seen, memory, number=number, name=f"12345678-{number}", planning=False
        )
        memory = cycle.after
        if number in world.full or full is None:
            full = FullLook(head_of(cycle))
            events = full.events(rows_of(cycle))
        elif number in world.recorded:
            events = full.changed_events(head_of(cycle), rows_of(cycle))
        else:
            events = iter(())
        lines = [f"{key}\t{text}\n" for key, text in keyed_lines(events)]
        if number in world.recorded:
            (folder / f"{number:04d}").write_text("".join(lines))
        seen = later_look(seen, flows, random, number, world.every_ms)
    (folder / "whole").touch()


def run(name: str, world: World, folder: Path) -> None:
    """Feed the command, and print the lines."""
    with EmbeddedCluster.start(ClusterSpec(racks=("a",))) as cluster, tempfile.TemporaryDirectory() as tables:
        feed = _Feed(cluster.bootstrap_servers, folder)
        interval_s = INTERVAL_S if world.of_a_batch > 1 else 5
        given = {"spark.look_every": world.look_every, "spark.interval": f"{interval_s}s"}
        if name != "paced":
            given["spark.busy_share"] = "1"
        with _Ingest(cluster.bootstrap_servers, tables, given) as ingest:
            if name == "minutes":
                tell_minutes(world, [_one(feed, ingest, look) for look in world.recorded], ingest.family)
            elif world.of_a_batch > 1:
                _one(feed, ingest, *world.recorded[:1])
                looks, size = world.recorded, world.of_a_batch
                took = [_together(feed, ingest, looks[at : at + size]) for at in range(1, len(looks), size)]
                tell_batches(world, took[world.warm // world.of_a_batch :], ingest.family)
            else:
                for look in world.recorded[: world.warm]:
                    _one(feed, ingest, look)
                tell_stream(world, _stream(feed, ingest, world), ingest.family)


def _one(feed: _Feed, ingest: _Ingest, *looks: int) -> Took:
    """One look, or some at once, until they are in gold."""
    began, compilers_s = ingest.family.cpu_s(), ingest.compilers_s()
    acked = max(feed.send(look) for look in looks)
    at = ingest.wait_for(feed.records)
    took = Took(looks[-1], at - acked, ingest.family.cpu_s() - began, ingest.compilers_s() - compilers_s)
    print(took, file=sys.stderr, flush=True)
    return took


def _together(feed: _Feed, ingest: _Ingest, looks: tuple[int, ...]) -> Took:
    """The looks in one batch: they are all there when it begins."""
    time.sleep((INTERVAL_S / 4 - time.time()) % INTERVAL_S)
    return _one(feed, ingest, *looks)


def _stream(feed: _Feed, ingest: _Ingest, world: World) -> Stream:
    """The others in their own time."""
    looks = world.recorded[world.warm :]
    began, used_s, compilers_s, waits = time.monotonic(), ingest.family.cpu_s(), ingest.compilers_s(), []
    for number, look in enumerate(looks):
        time.sleep(max(0.0, began + number * world.every_ms / 1_000 - time.monotonic()))
        waits.append((feed.send(look), feed.records))
    took = [ingest.wait_for(records) - acked for acked, records in waits]
    return Stream(took, ingest.family.cpu_s() - used_s, ingest.compilers_s() - compilers_s, time.monotonic() - began)


def tell_minutes(world: World, took: list[Took], family: ProcessFamily) -> None:
    """The hour's mix: three looks in full, the others by changes."""
    later = took[world.warm :]
    by_kind = [[one for one in later if (one.look in world.full) == is_full] for is_full in (True, False)]
    full, changed = (statistics.mean(one.cpu_s for one in some) for some in by_kind)
    compilers = [f"{statistics.mean(one.compilers_s for one in some):.0f} s of it Java's compilers" for some in by_kind]
    mix = (FULL_LOOKS_AN_HOUR * full + (60 - FULL_LOOKS_AN_HOUR) * changed) / 60
    what = size_of(world)
    tell(f"{what}, a look in full, CPU", full, "s", note=compilers[0])
    note = f"mean of {len(by_kind[1])}, 9 to 11 minutes later; {compilers[1]}"
    tell(f"{what}, a look by changes, CPU", changed, "s", note=note)
    tell(f"{what}, slowest look until it is in gold", max(one.seconds for one in later), "s")
    tell(f"{what}, one look a minute, the mix of an hour", mix / 60, "cores", GOAL_CORE)
    tell_memory(what, family)


def tell_batches(world: World, took: list[Took], family: ProcessFamily) -> None:
    """The looks by changes of five minutes at once."""
    what = f"{size_of(world)}, {world.of_a_batch} looks by changes a batch"
    if world.look_every != "0s":
        what += f", spark.look_every {world.look_every}"
    each_s = statistics.mean(one.cpu_s for one in took) / world.of_a_batch
    compilers_s = statistics.mean(one.compilers_s for one in took) / world.of_a_batch
    tell(
        f"{what}, CPU of one look",
        each_s,
        "s",
        note=f"mean of {len(took)} batches; {compilers_s:.0f} s Java's compilers",
    )
    tell(f"{what}, a look each {world.every_ms // 1_000} s", each_s * 1_000 / world.every_ms, "cores", GOAL_CORE)
    tell(f"{what}, slowest batch until it is in gold", max(one.seconds for one in took), "s")
    tell_memory(what, family)


def tell_stream(world: World, stream: Stream, family: ProcessFamily) -> None:
    """Looks in their own time."""
    is_paced = world is PACED
    what = f"{size_of(world)}, a look {'' if is_paced else 'by changes '}each {world.every_ms // 1_000} s"
    each_s = stream.cpu_s / len(stream.took)
    note = f"{len(stream.took)} looks in {stream.wall_s:.0f} s, {stream.compilers_s:.0f} s of it Java's compilers"
    tell(f"{what}, CPU of one", each_s, "s", note=note)
    cores = each_s * 1_000 / world.every_ms
    tell(f"{what}, of the time until the next", cores, "cores", GOAL_CORE if is_paced else None)
    tell(f"{what}, until it is in gold, median", statistics.median(stream.took), "s")
    tell(f"{what}, until it is in gold, slowest", max(stream.took), "s", None if is_paced else GOAL_S)
    tell_memory(what, family)


def tell_memory(what: str, family: ProcessFamily) -> None:
    """At its peak, and of which processes."""
    note = ", ".join(f"{program} {size / 2**20:.0f}" for program, size in family.peak_shares)
    tell(f"{what}, peak memory of driver and Python", family.peak_bytes / 2**20, "MiB", GOAL_MIB, note=note)


def size_of(world: World) -> str:
    """In words."""
    return f"{world.groups * PARTITIONS:,} partitions and members, {world.groups:,} groups"


class _Feed:
    """Writes looks to the topic; `records` is how many records there are."""

    def __init__(self, servers: str, folder: Path) -> None:
        self._folder = folder
        self._producer = Producer({**PRODUCER, "bootstrap.servers": servers})
        admin = AdminClient({"bootstrap.servers": servers})
        for answer in admin.create_topics([NewTopic(TOPIC, TOPIC_PARTITIONS, 1)]).values():
            answer.result(30)
        self.records = 0

    def send(self, look: int) -> float:
        """When the broker had all of it."""
        for line in (self._folder / f"{look:04d}").read_text().splitlines():
            key, _, text = line.partition("\t")
            while True:
                try:
                    self._producer.produce(TOPIC, text.encode(), key.encode())
                except BufferError:
                    self._producer.poll(0.1)
                else:
                    break
            self.records += 1
        if self._producer.flush(120):
            raise SystemExit("a record was not taken")
        return time.monotonic()


class _Ingest:
    """The command, and what it and its children take."""

    def __init__(self, servers: str, tables: str, given: Mapping[str, str]) -> None:
        self._command = [
            sys.executable, "-m", "agent", "spark", "ingest", "--master", "local[2]", "--tables", tables,
            "--bootstrap-servers", servers, "--set", "log.format=json",
        ]  # fmt: skip
        for name, value in given.items():
            self._command += ["--set", f"{name}={value}"]
        self._seen: list[tuple[int, float]] = []
        self._more = threading.Condition()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, daemon=True).start()
        self.family = ProcessFamily(self._process.pid).__enter__()
        return self

    def __exit__(self, *_error: object) -> None:
        self.family.__exit__()
        self._process.terminate()
        self._process.wait(120)

    def wait_for(self, records: int) -> float:
        """When so many records were in gold."""
        with self._more:
            if not self._more.wait_for(lambda: any(number >= records for number, _ in self._seen), PATIENCE_S):
                raise SystemExit(f"{records} records are not in gold after {PATIENCE_S:.0f} s")
            return next(at for number, at in self._seen if number >= records)

    def compilers_s(self) -> float:
        """CPU seconds so far of the threads that compile in Java."""
        return self.family.total(_compilers_s)

    def _listen(self) -> None:
        assert self._process.stderr is not None
        records = 0
        for line in self._process.stderr:
            found = json.loads(line) if line.startswith("{") else {}
            if found.get("stream") == "telemetry":
                records += found["records"]
                with self._more:
                    self._seen.append((records, time.monotonic()))
                    self._more.notify_all()
            elif not found or found.get("level") not in {"info", "debug"}:
                print(line, end="", file=sys.stderr, flush=True)


def _compilers_s(process: psutil.Process) -> float:
    return sum(
        one.user_time + one.system_time
        for one in process.threads()
        if _name(process.pid, one.id).startswith(("C1 Comp", "C2 Comp"))
    )


def _name(process: int, thread: int) -> str:
    file = Path(f"/proc/{process}/task/{thread}/comm")
    return file.read_text() if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
