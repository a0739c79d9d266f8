"""The five-minute start and every how-to are run as they are written, on one cluster that the start itself starts.

The how-to on read-only rights has a cluster of its own, with TLS, users and an authorizer. What takes minutes is a
drill: a Streams application that grows, and Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from testbed.cluster import DEFAULT_VERSION, ClusterSecurity, ClusterSpec, EmbeddedCluster, kafka_tools
from testbed.demo.workload import ClusterFacts, ClusterWorkload, WorkloadPlan
from testbed.demo.workload.scenes import small_plan
from tests.conftest import ClusterFactory
from tests.manual.howto_blocks import DOCS, HowToBlock, blocks, documents
from tests.manual.howto_shell import HowToShell, make_command

START, LOOK, GROW, FLEET = "start.md", "howto/look.md", "howto/scale-out.md", "howto/fleet.md"
README = DOCS.parent / "README.md"
ADDRESS = "RACKWISE_KAFKA_BOOTSTRAP_SERVERS"
ON_THE_TRIAL = [name for name in documents() if name not in (START, LOOK) and any(
    block.run and not block.drilled for block in blocks(name)
)]  # fmt: skip


class TrialCluster(NamedTuple):
    """What the five-minute start left: a cluster, by its address, and what later shells need."""

    address: str
    state: dict[str, str]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_command(tmp_path_factory.mktemp("command") / "bin")


@pytest.fixture(scope="module")
def path(command: Path) -> list[Path]:
    """What a reader of the how-tos has in ``PATH``: rackwise and Kafka's own tools."""
    return [command, kafka_tools(DEFAULT_VERSION)]


@pytest.fixture(scope="module")
def trial(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrialCluster]:
    """The five-minute start, and its last block when all how-tos are done."""
    state = {"RACKWISE_STATE": str(tmp_path_factory.mktemp("state"))}
    shell = HowToShell(tmp_path_factory.mktemp("start"), [command], state)  # it gets Kafka's tools by itself
    try:
        every = [block for block in blocks(START) if block.run]
        for block in every:
            if not block.last:
                shell.run(block)
        yield TrialCluster(shell.variable(ADDRESS), state)
        for block in every:
            if block.last:
                shell.run(block)
    finally:
        shell.run(blocks(START)[-2])
        shell.close()


@pytest.mark.integration
def test_the_five_minute_start_runs_as_it_is_written(trial: TrialCluster) -> None:
    assert trial.address.count(":") == 4


@pytest.mark.integration
def test_the_first_five_minutes_of_the_readme_run_as_they_are_written(
    trial: TrialCluster, path: list[Path], tmp_path: Path
) -> None:
    """But the installation, which test_installs.py has, and the agent, which gets its Ctrl-C after some looks."""
    found = re.search(r"^## First five minutes\n.*?^```\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    install, address, *commands = found[1].splitlines()
    assert install.startswith("python3 -m venv venv &&")
    assert address.endswith("RACKWISE_KAFKA_BOOTSTRAP_SERVERS=broker:9092")
    assert [line.split()[1] for line in commands] == ["status", "doctor", "groups", "plan", "run"]
    shell = HowToShell(tmp_path / "at", path, {**trial.state, ADDRESS: trial.address})
    try:
        for line in commands:
            run = line.split()[1] == "run"
            # Not to the whole group: the agent would get it twice, and a second one ends it at once.
            text = f"timeout --foreground --preserve-status --signal INT 30 {line}" if run else line
            mark = 'run; shows: "a dry run carries nothing out"' if run else "run"
            shell.run(HowToBlock("../README.md", 0, f"{text}\n", mark))
    finally:
        shell.close()


@pytest.mark.integration
@pytest.mark.parametrize("document", ON_THE_TRIAL)
def test_a_how_to_runs_as_it_is_written(trial: TrialCluster, path: list[Path], document: str, tmp_path: Path) -> None:
    shell = HowToShell(tmp_path / "at", path, {**trial.state, ADDRESS: trial.address})
    try:
        for block in blocks(document):
            if block.run and not block.drilled:
                shell.run(block)
    finally:
        shell.close()


@pytest.mark.integration
def test_the_look_with_read_only_rights_runs_as_it_is_written(path: list[Path], tmp_path: Path) -> None:
    users = {"admin": "admin-secret", "reader": "reader-secret"}
    spec = ClusterSpec(racks=("a",), security=ClusterSecurity(users=users))
    with EmbeddedCluster.start(spec, on_progress=print) as secured:
        shell = HowToShell(tmp_path / "at", path, {ADDRESS: secured.bootstrap_servers})
        for user in users:
            lines = [f"{name}={value}" for name, value in secured.client_properties(user).items()]
            (tmp_path / "at" / f"{user}.properties").write_text("\n".join(lines))
        try:
            for block in blocks(LOOK):
                if block.run:
                    shell.run(block)
        finally:
            shell.close()


def growing(facts: ClusterFacts) -> WorkloadPlan:
    """The application ``shop`` with enough state that a newcomer needs warm-ups."""
    return small_plan(facts, newcomer_restore_records_per_s=800, preload_records=30_000)


@pytest.mark.drill
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("document", [GROW, FLEET])
def test_a_how_to_that_takes_minutes_runs_as_it_is_written(
    cluster_factory: ClusterFactory, path: list[Path], tmp_path: Path, document: str
) -> None:
    cluster = cluster_factory(ClusterSpec())
    with ClusterWorkload.start(cluster.bootstrap_servers, plan=growing, on_progress=print) as work:
        work.wait_settled()
        shell = HowToShell(tmp_path / "at", path, {ADDRESS: cluster.bootstrap_servers})
        try:
            for block in blocks(document):
                if block.drilled:
                    shell.run(block)
                if "; grow" in block.mark:
                    work.scale_out("shop", "c")
        finally:
            shell.close()
