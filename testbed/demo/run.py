"""The demo: one command, a live three-rack cluster with real groups, and the agent beside it in dry run.

Everything it starts ends with it, on every way out. It ends well only when what it promises was really published: at
least one proposal to move replicas, one to rebalance and one advice, read back from the topic with a plain consumer.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from agent.daemon.daemon import AgentDaemon
from agent.daemon.start import agent_of, agent_server
from agent.process import ENDING, on_ending
from agent.web.app import WebServer
from config.load import LoadedSettings, load_settings
from config.logging import set_up_logging
from config.streams_names import StreamsSettings
from testbed.cluster import DEFAULT_VERSION, ClusterSpec, EmbeddedCluster
from testbed.cluster.ports import HeldPorts, hold_ports
from testbed.demo.console import DemoConsole
from testbed.demo.follower import LoopFollower
from testbed.demo.plugin_scene import PluginScene, plan_with_plugin, with_plugin
from testbed.demo.requirements import check_needs
from testbed.demo.results import missing, read_back, summary
from testbed.demo.script import APPLICATION, DemoScript, ScriptContext, times
from testbed.demo.spark import SparkOptions, SparkPipeline, check_spark
from testbed.demo.workload import ClusterWorkload, demo_plan
from testbed.demo.workload.scenes import DEMO_RACKS

_READY_WITHIN_S = 30.0
_TELL_EVERY_S = 3.0
_POLL = "2s"
_PLAN = "5s"
_RACK_STABLE = "6s"


class _EndedEarly(KeyboardInterrupt):
    """A signal came before the demo had run its time."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def run_demo(*, seconds: int, version: str | None = None, report: Path | None = None, plugin: bool = False) -> int:
    """Run the demo for ``seconds`` from the first cycle on; the exit code.

    ``report``: also run the pipeline on Spark, and leave its report in this folder. ``plugin``: the brokers have the
    plug-in, and a group comes to use it.
    Raises RackwiseError when something that it needs is missing or the cluster does not start.
    """
    screen = DemoConsole()
    try:
        with _signals_raise():
            spec = ClusterSpec(version=version or DEFAULT_VERSION, racks=DEMO_RACKS)
            return _play(screen, seconds, with_plugin(spec) if plugin else spec, report)
    except _EndedEarly as ended:
        screen.plain("", "interrupted; the cluster is stopped and its files are removed")
        return ended.exit_code


def _play(screen: DemoConsole, seconds: int, spec: ClusterSpec, report: Path | None) -> int:
    screen.plain(
        f"rackwise beside a live cluster of Kafka {spec.version}, in dry run: it reports findings and "
        "publishes proposals, and changes nothing but its own topics."
    )
    with ExitStack() as stack:
        held = stack.enter_context(hold_ports(1))
        screen.plain(
            f"Its page: http://127.0.0.1:{held.ports[0]}/ from the first look on, in about half a minute. "
            "In a dry run it shows everything and sends nothing, so it needs no sign-in."
        )
        screen.setup(check_needs())
        if report is not None:
            screen.setup(check_spark(report))
        stack.callback(screen.plain, "", "cleaning up")
        cluster = stack.enter_context(EmbeddedCluster.start(spec, on_progress=screen.setup))
        work = stack.enter_context(_work(screen, cluster))
        loaded = demo_settings(cluster, work, **{"http.port": str(held.ports[0])})
        log = stack.enter_context((cluster.directory / "agent.log").open("w", encoding="utf-8"))
        set_up_logging(form="json", stream=log)
        agent = stack.enter_context(agent_of(loaded.settings))
        screen.setup(f"the agent looks every {_POLL} and plans every {_PLAN}; its log: {log.name}")
        screen.setup(f"try in another terminal: rackwise doctor -b {cluster.bootstrap_servers}")
        plugin = PluginScene(work, screen, lambda: agent.watch.state.cycle) if spec.plugins else None
        context = ScriptContext(cluster, work, screen, plugin)
        spark = None
        if report is not None:
            where = SparkOptions(cluster.bootstrap_servers, cluster.directory, report)
            spark = SparkPipeline(where, screen, lambda: agent.watch.state.planned)
            stack.callback(spark.close)
        server = stack.enter_context(_page(loaded, agent, held))
        screen.setup(f"open the page: {server.scheme}://{server.address}/")
        if not _run(agent, server, context, seconds, spark):
            raise _ended_early(signal.SIGINT)
        return _end(context, loaded, agent, spark)


def demo_settings(cluster: EmbeddedCluster, work: ClusterWorkload, **more: str) -> LoadedSettings:
    """The settings of the agent in the demo: short intervals, and the settings of its Streams application."""
    app = next(app for app in work.plan.streams if app.application == APPLICATION)
    known = {field.alias for field in StreamsSettings.model_fields.values()}
    flags: dict[str, object] = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "mode": "propose",
        "poll.interval": _POLL,
        "plan.interval": _PLAN,
        "racks.stable_for": _RACK_STABLE,
        "racks.stable_polls": "2",
        "observe.refresh_configs": "10s",
        "observe.refresh_sizes": "10s",
        f"groups.{APPLICATION}.application.endpoints": work.lags_url(APPLICATION),
        **{f"groups.{APPLICATION}.{name}": value for name, value in app.settings.items() if name in known},
        **more,
    }
    # The demo ignores what the environment sets for the user's own cluster.
    return load_settings(flags=flags, environ={})


@contextmanager
def _work(screen: DemoConsole, cluster: EmbeddedCluster) -> Iterator[ClusterWorkload]:
    """The demo's workload, joined or nearly so."""
    plan = plan_with_plugin if cluster.spec.plugins else demo_plan
    with ClusterWorkload.start(cluster.bootstrap_servers, cluster.spec.version, plan, on_progress=screen.setup) as work:
        until, shown_at, shown = time.monotonic() + _READY_WITHIN_S, 0.0, ""
        while (waiting := work.unready()) and time.monotonic() < until:
            now = "waiting: " + "; ".join(waiting)
            if now != shown and time.monotonic() - shown_at > _TELL_EVERY_S:
                screen.setup(now)
                shown_at, shown = time.monotonic(), now
            time.sleep(0.5)
        screen.setup(
            "all members have joined" if not waiting else "starting, although some members have not joined yet"
        )
        yield work


def _page(loaded: LoadedSettings, agent: AgentDaemon, held: HeldPorts) -> WebServer:
    """The agent's server at the port that was announced."""
    held.lend()
    return agent_server(loaded, agent)


def _run(
    agent: AgentDaemon, server: WebServer, context: ScriptContext, seconds: int, spark: SparkPipeline | None
) -> bool:
    """Run the agent with its workload; True when the demo ran its time, False when a signal cut it short."""
    cue = threading.Event()
    script = DemoScript(context, times(seconds), cue)

    def first() -> None:
        script.start()
        if spark is not None:
            spark.start()

    follower = LoopFollower(
        agent,
        context.screen,
        seconds,
        on_first=first,
        promotion_proposed=cue,
        until=lambda: spark is None or spark.over,
    )
    with ExitStack() as stack:
        stack.callback(script.join)
        stack.callback(follower.join)
        follower.start()
        agent.run(lambda: server.is_running)
    return follower.done.is_set()


def _end(context: ScriptContext, loaded: LoadedSettings, agent: AgentDaemon, spark: SparkPipeline | None) -> int:
    screen, plugin = context.screen, context.plugin
    last = agent.watch.state.planned
    if last is None:
        screen.plain("", "rackwise demo: no cycle made a plan, so there are no proposals to show")
        return 1
    read = read_back(loaded.settings)
    lacking = missing(read)
    screen.plain("", *summary(read, loaded.settings.proposals_topic, last))
    if plugin is not None:
        plugin.look_again()
        screen.plain(*plugin.figures.summary())
        lacking = (*lacking, *plugin.figures.lacking())
    if spark is not None and spark.error is None:
        screen.plain(*spark.summary())
    elif spark is not None:
        lacking = (*lacking, str(spark.error))
    screen.plain("", *(f"rackwise demo: {sentence}" for sentence in lacking))
    return 1 if lacking else 0


@contextmanager
def _signals_raise() -> Iterator[None]:
    """SIGTERM and SIGINT end the demo by way of an exception, once: a second one must not interrupt the cleaning up."""

    def handler(number: int, _frame: FrameType | None) -> None:
        raise _ended_early(number)

    with on_ending(handler):
        yield


def _ended_early(number: int) -> _EndedEarly:
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    return _EndedEarly(number)
