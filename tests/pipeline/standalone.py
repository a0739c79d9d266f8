"""Spark's standalone cluster manager on this machine, run by the commands of docs/pipeline.md, word for word."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.request import urlopen

import psutil

from testbed.cluster.ports import hold_ports

ROOT = Path(__file__).parents[2]
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_START_S = 90
_NAMES = ("JARS", "MASTER", "WORKER", "INGEST", "REFRESH")
HEAD = "127.0.0.1"


def documented() -> dict[str, str]:
    """The commands of the manual's section: each by its name here."""
    section = (ROOT / "docs" / "pipeline.md").read_text().partition("Standalone: ")[2].partition("Kubernetes: ")[0]
    (block,) = re.findall(r"^```\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    commands = [line for line in block.replace("\\\n", " ").splitlines() if line and not line.startswith("export HEAD")]
    return dict(zip(_NAMES, commands, strict=True))


class StandaloneCluster:
    """A master and workers, each a process of its own; they end with the context."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._commands = documented()
        with hold_ports(2) as held:
            self._port, self._page = held.ports
        paths = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {
            **os.environ, "PATH": paths, "HEAD": HEAD, "PORT": str(self._port), "TABLES": str(folder / "tables"),
            "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HEAD, "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_MASTER_WEBUI_PORT": str(self._page), "SPARK_WORKER_WEBUI_PORT": "0",
            "SPARK_DAEMON_MEMORY": "300m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }  # fmt: skip
        self._workers = workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self.seen: dict[int, int] = {}
        """Process id of each executor that ran -> that of its worker."""

    def __enter__(self) -> Self:
        try:
            for name in ("MASTER", *["WORKER"] * self._workers):
                self._processes.append(self._start(name))
            self._await_workers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        for process in reversed(self._processes):
            _end(process)

    @property
    def url(self) -> str:
        """Its master."""
        return f"spark://{HEAD}:{self._port}"

    def worker_pids(self) -> list[int]:
        """Process ids of the workers, which start executors once there is work."""
        _master, *workers = self._processes
        return [worker.pid for worker in workers]

    def run(self, name: str, conf: str, *more: str, within_s: float) -> str:
        """A documented spark-submit with ``conf`` among Spark's options and more behind it; its output."""
        command = self._commands[name].replace("spark-submit ", f"spark-submit {conf} ", 1)
        text = f"{self._commands['JARS']}\nexec {' '.join((command, *more))}"
        with (self._folder / f"{name.lower()}.log").open("w+") as log:
            process = subprocess.Popen(
                ["bash", "-c", text], cwd=self._folder, env=self.environment, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                until = time.monotonic() + within_s
                while process.poll() is None and time.monotonic() < until:
                    self.seen |= {one.pid: worker for worker, one in self._executors()}
                    time.sleep(0.2)
            finally:
                _end(process)
            log.seek(0)
            output = log.read()
        if process.returncode:
            raise AssertionError(f"{name} ended with {process.returncode}: {output[-4_000:]}")
        return output

    def executors(self) -> list[psutil.Process]:
        """Processes that run tasks."""
        return [one for _, one in self._executors()]

    def _executors(self) -> list[tuple[int, psutil.Process]]:
        return [
            (process.pid, one)
            for process in self._processes
            for one in _below(process.pid)
            if EXECUTOR in " ".join(_words(one))
        ]

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{name.lower()}-{len(self._processes)}.log").open("wb")
        command = ["bash", "-c", f"exec {self._commands[name]}"]
        with log:
            return subprocess.Popen(command, cwd=self._folder, env=self.environment, stdout=log, stderr=log)

    def _await_workers(self) -> None:
        until = time.monotonic() + _START_S
        while True:
            try:
                with urlopen(f"http://{HEAD}:{self._page}/json/", timeout=5) as answer:
                    if answer.read().count(b'"ALIVE"') > self._workers:  # the master is alive as well
                        return
            except OSError:
                pass
            if time.monotonic() > until:
                logs = [file.read_text()[-2_000:] for file in self._folder.glob("*.log")]
                raise TimeoutError("\n".join(logs))
            time.sleep(0.2)


class ExecutorKiller:
    """Kills executors of the cluster at random moments, so many, from the first one on that runs."""

    def __init__(self, cluster: StandaloneCluster, kills: int, seed: int = 1) -> None:
        self._cluster = cluster
        self._kills = kills
        self._draw = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._kill, daemon=True)
        self.killed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _kill(self) -> None:
        while self.killed < self._kills and not self._over.wait(self._draw.uniform(2, 6)):
            found = self._cluster.executors()
            if found:
                self._draw.choice(found).kill()
                self.killed += 1


def prepared(folder: Path, bootstrap_servers: str, prefix: str) -> None:
    """The folder in which the commands run: the script without its package, rackwise's wheel, and settings."""
    script = folder / "pipeline" / "submit.py"
    script.parent.mkdir()
    script.write_bytes((ROOT / "pipeline" / "submit.py").read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(command, cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    wheel.rename(folder / "rackwise.zip")
    settings = f"kafka:\n  bootstrap.servers: {bootstrap_servers}\ntopics:\n  prefix: {prefix}\n"
    (folder / "rackwise.yaml").write_text(settings)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill it with everything below it."""
    below = _below(process.pid)
    process.kill()
    for one in below:
        with suppress(psutil.Error):
            one.kill()
    process.wait(30)


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
