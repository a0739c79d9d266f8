"""What ``simulate`` prints."""

from __future__ import annotations

from typing import Literal, TypedDict

from agent.cli.documents.planning import WarmupCost


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


class Simulation(TypedDict):
    """The outcome of simulated changes."""

    changes: list[str]
    """The changes, one sentence each, in the order in which they are applied."""
    groups: list[SimulatedGroup]
    findings: list[SimulatedFinding]
    proposals: list[SimulatedProposal]
    copies: list[SimulatedCopies]
    """Topics that get replicas."""
    racks: list[SimulatedRack]
