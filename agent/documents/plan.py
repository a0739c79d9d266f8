"""Documents of ``plan --groups``, ``--new-topic`` and ``--add-partitions``, ``simulate`` and ``explain``.

``plan`` and ``proposals`` print `ProposalDocument`, which the proposals topic holds too.
"""

from __future__ import annotations

import shlex
from typing import Literal

from typing_extensions import TypedDict

from agent.documents.cluster import LookDocument
from agent.plan.new_partitions import NewPlacement, NewPlacementSpread


class AssignmentCost(TypedDict):
    """What one assignment of a group costs."""

    reads: int
    """Partitions that are read."""
    crossing: int
    """Partitions read across racks, by Kafka's measure (no replica is in the reader's rack)."""
    unknown: int
    """Partitions of which it is not known whether they are read across racks."""
    crossing_bytes_per_s: float | None
    """Bytes per second read across racks, by where reads really go; null where a rate, rack or selector is unknown."""
    usd_per_day: float | None
    """What they cost a day; null also where a pair of racks has no price."""
    moved: int
    """Partitions (Kafka Streams: tasks) that another member has than now."""


class WarmupCost(TypedDict):
    """What the warm-up replicas of a Kafka Streams application cost on the way to its own assignor's answer."""

    at_once: int
    """Warm-up replicas at a time, at most."""
    tasks: int
    """Tasks that warm up."""
    disk_bytes: int | None
    """Bytes of state on disk beside what is there now; null when unknown."""
    read_bytes: int | None
    """Bytes read from changelogs; null when unknown."""


class PredictedAnswer(TypedDict):
    """What is predicted of the group's own assignor."""

    settings: str
    """Settings that the prediction rests on, and where they are known from."""
    basis: str
    """Where the assignor is known from."""
    certainty: str | None
    """How certain the answer is; null where there is none."""
    rebalances: int | None
    """Rebalances until the assignment is reached; null where there is no answer."""
    warmups: WarmupCost | None
    """Null where nothing warms up."""
    why_not: str | None
    """Why there is no answer; null where there is one."""
    notes: list[str]


class PlanGroup(TypedDict):
    """One group: now, what its own assignor would give it, what the plug-in would (KIP-848), and the optimum."""

    group: str
    """The group id."""
    kind: str
    """The group's protocol or type, such as consumer-protocol or streams."""
    assignor: str | None
    """The group's assignor; null when unknown."""
    now: AssignmentCost | None
    """Null where the group cannot be judged; worth says why."""
    own: AssignmentCost | None
    """By its own assignor, after follow-up rebalances and warm-ups; null where nothing is predicted."""
    plugin: AssignmentCost | None
    """KIP-848: by the plug-in for brokers; null for other groups, and where plugin_gain says why it is not known."""
    plugin_gain: str | None
    """What the plug-in would bring against now, as one sentence; null for groups that it does not concern."""
    optimum: AssignmentCost | None
    prediction: PredictedAnswer | None
    """Null where its own assignor was not asked."""
    worth: str
    """Why a rebalance is worth it, or why not, as one sentence."""


class BrokerExtent(TypedDict):
    """The least and the most of all brokers that take replicas."""

    least: int
    most: int


class PlacementSpread(TypedDict):
    """How even a placement leaves things."""

    most_in_a_rack: int
    """Replicas of one new partition in one rack, at most."""
    against_the_rule: int
    """New partitions with more than ceil(replication factor / racks) replicas in one rack."""
    topic_replicas: BrokerExtent
    """Replicas of the topic per broker."""
    topic_leaders: BrokerExtent
    """Preferred leaders of the topic per broker."""
    cluster_replicas: BrokerExtent
    """Replicas of all topics per broker."""
    cluster_leaders: BrokerExtent
    """Preferred leaders of all topics per broker."""


class ReassignedPartition(TypedDict):
    """One partition as kafka-reassign-partitions reads it."""

    topic: str
    partition: int
    replicas: list[int]
    """Broker ids, preferred leader first."""


class ReassignmentFile(TypedDict):
    """The file that kafka-reassign-partitions reads."""

    version: int
    partitions: list[ReassignedPartition]


class NewPlacementRow(TypedDict):
    """Where the new partitions of a topic go, by one placer."""

    placement: Literal["kafka", "optimum"]
    """kafka: Kafka's own placer. optimum: the best placement."""
    topic: str
    sentence: str
    """How it was found, and what it can be trusted for."""
    partitions: int
    """Partitions that the topic has afterwards."""
    new_partitions: int
    spread: PlacementSpread | None
    """Null where Kafka refuses."""
    command: str | None
    """The kafka-topics command; null where Kafka refuses."""
    replica_assignment: str | None
    """The value of kafka-topics --replica-assignment: broker ids, colons within and commas between partitions."""
    reassignment: ReassignmentFile | None
    """The new partitions as kafka-reassign-partitions reads them; null where Kafka refuses."""


class ExplainedRow(TypedDict):
    """One rule, what it was asked about, and what it answered."""

    about: str
    """A partition, a partition on a broker, a group, a member, or the id of a finding or a proposal."""
    rule: str
    """The rule, or the name of a figure with its unit, such as ``lower_bound_copied_bytes``."""
    answer: str
    """yes, no, wait (not now; it passes by itself), unknown, found (a finding) or fact (a figure)."""
    sentence: str
    """Why, with the numbers."""
    value: str | int | float | bool | list[str | int] | None
    """The figure itself; null where the row is no figure."""


class SimulatedOutcome(TypedDict):
    """What a group has under one assignment."""

    reads: int
    """Partitions that are read."""
    crossing: int
    """Partitions read across racks, by Kafka's measure (no replica is in the reader's rack)."""
    unknown: int
    """Partitions of which it is not known whether they are read across racks."""
    crossing_bytes_per_s: float | None
    """Bytes per second read across racks, by where reads really go; null where a rate, rack or selector is unknown."""
    usd_per_day: float | None
    """What they cost a day; null also where a pair of racks has no price."""
    moved: int
    """Partitions (Kafka Streams: tasks) that another member has than now."""
    standbys: int | None
    """Standby replicas of a Kafka Streams application; null for other groups."""
    standbys_sharing_a_rack: int | None
    """Standby replicas in the rack of the active task or of another standby of it; null for other groups."""


class SimulatedPrediction(TypedDict):
    """What is predicted of the group's own assignor after the change."""

    assignor: str | None
    settings: str
    """Settings that the prediction rests on, and where they are known from."""
    basis: str
    """Where the assignor is known from."""
    certainty: str
    """How certain the answer is."""
    rebalances: int | None
    """Rebalances until the assignment is reached."""
    notes: list[str]


class SimulatedGroup(TypedDict):
    """One group that the changes concern."""

    group: str
    kind: str
    """The group's protocol or type, such as consumer-protocol or streams."""
    now: SimulatedOutcome | None
    """Before the changes; null where the group cannot be judged."""
    own_assignor: SimulatedOutcome | None
    """After the changes, by its own assignor; null where nothing is predicted."""
    plugin: SimulatedOutcome | None
    """KIP-848, after the changes, by the plug-in for brokers; null for other groups, and where it is not known."""
    plugin_gain: str | None
    """What the plug-in would bring then against its own assignor; null for groups that it does not concern."""
    optimum: SimulatedOutcome | None
    """After the changes, at best."""
    waiting: int | None
    """Partitions without a reader until the group has rebalanced; null where a reader may be in a rack that goes."""
    note: str
    """Why columns are missing, or how certain the prediction is."""
    prediction: SimulatedPrediction | None
    warmups: WarmupCost | None


class SimulatedFinding(TypedDict):
    """A finding that the changes bring or take away."""

    change: Literal["new", "gone"]
    severity: Literal["critical", "warning", "info"]
    finding: str
    """The reason, as a few words."""
    subject: str
    """What it is about, as kind/name."""
    sentence: str


class SimulatedProposal(TypedDict):
    """What rackwise would propose after the changes, or proposes only without them."""

    change: Literal["new", "gone", "unchanged"]
    """Unchanged: the same is proposed now."""
    kind: Literal["reassign", "leaders", "trigger", "advise"]
    subject: str
    """What it is about, as kind/name."""
    sentence: str


class SimulatedCopies(TypedDict):
    """What added replicas of a topic cost."""

    topic: str
    replicas_added: int
    bytes_to_copy: int | None
    """Bytes copied once to the added replicas; null where the size of a partition is unknown."""
    cross_rack_bytes_per_s_now: float | None
    """Bytes per second that followers of the topic fetch across racks now; null where a part of it is unknown."""
    cross_rack_bytes_per_s_then: float | None
    """The same after the changes."""
    usd_per_day_now: float | None
    """What they cost a day; null also where a pair of racks has no price."""
    usd_per_day_then: float | None


class SimulatedRack(TypedDict):
    """A rack whose loss costs something else after the changes."""

    rack: str
    now: str | None
    """What losing it costs now, as a sentence; null where the rack does not exist."""
    then: str | None
    """What losing it costs after the changes."""


class SimulationDocument(TypedDict):
    """The outcome of simulated changes."""

    changes: list[str]
    """The changes, one sentence each, in the order in which they are applied."""
    groups: list[SimulatedGroup]
    findings: list[SimulatedFinding]
    proposals: list[SimulatedProposal]
    copies: list[SimulatedCopies]
    """Topics that get replicas."""
    racks: list[SimulatedRack]


class SimulationAnswer(TypedDict):
    """The outcome of simulated changes, with what is true of the look that they are applied to."""

    simulation: SimulationDocument
    look: LookDocument
    figures: str | None
    """What the figures of the proposals rest on; null where weights are not configured."""


class PendingSimulation(TypedDict):
    """The outcome is being worked on."""

    sentence: str


# New partitions in the forms that Kafka's own tools take: kafka-topics and kafka-reassign-partitions.
#
# ``kafka-topics --create`` takes the replicas of all partitions; ``--alter`` those of the existing ones as well, which
# it then leaves alone. ``kafka-reassign-partitions`` takes the new ones once the topic has them, wherever they came to
# be.


def placement_to_json(placement: NewPlacement, command: str = "kafka-topics.sh") -> NewPlacementRow:
    """A placement with its figures and all its forms; the forms are None where Kafka would refuse.

    ``command`` is the beginning of a call of ``kafka-topics``, with the options that lead to the cluster.
    """
    answered = placement.refused is None
    return {
        "placement": placement.by,
        "topic": placement.topic,
        "sentence": placement.sentence,
        "partitions": len(placement.existing) + len(placement.replicas),
        "new_partitions": len(placement.replicas),
        "spread": None if placement.spread is None else _spread(placement.spread),
        "command": kafka_topics_command(placement, command) if answered else None,
        "replica_assignment": replica_assignment(placement) if answered else None,
        "reassignment": _reassignment(placement) if answered else None,
    }


def replica_assignment(placement: NewPlacement) -> str:
    """What ``kafka-topics --replica-assignment`` reads."""
    return ",".join(":".join(map(str, of)) for of in (*placement.existing, *placement.replicas))


def kafka_topics_command(placement: NewPlacement, command: str) -> str:
    """The command that creates the topic, or alters it, with exactly these replicas."""
    assignment = f"--topic {shlex.quote(placement.topic)} --replica-assignment {replica_assignment(placement)}"
    if not placement.existing:
        return f"{command} --create {assignment}"
    return f"{command} --alter --partitions {len(placement.existing) + len(placement.replicas)} {assignment}"


def _reassignment(placement: NewPlacement) -> ReassignmentFile:
    first = len(placement.existing)
    return {
        "version": 1,
        "partitions": [
            {"topic": placement.topic, "partition": number, "replicas": list(replicas)}
            for number, replicas in enumerate(placement.replicas, first)
        ],
    }


def _spread(spread: NewPlacementSpread) -> PlacementSpread:
    return {
        "most_in_a_rack": spread.most_in_a_rack,
        "against_the_rule": spread.against_the_rule,
        "topic_replicas": _extent(spread.topic_replicas),
        "topic_leaders": _extent(spread.topic_leaders),
        "cluster_replicas": _extent(spread.cluster_replicas),
        "cluster_leaders": _extent(spread.cluster_leaders),
    }


def _extent(pair: tuple[int, int]) -> BrokerExtent:
    return {"least": pair[0], "most": pair[1]}
