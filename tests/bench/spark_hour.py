"""What a batch of one look takes at an hour's beginning and at its end.

``python -m tests.bench.spark_hour [--topics 50] [--looks 40]``: a cluster whose every look has some thousand rows, as
the streaming runner reads it: a few looks one by one, the looks of most of an hour at once, a few more one by one. The
batch's own work only, from bronze to gold. The bound is on growth: with an hour of looks behind it, a batch costs
hardly more CPU (of driver, executors and Python) than with none. All of it is done in one process and with executors
that are processes of their own. Another load on the machine is in the wall clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent.telemetry.events import TelemetryEvent
from agent.values.observation import Observation
from pipeline.jobs.refresh import RefreshSettings
from pipeline.schemas.bronze import TELEMETRY
from pipeline.session import small_batches, spark_session
from pipeline.stream.live import LiveRefresh
from pipeline.tables import TableStore, WriterBatch
from tests.bench.spark_ingest import cpu_s
from tests.builders import TAKEN_MS, an_observation, reader
from tests.pipeline.look_events import events_of, telemetry
from tests.pipeline.silver_rows import HOUR_MS
from tests.snapshots import tp

GROWTH = 1.1
MASTERS = {"local[2]": "in one process", "local-cluster[2,1,1024]": "two executors"}
EVERY_S = 60.0
PARTS, MEMBERS = 20, 4
WARM, MEASURED = 6, 5
NO_HISTORIES_MS = 10**9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=50, help="topics, and groups, of 20 partitions each")
    parser.add_argument("--looks", type=int, default=40, help="looks that come at once, at most 40")
    parser.add_argument("--master", help="this master alone, in this process")
    arguments = parser.parse_args()
    if arguments.master:
        one(arguments.master, arguments.topics, arguments.looks)
        return 0
    size = ["--topics", str(arguments.topics), "--looks", str(arguments.looks)]
    done = [
        subprocess.run([sys.executable, "-m", __spec__.name, *size, "--master", master], check=False).returncode
        for master in MASTERS
    ]
    return max(done)


def one(master: str, topics: int, looks: int) -> None:
    """Print the lines of a session with that master."""
    spark = spark_session("hour", master=master, conf=small_batches(master))
    with tempfile.TemporaryDirectory() as folder:
        runner = _Runner(TableStore(spark, folder), topics)
        for _ in range(WARM):
            runner.batch(1)
        early = [runner.batch(1) for _ in range(MEASURED)]
        at_once = runner.batch(looks)
        runner.batch(1)
        late = [runner.batch(1) for _ in range(MEASURED)]
        spark.stop()
    at_first, at_last = (statistics.median(took.cpu_s for took in some) for some in (early, late))
    rows = f"{topics * PARTS:,} partitions and as many readers"
    growth = round(at_last / at_first, 2)
    for line in (
        _line("a batch of one look, few behind it", early, rows),
        _line(f"{looks} looks at once", [at_once], rows),
        _line("one with most of an hour behind it", late, rows),
        {"case": "growth within the hour", "value": growth, "unit": "times", "goal": GROWTH, "ok": growth <= GROWTH},
    ):
        print(json.dumps({"bench": "hour", **line, "case": f"{line['case']}, {MASTERS[master]}"}), flush=True)


class Took(NamedTuple):
    """What a batch took."""

    wall_s: float
    cpu_s: float


def _line(case: str, batches: Sequence[Took], rows: str) -> dict[str, object]:
    wall_s, cpu = (round(statistics.median(values), 1) for values in zip(*batches, strict=True))
    return {"case": case, "value": wall_s, "unit": "s", "note": rows, "cpu_s": cpu}


class _Runner:
    """A live runner over a world that goes on."""

    def __init__(self, tables: TableStore, topics: int) -> None:
        self._tables = tables
        self._topics = topics
        self._live = LiveRefresh(tables, RefreshSettings(), _say, histories_every_ms=NO_HISTORIES_MS)
        self._looks = 0
        self._batches = 0

    def batch(self, looks: int) -> Took:
        """From these looks' rows to gold."""
        numbers = range(self._looks, self._looks + looks)
        self._looks += looks
        rows = telemetry(self._tables.spark, _events(numbers, self._topics)).persist()
        rows.count()
        began, used_s = time.monotonic(), cpu_s()
        self._tables.append(TELEMETRY, rows.coalesce(1), WriterBatch("bench", self._batches))
        self._live.on_telemetry(rows, more=lambda: False)
        took = Took(time.monotonic() - began, cpu_s() - used_s)
        self._batches += 1
        rows.unpersist()
        return took


def _events(numbers: Iterable[int], topics: int) -> Iterator[TelemetryEvent]:
    for number in numbers:
        yield from events_of(_look(number, topics), f"12345678-{number}")


def _look(number: int, topics: int) -> Observation:
    """The look of a minute of the hour: topics that grow by the second, each read by a group that keeps up."""
    second = (HOUR_MS - TAKEN_MS) / 1000 + 30 + number * EVERY_S
    end = round(10 * second)
    answers = an_observation(a=(1,), b=(2,), c=(3,))
    for topic in range(topics):
        name = f"t{topic}"
        answers.topic(
            name, *[((1, 2, 3), (2, 3, 1), (3, 1, 2))[part % 3] for part in range(PARTS)], ends=(end,) * PARTS
        )
        held = [" ".join(f"{name}-{part}" for part in range(member, PARTS, MEMBERS)) for member in range(MEMBERS)]
        answers.group(f"g{topic}", *[reader(f"m{member}", "abc"[member % 3], of) for member, of in enumerate(held)])
        parts = [tp(f"{name}-{part}") for part in range(PARTS)]
        answers.committed[f"g{topic}"] = dict.fromkeys(parts, end)
        answers.sizes |= {(broker, part): 100 * end for broker in (1, 2, 3) for part in parts}
    return answers.at(second)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
