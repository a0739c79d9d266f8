"""A broker's classes, parsed once and mapped by every later start: a third less work and a quarter less memory.

Java writes the archive when a broker that recorded its classes ends in order, so one broker is started for it, once
per set of jars. Invariant: an archive is whole or absent, and nothing depends on it: when it cannot be made, or another
Java is used later, brokers start as they would without.
"""

from __future__ import annotations

import os
from pathlib import Path

from testbed.cluster.broker import EmbeddedBroker
from testbed.cluster.jars import JarSet

# Writing the archive takes some seconds of the end of that broker, more on a busy machine.
_STOP_TIMEOUT_S = 240.0


def needs_archive(jars: JarSet) -> bool:
    """True until an archive of these jars was made, or could not be."""
    return not jars.class_archive.exists() and not _given_up(jars).exists()


def recording(jars: JarSet) -> tuple[str, ...]:
    """JVM options of the broker that writes the archive at its end."""
    return (f"-XX:ArchiveClassesAtExit={_unfinished(jars)}",)


def keep_archive(jars: JarSet, broker: EmbeddedBroker) -> None:
    """End the broker that recorded, and publish what it wrote; remembers when it wrote nothing."""
    broker.stop(_STOP_TIMEOUT_S)
    try:
        # Another process may publish one at the same time; the last is as good as the first.
        _unfinished(jars).replace(jars.class_archive)
    except FileNotFoundError:
        do_without_archive(jars)


def do_without_archive(jars: JarSet) -> None:
    """Never try again with these jars."""
    _given_up(jars).touch()


def _unfinished(jars: JarSet) -> Path:
    return jars.directory / f".broker-{os.getpid()}.jsa"


def _given_up(jars: JarSet) -> Path:
    return jars.directory / ".no-archive"
