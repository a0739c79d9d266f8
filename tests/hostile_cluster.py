"""A cluster in which everything that a stranger may choose is chosen to do harm; and its twin with harmless names.

Every text of `tests.foreign_texts.POISONS` is a topic, a rack, a host and a group of each kind, with members that have
it for every name of theirs. No broker would take some of them (a topic with a line feed): what is shown must be
harmless all the same. In the twin each text is replaced by letters that take as much room, so that both clusters mean
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from agent.journal import plan_entries
from agent.journal.approvals import ApprovalState, ProposalApproval, written
from agent.journal.commands import CommandVerb, ExecutionPause, LeaderAnswer, OperatorCommand, answered, paused
from agent.journal.entries import JournalState, JournalWrite
from agent.journal.record_trust import LeaderEntry, leader_write
from agent.journal.triggers import TriggerEntry, TriggerExpectation, TriggerJudgement, TriggerVerdict, intent, judged
from agent.simulate.evaluation import StageEvaluation, evaluate
from agent.values.kafka import LEADER_REPLICAS
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import (
    Gap,
    GapCause,
    Observation,
    ObservationPart,
    RawApplicationLag,
    RawListedGroup,
    RawRackRow,
    RawRackTable,
    RawReassignment,
)
from agent.values.reassignment import (
    Batch,
    BatchState,
    PartitionEnd,
    PartitionEndReason,
    PlanState,
    ReassignmentPlan,
    ReassignmentTarget,
    ThrottleDebt,
)
from agent.values.throttles import ThrottleResource
from assignors.problem import TaskId, TopicPartition
from config.foreign_text import harmless
from testbed.cluster import ClusterSpec, ClusterState, FoundCluster
from testbed.cluster.manifest import ClusterManifest, ManifestBroker
from testbed.cluster.processes import ProcessId
from testbed.cluster.settings import BrokerNode
from tests.builders import Answers, an_observation, consumer, instance, process_id, reader, streams_member, subtopology
from tests.foreign_texts import POISONS
from tests.journals import journal

Name = Callable[[str], str]
HALF = list(POISONS).index("a lone surrogate")
FORGED = "ok  fake line"
MOVE_ID = "p-0123456789ab"


def poisoned(name: str) -> str:
    """The text itself."""
    return POISONS[name]


def twin(name: str) -> str:
    """Letters that take as much room as the text does once it is harmless."""
    number = list(POISONS).index(name)
    return f"t{number:02}".ljust(len(harmless(POISONS[name])), "x")


def observation(name: Name) -> Observation:
    """What the brokers of such a cluster would answer."""
    answers = an_observation(a=(1, 4), b=(2, 5), c=(3, 6))
    answers.topic("orders", (1, 2), (2, 3), (3, 1), (1, 2), min_insync_replicas="2")
    answers.topic("store", (1, 2), (2, 3))
    for number, poison in enumerate(POISONS):
        _add(answers, name(poison), number)
    of_all = answers.at()
    first = name("a screen that is cleared")
    tables = (RawRackTable(first, (RawRackRow("client.id", f"{first}-c", first),), 0),)
    return replace(of_all, cluster_id=name("a line feed"), rack_tables=tables)


@cache
def evaluated(name: Name) -> StageEvaluation:
    """One look at it, seen through; planning comes with it."""
    return evaluate(observation(name), Memory(), Limits())


def _add(answers: Answers, text: str, number: int) -> None:
    topic, broker = f"{text}.t", 100 + number
    answers.broker(broker, text)
    answers.brokers[broker] = answers.brokers[broker]._replace(host=text)
    answers.broker_configs[broker] = {"replica.selector.class": text}
    answers.topic(topic, (1, 4), (broker, 4), min_insync_replicas="2", retention=text)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    if number % 3 == 0:
        answers.moves[first] = RawReassignment(first, (broker, 1, 4), (broker,), (4,))
    _groups(answers, text, (first, second), number)
    answers.gaps.append(
        Gap(list(ObservationPart)[number % len(ObservationPart)], list(GapCause)[number % 4], text, text)
    )


def _groups(answers: Answers, text: str, held: tuple[TopicPartition, ...], number: int) -> None:
    names = {"instance_id": text, "client_id": f"{text}-c", "client_host": text}
    sent_text = "zone" if number == HALF else text  # a subscription is UTF-8: half a pair cannot be in it
    answers.group(
        f"{text}-classic",
        reader(f"{text}-1", sent_text, "orders-0 orders-1 orders-2", **names),
        reader(f"{text}-2", "a", "orders-3", user_data=b"\x00\xff"),
        assignor=text if number % 2 else "range",
    )
    answers.group(f"{text}-rebalancing", reader(f"{text}-1", sent_text, "orders-0"), state="PreparingRebalance")
    new = [
        consumer(f"{text}-{member}", rack, "orders-0")._replace(
            client_id=f"{text}-c",
            client_host=text,
            instance_id=text,
            topics=(held[0].topic,),
            assignment=mine,
            target=mine,
        )
        for member, rack, mine in ((1, text, held[:1]), (2, "b", held[1:]))
    ]
    answers.kip848(f"{text}-kip848", *new, assignor=text)
    answers.kip1071(
        f"{text}-streams",
        *(
            streams_member(thread, rack, active="0_0" if thread == 1 else "0_1", tags=((text, text),))._replace(
                member_id=f"{text}-{thread}", client_id=text, client_host=text, process_id=f"{text}-p{thread}"
            )
            for thread, rack in ((1, text), (2, "b"))
        ),
        subtopologies=(subtopology("0", "orders", "store"),),
    )
    answers.streams(
        f"{text}-app",
        instance(
            1, sent_text, {"0_0": "orders-0", "0_1": "orders-1"}, {"0_2": "orders-2"}, tags=((sent_text, sent_text),)
        ),
        instance(2, "b", {"0_2": "orders-2", "0_3": "orders-3"}, {"0_0": "orders-0"}),
    )
    answers.listed[f"{text}-other"] = RawListedGroup(f"{text}-other", text, text, text)
    answers.lags.append(RawApplicationLag(f"{text}-app", process_id(1), TaskId(0, 2), "standby", 50, 1_760_000_000_000))
    answers.committed[f"{text}-classic"] = {TopicPartition("orders", 0): 5}


def journal_of(name: Name) -> JournalState:
    """A journal in which all that agents and people wrote about themselves is hostile; its plan is of `MOVE_ID`."""
    writes = [_written(name(poison), number) for number, poison in enumerate(POISONS)]
    first, target = name("a line feed"), ReassignmentTarget(TopicPartition("orders", 0), "id", (1, 2), (1, 3))
    ends = (PartitionEnd(target.id, PartitionEndReason.DONE),)
    return journal(
        leader_write(LeaderEntry(first, first, 1, first, 0)),
        paused(ExecutionPause(first, first, 0)),
        *(write for of in writes for write in of),
        plan_entries.change_writes(
            ReassignmentPlan(MOVE_ID, (target,), PlanState.DONE, approved_by=first, reason=first, sentence=first)
        ),
        plan_entries.change_writes(Batch(MOVE_ID, 1, (target,), BatchState.CLOSED, ends=ends, sentence=first)),
        at_ms=1_760_000_000_000,
    )


def _written(text: str, number: int) -> list[JournalWrite]:
    plan_id, partition = f"{text}-plan", TopicPartition(f"{text}.t", 0)
    target = ReassignmentTarget(partition, text, (1, 4), (1, 2), 1_000)
    command = OperatorCommand(f"{text}-command", CommandVerb.CANCEL, text, 0, plan_id, reason=text)
    approval = ProposalApproval(plan_id, text, ApprovalState.APPROVED, text, 0, 1, reason=text, sentence=text)
    expected = TriggerExpectation(generation=None, readers=(text,), holds={}, moves=(), items=1, gain=text)
    trigger = TriggerEntry(
        group_id=f"{text}-classic",
        proposal_id=plan_id,
        reason=text,
        intended_ms=number,
        expected=expected,
        sentence=text,
    )
    plan = ReassignmentPlan(
        plan_id, (target,), PlanState.OPEN, approved_by=text, reason=text, order=number, sentence=text
    )
    return [
        answered(command, LeaderAnswer(bool(number % 2), text, number)),
        written(approval),
        plan_entries.change_writes(plan),
        plan_entries.change_writes(Batch(plan_id, 1, (target,), BatchState.ACKED, sentence=text)),
        plan_entries.change_writes(
            ThrottleDebt(ThrottleResource(topic=f"{text}.t"), LEADER_REPLICAS, (text,), text, plan_id, 1)
        ),
        judged(trigger, TriggerJudgement(TriggerVerdict.PARTLY, number, text)) if number % 2 else intent(trigger),
    ]


def local_clusters(name: Name, directory: Path) -> tuple[FoundCluster, ...]:
    """Clusters of this machine whose manifests another user wrote."""
    text = name("a screen that is cleared")
    process = ProcessId(1, 0.0)
    node = BrokerNode(id=1, rack=text, internal_port=1, controller_port=2, client_port=3, data_directory=text)
    manifest = ClusterManifest(
        name=text, cluster_id=text, spec=ClusterSpec(racks=("a",)), members=(ManifestBroker(node=node),), owner=None,
        starter=process,
    )  # fmt: skip
    return (FoundCluster(directory=directory / "local", state=ClusterState.RUNNING, why=text, manifest=manifest),)
