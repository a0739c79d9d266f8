"""A running workload: starts and ends all producers, groups and applications of a plan.

The order of starting: the JVM first (for racks and features), topics, the preload, the groups, the applications,
and the steady load last. Invariant: `close` ends all that was started, also when starting failed half-way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace

from agent.values.number_format import counted
from pipeline.maven import Progress
from testbed.cluster.spec import DEFAULT_VERSION
from testbed.demo.workload.consumers import LibrdkafkaGroup
from testbed.demo.workload.errors import WorkloadError
from testbed.demo.workload.facts import ClusterFacts
from testbed.demo.workload.java import JavaHost, Json
from testbed.demo.workload.plan import JavaGroupPlan, StreamsPlan, TopologyPlan, WorkloadPlan, fitted
from testbed.demo.workload.producers import LoadGenerator
from testbed.demo.workload.readiness import partitions, unready, unsettled
from testbed.demo.workload.scenes import demo_plan
from testbed.demo.workload.topics import create_topics

Planner = Callable[[ClusterFacts], WorkloadPlan]

_LOOK_EVERY_S = 0.5


class ClusterWorkload(AbstractContextManager["ClusterWorkload"]):
    """Running work. Make one with `ClusterWorkload.start`; leave the context or call `close` to end it."""

    def __init__(self, bootstrap_servers: str, java: JavaHost, plan: WorkloadPlan, facts: ClusterFacts) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.java = java
        self.plan = plan
        self.facts = facts
        self.groups: dict[str, LibrdkafkaGroup] = {}
        self._stack = ExitStack()
        self._instances: dict[str, list[str]] = {app.application: [] for app in plan.streams}
        self._java_members: dict[str, list[str]] = {group.group: [] for group in plan.java_groups}
        self._started = 0
        self.load = LoadGenerator(
            bootstrap_servers,
            [(load, partitions(plan, load.topic)) for load in plan.loads],
            linger_ms=plan.linger_ms,
        )

    @classmethod
    def start(
        cls, bootstrap_servers: str, version: str = DEFAULT_VERSION, plan: WorkloadPlan | Planner = demo_plan,
        *, on_progress: Progress = lambda _line: None,
    ) -> ClusterWorkload:  # fmt: skip
        """Put a plan's work on a cluster; returns when all members were started, not when they have joined.

        `version` is that of the Java clients. `plan` may be a function of what the cluster is. What the brokers do not
        serve is left out and named in `plan.left_out`.
        """
        java = JavaHost(bootstrap_servers, version, on_progress=on_progress)
        with _closed_on_failure(java.close):
            facts = java.cluster()
            wanted = plan(facts) if callable(plan) else plan
            workload = cls(bootstrap_servers, java, fitted(wanted, facts), facts)
        with _closed_on_failure(workload.close):
            workload._begin(on_progress)
        return workload

    @property
    def left_out(self) -> tuple[str, ...]:
        """What this cluster cannot have, one sentence each."""
        return self.plan.left_out

    def instances(self, application: str) -> tuple[str, ...]:
        """Names of an application's instances."""
        return tuple(self._instances[application])

    def scale_out(self, application: str, rack: str | None, *, restore_records_per_s: int | None = None) -> str:
        """Start one more instance of an application; its name.

        `restore_records_per_s` bounds how fast it restores; None takes what the plan has for newcomers.
        """
        app = self._application(application)
        bound = app.newcomer_restore_records_per_s if restore_records_per_s is None else restore_records_per_s
        return self._start_instance(app, rack, replace(app.topology, restore_records_per_s=bound))

    def scale_in(self, name: str, *, leave: bool = True) -> None:
        """Stop an instance by name; without `leave` its group learns of it when the session ends."""
        self.java.stop_instance(name, leave=leave)
        for names in self._instances.values():
            if name in names:
                names.remove(name)

    def add_java_member(self, group: str, rack: str | None) -> str:
        """One more Java consumer in a group of the plan; its name."""
        plan = next(plan for plan in self.plan.java_groups if plan.group == group)
        name = self._name(group)
        self.java.start_consumer(name, group, plan.topic, rack=rack, settings=plan.settings)
        self._java_members[group].append(name)
        return name

    def remove_java_member(self, group: str, name: str) -> None:
        """Let a Java consumer leave."""
        self.java.stop_consumer(name)
        self._java_members[group].remove(name)

    def lags(self, application: str) -> Json:
        """The application's own word about its lags; format in `docs/application-lags.md`."""
        return self.java.lags(application)

    def lags_url(self, application: str) -> str:
        """Where `lags` is served, for an agent that is to read it."""
        return self.java.lags_url(application)

    def unready(self) -> tuple[str, ...]:
        """Who has not joined or got their part yet, one sentence each; empty when all have."""
        held = {name: group.partitions_held for name, group in self.groups.items()}
        return unready(self.plan, held, self.java.assignment())

    def unsettled(self) -> tuple[str, ...]:
        """Beyond `unready`: what is still to be stored of the preload, and standbys far behind."""
        waiting = self.unready()
        return waiting or unsettled(self.plan, {name: self.lags(name) for name in self._instances})

    def wait_ready(self, within_s: float = 120) -> None:
        """Wait until nothing is `unready`. Raises WorkloadError, which names what still is."""
        _wait_for_none(self.unready, within_s)

    def wait_settled(self, within_s: float = 180) -> None:
        """Wait until nothing is `unsettled`: only then does a newcomer have something to catch up with."""
        _wait_for_none(self.unsettled, within_s)

    def close(self) -> None:
        """Take all work off the cluster."""
        self.load.close()
        with ThreadPoolExecutor(max_workers=len(self.groups) + 1) as closers:
            closing = [closers.submit(group.close) for group in self.groups.values()]
            closing.append(closers.submit(self.java.close))
        for one in closing:
            one.result()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, on_progress: Progress) -> None:
        made = create_topics(self.bootstrap_servers, self.plan.topics)
        on_progress(f"{counted(len(made), 'topic')} created with explicit replica assignments")
        # A topic of an earlier run has its records already.
        on_progress(f"{counted(self.load.preload(made), 'record')} produced")
        for plan in self.plan.librdkafka_groups:
            self.groups[plan.group] = LibrdkafkaGroup(self.bootstrap_servers, plan)
        for group in self.plan.java_groups:
            self._start_java_group(group)
        on_progress(f"{counted(len(self.groups) + len(self.plan.java_groups), 'consumer group')} started")
        for app in self.plan.streams:
            self._start_application(app)
        on_progress(f"{len(self.plan.streams)} Streams applications started")
        self.load.start()
        for sentence in self.left_out:
            on_progress(sentence)

    def _start_java_group(self, plan: JavaGroupPlan) -> None:
        for rack in plan.racks:
            self.add_java_member(plan.group, rack)

    def _start_application(self, plan: StreamsPlan) -> None:
        if plan.group_configs:
            self.java.set_group_configs(plan.application, plan.group_configs)
        for rack in plan.racks:
            self._start_instance(plan, rack, plan.topology)

    def _start_instance(self, app: StreamsPlan, rack: str | None, topology: TopologyPlan) -> str:
        application = app.application
        name = self._name(application)
        tags = {"zone": rack} if app.tagged and rack is not None else {}
        settings = dict(app.settings)
        if app.streams_protocol:
            settings["group.protocol"] = "streams"
        self.java.start_instance(name, application, topology, rack=rack, tags=tags, settings=settings)
        self._instances[application].append(name)
        return name

    def _application(self, application: str) -> StreamsPlan:
        return next(app for app in self.plan.streams if app.application == application)

    def _name(self, group: str) -> str:
        self._started += 1
        return f"{group}-{self._started}"


def _wait_for_none(waiting: Callable[[], tuple[str, ...]], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while sentences := waiting():
        if time.monotonic() > deadline:
            raise WorkloadError(f"The workload did not settle within {within_s:.0f} s", why="; ".join(sentences))
        time.sleep(_LOOK_EVERY_S)


@contextmanager
def _closed_on_failure(close: Callable[[], None]) -> Iterator[None]:
    with ExitStack() as stack:
        stack.callback(close)
        yield
        stack.pop_all()
