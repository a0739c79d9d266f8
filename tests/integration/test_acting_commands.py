"""What people say reaches the agent that leads by the commands topic, and its answer comes back by the journal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from agent.act.leadership import JournalLeadership, read_journal
from agent.act.lease import LeadershipPlan
from agent.execute.commands.apply import apply_commands
from agent.execute.commands.command_context import CommandWitness
from agent.journal.commands import CommandVerb, answer_to, pause_in
from agent.journal.entries import JournalKey
from agent.observe.context import ObserverClients, ObserverState, ObserveScope
from agent.observe.observe_cluster import observe
from agent.values.clock import system_clock
from agent.values.limits import Limits
from agent.web.access.person import AccessRole, SignedInPerson, SignInWay, up_to
from agent.web.access.request_checks import AccessRefused
from agent.web.commands import CommandDesk, WantedCommand
from config.kafka_client import KafkaClientConfig
from testbed.cluster import EmbeddedCluster
from tests.command import rackwise
from tests.observe.live import wait_for

pytestmark = pytest.mark.integration
KEY = JournalKey(b"the key of the executors of this test")


class ObeyingAgent:
    """The real leadership, journal and inbox; it only obeys."""

    def __init__(self, plan: LeadershipPlan) -> None:
        self.plan = plan
        self._leadership = JournalLeadership(plan)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._leadership.start()
        self._thread.start()

    def _run(self) -> None:
        config = KafkaClientConfig.of({"bootstrap.servers": str(self.plan.config["bootstrap.servers"])})
        with ObserverClients.open(config) as clients:
            recall = ObserverState()
            while not self._stop.wait(0.1):
                if not self._leadership.may_act():
                    self._leadership.observed(observe(clients, system_clock, ObserveScope(), recall))
                journal, inbox = self._leadership.journal(), self._leadership.inbox()
                if journal is None or inbox is None:
                    continue
                view = journal.view()
                now_ms = system_clock().wall_ms
                result = apply_commands(inbox.read(view), view, (), Limits(), now_ms, witnesses=(KEY,))
                if result.writes:
                    journal.append(*result.writes)

    def leads(self) -> bool:
        return self._leadership.may_act()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._leadership.close()


@pytest.fixture
def agent(embedded_cluster: EmbeddedCluster) -> Iterator[ObeyingAgent]:
    prefix = f"rackwise-{uuid4().hex[:8]}"
    started = ObeyingAgent(
        LeadershipPlan(
            config={"bootstrap.servers": embedded_cluster.bootstrap_servers},
            agent="one",
            prefix=prefix,
            journal_topic=f"{prefix}.journal",
            leader_topic=f"{prefix}.leader",
            commands_topic=f"{prefix}.commands",
        )
    )
    yield started
    started.close()


@pytest.mark.drill
def test_a_pause_goes_by_the_topic_and_its_answer_comes_by_the_journal(
    embedded_cluster: EmbeddedCluster, agent: ObeyingAgent
) -> None:
    where = ("-b", embedded_cluster.bootstrap_servers, "--set", f"topics.prefix={agent.plan.prefix}")
    wait_for(agent.leads, "the agent leads", 60)
    before = rackwise("pause", "--reason", "sale", "-o", "json", *where)
    assert before.exit_code == 0, before.stderr
    assert before.json["done"] is True
    pause = pause_in(read_journal(agent.plan))
    assert pause is not None

    told = rackwise("proposals", "history", "-o", "json", *where)
    assert [(row["what"], row["state"]) for row in told.json] == [("pause", "done")]
    status = rackwise("reassign", "status", "-o", "json", *where)
    assert (status.exit_code, status.json["plans"], status.json["throttles"]) == (0, [], [])
    assert (status.json["paused"]["by"], status.json["paused"]["reason"]) == (pause.who, "sale")

    refused = rackwise("reassign", "cancel", "p-0123456789ab", "--yes", *where)
    assert (refused.exit_code, " is known: it is not open" in refused.stderr) == (2, True)
    after = rackwise("resume", "-o", "json", *where)
    assert after.exit_code == 0, after.stderr
    assert pause_in(read_journal(agent.plan)) is None


def test_a_person_at_the_page_pauses_and_resumes_by_the_topic(agent: ObeyingAgent) -> None:
    wait_for(agent.leads, "the agent leads", 60)
    desk = CommandDesk(plan=agent.plan, witness=CommandWitness("two", (KEY,)), journal=lambda: read_journal(agent.plan))
    opa = SignedInPerson("opa@example.org", up_to(AccessRole.OPERATE), SignInWay.OIDC)
    done = desk.ask(opa, WantedCommand(CommandVerb.PAUSE, reason="sale"))
    view = read_journal(agent.plan)
    pause, asked = pause_in(view), answer_to(view, done["command"])
    assert pause is not None
    assert asked is not None
    assert (pause.who, pause.reason) == ("opa@example.org", "sale")
    assert (asked.command.person, asked.command.witness) == ("opa@example.org", "two")
    assert desk.ask(opa, WantedCommand(CommandVerb.RESUME))["done"]
    with pytest.raises(AccessRefused) as refused:
        desk.ask(opa, WantedCommand(CommandVerb.CANCEL, "p-0123456789ab"))
    assert refused.value.status_code == 404


def test_where_no_agent_ever_acted_there_is_nobody_to_ask(embedded_cluster: EmbeddedCluster) -> None:
    done = rackwise("pause", "-b", embedded_cluster.bootstrap_servers, "--set", "topics.prefix=rackwise-nobody")
    assert done.exit_code == 2
    assert "rackwise-nobody.journal" in done.stderr
