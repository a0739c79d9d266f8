"""A journal that was cut while its agent was dead: the next one refuses, touches nothing, goes on once it is mended.

The operator does what the sentence of the refusal says: puts a whole copy back, or makes sure that no reassignment runs
and no throttle of rackwise is left, and removes the journal.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic

from agent.act.journal.file_journal import watermark_path
from agent.errors import BadInput
from agent.values.throttles import ThrottleResource
from testbed.cluster import EmbeddedCluster
from tests.act.journals import delete_topics
from tests.act.reassignments import DEADLINE_MS, set_config, throttles
from tests.drill.drill_checks import survives
from tests.drill.harness import SEEDS
from tests.drill.moves import SLOWLY, Row, Run
from tests.observe.live import wait_for

pytestmark = pytest.mark.drill

REFUSED = "has lost records"
ADVICE = "Make sure that no reassignment runs and no throttle is left"
STILL_S = 5.0


def dies_moving(run: Run) -> None:
    run.process.start()
    run.wait_moving()
    run.process.signal(signal.SIGKILL)
    run.process.wait_dead()


def touches_nothing(run: Run, mark: int) -> None:
    """No request of the executor since then that changes the cluster, for a while."""
    time.sleep(STILL_S)
    passed = [one for one in run.proxy.records(since=mark, client_id=run.process.client_id) if one.mutating]
    assert passed == [], "a refusing executor changes nothing"


def tidied_up(run: Run) -> None:
    """By the operator: nothing moves, and no throttle is set but those of others."""
    wait_for(lambda: run.hand.list_reassignments(DEADLINE_MS) == (), "no reassignment runs", 120)
    topics = {run.a, run.b, f"{run.name}-foreign"}
    for setting in throttles(run.hand, *topics):
        set_config(run.servers, setting, run.foreign.get(setting))


def file_cut(run: Run) -> None:
    """Its last lines are gone, by seed also half a line stays; a copy is put back, or it is removed."""
    dies_moving(run)
    whole = run.journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    left = len(lines) - run.rng.randint(2, 3)
    torn = lines[left][: len(lines[left]) // 2] if run.seed % 3 == 0 else b""
    run.former.append(run.view())
    run.journal.write_bytes(b"".join(lines[:left]) + torn)
    before, mark = throttles(run.hand, run.a, run.b), run.proxy.count
    run.process.start()
    told = run.process.wait_line("refused")
    assert REFUSED in told, told
    assert "make sure that no reassignment runs and no throttle is left" in told, told
    assert run.process.wait_ended(30) == BadInput.exit_code
    touches_nothing(run, mark)
    assert throttles(run.hand, run.a, run.b) == before
    if run.seed % 2 == 0:
        run.former.clear()
        run.journal.write_bytes(whole)
    else:
        tidied_up(run)
        run.journal.unlink()
        watermark_path(run.journal).unlink()
    run.clocks.harm_over()
    run.process.start()
    run.process.wait_for_word("looked")
    run.clocks.goes_on()


def topic_cut(run: Run) -> None:
    """Its records were deleted, or the topic was deleted and made again, by seed; then the agent starts, or waited."""
    dies_moving(run)
    run.former.append(run.view())
    journal, leader = (f"{run.config['prefix']}.{name}" for name in ("journal", "leader"))
    if run.seed % 2:
        records_deleted(run, journal)
    else:
        delete_topics(run.servers, journal)
        made(run, journal)
    before, mark = throttles(run.hand, run.a, run.b), run.proxy.count
    run.process.start()
    run.process.wait_line("problem The journal", 120)
    told = run.process.wait_line("problem")
    assert REFUSED in told, told
    assert ADVICE in told, told
    touches_nothing(run, mark)
    assert throttles(run.hand, run.a, run.b) == before
    if run.seed >= 4:
        run.process.terminate()
    tidied_up(run)
    delete_topics(run.servers, journal, leader)
    made(run, journal, leader)
    run.clocks.harm_over()
    if run.seed >= 4:
        run.process.start()
    run.process.wait_for_word("leads")
    run.clocks.goes_on()


def records_deleted(run: Run, topic: str) -> None:
    """All of them; a compacted topic has to be another one for that moment."""
    admin, policy = (
        AdminClient({"bootstrap.servers": run.servers}),
        (ThrottleResource(topic=topic), "cleanup.policy"),
    )
    set_config(run.servers, policy, "compact,delete")

    def deleted() -> bool:
        try:
            admin.delete_records([Position(topic, 0, -1)], request_timeout=30)[Position(topic, 0)].result(30)
        except KafkaException as error:
            if error.args[0].name() != "POLICY_VIOLATION":  # its leader does not know of the policy yet
                raise
            return False
        return True

    wait_for(deleted, "the records are deleted", 30)
    set_config(run.servers, policy, "compact")


def made(run: Run, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": run.servers})
    wanted = [NewTopic(name, 1, 3, config={"cleanup.policy": "compact"}) for name in topics]
    for future in admin.create_topics(wanted).values():
        future.result(30)


FAULTS = [
    Row("file of the journal cut", file_cut, SLOWLY),
    Row("topic of the journal cut", topic_cut, SLOWLY, kafka=True),
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("row", FAULTS, ids=[row.name for row in FAULTS])
def test_a_plan_survives(row: Row, seed: int, arena: EmbeddedCluster, tmp_path: Path) -> None:
    survives(row, seed, arena, tmp_path)
