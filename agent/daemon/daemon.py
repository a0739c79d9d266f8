"""The daemon: looks on schedule, logs every run, skip and overrun, and ends within five seconds.

`agent.errors.THREADS` has the effect of each error; an unexpected one is counted and logged with its traceback.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType

import psutil
import structlog

from agent.act.execute_mode import ExecuteMode
from agent.daemon.schedule import CycleScheduler, ServiceManager
from agent.errors import CLOSING, FatalFailure, RackwiseError, thread, unexpected
from agent.journal.entries import JournalState
from agent.loop import CycleStages, Look, run_cycle
from agent.process import StopSignal, on_ending
from agent.record.own_topics import OwnTopic, TopicAnnouncement, announce
from agent.record.recorder import CycleRecorder, RecordingResult
from agent.values.clock import Clock, system_clock
from agent.values.cycle import Cycle, basis, cluster_size, finding_news, sentence
from agent.values.finding import FindingSeverity
from agent.values.limits import AgentMode
from agent.values.memory import Memory
from agent.values.number_format import counted, few, sized_apart
from agent.values.observation import Observation
from agent.values.plan import ExecuteState
from agent.web.agent_view import CycleFailure, HealthStatus, LoopMonitor, live

_PROPOSALS_NAMED = 5
"""In a log record; all are in the proposals topic."""
GRACE_S = 4.5
"""From the signal to the end, so that a supervisor's five seconds suffice."""
MEMORY_CEILING_EXIT = 7
LEAD_WITHIN_S = 20.0
"""Time to become leader for an agent that acts once; then it reports another leader."""
_TICK_S = 0.5
_LATE_LOOKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPace:
    """Intervals of looks and plannings, and bounds of memory and time."""

    poll_ms: int = 10_000
    plan_ms: int | None = 60_000
    plan_cron: str | None = None
    stall_ms: int = 120_000
    memory_ceiling_bytes: int | None = None


class AgentDaemon:
    """One agent beside one cluster. ``look`` observes the cluster.

    ``acting``: mode execute, None in other modes. ``own_topics``: created by the recorder and the leadership where they
    are missing.
    """

    def __init__(
        self,
        *,
        look: Look,
        stages: CycleStages,
        recorder: CycleRecorder,
        pace: LoopPace,
        acting: ExecuteMode | None = None,
        own_topics: Sequence[OwnTopic] = (),
        manager: ServiceManager | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self._look = look
        self._acting = acting
        self._stages = stages
        self._own_topics = own_topics
        self._announced: TopicAnnouncement | None = None
        self._recorder = recorder
        self._pace = pace
        self._manager = manager or ServiceManager()
        self._clock = clock
        self._memory: Memory | None = None
        self._number = 0
        self._proposed: tuple[str, ...] = ()
        self._instance = os.urandom(4).hex()
        self._busy = threading.Lock()
        self._stop = StopSignal()
        self._fatal: RackwiseError | None = None
        self._log = structlog.get_logger("rackwise")
        self._schedule = CycleScheduler(
            self._run, self._skipped, poll_ms=pace.poll_ms, plan_ms=pace.plan_ms, plan_cron=pace.plan_cron
        )
        self.watch = LoopMonitor(clock())
        if acting is not None:
            acting.look_now = partial(self._schedule.look_by, 0, planning=True)
            acting.on_fatal = self.fail

    def once(self, *, planning: bool = True) -> Cycle:
        """One cycle, recorded; the plans that it begins run to their end. Raises RackwiseError."""
        if self._acting is None:
            return self._cycle(planning=planning)[0]
        self._acting.start()
        try:
            first = self._look()
            self._announce(first)
            self._acting.begin(first, Memory())
            self._acting.wait_to_lead(LEAD_WITHIN_S)
            cycle, _ = self._cycle(planning=planning)
            self._acting.wait_until_done()
        finally:
            self._acting.close()
        return cycle

    def run(self, is_answering: Callable[[], bool] = lambda: True) -> int:
        """Cycle after cycle until a signal, a fatal error or the memory ceiling; the exit code.

        Raises the fatal error after pending records are written. Call it in the main thread. ``is_answering``: whether
        the HTTP server, where there is one, still runs.
        """
        with self._signals():
            if self._acting is not None:
                self._acting.start()
            self._schedule.start()
            code = self._wait(is_answering)
            began = time.monotonic()
            self._manager.stopping()
            self.watch.stopping()
            self._schedule.stop()
            self._stop_acting(began)
            self._let_finish(began)
            self.close(max(0, round((began + GRACE_S - time.monotonic()) * 1_000)))
        if self._fatal is not None:
            raise self._fatal
        return code

    def acting_now(self) -> ExecuteState | None:
        """What mode execute is doing at this moment; None in the other modes. Callable from any thread."""
        return None if self._acting is None else self._acting.now()

    def journal_now(self) -> JournalState | None:
        """The journal that this agent writes; None while it does not lead. Callable from any thread.

        Raises JournalUnavailable and FencedOut.
        """
        return None if self._acting is None else self._acting.view()

    def stop(self) -> None:
        """End `run` soon; callable from any thread and from a signal handler."""
        self._stop.set()

    def fail(self, error: FatalFailure) -> None:
        """End `run` soon, with that error; callable from any thread."""
        self._fatal = self._fatal or error
        self.stop()

    def close(self, deadline_ms: int = 3_000) -> None:
        """Report the end, write pending records, and log how many were lost."""
        lost = self._recorder.close(deadline_ms, self._clock().wall_ms)
        if lost:
            self._log.warning(
                "records_lost", records=lost, sentence=f"not written before the deadline: {counted(lost, 'record')}"
            )
        self._log.info("stopped", cycles=self._number, sentence=f"stopped after {counted(self._number, 'cycle')}")

    def _cycle(self, *, planning: bool) -> tuple[Cycle, RecordingResult]:
        self._number += 1
        self.watch.began(self._clock())
        observation = self._look()
        self._announce(observation)
        if self._memory is None:
            restored = self._recorder.restore(observation, self._clock())
            self._memory = restored.memory
            self._log.info("restored", found=restored.found, sentence=restored.sentence)
        acting = self._acting
        if acting is not None:
            self._memory = acting.begin(observation, self._memory)
        cycle = run_cycle(
            self._stages,
            self._look,
            observation,
            self._memory,
            number=self._number,
            name=f"{self._instance}-{self._number}",
            planning=planning,
            journal=acting.view if acting is not None else lambda: None,
            known=self.watch.state.known,
        )
        cycle = replace(cycle, acting=self.acting_now())
        self._memory = cycle.after
        recording = self._recorder.record(cycle)
        self.watch.succeeded(cycle, recording, self._clock())
        self._log_cycle(cycle, recording)
        if self._number == 1:
            for problem in self._recorder.missing_topics():
                self._log.warning("own_topic_missing", sentence=f"topic {problem}")
        if acting is not None:
            early_ms = acting.end(cycle, poll_ms=self._pace.poll_ms)
            if early_ms is not None:
                self._schedule.look_by(early_ms, planning=True)
        return cycle, recording

    def _announce(self, observation: Observation) -> None:
        """Log the topics to be created before any is; again only when a later look settles it."""
        before = self._announced
        if before is not None and before.settled:
            return
        announced = self._announced = announce(self._own_topics, observation, self._stages.limits.mode.value)
        if announced == before:
            return
        self._log.info(
            "own_topics", sentence=announced.sentence, creates=list(announced.creates), exist=list(announced.exist)
        )

    def _run(self) -> None:
        """A scheduled cycle; no error of it ends the schedule, and each is logged."""
        if self._stop.is_set():
            return
        planning = self._schedule.planning_due()
        began = time.monotonic()
        with self._busy:
            try:
                self._cycle(planning=planning)
            except FatalFailure as error:
                self._failed(error, str(error), planning=planning)
                self.fail(error)
            except RackwiseError as error:
                self._failed(error, str(error), planning=planning)
            except Exception as error:  # noqa: BLE001 a fault of one cycle must not end the agent
                self._failed(error, unexpected(error), planning=planning)
        self._note_overrun(began)

    def _failed(self, error: Exception, why: str, *, planning: bool) -> None:
        if planning:
            self._schedule.plan_again()
        now = self._clock()
        self.watch.failed(CycleFailure(self._number, why, now.wall_ms), now)
        self._log.error(
            "cycle_failed",
            cycle=self._number,
            error=type(error).__name__,
            sentence=f"cycle {self._number} failed: {why}",
            exc_info=None if isinstance(error, RackwiseError) else error,
        )

    def _note_overrun(self, began: float) -> None:
        took_ms = round((time.monotonic() - began) * 1_000)
        if took_ms > self._pace.poll_ms:
            self.watch.overran()
            self._log.warning(
                "cycle_overrun",
                cycle=self._number,
                took_ms=took_ms,
                poll_ms=self._pace.poll_ms,
                sentence=f"cycle {self._number} took {took_ms} ms, longer than poll.interval ({self._pace.poll_ms} ms)",
            )

    def _skipped(self) -> None:
        self.watch.skipped()
        self._log.warning(
            "look_skipped", cycle=self._number, sentence=f"look skipped: cycle {self._number} is still running"
        )

    def _wait(self, is_answering: Callable[[], bool]) -> int:
        """Wait for a reason to end; meanwhile notify the service manager, and look when a clock's jump delayed it."""
        process = psutil.Process()
        while not self._stop.wait(_TICK_S):
            state, now = self.watch.state, self._clock()
            health = live(state, now, self._pace.stall_ms)
            if not is_answering():
                health = HealthStatus(well=False, reasons=(*health.reasons, "the HTTP server has ended"))
            self._manager.report(state, health, now)
            idle_ms = now.monotonic_ms - (state.last_end or state.started).monotonic_ms
            if state.running_since is None and idle_ms > _LATE_LOOKS * self._pace.poll_ms:
                self._log.warning(
                    "clock_jumped",
                    idle_ms=idle_ms,
                    sentence=f"no look began for {idle_ms} ms, longer than poll.interval; looking now",
                )
                self._schedule.look_now()
                self._stop.wait(_TICK_S)
            if self._above_ceiling(process.memory_info().rss):
                return MEMORY_CEILING_EXIT
        return 0

    def _above_ceiling(self, resident: int) -> bool:
        ceiling = self._pace.memory_ceiling_bytes
        if ceiling is None or resident <= ceiling:
            return False
        used, most = sized_apart(resident, ceiling)
        self._log.error(
            "memory_ceiling",
            resident_bytes=resident,
            ceiling_bytes=ceiling,
            sentence=f"resident memory is {used}, above process.memory_ceiling ({most}); ending with exit code 7",
        )
        return True

    def _stop_acting(self, began: float) -> None:
        """Give acting its part of the grace; plans that have begun are in the journal."""
        if self._acting is None:
            return
        closing = thread(CLOSING, self._acting.close)
        closing.start()
        closing.join(max(0.0, began + GRACE_S * 0.75 - time.monotonic()))

    def _let_finish(self, began: float) -> None:
        """Give the running cycle half of the grace; without a record at its end it is abandoned."""
        if self._busy.acquire(timeout=max(0.0, began + GRACE_S / 2 - time.monotonic())):
            self._busy.release()
        else:
            self._log.warning(
                "cycle_abandoned",
                cycle=self._number,
                sentence=f"cycle {self._number} did not end within the time for shutdown",
            )

    def _log_cycle(self, cycle: Cycle, recording: RecordingResult) -> None:
        """Log the cycle in one event."""
        rests_on, why_not_weights = basis(cycle.snapshot)
        self._log.info(
            "cycle",
            sentence=sentence(cycle),
            cluster=cycle.snapshot.cluster_id,
            cycle=cycle.number,
            look=cycle.look,
            mode=cycle.limits.mode.value,
            planned=cycle.planned,
            took_ms=cycle.took_ms,
            stages_ms=dict(cycle.stages_ms),
            **cluster_size(cycle.snapshot)._asdict(),
            findings=len(cycle.detection.findings),
            new_findings=list(cycle.changes.new),
            ended_findings=list(cycle.changes.ended),
            proposals=[proposal.id for proposal in cycle.proposals],
            gaps=[f"{gap.part.value} {gap.subject}: {gap.cause.value}" for gap in cycle.snapshot.gaps],
            basis=rests_on.value,
            why_not_weights=why_not_weights,
            recorded=recording.recorded,
            records_written=recording.counts.written,
            records_failed=recording.counts.failed,
            records_dropped=recording.counts.dropped,
            problems=list(recording.problems),
        )
        self._log_news(cycle)

    def _log_news(self, cycle: Cycle) -> None:
        """Log each new finding in a record of its own."""
        news, left = finding_news(cycle)
        for finding in news:
            log = self._log.critical if finding.severity is FindingSeverity.CRITICAL else self._log.warning
            log("finding", sentence=f"{finding.subject}: {finding.sentence}", finding=finding.id, cycle=cycle.number)
        if left:
            sentence = f"and {counted(left, 'more new finding')}: rackwise status"
            self._log.warning("findings", sentence=sentence, cycle=cycle.number)
        proposed = tuple(f"{one.id} ({one.kind.value} {one.subject})" for one in cycle.proposals)
        if cycle.planned and proposed != self._proposed:
            self._proposed = proposed
            if proposed:
                published = cycle.limits.mode is not AgentMode.OBSERVE
                more = "all, with their sentences: rackwise proposals" if published else "mode observe publishes none"
                sentence = f"{few(proposed, _PROPOSALS_NAMED)}; {more}"
                self._log.info("proposals", sentence=sentence, cycle=cycle.number)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the run; a second one ends the process at once."""

        def handler(number: int, _frame: FrameType | None) -> None:
            if self._stop.is_set():
                os._exit(128 + number)
            self.stop()

        with on_ending(handler):
            yield
