"""The archive of a broker's classes: made once, and never needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.cluster.archive import do_without_archive, needs_archive
from testbed.cluster.jars import JarSet, kafka_jars
from tests.cluster.live import described

pytestmark = pytest.mark.integration


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JarSet:
    """The jars in a cache of their own, so that this test alone decides about the archive."""
    cached = kafka_jars("4.3.1")
    copy = tmp_path / "cache" / "jars" / cached.directory.name
    shutil.copytree(cached.directory, copy, ignore=shutil.ignore_patterns("*.jsa", ".no-archive"))
    monkeypatch.setenv("RACKWISE_CACHE", str(tmp_path / "cache"))
    return kafka_jars("4.3.1")


def start(told: list[str]) -> dict[int, str | None]:
    with EmbeddedCluster.start(ClusterSpec(racks=("a",)), on_progress=told.append) as one:
        return dict(described(one.bootstrap_servers))


@pytest.mark.drill
def test_the_first_start_makes_an_archive_and_the_second_uses_it(jars: JarSet) -> None:
    first: list[str] = []
    assert needs_archive(jars)
    assert start(first) == {1: "a"}
    assert first[0].startswith("preparing Kafka 4.3.1 for quick starts")
    made = jars.class_archive.stat()
    assert made.st_size > 10_000_000
    second: list[str] = []
    assert start(second) == {1: "a"}
    assert not [line for line in second if "getting" in line]
    assert jars.class_archive.stat().st_mtime_ns == made.st_mtime_ns
    assert sorted(one.name for one in jars.directory.glob(".*")) == []


@pytest.mark.drill
def test_brokers_start_without_an_archive_and_with_a_broken_one(jars: JarSet) -> None:
    do_without_archive(jars)
    assert start([]) == {1: "a"}
    assert not jars.class_archive.exists()
    jars.class_archive.write_bytes(b"this is no archive")
    assert start([]) == {1: "a"}
