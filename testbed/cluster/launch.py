"""The start of a broker's JVM, and the formatting of its directory.

Invariant: every JVM of a cluster carries the tag `-Drackwise.cluster=DIRECTORY`, so that one which was started just
before a crash, and is in no manifest yet, is found too.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from testbed.cluster.errors import ClusterError
from testbed.cluster.jars import JarSet
from testbed.cluster.settings import BrokerNode, as_properties
from testbed.cluster.spec import ClusterSpec

TAG = "-Drackwise.cluster="
_FORMAT_TIMEOUT_S = 120
# Serial collector and first compiler only: three brokers share a laptop with other programs.
_SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
# An archive that another Java made, or that misses a class, is passed over in silence.
_QUIET_ARCHIVE = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")

_LOG4J2 = """\
status = warn
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${sys:rackwise.log}
appender.file.filePattern = ${sys:rackwise.log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %p %m (%c)%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""

_LOG4J1 = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.RollingFileAppender
log4j.appender.file.File=${rackwise.log}
log4j.appender.file.MaxFileSize=10MB
log4j.appender.file.MaxBackupIndex=2
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d{ISO8601} %p %m (%c)%n
"""

# Only what a byte counts: bytes in and out by broker and topic, and between brokers.
_JMX_RULES = """\
startDelaySeconds: 0
lowercaseOutputName: true
includeObjectNames: ["kafka.server:type=BrokerTopicMetrics,*"]
rules:
  - pattern: 'kafka.server<type=BrokerTopicMetrics, name=(\\w+), topic=(.+)><>Count'
    name: broker_topic_$1_total
    type: COUNTER
    labels: {topic: "$2"}
  - pattern: 'kafka.server<type=BrokerTopicMetrics, name=(\\w+)><>Count'
    name: broker_$1_total
    type: COUNTER
"""


class BrokerDirectory(NamedTuple):
    """Directory of one broker inside the cluster's."""

    directory: Path

    @property
    def properties(self) -> Path:
        """Its `server.properties`."""
        return self.directory / "server.properties"

    @property
    def own_settings(self) -> Path:
        """Settings of this broker alone, which win; read at each start. There need be none."""
        return self.directory / "own.properties"

    @property
    def libs(self) -> Path:
        """Jars that it loads behind Kafka's own; looked at at each start. There need be none."""
        return self.directory / "libs"

    @property
    def log(self) -> Path:
        """Kafka's own log."""
        return self.directory / "server.log"

    @property
    def output(self) -> Path:
        """What the JVM itself prints: why it would not start, or died."""
        return self.directory / "output.log"

    @property
    def data(self) -> Path:
        """`log.dirs`."""
        return self.directory / "data"


def home(cluster_directory: Path, broker_id: int) -> BrokerDirectory:
    """Directory of this broker."""
    return BrokerDirectory(cluster_directory / f"broker-{broker_id}")


def write_shared_files(cluster_directory: Path) -> None:
    """Logging and JMX rules, the same for every broker; both log libraries find theirs."""
    (cluster_directory / "log4j2.properties").write_text(_LOG4J2, encoding="utf-8")
    (cluster_directory / "log4j.properties").write_text(_LOG4J1, encoding="utf-8")
    (cluster_directory / "jmx.yaml").write_text(_JMX_RULES, encoding="utf-8")


def write_settings(where: BrokerDirectory, settings: Mapping[str, str]) -> None:
    """The broker's settings, readable by the user alone; those in its own file win."""
    where.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = where.own_settings.read_text("utf-8").splitlines() if where.own_settings.exists() else ()
    own = dict(line.split("=", 1) for line in lines if "=" in line)
    where.properties.write_text(as_properties({**settings, **own}), encoding="utf-8")
    where.properties.chmod(0o600)


def format_storage(
    cluster_directory: Path, jars: JarSet, cluster_id: str, broker_id: int, scram: tuple[str, ...]
) -> None:
    """Format the broker's empty directory with Kafka's own tool. Raises ClusterError when the tool refuses.

    `scram` are values for `--add-scram`.
    """
    where = home(cluster_directory, broker_id)
    users = [part for one in scram for part in ("--add-scram", one)]
    tool = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(where.properties), *users]
    command = [*_java(cluster_directory, jars, where, "128m"), *tool]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_FORMAT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"Broker {broker_id} could not format its directory", why=str(error)) from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ClusterError(
            f"Broker {broker_id} could not format its directory", why=lines[-1] if lines else "it printed nothing"
        )


def launch(
    cluster_directory: Path, jars: JarSet, spec: ClusterSpec, node: BrokerNode, options: Sequence[str] = ()
) -> subprocess.Popen[bytes]:
    """Start the broker; returns at once, in a session of its own so that Ctrl-C reaches the owner alone.

    `options` are further options of the JVM.
    """
    where = home(cluster_directory, node.id)
    agent = []
    if node.jmx_port is not None:
        agent = [f"-javaagent:{jars.jmx_agent}=127.0.0.1:{node.jmx_port}:{cluster_directory / 'jmx.yaml'}"]
    command = [
        *_java(cluster_directory, jars, where, spec.heap, *agent, *options),
        "kafka.Kafka",
        str(where.properties),
    ]
    with where.output.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            cwd=where.directory, start_new_session=True,
        )  # fmt: skip


def _java(cluster_directory: Path, jars: JarSet, where: BrokerDirectory, heap: str, *more: str) -> tuple[str, ...]:
    archive = (f"-XX:SharedArchiveFile={jars.class_archive}",) if jars.class_archive.exists() else ()
    return (
        str(jars.java),
        f"-Xmx{heap}",
        *_SMALL,
        *_QUIET_ARCHIVE,
        *archive,
        *more,
        f"{TAG}{cluster_directory}",
        f"-Drackwise.log={where.log}",
        f"-Dlog4j2.configurationFile={cluster_directory / 'log4j2.properties'}",
        f"-Dlog4j.configuration={(cluster_directory / 'log4j.properties').as_uri()}",
        "-cp",
        ":".join((jars.classpath, *map(str, sorted(where.libs.glob("*.jar"))))),
    )
