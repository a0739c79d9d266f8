"""The pipeline in an object store: a real S3 server, two writers at once, one of them killed, slow and failing answers.

What is in the bucket at the end is read from the server's own folder, not through what is tested.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from agent.telemetry.events import to_lines
from pipeline.schemas.bronze import QUARANTINE, TELEMETRY
from pipeline.schemas.silver import LOOKS
from pipeline.tables import TableStore
from testbed.cluster import EmbeddedCluster
from tests.agent_process import wait_until_gone
from tests.jvm.building import tables_jar
from tests.pipeline.contents import EVERY, Contents, contents
from tests.pipeline.histories import recorded, shop, with_tasks
from tests.pipeline.s3_server import BUCKET, SECRET, USER, Faults, Store, proxied, running
from tests.pipeline.topics import Topics
from tests.recorded_looks import observation_to_events

pytestmark = pytest.mark.drill
ROOT = Path(__file__).parents[2]
LOOKS_TOLD, RUN_S, BATCHES = 8, 900, 5
CLUSTERS = ("c", "d")
FAILED = "The object store failed or did not answer"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    tables_jar()
    with running(tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture(scope="module")
def telemetry(broker: EmbeddedCluster) -> tuple[Topics, ...]:
    """The telemetry of two agents, of a cluster each: looks, and some rubbish."""
    return tuple(_told(Topics(broker), cluster) for cluster in CLUSTERS)


def _told(topics: Topics, cluster: str) -> Topics:
    topics.make(topics.names.telemetry, topics.names.proposals, topics.names.journal, partitions=2)
    looks = recorded(lambda minute: with_tasks(shop(swapped=minute < 4, generation=4 + (minute > 3))), LOOKS_TOLD)
    for look in looks:
        own = replace(look.observation, cluster_id=cluster)
        events = observation_to_events(own, look.memory, look.limits, look=look.look)
        topics.lines(line for event in events for line in to_lines(event))
    topics.put(topics.names.telemetry, b"\x00no event", key="x")
    topics.flush()
    return topics


@pytest.fixture(scope="module")
def undisturbed(telemetry: Sequence[Topics], spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """The tables of two ingests on this machine, one after the other."""
    root = str(tmp_path_factory.mktemp("undisturbed"))
    for number, topics in enumerate(telemetry):
        done = _run(_ingest(topics, root, f"{root}/_checkpoints-{number}"))
        assert done.returncode == 0, done.stderr[-4_000:]
    tables = TableStore(spark, root)
    found = contents(tables)
    assert tables.read(LOOKS).where("complete").count() == 2 * LOOKS_TOLD
    assert found[QUARANTINE.name].total() == 2
    assert found[TELEMETRY.name].total() + 2 == sum(topics.produced for topics in telemetry) + 2
    assert len([name for name, rows in found.items() if rows]) > 10
    return found


@pytest.mark.timeout(RUN_S)
@pytest.mark.parametrize("is_conditional", [True, False])
def test_of_two_commits_of_one_version_none_is_lost_as_deltas_own_log_for_s3_loses_one(
    store: Store, spark: SparkSession, is_conditional: bool
) -> None:
    """The proxy holds the first commit of each version until the other writer's is there as well."""
    faults = Faults(commits_meet=True)
    root = f"meeting-{is_conditional}"
    with proxied(store, faults) as port:
        more = () if is_conditional else ("spark.delta.logStore.s3a.impl=io.delta.storage.S3SingleDriverLogStore",)
        writers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.pipeline.appending", f"s3a://{BUCKET}/{root}", name, str(BATCHES)]
                + [f"{one}={value}" for one, value in _conf(port).items()] + list(more),
                cwd=ROOT, env=_environment(),
            )
            for name in "ab"
        ]  # fmt: skip
        ends = [writer.wait(RUN_S) for writer in writers]
    log = store.folder / root / "bronze" / "quarantine" / "_delta_log"
    commits = sum('{"txn":' in file.read_text() for file in log.glob("0*.json"))
    print(f"\nconditional {is_conditional}: exit codes {ends}, {commits} appends in the log, {faults.seen}")
    assert faults.seen["met"] >= 1
    if is_conditional:
        assert ends == [0, 0]
        assert faults.seen["refused"] >= 1
        rows = [row["topic"] for row in TableStore(spark, str(store.folder / root)).read(QUARANTINE).collect()]
        assert sorted(rows) == sorted(f"{name}-{number}" for name in "ab" for number in range(BATCHES))
    else:
        assert commits < 2 * BATCHES


@pytest.mark.timeout(3 * RUN_S)
def test_two_clusters_ingested_at_once_and_one_killed_give_exact_rows_and_a_report(
    store: Store, telemetry: Sequence[Topics], spark: SparkSession, undisturbed: Contents, tmp_path: Path
) -> None:
    root = f"s3a://{BUCKET}/shared"
    with proxied(store, Faults()) as port:
        asked = [_ingest(one, root, f"{root}/_checkpoints-{number}", port) for number, one in enumerate(telemetry)]
        first, second = (_start(one) for one in asked)
        _kill_when(second, store.folder / "shared" / "silver" / "looks" / "_delta_log")
        again = _run(asked[1])
        out, err = first.communicate(timeout=RUN_S)
        assert first.returncode == 0, err[-4_000:]
        assert again.returncode == 0, again.stderr[-4_000:]
        assert SECRET not in out + err + again.stdout + again.stderr
        _same(TableStore(spark, str(store.folder / "shared")), undisturbed)

        refreshed = _run(_command("refresh", root, port))
        assert refreshed.returncode == 0, refreshed.stderr[-4_000:]
        _same(TableStore(spark, str(store.folder / "shared")), undisturbed)
        streams = (f"spark.checkpoints={root}/_checkpoints-0", "spark.stalled_after=1h")
        status = _run(_command("status", root, port, *(word for one in streams for word in ("--set", one))))
        assert (status.returncode, status.stdout.count(": between batches;")) == (0, 3), status.stdout + status.stderr
        report = _run(_command("report", root, port, "--out", str(tmp_path / "report")))
        assert report.returncode == 0, report.stderr[-4_000:]
        assert (tmp_path / "report" / "report.md").read_text()


@pytest.mark.timeout(4 * RUN_S)
def test_slow_failing_and_cut_answers_end_in_exact_rows_or_in_one_sentence(
    store: Store, telemetry: Sequence[Topics], spark: SparkSession, undisturbed: Contents
) -> None:
    root, ends = f"s3a://{BUCKET}/faulty", []
    faults = Faults(slow=0.05, slow_s=1.0, errors=0.02, cut_before=0.01, cut_after=0.01)
    with proxied(store, faults) as port:
        for number, topics in enumerate(telemetry):
            command = _ingest(topics, root, f"{root}/_checkpoints-{number}", port)
            for _ in range(5):
                done = _run(command)
                ends.append(done.returncode)
                if done.returncode == 0:
                    break
                assert done.returncode == 1, done.stderr[-4_000:]
                assert FAILED in done.stderr, done.stderr[-4_000:]
                assert "Traceback" not in done.stderr
            assert done.returncode == 0, done.stderr[-4_000:]
        print(f"\nends {ends}; {faults.seen}")
        assert min(faults.seen[one] for one in ("slow", "500", "503", "cut before", "cut after")) > 0
        _same(TableStore(spark, str(store.folder / "faulty")), undisturbed)

        faults.dead = True
        started = time.monotonic()
        done = _run(_command("status", root, port))
        print(f"a dead store: {done.returncode} after {time.monotonic() - started:.0f} s: {done.stderr.strip()[-300:]}")
        assert (done.returncode, done.stdout) == (1, "")
        assert FAILED in done.stderr


def test_a_wrong_secret_and_a_bucket_that_is_not_there_end_with_their_sentence(store: Store) -> None:
    asked = _command("status", f"s3a://{BUCKET}/x", store.port)
    done = subprocess.run(
        asked, cwd=ROOT, env={**_environment(), "AWS_SECRET_ACCESS_KEY": "canary-that-is-wrong"},
        capture_output=True, text=True, check=False, timeout=RUN_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "The object store refuses access" in done.stderr
    assert "canary" not in done.stderr
    done = _run(_command("status", "s3a://no-such-bucket/x", store.port))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "is in a bucket that does not exist" in done.stderr
    done = _run([*_command("status", f"s3a://{BUCKET}/x", store.port), "--conf", "spark.jars="])
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Spark has no connector for the object store" in done.stderr


def _same(tables: TableStore, undisturbed: Contents) -> None:
    found = contents(tables)
    for table in EVERY:
        assert found[table.name] == undisturbed[table.name], table.name


def _kill_when(process: subprocess.Popen[str], log: Path) -> None:
    """Kill it and its Java, once the table has a change: in the middle of a batch."""
    until = time.monotonic() + RUN_S
    while time.monotonic() < until and not (log.is_dir() and any(log.glob("0*.json"))):
        assert process.poll() is None, process.communicate()[1][-4_000:]
        time.sleep(0.05)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    wait_until_gone(process.pid, 60)


def _conf(port: int | None) -> dict[str, str]:
    conf = {"spark.driver.memory": "700m"}
    if port is not None:
        conf |= {
            "spark.hadoop.fs.s3a.endpoint": f"http://127.0.0.1:{port}",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
        }
    return conf


def _command(name: str, root: str, port: int | None, *more: str) -> list[str]:
    conf = (word for one, value in _conf(port).items() for word in ("--conf", f"{one}={value}"))
    return [
        sys.executable, "-m", "agent", "spark", name, "--tables", root, "--master", "local[2]", *conf, *more
    ]  # fmt: skip


def _ingest(topics: Topics, root: str, checkpoints: str, port: int | None = None) -> list[str]:
    more = ("--set", f"spark.checkpoints={checkpoints}", "--set", "spark.max_records=200")
    return _command("ingest", root, port, "--once", *topics.options(), *more)


def _environment() -> dict[str, str]:
    return {**os.environ, "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRET}


def _start(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, cwd=ROOT, env=_environment(), start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False, timeout=RUN_S
    )
