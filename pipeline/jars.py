"""The connectors that Spark needs for Kafka and Delta Lake: which ones, and where they lie on this machine.

Invariant: a jar is used only when its SHA-256 is the one of ``jars.lock``. Jars that pyspark brings itself are no part
of the set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from agent.errors import BadInput
from pipeline.maven import resolved

_LOCK = Path(__file__).with_name("jars.lock")


def spark_jars(on_progress: Callable[[str], None] | None = None) -> tuple[Path, ...]:
    """The connectors' jars, by name; from the cache, else by Maven, once. Raises ToolError, BadInput."""
    directory = resolved("the Spark connectors", "spark", "spark", (), on_progress)
    jars = tuple(sorted(directory.glob("*.jar")))
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars}
    locked = locked_jars()
    if found != locked:
        odd = sorted(name for name in found.keys() | locked.keys() if found.get(name) != locked.get(name))
        raise BadInput(
            "The Spark connectors differ from those that rackwise was built with",
            why=f"{', '.join(odd)} in {directory}: the checksum is not the one in {_LOCK.name}",
            todo=f"Delete {directory} and try again; if it happens again, do not trust the source of the jars.",
        )
    return jars


def locked_jars() -> dict[str, str]:
    """File name -> SHA-256, as ``jars.lock`` says."""
    lines = (line.split() for line in _LOCK.read_text("ascii").splitlines() if line and not line.startswith("#"))
    return {name: digest for digest, name in lines}
