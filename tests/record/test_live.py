"""Recording on real brokers: own topics over the racks, proposals that any consumer reads, a restart that remembers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary_event
from confluent_kafka.admin import AdminClient, NewTopic

from agent.daemon.start import read_proposals
from agent.propose.codec import proposal_from_json, proposal_to_bytes
from agent.record.own_topics import OwnTopic
from agent.record.recorder import CycleRecorder, RecordPlan
from agent.simulate.evaluation import recorded_looks, replay_look
from agent.telemetry.events import from_lines
from agent.values.proposal import LifecycleStep, ProposalReason
from testbed.cluster import ClusterSecurity, ClusterSpec, EmbeddedCluster
from tests.observe.live import consumer, delete_groups, topics, wait_for
from tests.record.live import Plain, agent, bodies, described, loaded, read_all
from tests.test_loop import cycle

SHOP = "record-orders"
GROUP = "record-readers"


@pytest.fixture
def prefix() -> str:
    """Topics of its own for each test: the cluster is shared."""
    return f"rackwise-{uuid4().hex[:8]}"


@pytest.fixture
def where(embedded_cluster: EmbeddedCluster) -> Iterator[str]:
    """A cluster with a topic and a group whose only member tells no rack, so that there is something to propose."""
    servers = embedded_cluster.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers})
    with topics(admin, **{SHOP: 3}), consumer(servers, GROUP, SHOP, partition_assignment_strategy="range"):
        yield servers
    delete_groups(admin, GROUP)


def test_own_topics_are_spread_over_the_racks_and_stay_as_they_are(where: str, prefix: str) -> None:
    with agent(where, prefix) as one:
        one.once()
    telemetry, proposals = f"{prefix}.telemetry", f"{prefix}.proposals"
    for topic, policy, partitions in ((telemetry, "delete", 6), (proposals, "compact,delete", 1)):
        replicas, configs = described(where, topic)
        assert len(replicas) == partitions
        assert all(sorted(one) == [1, 2, 3] for one in replicas), "each replica in a rack of its own"
        assert (configs["min.insync.replicas"], configs["cleanup.policy"]) == ("2", policy)
        assert configs["retention.ms"] == "604800000"
    assert len({one[0] for one in described(where, telemetry)[0]}) == 3, "leaders in every rack"
    with agent(where, prefix, "topics.telemetry.retention=1h") as again:
        again.once()
    assert described(where, telemetry)[1]["retention.ms"] == "604800000", "what is there is left as it is"


def test_proposals_are_read_back_by_a_plain_consumer_and_are_void_once_they_no_longer_hold(
    where: str, prefix: str
) -> None:
    settings = loaded(where, prefix)
    with agent(where, prefix) as one:
        first = one.once()
        again = one.once()
    (proposal,) = (p for p in first.proposals if p.subject.name == GROUP)
    assert proposal.reason is ProposalReason.SET_CLIENT_RACK
    assert again.proposals[0].id == first.proposals[0].id

    def of_group() -> list[Plain]:
        return [one for one in read_all(where, f"{prefix}.proposals") if one.key.decode().startswith(f"group/{GROUP}#")]

    # Topics of other tests lie in the same cluster: once their rates are known another plan may replace the first.
    bodies_of_all = [json.loads(record.value) for record in read_all(where, f"{prefix}.proposals")]
    written = [body["id"] for body in bodies_of_all if "state" not in body]
    assert {one.id for one in (*first.proposals, *again.proposals)} == {*written}
    assert len(written) == len({*written}), "an open proposal is not written twice"
    (record,) = of_group()
    assert record.value == proposal_to_bytes(proposal)
    assert proposal_from_json(record.value) == proposal
    event = from_binary_event(KafkaMessage(headers=dict(record.headers), key=record.key, value=record.value))
    assert (event.get_id(), event.get_subject()) == (proposal.id, f"group/{GROUP}")
    assert event.get_source() == f"/clusters/{first.snapshot.cluster_id}/agents/{os.uname().nodename}"
    assert proposal in read_proposals(settings, print)

    with agent(where, prefix, f"scope.exclude_groups={GROUP}") as other:
        other.once()
    (ended,) = (one for one in read_proposals(settings, print) if one.id == proposal.id)
    assert isinstance(ended, LifecycleStep)
    assert (ended.state, ended.subject) == ("void", f"group/{GROUP}")
    assert len(of_group()) == 2


def test_a_restart_remembers_and_writes_no_proposal_anew(where: str, prefix: str) -> None:
    with agent(where, prefix) as one:
        first = one.once()
        second = one.once()
    written = len(read_all(where, f"{prefix}.proposals"))
    with agent(where, prefix) as restarted:
        after = restarted.once()
    assert (first.before.cycle, second.before.cycle, after.before.cycle) == (0, 1, 1)
    assert after.changes.new == ()
    since = {finding.id: finding.since_ms for finding in first.detection.findings}
    assert {finding.id: finding.since_ms for finding in after.detection.findings} == since
    assert len(read_all(where, f"{prefix}.proposals")) == written


def test_a_restart_after_the_first_look_finds_nothing_new(where: str, prefix: str) -> None:
    with agent(where, prefix) as one:
        first = one.once()
    with agent(where, prefix) as restarted:
        after = restarted.once()
    assert len(first.changes.new) == len(first.detection.findings) > 0
    assert (after.before.taken_ms, after.changes.new) == (first.snapshot.taken_ms, ())


def test_telemetry_of_a_live_run_gives_byte_same_proposals_from_topic_and_file(
    where: str, prefix: str, tmp_path: Path
) -> None:
    path = tmp_path / "telemetry.jsonl"
    with agent(where, prefix, f"record.file={path}") as one:
        cycles = [one.once(), one.once()]
    from_topic = [record.value for record in read_all(where, f"{prefix}.telemetry")]
    by_look: dict[str, list[bytes]] = {}
    for value in from_topic:
        by_look.setdefault(json.loads(value)["look"], []).append(value)
    sources = ([line for lines in by_look.values() for line in lines], path.read_bytes().splitlines())
    for lines in sources:
        looks = {look.look: look for look in recorded_looks(from_lines(lines))}
        assert len(looks) == 2
        for done in cycles:
            look = looks[done.look]
            assert (look.observation, look.memory, look.limits) == (done.observation, done.before, done.limits)
            replayed = replay_look(look).proposals
            assert list(map(proposal_to_bytes, replayed)) == list(map(proposal_to_bytes, done.proposals))
            assert len(replayed) > 0
    keys = {record.key.decode() for record in read_all(where, f"{prefix}.telemetry")}
    assert {f"topic/{SHOP}", f"group/{GROUP}", "broker/1", f"cluster/{cycles[0].snapshot.cluster_id}"} <= keys


@pytest.mark.parametrize("mode", ["observe", "propose"])
def test_nothing_but_its_own_topics_is_touched(
    embedded_cluster: EmbeddedCluster, where: str, prefix: str, mode: str, tmp_path: Path
) -> None:
    name = f"{prefix}-{mode}"
    settings = [f"mode={mode}", f"kafka.client.id={name}", f"record.file={tmp_path / 't.jsonl'}"]
    with agent(embedded_cluster.proxied_bootstrap_servers, prefix, *settings) as one:
        one.once()
        one.once()
    requests = embedded_cluster.proxy.records(client_id=name)
    assert len(requests) > 20, "the proxy saw the agent"
    touched = {(one.api, subject) for one in requests if one.mutating for subject in one.subjects or (None,)}
    own = {f"{prefix}.telemetry", f"{prefix}.proposals"}
    if mode == "observe":
        assert touched == set()
        assert not own & set(AdminClient({"bootstrap.servers": where}).list_topics(timeout=10).topics)
    else:
        assert {api for api, _ in touched} <= {"CreateTopics", "Produce", "Metadata"}
        assert {subject.name for _, subject in touched if subject} == own
        assert all(subject is not None and subject.kind == "topic" for _, subject in touched)
    assert len(list(recorded_looks(from_lines((tmp_path / "t.jsonl").read_bytes().splitlines())))) == 2


def test_without_brokers_recording_gives_up_at_its_deadline_and_says_so(where: str, prefix: str) -> None:
    topic = OwnTopic(
        name=f"{prefix}.t", partitions=1, replication_factor=1, min_insync_replicas=1, cleanup_policy="delete",
        retention_ms=60_000,
    )  # fmt: skip
    recorder = CycleRecorder(RecordPlan(telemetry=topic, deadline_ms=500), {"bootstrap.servers": "127.0.0.1:1"})
    began = time.monotonic()
    found = recorder.record(cycle())
    assert time.monotonic() - began < 5
    assert found.counts.written == 0
    assert found.problems[0].startswith(f"{topic.name}: it could not be created: ")
    assert "imed out" in found.problems[0] or "in time" in found.problems[0]
    assert recorder.close(200, 0) == 0
    del where


def test_a_topic_that_may_not_be_written_is_told_and_the_loop_goes_on(where: str, prefix: str) -> None:
    name = f"{prefix}.telemetry"
    admin = AdminClient({"bootstrap.servers": where})
    admin.create_topics([NewTopic(name, 1, 1, config={"max.message.bytes": "100"})])[name].result(10)
    with agent(where, prefix) as one:
        one.once()
        recording = one.watch.state.recording
    assert recording is not None
    assert recording.counts.failed > 0
    assert name in " ".join(recording.problems)
    assert one.watch.state.succeeded == 1


def test_a_topic_that_was_deleted_is_made_again(where: str, prefix: str) -> None:
    name = f"{prefix}.telemetry"
    admin = AdminClient({"bootstrap.servers": where})
    with agent(where, prefix) as one:
        one.once()
        admin.delete_topics([name])[name].result(10)
        wait_for(lambda: name not in admin.list_topics(timeout=10).topics, "the topic is gone")
        wait_for(lambda: one.once() and _holds(where, name), "it is written again", within_s=60)
    assert all(sorted(replicas) == [1, 2, 3] for replicas in described(where, name)[0]), "not by a broker, blindly"


def _holds(where: str, topic: str) -> bool:
    found = AdminClient({"bootstrap.servers": where}).list_topics(timeout=10).topics
    return topic in found and len(read_all(where, topic)) > 0


# --- the agent as a process -------------------------------------------------------------------------------------


class Running:
    """`rackwise run` with its output."""

    def __init__(self, tmp_path: Path, *assignments: str, environ: dict[str, str] | None = None) -> None:
        self.log = tmp_path / "log"
        arguments = [part for one in assignments for part in ("--set", one)]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "agent", "run", *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environ or {})},
            )

    def events(self, name: str) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == name]

    def wait_for(self, name: str, count: int = 1, within_s: float = 60) -> list[dict[str, object]]:
        def there() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return len(self.events(name)) >= count

        wait_for(there, f"{count} events {name} in: {self.log.read_text()}", within_s=within_s)
        return self.events(name)

    def terminate(self) -> tuple[int, float]:
        """SIGTERM: the exit code, and how long it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15), time.monotonic() - began
        finally:
            self.process.kill()


def test_sigterm_ends_the_daemon_within_five_seconds_and_loses_nothing(where: str, prefix: str, tmp_path: Path) -> None:
    own = [f"kafka.bootstrap.servers={where}", f"topics.prefix={prefix}", "http.port=0", "poll.interval=1s"]
    running = Running(tmp_path, *own, "plan.interval=1s", "log.format=json")
    try:
        cycles = running.wait_for("cycle", 3)
        address = running.events("listening")[0]["address"]
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=5) as answer:
            assert json.load(answer)["ready"] is True
        code, took_s = running.terminate()
    finally:
        running.process.kill()
    assert code == 0
    assert took_s < 5, f"it took {took_s:.1f} s"
    assert running.events("stopped")
    assert not running.events("records_lost")
    cycles = running.events("cycle")
    *reports, last = [body for body in bodies(read_all(where, f"{prefix}.telemetry")) if body["kind"] == "report"]
    assert [body["data"]["stopped"] for body in (*reports, last)] == [False] * len(reports) + [True]
    asked = [sys.executable, "-m", "agent", "status", "-b", where, "--set", f"topics.prefix={prefix}", "-o", "json"]
    status = json.loads(subprocess.run(asked, check=False, capture_output=True, timeout=60).stdout)
    assert (status["agent"]["pid"], status["agent"]["stopped"]) == (running.process.pid, True)
    assert sorted(body["look"] for body in reports) == sorted(str(event["look"]) for event in cycles)
    told = {body["look"]: body["data"]["sentence"] for body in reports}
    assert all(told[str(event["look"])] == event["sentence"] for event in cycles)
    assert all(line.startswith("{") for line in running.log.read_text().splitlines()), "one event is one line"


@pytest.mark.parametrize("harm", ["freeze", "kill"])
def test_sigterm_ends_the_daemon_in_time_though_no_broker_answers(
    cluster_factory: Callable[[ClusterSpec], EmbeddedCluster], prefix: str, tmp_path: Path, harm: str
) -> None:
    small = cluster_factory(ClusterSpec(racks=("a",)))
    own = [f"kafka.bootstrap.servers={small.bootstrap_servers}", f"topics.prefix={prefix}", "http.port=0"]
    running = Running(tmp_path, *own, "poll.interval=1s", "plan.interval=1s", "log.format=json")
    try:
        running.wait_for("cycle", 2)
        getattr(small.broker(1), harm)()
        wait_for(lambda: running.events("cycle_failed") or running.events("look_skipped"), "a cycle is in trouble")
        code, took_s = running.terminate()
    finally:
        running.process.kill()
        if harm == "freeze":
            small.broker(1).thaw()
    assert code == 0
    assert took_s < 5, f"it took {took_s:.1f} s"
    assert running.events("stopped")


def test_no_secret_is_in_any_output(
    cluster_factory: Callable[[ClusterSpec], EmbeddedCluster], prefix: str, tmp_path: Path
) -> None:
    secret = f"canary-{uuid4().hex}"
    users = {"admin": secret, "rackwise": secret}
    secured = cluster_factory(ClusterSpec(racks=("a",), security=ClusterSecurity(users=users)))
    path = tmp_path / "telemetry.jsonl"
    given = [f"{name}={value}" for name, value in secured.client_properties("admin").items() if secret not in value]
    given += [f"bootstrap.servers={secured.bootstrap_servers}", "sasl.username=admin"]
    own = [f"topics.prefix={prefix}", "http.port=0", "poll.interval=1s", "log.format=json", "log.level=debug"]
    running = Running(
        tmp_path,
        *own,
        f"record.file={path}",
        *(f"kafka.{one}" for one in given),
        environ={"RACKWISE_KAFKA_SASL_PASSWORD": secret},
    )
    try:
        running.wait_for("cycle", 2)
        address = running.events("listening")[0]["address"]
        pages = []
        for page in ("livez", "readyz", "metrics"):
            with urllib.request.urlopen(f"http://{address}/{page}", timeout=5) as answer:
                pages.append(answer.read().decode())
        running.terminate()
    finally:
        running.process.kill()
    (tmp_path / "wrong").mkdir()
    wrong = Running(tmp_path / "wrong", *own, *(f"kafka.{one}" for one in given), f"kafka.sasl.password={secret}-wrong")
    try:
        wrong.wait_for("cycle_failed")
        wrong.terminate()
    finally:
        wrong.process.kill()
    outputs = {
        "log": running.log.read_text(),
        "wrong": wrong.log.read_text(),
        "pages": "".join(pages),
        "file": path.read_text(),
    }
    assert all(outputs.values())
    assert [name for name, text in outputs.items() if secret in text or "canary" in text] == []


def test_a_member_that_forges_log_lines_stays_on_its_line(where: str, prefix: str, tmp_path: Path) -> None:
    forged = 'x\n{"event":"cycle","sentence":"forged"}\x1b[2J'
    with consumer(where, "record-forger", SHOP, client_id=forged, partition_assignment_strategy="range"):
        own = [f"kafka.bootstrap.servers={where}", f"topics.prefix={prefix}", "http.enabled=false", "log.format=json"]
        running = Running(tmp_path, *own)
        try:
            running.wait_for("cycle")
            running.terminate()
        finally:
            running.process.kill()
    text = running.log.read_text()
    told = [json.loads(line)["event"] for line in text.splitlines()]
    assert [event for event in told if event != "finding"] == [
        "own_topics", "restored", "cycle", "proposals", "stopped",
    ]  # fmt: skip
    assert "\x1b" not in text
    admin = AdminClient({"bootstrap.servers": where})
    wait_for(lambda: delete_groups(admin, "record-forger") is None, "the forger's group is deleted")
