"""What the brokers say of groups, asked with clients that are not the workload's own."""

from __future__ import annotations

import re
import struct
import subprocess
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka.admin import AdminClient

from testbed.cluster import EmbeddedCluster


def admin(cluster: EmbeddedCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


def classic_group(cluster: EmbeddedCluster, group: str) -> Any:
    """State, protocol and members with their raw bytes; waits until it is Stable."""
    client = admin(cluster)

    def stable() -> Any:
        (found,) = client.list_groups(group, timeout=10)
        return found if found.state == "Stable" else None

    return eventually(stable, f"group {group} is not Stable")


def rack_sent(metadata: bytes) -> str | None:
    """The rack at the end of a subscription of version 3, without decoding the rest.

    A rack of one letter ends with its length and the letter. Without one Java sends a null string, which ends with -1,
    and librdkafka an empty string, which ends with 0.
    """
    assert struct.unpack_from(">h", metadata)[0] == 3
    if metadata.endswith((b"\xff\xff", b"\x00\x00")):
        return None
    assert metadata[-3:-1] == b"\x00\x01", "the racks of these tests have one letter"
    return metadata[-1:].decode()


def kafka_tool(cluster: EmbeddedCluster, name: str, *arguments: str) -> str:
    """Output of one of Kafka's own command line tools."""
    command = [
        str(cluster.jars.java), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", cluster.jars.classpath,
        f"org.apache.kafka.tools.{name}", "--bootstrap-server", cluster.bootstrap_servers, *arguments,
    ]  # fmt: skip
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=True)
    return done.stdout


def table(text: str) -> list[dict[str, str]]:
    """Rows of a table whose columns are split by two or more blanks or by tabs."""
    lines = [re.split(r"\s{2,}|\t", line.strip()) for line in text.splitlines() if line.strip()]
    return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]


def eventually(ask: Callable[[], Any], complaint: str, within_s: float = 30, every_s: float = 0.5) -> Any:
    """The first truthy answer; fails with the complaint and the last answer."""
    deadline = time.monotonic() + within_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"{complaint}: {answer!r}"
        time.sleep(every_s)
    return answer
