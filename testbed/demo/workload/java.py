"""The JVM with Streams instances and Java consumers: controlled over HTTP on the loopback interface.

Invariant: the JVM runs no longer than this process. It watches the pipe that is its standard input, which the
operating system closes whenever and however this process ends.
"""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, cast
from urllib.parse import quote

from pipeline.maven import Progress
from testbed.demo.workload.errors import WorkloadError
from testbed.demo.workload.facts import ClusterFacts
from testbed.demo.workload.java_classes import compiled
from testbed.demo.workload.plan import TopologyPlan

_READY_WITHIN_S = 60.0
_CLOSE_WITHIN_S = 15.0
_ANSWER_WITHIN_S = 45.0

_LOG4J2 = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""

_LOG4J1 = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %m (%c)%n
"""

Json = dict[str, Any]


class JavaHost:
    """One JVM that hosts any number of Streams instances and Java consumers."""

    def __init__(
        self, bootstrap_servers: str, version: str, *, heap: str = "256m", plugins: Sequence[str] = (),
        on_progress: Progress = lambda _line: None,
    ) -> None:  # fmt: skip
        """Compile what is not in the cache, start the JVM and wait until it listens on 127.0.0.1.

        `plugins` are paths of jars that it loads beside Kafka's own.
        """
        jars, classes = compiled(version, on_progress)
        jars = replace(jars, plugins=tuple(plugins))
        self._directory = Path(tempfile.mkdtemp(prefix="rackwise-workload-"))
        self._process = self._launch(str(jars.java), f"{classes}:{jars.classpath}", bootstrap_servers, heap)
        try:
            hello = self._hello()
        except WorkloadError:
            self.close()
            raise
        self.pid: int = self._process.pid
        self.port: int = hello["port"]
        self.client_version: str = hello["client_version"]

    def cluster(self) -> ClusterFacts:
        """Facts of the cluster, from the JVM's admin client."""
        answer = self._ask("GET", "/cluster")
        return ClusterFacts(
            cluster_id=answer["cluster_id"],
            racks={broker["id"]: broker["rack"] for broker in answer["brokers"]},
            features=answer["features"],
            client_version=self.client_version,
        )

    def start_instance(
        self, name: str, application: str, topology: TopologyPlan, *, rack: str | None,
        tags: Mapping[str, str], settings: Mapping[str, str], threads: int = 1,
    ) -> None:  # fmt: skip
        """Start a Streams instance; returns when it runs, before it has tasks."""
        body = {
            "id": name, "application": application, "rack": rack, "tags": dict(tags), "threads": threads,
            "settings": dict(settings), "topology": asdict(topology),
        }  # fmt: skip
        self._ask("POST", "/instances", body)

    def stop_instance(self, name: str, *, leave: bool = True) -> None:
        """Close an instance; without `leave` the group waits for the session to end."""
        self._ask("DELETE", f"/instances/{quote(name)}?leave={str(leave).lower()}")

    def start_consumer(
        self, name: str, group: str, topic: str, *, rack: str | None, settings: Mapping[str, str]
    ) -> None:
        """Start a Java consumer."""
        body = {"id": name, "group": group, "topics": [topic], "rack": rack, "settings": dict(settings)}
        self._ask("POST", "/consumers", body)

    def stop_consumer(self, name: str) -> None:
        """Let a Java consumer leave its group."""
        self._ask("DELETE", f"/consumers/{quote(name)}")

    def set_group_configs(self, group: str, configs: Mapping[str, str]) -> None:
        """Set configs of a group (KIP-848, KIP-1071)."""
        self._ask("POST", "/group-configs", {"group": group, "configs": dict(configs)})

    def lags(self, application: str) -> Json:
        """The application's own word about its lags; format in `docs/application-lags.md`."""
        return cast("Json", self._ask("GET", f"/lags?application={quote(application)}"))

    def lags_url(self, application: str) -> str:
        """Where `lags` is served."""
        return f"http://127.0.0.1:{self.port}/lags?application={quote(application)}"

    def assignment(self) -> Json:
        """What each instance (active and standby tasks) and each Java consumer (partitions) holds now."""
        return cast("Json", self._ask("GET", "/assignment"))

    def rebalances(self, since: int = 0) -> list[Json]:
        """What happened to assignments after an event's `seq`, oldest first."""
        return cast("list[Json]", self._ask("GET", f"/rebalances?since={since}"))

    def reads(self) -> dict[str, list[int]]:
        """Java consumer -> when it was given records: epoch milliseconds of its latest polls, oldest first."""
        return cast("dict[str, list[int]]", self._ask("GET", "/reads"))

    def offsets(self) -> dict[str, dict[str, list[tuple[int, int]]]]:
        """Java consumer -> ``topic-number`` -> runs of offsets that it read, each as first and last."""
        return cast("dict[str, dict[str, list[tuple[int, int]]]]", self._ask("GET", "/offsets"))

    def log(self) -> str:
        """What the JVM has printed: warnings and errors of the Kafka clients."""
        log = self._directory / "jvm.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def close(self) -> None:
        """End the JVM: its members leave their groups if the brokers let them; after a while it is killed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_CLOSE_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _launch(self, java: str, classpath: str, bootstrap_servers: str, heap: str) -> subprocess.Popen[str]:
        (self._directory / "log4j2.properties").write_text(_LOG4J2, encoding="utf-8")
        (self._directory / "log4j.properties").write_text(_LOG4J1, encoding="utf-8")
        native = self._directory / "native"
        native.mkdir()
        command = [
            java, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true",
            f"-Djava.io.tmpdir={native}",
            f"-Dlog4j2.configurationFile={self._directory / 'log4j2.properties'}",
            f"-Dlog4j.configuration={(self._directory / 'log4j.properties').as_uri()}",
            "-cp", classpath, "rackwise.workload.Main",
            "--bootstrap-servers", bootstrap_servers, "--dir", str(self._directory),
        ]  # fmt: skip
        with (self._directory / "jvm.log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )

    def _hello(self) -> Json:
        lines: SimpleQueue[str] = SimpleQueue()
        # A pipe has no read with a deadline, so a thread reads the one line there is.
        threading.Thread(target=lambda: lines.put(self._first_line()), daemon=True).start()
        try:
            line = lines.get(timeout=_READY_WITHIN_S)
        except Empty:
            raise WorkloadError(
                f"The workload's JVM printed nothing within {_READY_WITHIN_S:.0f} s", why=self._last_words()
            ) from None
        if not line.startswith("{"):
            raise WorkloadError("The workload's JVM ended before it was listening", why=self._last_words())
        return cast("Json", json.loads(line))

    def _first_line(self) -> str:
        return self._process.stdout.readline() if self._process.stdout is not None else ""

    def _last_words(self) -> str:
        return self.log().strip()[-1_000:] or "it printed nothing"

    def _ask(self, method: str, path: str, body: Json | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_WITHIN_S)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as failed:
            ended = self._process.poll()
            why = str(failed) if ended is None else f"it ended with {ended}: {self._last_words()}"
            raise WorkloadError(f"The workload's JVM did not answer {method} {path}", why=why) from failed
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise WorkloadError(f"The workload's JVM refused {method} {path}", why=str(answer.get("error")))
        return answer
