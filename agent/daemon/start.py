"""Builds the agent from its settings: clients, stages, recorder, web, schedule, memory ceiling.

All that it opens is closed on every way out.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import psutil
import structlog
from confluent_kafka import KafkaError, KafkaException
from starlette.routing import BaseRoute

from agent.act.execute_mode import ExecuteMode
from agent.act.leadership import JournalLeadership, read_journal
from agent.act.lease import LeadershipPlan
from agent.act.own_files import command_witness, journal_keys, people, read_key_file, witness_keys
from agent.daemon.daemon import AgentDaemon, LoopPace
from agent.daemon.limits_from_settings import to_leadership_plan, to_limits, to_scope
from agent.daemon.schedule import ServiceManager
from agent.errors import PartialAnswer
from agent.journal.entries import JournalState
from agent.loop import CycleStages
from agent.notify.notifier import (
    AgentNotifier,
    LoopView,
    NotifierPace,
    TargetAddress,
    addresses,
    outbox_limits,
    secrets_of,
)
from agent.observe.context import ObserverClients, ObserverState
from agent.observe.observe_cluster import observe, reach_cluster
from agent.record.librdkafka import refusal
from agent.record.newest_look import agents_or_why
from agent.record.own_topics import OwnTopic
from agent.record.proposals import proposals_in
from agent.record.reader import open_reader
from agent.record.recorder import CycleRecorder, RecordPlan
from agent.record.weights import observe_with_weights
from agent.values.clock import system_clock
from agent.values.cycle import AgentIdentity
from agent.values.kafka import BOOTSTRAP_SERVERS, CLIENT_ID, COMPACT, DELETE, LOG_APPEND_TIME, TIMESTAMP_TYPE
from agent.values.limits import AgentMode, Limits
from agent.values.number_format import counted
from agent.values.proposal import LifecycleStep, Proposal
from agent.values.snapshot import is_partial
from agent.web.access.gate import hosts_of, make_gate
from agent.web.access.person import tls_context, trusted_networks
from agent.web.agent_view import AgentView, LoopState
from agent.web.app import WebServer, make_app
from agent.web.commands import CommandDesk
from agent.web.metrics import SeriesCaps
from config.http_settings import HttpSettings, is_loopback
from config.load import LoadedSettings
from config.logging import set_up_logging
from config.sections import TopicSettings
from config.settings import Settings

TELEMETRY_PARTITIONS = 6
_FRESH_LOOKS = 3
_READ_MS = 10_000
_JOURNAL_MS, _REPORTS_MS = 3_000, 2_000
"""How long a page may wait for the journal."""


def run_agent(loaded: LoadedSettings, *, once: bool = False) -> int:
    """Run until a signal, or for one cycle; the exit code, 5 for a partial answer. Raises RackwiseError."""
    settings = loaded.settings
    targets = addresses(settings.notify, read_key_file)
    secrets = (*loaded.secrets(), *secrets_of(targets))
    set_up_logging(level=settings.log.level, form=settings.log.format, secrets=secrets)
    with agent_of(settings) as agent:
        if once:
            cycle = agent.once()
            agent.close()
            return PartialAnswer.exit_code if is_partial(cycle.snapshot) else 0
        with _notifier(settings, agent, targets):
            if not settings.http.enabled:
                return agent.run()
            with agent_server(loaded, agent) as server:
                served = "page, health and metrics" if settings.http.pages else "health and metrics"
                structlog.get_logger("rackwise").info(
                    "listening",
                    address=server.address,
                    sentence=f"{served} at {server.scheme}://{server.address}",
                )
                _warn_of_clear_text(settings.http)
                return agent.run(lambda: server.is_running)


@contextmanager
def agent_of(settings: Settings) -> Iterator[AgentDaemon]:
    """An agent with its clients, not yet running."""
    scope, recall, limits = to_scope(settings), ObserverState(), to_limits(settings)
    acting = _acting(settings, limits) if limits.mode is AgentMode.EXECUTE else None
    recorded = record_plan(settings)
    with ObserverClients.open(settings.kafka) as clients, observe_with_weights(settings) as beside:
        yield AgentDaemon(
            look=lambda: beside(lambda: observe(clients, system_clock, scope, recall)),
            stages=CycleStages(limits, acting),
            acting=acting,
            recorder=CycleRecorder(recorded, settings.kafka.confluent()),
            own_topics=(*recorded.topics, *_leadership_topics(settings)),
            manager=ServiceManager.of(os.environ),
            pace=LoopPace(
                poll_ms=settings.poll.interval_ms,
                plan_ms=settings.plan_interval_ms,
                plan_cron=settings.plan.cron,
                stall_ms=settings.process.stall_after_ms,
                memory_ceiling_bytes=_memory_ceiling_bytes(settings),
            ),
        )


def _memory_ceiling_bytes(settings: Settings) -> int | None:
    ceiling = settings.process.memory_ceiling_bytes
    return default_ceiling_bytes() if ceiling == "auto" else ceiling


def _leadership_topics(settings: Settings) -> tuple[OwnTopic, ...]:
    """Topics of the leadership; none outside of mode execute."""
    if settings.mode != "execute":
        return ()
    return to_leadership_plan(settings, settings.executor_kafka, _agent_name(settings)).topics()


def _acting(settings: Settings, limits: Limits) -> ExecuteMode:
    """Mode execute with the executor's own credentials; not connected yet."""
    kafka, execute = settings.executor_kafka, settings.execute
    plan = replace(
        to_leadership_plan(settings, kafka, _agent_name(settings)), keys=journal_keys(execute.journal_key_file)
    )
    return ExecuteMode(
        leadership=JournalLeadership(plan),
        people=people(settings.approve.people),
        witnesses=witness_keys(settings.execute.journal_key_file),
        arguments=kafka.kafka_python(),
        limits=limits,
        clock=system_clock,
    )


def record_plan(settings: Settings) -> RecordPlan:
    """Topics and file of the recording by these settings; no topic in mode observe."""
    topics, record = settings.topics, settings.record
    telemetry = _own_topic(settings, topics.telemetry, settings.telemetry_topic, TELEMETRY_PARTITIONS, DELETE)
    # LogAppendTime: the age of a report is by the broker's clock, not its agent's.
    return RecordPlan(
        telemetry=None if telemetry is None else replace(telemetry, configs=((TIMESTAMP_TYPE, LOG_APPEND_TIME),)),
        proposals=_own_topic(settings, topics.proposals, settings.proposals_topic, 1, f"{COMPACT},{DELETE}"),
        file=Path(record.file) if record.file else None,
        file_max_bytes=record.file_max_bytes,
        every_ms=record.every_ms,
        full_every_ms=record.full_every_ms,
        queue_records=record.queue_events,
        deadline_ms=record.deadline_ms,
        prefix=topics.prefix,
        agent=_agent_name(settings),
        poll_ms=settings.poll.interval_ms,
    )


def read_proposals(loaded: LoadedSettings, report: Callable[[str], None]) -> tuple[Proposal | LifecycleStep, ...]:
    """The newest state of every proposal of this cluster in the proposals topic, read with a plain consumer.

    ``report`` gets a sentence about unreadable records. Raises the errors of `reach_cluster` and `refusal`, and
    PartialAnswer when the topic was not read to its end.
    """
    settings = loaded.settings
    topic, kafka = settings.proposals_topic, settings.kafka
    cluster = reach_cluster(kafka, settings.observe.call_timeout_ms, expected_cluster=settings.cluster.id)
    try:
        with open_reader(kafka.confluent(), topic, prefix=settings.topics.prefix, timeout_ms=_READ_MS) as reader:
            spans = reader.spans()
            if not spans:
                raise refusal(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), f"topic {topic}")
            found = proposals_in(reader.read(spans), cluster)
            if not reader.in_time:
                raise PartialAnswer(f"{topic} was not read to its end", why=f"it took more than {_READ_MS / 1000:g} s")
    except KafkaException as failed:
        raise refusal(failed, f"topic {topic}", servers=str(kafka.root[BOOTSTRAP_SERVERS])) from failed
    if found.left_out:
        first = f"{counted(len(found.left_out), 'record')} of {topic} left out, as no proposal: {found.left_out[0]}"
        report(f"{first}; check which other users may write to this topic")
    return found.states


def _agent_name(settings: Settings) -> str:
    return str(settings.kafka.root.get(CLIENT_ID) or socket.gethostname())


def _own_topic(settings: Settings, topic: TopicSettings, name: str, partitions: int, cleanup: str) -> OwnTopic | None:
    if not settings.publishes(topic):
        return None
    return OwnTopic(
        name=name,
        partitions=partitions,
        replication_factor=settings.topics.replication_factor,
        min_insync_replicas=settings.topics.min_insync_replicas,
        cleanup_policy=cleanup,
        retention_ms=topic.retention_ms,
    )


def _notifier(
    settings: Settings, agent: AgentDaemon, targets: Sequence[TargetAddress]
) -> AbstractContextManager[object]:
    """The notifier, not started; nothing where there is no target."""
    if not targets:
        return nullcontext()
    from agent.notify.service import NotifyService  # noqa: PLC0415 it imports Apprise, which only targets need

    notify = settings.notify
    pace = NotifierPace(outbox_limits(notify), settings.process.stall_after_ms, settings.http.url)
    return AgentNotifier(
        [(one.target, NotifyService(one.target.name, one.url, settings.http.url)) for one in targets],
        view=lambda: loop_view(agent.watch.state, agent.journal_now),
        pace=pace,
        clock=system_clock,
        report=agent.watch.notified,
    )


def loop_view(state: LoopState, journal: Callable[[], JournalState | None]) -> LoopView:
    """The part of the loop's state that notifications read."""
    return LoopView(
        cycle=state.cycle,
        planned=state.planned,
        silent_since_ms=(state.last_success or state.started).monotonic_ms,
        failure=state.failure.sentence if state.failure is not None else "",
        journal=journal,
        stopping=state.stopping,
    )


def agent_server(loaded: LoadedSettings, agent: AgentDaemon) -> WebServer:
    """Health, metrics, API and page of an agent, not yet answering. Raises ConfigError where it cannot listen."""
    settings = loaded.settings
    http = settings.http
    view, desk = agent_view(loaded, agent), command_desk(settings, agent)
    app = make_app(
        lambda: agent.watch.state,
        system_clock,
        fresh_ms=_FRESH_LOOKS * settings.poll.interval_ms + settings.observe.deadline_ms,
        stall_ms=settings.process.stall_after_ms,
        caps=SeriesCaps(
            groups=settings.metrics.top_groups,
            tasks=settings.metrics.top_tasks,
            lags=settings.metrics.top_lags,
            consumer_lag=settings.metrics.consumer_lag,
        ),
        allowed_hosts=hosts_of(http),
        acting=agent.acting_now,
        view=view,
        desk=desk,
        gate=make_gate(http) if http.pages else None,
        routes=_pages(view, desk) if http.pages else (),
    )
    proxies = trusted_networks(http.auth.proxy.networks)
    return WebServer(app, http.bind, http.port, tls=tls_context(http.tls), proxies=proxies)


def _warn_of_clear_text(http: HttpSettings) -> None:
    """Log that tokens travel in clear text, where that is so."""
    secure = http.tls.cert_file is not None or (http.url or "").startswith("https:")
    if http.pages and http.auth.is_set and not secure and not is_loopback(http.bind):
        sentence = "tokens and cookies travel over plain HTTP: set http.tls, or http.url where a proxy ends TLS"
        structlog.get_logger("rackwise").warning("sign_in_in_clear_text", sentence=sentence)


def _pages(view: AgentView, desk: CommandDesk) -> list[BaseRoute]:
    from agent.web.page.routes import page_routes  # noqa: PLC0415 templates are not needed for health alone

    return page_routes(view, system_clock, desk=desk)


def command_desk(settings: Settings, agent: AgentDaemon) -> CommandDesk:
    """Where people of the page and the API give commands; one that sends nothing outside of mode execute."""
    if settings.mode != "execute":
        return CommandDesk()
    plan = to_leadership_plan(settings, settings.executor_kafka, _agent_name(settings))

    def proposals() -> tuple[Proposal, ...]:
        planned = agent.watch.state.planned
        return () if planned is None else planned.proposals

    return CommandDesk(
        plan=plan,
        witness=command_witness(plan.agent, settings.execute.journal_key_file),
        journal=_journal_reader(settings, plan, agent),
        proposals=proposals,
        ended=lambda: agent.watch.state.ended_proposals,
    )


def _journal_reader(settings: Settings, plan: LeadershipPlan, agent: AgentDaemon) -> Callable[[], JournalState]:
    """What the journal has: of the leading agent its own view, else as it is read."""

    def journal() -> JournalState:
        written, cycle = agent.journal_now(), agent.watch.state.cycle
        if written is not None:
            return written
        cluster = "" if cycle is None else cycle.snapshot.cluster_id
        keys = journal_keys(settings.execute.journal_key_file)
        return read_journal(replace(plan, keys=keys, cluster=cluster), timeout_ms=_JOURNAL_MS)

    return journal


def agent_view(loaded: LoadedSettings, agent: AgentDaemon) -> AgentView:
    """The view of a running agent for API and page."""
    settings = loaded.settings
    plan = to_leadership_plan(settings, settings.executor_kafka, _agent_name(settings))
    return AgentView(
        state=lambda: agent.watch.state,
        settings=loaded,
        read_journal=_journal_reader(settings, plan, agent),
        journal_name=str(plan.file or plan.journal_topic),
        acting=agent.acting_now,
        read_agents=lambda: agents_or_why(
            settings.kafka.confluent(), settings.telemetry_topic, prefix=settings.topics.prefix, timeout_ms=_REPORTS_MS
        ),
        identity=AgentIdentity(_agent_name(settings), socket.gethostname(), os.getpid(), settings.poll.interval_ms),
    )


# The default memory ceiling: nine tenths of the container's limit, at which the kernel would kill the process, so the
# agent ends before with an exit code that names the reason; elsewhere half of the machine's memory.

_GROUPS = Path("/sys/fs/cgroup")
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
"""Of version 2 and of version 1; in a container the root of the tree is the container's own group."""


def default_ceiling_bytes(groups: Path = _GROUPS, machine_bytes: int | None = None) -> int:
    """Bytes of resident memory. Reads two small files; what cannot be read counts as no limit."""
    machine = machine_bytes if machine_bytes is not None else psutil.virtual_memory().total
    limits = [limit for name in _LIMITS if (limit := _number(groups / name)) is not None and limit < machine]
    return min(limits) * 9 // 10 if limits else machine // 2


def _number(file: Path) -> int | None:
    """The limit; None where the file has ``max`` (version 2) or a number beyond any memory (version 1)."""
    try:
        text = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdigit() and 0 < len(text) < 20 and int(text) > 0 else None
