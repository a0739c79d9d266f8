"""The assignor of tasks in a real Streams application on a three-rack cluster: 12 stateful tasks, and one slow store.

Nine tasks with a store of orders and three behind a repartition topic, two replicas each, every pair of racks as often.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from testbed.cluster import ClusterSpec, EmbeddedCluster
from testbed.demo.workload.java import JavaHost
from testbed.demo.workload.plan import TopologyPlan
from tests.jvm.building import build_jar

pytestmark = pytest.mark.integration

CLASS = "rackwise.streams.RackwiseTaskAssignor"
RACK_OF = {1: "a", 2: "b", 3: "c"}
PARTITIONS, REGIONS = 9, 3
TASKS = PARTITIONS + REGIONS
REPLICAS = [[1 + n % 3, 1 + (n + 1) % 3] for n in range(PARTITIONS)]
RECORDS = 400
"""Of each partition."""
ACCEPTABLE, WARMUPS = 50, 2
PROBING_S = 60
"""The shortest that Streams takes."""

Tasks = dict[str, frozenset[str]]
"""Instance -> its tasks."""


class Application:
    """Instances of one application, named after their racks."""

    def __init__(self, java: JavaHost, name: str, **settings: str) -> None:
        self.name = name
        self._java = java
        self._settings = {
            "task.assignor.class": CLASS,
            "replication.factor": "2",
            "max.warmup.replicas": str(WARMUPS),
            "probing.rebalance.interval.ms": str(PROBING_S * 1000),
            **settings,
        }

    def join(self, rack: str, *, restores_per_s: int = 0) -> None:
        topology = TopologyPlan(
            input="orders", region_partitions=REGIONS, forward_every=1, restore_records_per_s=restores_per_s
        )
        self._java.start_instance(self.instance(rack), self.name, topology, rack=rack, tags={}, settings=self._settings)

    def leave(self, rack: str) -> None:
        self._java.stop_instance(self.instance(rack))

    def instance(self, rack: str) -> str:
        return f"{self.name}-{rack}"

    def tasks(self, role: str = "active") -> Tasks:
        """What instances have now."""
        mine = [one for one in self._java.assignment()["instances"] if one["application"] == self.name]
        return {one["id"]: frozenset(one[role]) for one in mine}

    def copies(self, rack: str) -> dict[str, tuple[str, int | None]]:
        """Task -> role and lag of the copy that the instance has."""
        answer = self._java.lags(self.name)
        (mine,) = (one for one in answer["instances"] if one["id"] == self.instance(rack))
        return {task["task"]: (task["role"], task["lag"]) for task in mine["tasks"]}

    def stored(self) -> int:
        """Records in changelogs of active tasks."""
        answer = self._java.lags(self.name)
        tasks = [task for one in answer["instances"] for task in one["tasks"] if task["role"] == "active"]
        return sum(row["end"] or 0 for task in tasks for row in task["stores"].values())

    def settled(self, *racks: str) -> bool:
        """Whether all these instances run and each task is active once, in even shares."""
        instances = [one for one in self._java.assignment()["instances"] if one["application"] == self.name]
        active = sorted(task for one in instances for task in one["active"])
        share = {TASKS // len(racks)}
        return (
            {one["id"] for one in instances} == {self.instance(rack) for rack in racks}
            and {one["state"] for one in instances} == {"RUNNING"}
            and active == sorted({f"0_{n}" for n in range(PARTITIONS)} | {f"1_{n}" for n in range(REGIONS)})
            and {len(one["active"]) for one in instances} == share
        )


def local(tasks: Tasks) -> int:
    """Tasks whose source partition has a replica in the rack of their instance."""
    return sum(
        instance[-1] in {RACK_OF[broker] for broker in REPLICAS[int(task.split("_")[1])]}
        for instance, names in tasks.items()
        for task in names
    )


def moved(before: Tasks, after: Tasks) -> int:
    """Tasks that are with another instance; those whose instance is gone count too."""
    was = {task: instance for instance, names in before.items() for task in names}
    return sum(was[task] != instance for instance, names in after.items() for task in names)


def eventually(holds: Callable[[], bool], what: str, within_s: float) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.2)


@contextmanager
def applications(jar: Path, *names: str) -> Iterator[JavaHost]:
    """A cluster with records to store, and a JVM with the plug-in."""
    with EmbeddedCluster.start(ClusterSpec(), on_progress=print) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = {"orders": PARTITIONS} | {f"{name}-regions-repartition": REGIONS for name in names}
        new = [NewTopic(topic, count, replica_assignment=REPLICAS[:count]) for topic, count in topics.items()]
        for made in admin.create_topics(new).values():
            made.result(30)
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        for number in range(RECORDS * PARTITIONS):
            producer.produce("orders", value=b"x" * 50, key=str(number), partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        java = JavaHost(cluster.bootstrap_servers, cluster.spec.version, heap="512m", plugins=[str(jar)])
        try:
            yield java
            log = java.log()
            assert "There is no optimal assignment" not in log
            assert "Streams refuses the assignment" not in log
        finally:
            java.close()


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_jar(tmp_path_factory.mktemp("jar"))


def test_every_task_reads_in_its_rack_after_a_join_and_a_leave_and_warms_up_before_it_moves(jar: Path) -> None:
    with applications(jar, "quick", "slow") as java:
        quick = Application(java, "quick", **{"acceptable.recovery.lag": "1000000"})
        slow = Application(java, "slow", **{"acceptable.recovery.lag": str(ACCEPTABLE)})
        for application in (quick, slow):
            application.join("a")
            application.join("b")
        for application in (quick, slow):
            eventually(lambda app=application: app.settled("a", "b"), f"{application.tasks()}", 60)  # type: ignore[misc]
            assert local(application.tasks()) == TASKS
        eventually(lambda: slow.stored() == 2 * RECORDS * PARTITIONS, "the stores are not filled", 60)

        before = {app: app.tasks() for app in (quick, slow)}
        quick.join("c")
        slow.join("c", restores_per_s=20)
        eventually(lambda: quick.settled("a", "b", "c"), "the third instance has no share", 60)
        joined = quick.tasks()
        assert local(joined) == TASKS
        assert moved(before[quick], joined) <= TASKS // 3 + 1
        eventually(lambda: sum(map(len, slow.tasks("standby").values())) > 0, "nothing warms up", 60)
        assert_warming(slow, before[slow])

        quick.leave("c")
        eventually(lambda: quick.settled("a", "b"), "the tasks of the instance that left run nowhere", 60)
        assert local(quick.tasks()) == TASKS
        assert moved(joined, quick.tasks()) <= TASKS // 3 + 1
        assert_warming(slow, before[slow])


def assert_warming(application: Application, before: Tasks) -> None:
    """All tasks run where they ran, and the newcomer has as many warm-ups as are allowed, and nothing else."""
    newcomer = application.instance("c")
    assert application.tasks() == {**before, newcomer: frozenset()}
    warming = application.tasks("standby")
    assert {instance: len(tasks) for instance, tasks in warming.items()} == {
        application.instance("a"): 0, application.instance("b"): 0, newcomer: WARMUPS,
    }  # fmt: skip


@pytest.mark.drill
def test_a_slow_instance_gets_its_tasks_two_by_two_when_it_has_caught_up(jar: Path) -> None:
    with applications(jar, "slow") as java:
        slow = Application(java, "slow", **{"acceptable.recovery.lag": str(ACCEPTABLE)})
        slow.join("a")
        slow.join("b")
        eventually(lambda: slow.settled("a", "b"), f"{slow.tasks()}", 60)
        eventually(lambda: slow.stored() == 2 * RECORDS * PARTITIONS, "the stores are not filled", 60)
        before = slow.tasks()
        slow.join("c", restores_per_s=8)
        seen: list[dict[str, tuple[str, int | None]]] = []
        until = time.monotonic() + 10 * PROBING_S
        while not slow.settled("a", "b", "c"):
            assert time.monotonic() < until, seen[-1:]
            seen.append(slow.copies("c"))
            time.sleep(0.5)
        after = slow.tasks()
        assert local(after) == TASKS
        assert moved(before, after) <= TASKS // 3 + 1
        # Until its former process has given a task back, Streams keeps the copy that has caught up as a standby.
        warming = [
            sum(role == "standby" and (lag is None or lag > ACCEPTABLE) for role, lag in copies.values())
            for copies in seen
        ]
        assert max(warming) == WARMUPS
        assert len({sum(role == "active" for role, _ in copies.values()) for copies in seen}) > 1, "all moved at once"
        for task in after[slow.instance("c")]:
            lags = [copies[task][1] for copies in seen if copies.get(task, ("none",))[0] == "standby"]
            known = [lag for lag in lags if lag is not None]
            assert known, f"{task} never warmed up"
            assert known[-1] <= ACCEPTABLE, f"{task} moved with a lag of {known[-1]}"
            # The other store is restored sooner than one can look.
            assert known[0] > ACCEPTABLE or not task.startswith("0_"), f"{task} began with a lag of {known[0]}"
