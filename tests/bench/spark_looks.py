"""What the work of one large look takes of a Python worker: in one task, and divided into parts.

``python -m tests.bench.spark_looks``: looks of 10,000 and of 100,000 partitions (a group for ten of them, ten members a
group) with the memory of a running agent, read into silver rows by a session with two cores. Each case runs in a
process of its own, as the peak of a worker is that of its life. CPU is that of all workers, memory that of the largest.
Then five such looks at once, as with `spark.interval: 5m`, on one worker of Spark standalone and on two: wall clock
of the better of a second and a third run. A control group gives each worker with all its processes half a core, so that
two workers, the driver and the master fit on two cores as they would on machines of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
from pyspark.sql import functions as F

from agent.loop import CycleStages
from agent.telemetry.events import to_lines
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from pipeline.maven import spark_jars
from pipeline.session import small_batches, spark_session
from pipeline.transforms.large_looks import data_bytes, parts_of
from pipeline.transforms.looks import look_rows
from tests.bench.cpu_quota import CpuQuota
from tests.pipeline.look_events import telemetry_of_file
from tests.pipeline.standalone import HEAD, StandaloneCluster
from tests.recorded_looks import observation_to_events
from tests.synthetic_cluster import next_look, synthetic_cluster

GROUPS = (1_000, 10_000)
MASTER = "local[2]"
WORKER_CORES, LOOKS = 0.5, 5
WORKERS = 1.6
"""How much faster two are than one, at least."""
SHARE_OF_MEMORY, SHARE_OF_CPU = 0.5, 0.7
"""Of what one task takes: at most so much with two cores."""


def main() -> None:
    for groups in GROUPS:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "look.jsonl"
            partitions = _write(file, groups)
            found = {case: _in_a_fresh_process(file, case) for case in ("in one task", "in parts")}
            if found["in parts"]["parts"]:
                _tell_workers(
                    {number: _in_a_fresh_process(file, number)["wall_s"] for number in ("1", "2")}, partitions
                )
        mb = next(iter(found.values()))["mb"]
        note = f"{groups:,} groups, {mb:.0f} MB of telemetry"
        for case, one in found.items():
            of = f"{one['parts']} parts and the cluster's" if one["parts"] else "one task"
            name = f"a look of {partitions:,} partitions {case}"
            _tell(f"{name}, wall clock", round(one["wall_s"], 1), "s", note=f"{note}; {of}")
            _tell(f"{name}, CPU of the workers", round(one["cpu_s"], 1), "s")
            _tell(f"{name}, CPU of the busiest worker", round(one["busiest_s"], 1), "s")
            _tell(f"{name}, peak memory of a worker", one["peak_mib"], "MiB")
        whole, divided = found.values()
        if not divided["parts"]:
            continue
        for what, of, goal in (("peak memory", "peak_mib", SHARE_OF_MEMORY), ("CPU", "busiest_s", SHARE_OF_CPU)):
            share = round(divided[of] / whole[of], 2)
            case = f"{what} of a worker in parts, of {partitions:,} partitions, against one task"
            _tell(case, share, "x", goal, ok=share <= goal)


def on_workers(file: Path, number: int) -> float:
    """Seconds that the better of a second and a third run takes on so many workers, of which each has half a core."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        names = [f"rackwise-bench-{os.getpid()}-{worker}" for worker in range(number)]
        quotas = [stack.enter_context(CpuQuota(name, WORKER_CORES)) for name in names]
        cluster = stack.enter_context(StandaloneCluster(Path(folder), number))
        for quota, pid in zip(quotas, cluster.worker_pids(), strict=True):
            quota.take(pid)
        conf = {
            "spark.jars": ",".join(map(str, spark_jars())), "spark.cores.max": str(number), "spark.executor.cores": "1",
            "spark.executor.memory": "2g", "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": HEAD, "spark.driver.bindAddress": HEAD, "spark.driver.memory": "1g",
        }  # fmt: skip
        os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = spark_session("looks", master=cluster.url, conf=conf)
        looks = spark.range(LOOKS).select(F.col("id").cast("string").alias("copy"))
        copies = spark.read.parquet(f"{file}.parquet").crossJoin(F.broadcast(looks))
        events = copies.withColumn("look", F.concat("look", "copy")).drop("copy").persist()
        found = events.groupBy("cluster", "look").agg(data_bytes()).collect()
        large = {(look["cluster"], look["look"]): parts_of(look["bytes"]) for look in found}
        took = []
        for _ in range(3):
            began = time.monotonic()
            wide = look_rows(events, large, lambda frame: frame.localCheckpoint())
            wide.write.format("noop").mode("overwrite").save()
            took.append(time.monotonic() - began)
        spark.stop()
    return min(took[1:])


def _tell(
    case: str, value: float, unit: str, goal: float | None = None, *, ok: bool | None = None, note: str = ""
) -> None:
    line = {"bench": "looks", "case": case, "value": value, "unit": unit, "goal": goal, "ok": ok, "note": note or None}
    print(json.dumps({name: found for name, found in line.items() if found is not None}), flush=True)


def _tell_workers(wall_s: dict[str, float], partitions: int) -> None:
    for number, took_s in wall_s.items():
        name = f"{LOOKS} looks of {partitions:,} partitions in parts, workers of Spark standalone: {number}"
        _tell(name, round(took_s, 1), "s", note=f"{WORKER_CORES} cores each, and the driver beside them")
    speed = round(wall_s["1"] / wall_s["2"], 2)
    _tell("two workers of Spark standalone against one", speed, "x", WORKERS, ok=speed >= WORKERS)


def _write(file: Path, groups: int) -> int:
    """The second look of an agent, whose memory has the first; the number of partitions."""
    world, memory = _looked_at(groups)
    with file.open("w") as lines:
        for event in observation_to_events(world, memory, Limits(), look="12345678-2"):
            lines.writelines(f"{line}\n" for line in to_lines(event))
    return sum(len(topic.partitions) for topic in world.topics)


def _looked_at(groups: int) -> tuple[Observation, Memory]:
    world, line, memory = synthetic_cluster(groups), CycleStages(Limits()), Memory()
    for number in range(2):
        world = next_look(world, improvable=0.3, seed=number + 2)
        snapshot = line.snapshot(world, memory)
        memory = line.remember(memory, snapshot, line.detect(snapshot, memory))
        line.turn()
    return world, memory


def _in_a_fresh_process(file: Path, case: str) -> dict[str, float]:
    command = [sys.executable, "-m", __spec__.name, str(file), case]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        sys.exit(f"{case}: exit code {run.returncode}")
    return json.loads(run.stdout.splitlines()[-1])


def one(file: Path, case: str) -> None:
    spark = spark_session("looks", master=MASTER, conf={**small_batches(MASTER), "spark.driver.memory": "2g"})
    telemetry_of_file(spark, file).write.mode("overwrite").parquet(f"{file}.parquet")
    events = spark.read.parquet(f"{file}.parquet")
    (look,) = events.groupBy("cluster", "look").agg(data_bytes()).collect()
    parts = parts_of(look["bytes"]) if case == "in parts" else 0
    large = {(look["cluster"], look["look"]): parts} if parts else {}
    began = time.monotonic()
    wide = look_rows(events, large, lambda frame: frame.localCheckpoint())
    wide.write.format("noop").mode("overwrite").save()
    wall_s = time.monotonic() - began
    workers = _workers()
    print(
        json.dumps(
            {
                "wall_s": wall_s,
                "cpu_s": sum(sum(worker.cpu_times()[:2]) for worker in workers),
                "busiest_s": max(sum(worker.cpu_times()[:2]) for worker in workers),
                "peak_mib": max(_peak_kib(worker.pid) for worker in workers) // 1024,
                "parts": parts,
                "mb": look["bytes"] / 1e6,
            }
        )
    )
    spark.stop()


def _workers() -> list[psutil.Process]:
    """Python workers, which PySpark's daemon forks and keeps for the next task."""
    daemons = [one for one in psutil.Process().children(recursive=True) if _is_daemon(one)]
    return [one for one in daemons if any(one.ppid() == daemon.pid for daemon in daemons)]


def _is_daemon(process: psutil.Process) -> bool:
    """The daemon and its workers have the same command line."""
    try:
        return "pyspark.daemon" in process.cmdline()
    except psutil.Error:
        return False


def _peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[2].isdecimal():
        print(json.dumps({"wall_s": on_workers(Path(sys.argv[1]), int(sys.argv[2]))}))
    elif len(sys.argv) > 1:
        one(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
