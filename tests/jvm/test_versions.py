"""One jar for all releases of brokers: compiled and tested against each, it is the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jvm.building import JAR, run_maven


@pytest.mark.drill
def test_the_jar_passes_its_tests_on_the_oldest_and_the_newest_release_and_is_the_same(tmp_path: Path) -> None:
    jars = set()
    for profile in ("kafka-4.1", "kafka-4.4"):
        run_maven("verify", f"-P{profile}", f"-Dbuild.home={tmp_path / profile}")
        assert len(list((tmp_path / profile / "surefire-reports").glob("TEST-*.xml"))) == 11
        jars.add((tmp_path / profile / JAR).read_bytes())
    run_maven("package", "-Dmaven.test.skip=true", f"-Dbuild.home={tmp_path / 'default'}")
    jars.add((tmp_path / "default" / JAR).read_bytes())
    assert len(jars) == 1
