"""Leadership of this agent: the lease and the journal opened under it.

A thread of its own joins the election, opens the journal once elected, and closes it when the lease is in doubt.
Invariants: `may_act` is True only with a valid lease and the journal opened under it. A leader that finds another
agent's epoch in the journal was fenced and ends (exit code 6), because a request of its may still take effect. With an
unreadable journal the agent stays a standby and reports why.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from math import inf
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException

from agent.act.commands_topic import TopicEndOffset, TopicInbox, end_of, first_position
from agent.act.inbox import CommandInbox, SpoolInbox, spooled
from agent.act.journal.file_journal import FileJournal, read_file
from agent.act.journal.journal import SharedTopics, journal_lost_error, topic_problems, writable
from agent.act.journal.journal_topic import (
    JournalTopic,
    JournalWatermark,
    KafkaJournalPlan,
    fenced_out,
    no_journal,
    read_journal_topic,
)
from agent.act.journal.kafka_journal import KafkaJournal, check_watermark
from agent.act.lease import KafkaLease, LeadershipPlan, LeasePlan, committed_watermark
from agent.errors import LEADERSHIP, FatalFailure, FencedOut, JournalUnavailable, RackwiseError, thread
from agent.journal.entries import JournalPort, JournalState, JournalTrust
from agent.journal.record_trust import LeaderEntry, leader_in, leader_write
from agent.record.librdkafka import error_text
from agent.record.own_topics import OwnTopics
from agent.values.observation import Observation

STATE_MS = 300_000
"""How often a leader that has nothing else to write writes its record again; a fenced one learns of it then."""
ASIDE_S = 30.0
_TICK_S = 0.1
_RETRY_S = 1.0
_JOIN_S = 5.0
_ENSURE_MS = 3_000
_WRITING = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_PATIENCE = 3
"""So many appends long may be waited for what takes many answers, one after the other."""


class JournalLeadership:
    """Takes part from `start` to `close`. Every method may be called from any thread."""

    def __init__(self, plan: LeadershipPlan) -> None:
        self._plan = plan
        self._topics = OwnTopics(plan.config, plan.topics(), _ENSURE_MS)
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._cluster = ""
        self._lease: KafkaLease | None = None
        self._journal: KafkaJournal | FileJournal | None = None
        self._inbox: CommandInbox | None = None
        self._term: int | None = None
        self._former: JournalWatermark | None = None
        """How far the journal had come when this agent led it last."""
        self._wrong: tuple[str, ...] = ()
        self._fatal: FatalFailure | None = None
        self._problem: str | None = "the cluster id is unknown: no look has succeeded yet"
        """Why it failed last; taken back once it leads, or is seen to be able to."""
        self._refused = False
        """Whether that is a missing right to write, which only another try to lead shows to be there again."""
        self._look_again = 0.0
        self._no_topics: str | None = None
        """Which topics are missing, by the last look."""
        self._reaffirmed_at = 0.0
        self._failing_since: float | None = None
        self._thread = thread(LEADERSHIP, self._run)

    def start(self) -> None:
        """Begin to take part, as soon as `observed` has given the cluster id."""
        self._thread.start()

    def observed(self, observation: Observation) -> None:
        """Make sure that the topics are there, and learn which cluster this is; to be called with every look."""
        if self._plan.file is None:
            self._topics.ensure(observation)
            self._no_topics = "; ".join(self._topics.problems()) or None
            if self._no_topics is not None:
                return
        self.begin(observation.cluster_id)

    def begin(self, cluster: str) -> None:
        """Take part from now on; the topics are there."""
        if not self._ready.is_set():
            self._cluster, self._problem = cluster, None
            self._ready.set()

    def journal(self) -> JournalPort | None:
        """The journal of this leadership; None while standby. Another object means another leadership.

        Raises FencedOut, or another fatal error, once this agent must end.
        """
        if self._fatal is not None:
            raise self._fatal
        with self._lock:
            return self._journal if self._is_sure() else None

    def inbox(self) -> CommandInbox | None:
        """Operators' commands; None while standby."""
        with self._lock:
            return self._inbox if self._is_sure() else None

    def may_act(self) -> bool:
        """Whether this agent leads, beyond doubt, at this moment."""
        with self._lock:
            return self._fatal is None and self._is_sure()

    def leads_for_s(self) -> float:
        """For how many seconds this agent leads beyond doubt, whatever happens; 0 when it does not."""
        with self._lock:
            if self._fatal is not None or not self._is_sure():
                return 0.0
            return inf if self._lease is None else self._lease.valid_for_s()

    def problem(self) -> str | None:
        """Why this agent cannot lead, or could not if it were chosen."""
        lease = self._lease
        if self._fatal is not None:
            return str(self._fatal)
        return self._no_topics or self._problem or (lease.problem() if lease is not None else None)

    def notices(self) -> tuple[str, ...]:
        """What is not as it should be, and keeps no agent from leading: records of others, settings of topics."""
        journal, lease = self._journal, self._lease
        notice = journal.notice() if isinstance(journal, KafkaJournal) else None
        unremembered = lease.notice() if lease is not None else None
        return (*self._wrong, *filter(None, (notice, unremembered)))

    def ignored(self) -> int | None:
        """Records of the journal's topic that are ignored; None while this agent does not lead, or that is unknown."""
        journal = self._journal
        return journal.doubted if isinstance(journal, KafkaJournal) and self._plan.keys else None

    def close(self, timeout_s: float = 4.0) -> None:
        """Write no more, and leave, so that another agent takes over at once; waits about that long at most."""
        self._stop.set()
        self._retire()
        self._leave(timeout_s / 2)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s / 2)

    def _is_sure(self) -> bool:
        journal, lease = self._journal, self._lease
        if journal is None or journal.ended is not None:
            return False
        if self._plan.file is not None:
            return True  # its lock is the lease, and it holds
        return lease is not None and self._term is not None and lease.term == self._term

    def _run(self) -> None:
        try:
            while not self._stop.is_set() and self._fatal is None:
                self._stop.wait(self._turn())
        finally:
            if self._fatal is None and not self._stop.is_set():
                self._problem = "the election ended by an internal error of rackwise; report it"
            self._retire()
            self._leave()

    def _turn(self) -> float:
        """One step, whatever comes of it. How long to wait."""
        try:
            if self._ready.is_set():
                self._step()
            self._failing_since = None
        except FencedOut as error:
            self._end(error)
        except (JournalUnavailable, KafkaException) as failed:
            return self._try_again(failed)
        except RackwiseError as error:
            return self._stand_aside(str(error))
        return _TICK_S

    def _try_again(self, failed: JournalUnavailable | KafkaException) -> float:
        """Seconds until the next try; after half a minute of tries another agent shall try."""
        sentence = str(failed) if isinstance(failed, JournalUnavailable) else error_text(failed.args[0])
        since = self._failing_since = self._failing_since or time.monotonic()
        if time.monotonic() - since > ASIDE_S:
            return self._stand_aside(sentence, refused=_is_refused(failed))
        self._fails(sentence, refused=_is_refused(failed))
        return _RETRY_S

    def _fails(self, why: str, *, refused: bool = False) -> None:
        self._problem, self._refused = why, refused
        self._look_again = time.monotonic() + ASIDE_S

    def _stand_aside(self, why: str, *, refused: bool = False) -> float:
        """Leave the lease to others, and try again later. How long to wait."""
        self._fails(why, refused=refused)
        self._failing_since = None
        self._retire()
        self._leave()
        return ASIDE_S

    def _step(self) -> None:
        """One look at the lease, and what follows from it."""
        if self._plan.file is None and self._lease is None:
            self._lease = KafkaLease(self._lease_plan())
            self._lease.start()
        if self._journal is not None:
            self._go_on(self._journal)
        elif self._former is not None:
            self._look_for_a_successor(self._former)
        elif self._plan.file is not None:
            self._open_file(self._plan.file)
        elif self._lease is not None and (term := self._lease.term) is not None:
            self._open_topic(self._lease, term)
        elif self._problem is not None and not self._refused and time.monotonic() >= self._look_again:
            check_watermark(self._journal_plan(), committed_watermark(self._lease_plan(), self._patience_ms))
            self._problem = None

    def _go_on(self, journal: KafkaJournal | FileJournal) -> None:
        """Lead on, or write no more."""
        ended = journal.ended
        if isinstance(ended, FatalFailure):
            self._end(ended)
        elif not self._is_sure():
            self._retire()
        else:
            if isinstance(journal, KafkaJournal) and self._lease is not None:
                self._lease.set_reached(journal.reached)
            if time.monotonic() - self._reaffirmed_at > STATE_MS / 1_000:
                self._reaffirm(journal)
                if self._plan.file is None:
                    self._wrong = self._named()

    @property
    def _patience_ms(self) -> int:
        return _PATIENCE * self._plan.deadline_ms

    def _open_topic(self, lease: KafkaLease, term: int) -> None:
        plan = self._plan
        watermark = committed_watermark(self._lease_plan(), self._patience_ms)
        commands_end = self._commands_end()
        journal = KafkaJournal.open(self._journal_plan(), watermark=watermark)
        try:
            lease.set_reached(journal.reached)
            if commands_end is not None:
                journal.append(*first_position(journal.view(), commands_end))
            self._wrong = self._named()
        except BaseException:
            journal.close()
            raise
        self._take(journal, term, TopicInbox(plan.config, plan.commands_topic, plan.prefix, commands_end))

    def _commands_end(self) -> TopicEndOffset | None:
        """None while the topic cannot be asked: what has begun goes on without commands."""
        try:
            return end_of(self._plan.config, self._plan.commands_topic)
        except KafkaException:
            return None

    def _named(self) -> tuple[str, ...]:
        """What is wrong with the topics, and with rights on them."""
        plan, within_s = self._plan, self._plan.deadline_ms / 1_000
        names = SharedTopics(plan.journal_topic, plan.leader_topic, plan.commands_topic)
        too_much = () if plan.observer is None else writable(plan.observer, names, within_s)
        return (*topic_problems(plan.config, names, within_s, signed=bool(plan.keys)), *too_much)

    def _open_file(self, file: Path) -> None:
        """Opening it takes the lock; while another agent has it, this one is standby."""
        before = spooled(self._plan.spool_directory)
        try:
            journal = FileJournal.open(file, self._leader())
        except FencedOut:
            self._problem = None
            self._stop.wait(_RETRY_S - _TICK_S)
            return
        self._take(journal, None, SpoolInbox(self._plan.spool_directory, before))

    def _take(self, journal: KafkaJournal | FileJournal, term: int | None, inbox: CommandInbox) -> None:
        with self._lock:
            self._journal, self._term, self._inbox = journal, term, inbox
        self._problem, self._reaffirmed_at = None, time.monotonic()

    def _retire(self) -> None:
        """Write no more under this leadership."""
        with self._lock:
            journal, self._journal, inbox, self._inbox = self._journal, None, self._inbox, None
            self._term, self._wrong = None, ()
        if inbox is not None:
            inbox.close()
        if journal is not None:
            self._former = journal.reached
            journal.close()

    def _look_for_a_successor(self, former: JournalWatermark) -> None:
        """Raises FencedOut when another agent has led since; raises JournalUnavailable while that is not known."""
        if self._plan.file is None:
            until = time.monotonic() + self._patience_ms / 1_000
            plan = self._journal_plan()
            topic = JournalTopic(plan.config, plan.topic, plan.prefix, plan.trust)
            try:
                end = topic.bounds(until).end
                newest = topic.read(end, until).newest_epoch
            finally:
                topic.close()
            if newest > former.epoch:
                raise fenced_out(plan.topic, f"epoch {newest} has begun")
            if end < former.end:
                raise journal_lost_error(
                    plan.topic, f"it ends at offset {end}, and offset {former.end} was reached before"
                )
        self._former = None

    def _reaffirm(self, journal: KafkaJournal | FileJournal) -> None:
        leader = leader_in(journal.view())
        self._reaffirmed_at = time.monotonic()
        if leader is not None:
            journal.append(leader_write(leader))

    def _end(self, error: FatalFailure) -> None:
        """Nothing may act from now on; the agent learns of it before the tidying up."""
        self._fatal, self._problem = error, str(error)

    def _leave(self, timeout_s: float = _JOIN_S) -> None:
        with self._lock:
            lease, self._lease = self._lease, None
        if lease is not None:
            lease.close(timeout_s)

    def _leader(self) -> LeaderEntry:
        return LeaderEntry(
            agent=self._plan.agent, host=socket.gethostname(), pid=os.getpid(), cluster=self._cluster, since_ms=0
        )

    def _lease_plan(self) -> LeasePlan:
        plan = self._plan
        return LeasePlan(
            config=plan.config,
            topic=plan.leader_topic,
            prefix=plan.prefix,
            session_ms=plan.session_ms,
            trust=self._journal_plan().trust,
        )

    def _journal_plan(self) -> KafkaJournalPlan:
        plan = self._plan
        return KafkaJournalPlan(
            config=plan.config,
            leader=self._leader(),
            prefix=plan.prefix,
            topic=plan.journal_topic,
            deadline_ms=plan.deadline_ms,
            keys=plan.keys,
            unsigned_below=plan.unsigned_below,
        )


def _is_refused(failed: JournalUnavailable | KafkaException) -> bool:
    """Whether the right to write is missing. Brokers report the one to read at every request."""
    cause = failed.__cause__ if isinstance(failed, JournalUnavailable) else failed
    return isinstance(cause, KafkaException) and cause.args[0].code() in _WRITING


def read_journal(plan: LeadershipPlan, *, timeout_ms: int = 10_000) -> JournalState:
    """The journal's present state, for people: without a lease, without writing.

    With the key only agents' records are read; without it, all of the topic.

    Raises JournalUnavailable; ConfigError when there is no such topic or file; BadInput for a damaged file.
    """
    if plan.file is not None:
        if not plan.file.exists():
            raise no_journal(f"journal file {plan.file}", "execute.journal_file")
        return read_file(plan.file).view
    trust = JournalTrust(plan.keys, plan.cluster, plan.unsigned_below)
    return read_journal_topic(plan.config, plan.journal_topic, prefix=plan.prefix, timeout_ms=timeout_ms, trust=trust)
