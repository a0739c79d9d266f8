"""Input and state of Kafka's Streams task assignors in the group leader (KIP-441, KIP-708, KIP-925).

``StreamsProblem`` is the frozen input; ``ClientState`` is the mutable state of one run, as Kafka's class of that name,
made by ``client_states`` and frozen by ``streams_result``. Tasks are ordered by subtopology and partition, processes
by UUID as Java compares it (two signed halves).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from assignors.kafka.java import uuid_halves
from assignors.problem import BadProblem, TaskId, TopicPartition

RUNNING_ACTIVE = -2
"""The lag of a task on the process that runs it as active now (Kafka's ``StreamsTask.LATEST_OFFSET``)."""
UNKNOWN_LAG = -3
"""The lag of a task whose offset sum on that process is unknown. It sorts before ``RUNNING_ACTIVE``, as in Kafka."""
LONG_MAX = 2**63 - 1
"""As acceptable recovery lag: every process counts as caught up."""
MOST_TAGS, TAG_KEY_LENGTH, TAG_VALUE_LENGTH = 5, 20, 30
"""KIP-708: client tags per process and tags to spread over; characters of a key and of a value."""

Replicas = tuple[str | None, ...]
"""The rack of each replica of a partition; None is a broker without a rack."""
Iteration = Literal["listed", "java_hash", "sorted"]
NO_STRATEGY: Final = "none"
MIN_TRAFFIC: Final = "min_traffic"
BALANCE_SUBTOPOLOGY: Final = "balance_subtopology"
RackStrategy = Literal["none", "min_traffic", "balance_subtopology"]
"""Values of `rack.aware.assignment.strategy` (KIP-925)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentConfigs:
    """The Streams settings that an assignor gets, under Kafka's names and with Kafka's defaults."""

    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_tags: tuple[str, ...] = ()
    rack_aware_assignment_strategy: RackStrategy = NO_STRATEGY
    rack_aware_assignment_traffic_cost: int | None = None
    """None: not configured, the assignor's own default holds."""
    rack_aware_assignment_non_overlap_cost: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsClient:
    """One process (KafkaStreams instance) as its ``SubscriptionInfo`` describes it."""

    id: str
    """The process UUID as text."""
    capacity: int
    """Stream threads."""
    tags: Mapping[str, str] = field(default_factory=dict)
    prev_active: tuple[TaskId, ...] = ()
    prev_standby: tuple[TaskId, ...] = ()
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    """Task -> lag in offsets, or ``RUNNING_ACTIVE``, or ``UNKNOWN_LAG``."""
    assigned_active: tuple[TaskId, ...] = ()
    """Placed before the assignor (or the single step of one) is called."""
    assigned_standby: tuple[TaskId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RackFacts:
    """Who is in which rack, as far as the leader of the group can know it (KIP-925)."""

    consumer_racks: Mapping[str, Mapping[str, str | None]]
    """Process -> consumer -> its ``client.rack``."""
    cluster: Mapping[str, tuple[Replicas, ...]]
    """Topic -> for each partition the racks of its replicas, from the leader's metadata. A topic or partition may be
    missing; an empty tuple is a partition without replica information."""
    described: Mapping[str, tuple[Replicas, ...]]
    """The same from a describe-topics call; a topic for which the call fails is missing."""
    task_partitions: Mapping[TaskId, tuple[TopicPartition, ...]]
    """Task -> its source partitions (inputs and repartition topics)."""
    changelog_partitions: Mapping[TaskId, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsProblem:
    """Which process shall run which task, hold which standby and warm up which state."""

    tasks: tuple[TaskId, ...]
    """All tasks, in the order in which Kafka's set was filled."""
    stateful: tuple[TaskId, ...]
    """Those with at least one changelog."""
    clients: tuple[StreamsClient, ...]
    """In the order in which Kafka's map was filled."""
    configs: AssignmentConfigs = AssignmentConfigs()
    racks: RackFacts | None = None
    """None: no rack information at all."""
    iteration: Iteration = "java_hash"
    """How the map of clients and the sets of tasks iterate: as listed, as ``HashMap`` and ``HashSet`` filled in the
    listed order (production), or sorted."""
    max_literal_size: int | None = None
    """Up to how many task-client pairs the rack-aware step follows Kafka's own flow tie for tie. Past it the optimum
    of equal cost is used. None: the step's default."""


FlowAnswer = Literal["not run", "as Kafka", "cost-equal optimum"]
"""How the rack-aware step came to its answer: not at all, tie for tie as Kafka, or another of the same cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsResult:
    """What the assignor gives every process; every tuple of tasks is sorted."""

    active: Mapping[str, tuple[TaskId, ...]]
    standby: Mapping[str, tuple[TaskId, ...]]
    """Standbys and warm-ups: under the classic protocol a warm-up travels as a standby."""
    warmup: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    """Those of ``standby`` that are there only until they have caught up, where the assignor marks them."""
    followup_rebalance: bool = False
    """A probing (or follow-up) rebalance is requested."""
    flow: FlowAnswer = "not run"
    warnings: tuple[str, ...] = ()
    """What Kafka would log as a warning or an error, as sentences, each once, in the order of their causes."""


class ClientState:
    """What one process gets in the assignment under construction; compares and hashes by identity."""

    __slots__ = ("active", "capacity", "client", "id", "key", "standby")

    def __init__(self, client: StreamsClient) -> None:
        self.client = client
        self.id = client.id
        self.key = process_key(client.id)
        """Sorts processes as Java does."""
        self.capacity = client.capacity
        self.active = set(client.assigned_active)
        self.standby = set(client.assigned_standby)

    @property
    def task_count(self) -> int:
        """Active tasks and standbys."""
        return len(self.active) + len(self.standby)

    @property
    def load(self) -> float:
        """Tasks per thread; the same double as Kafka computes."""
        return self.task_count / self.capacity

    @property
    def active_load(self) -> float:
        """Active tasks per thread."""
        return len(self.active) / self.capacity

    def has(self, task: TaskId) -> bool:
        """Whether this process gets any copy of the task."""
        return task in self.active or task in self.standby

    def lag(self, task: TaskId) -> int:
        """The task's lag in offsets. Raises ``BadProblem`` when the problem has none."""
        lag = self.client.lags.get(task)
        if lag is None:
            raise BadProblem(f"client {self.id} has no lag for stateful task {task}; give one to every stateful task")
        return lag

    def caught_up(self, task: TaskId, acceptable_recovery_lag: int) -> bool:
        """Whether this process may run the task at once (KIP-441)."""
        lag = self.lag(task)
        return lag == RUNNING_ACTIVE or acceptable_recovery_lag == LONG_MAX or 0 <= lag <= acceptable_recovery_lag

    def __repr__(self) -> str:
        return f"<ClientState {self.id} active={_texts(self.active)} standby={_texts(self.standby)}>"


def process_key(process: str) -> tuple[int, int]:
    """Sort key of a process UUID in Java's order: both halves are signed. Raises ``BadProblem`` for other text."""
    try:
        return uuid_halves(process)
    except ValueError:
        raise BadProblem(f"client {process!r} is not a process UUID; write it as 8-4-4-4-12 hex digits") from None


def client_states(problem: StreamsProblem) -> dict[str, ClientState]:
    """Working states by process id, in the order of the problem. Raises ``BadProblem`` as the check below does."""
    check_streams_problem(problem)
    return {client.id: ClientState(client) for client in problem.clients}


def streams_result(
    states: Mapping[str, ClientState],
    *,
    warmup: Mapping[str, Iterable[TaskId]] | None = None,
    followup_rebalance: bool = False,
    flow: FlowAnswer = "not run",
    warnings: Iterable[str] = (),
) -> StreamsResult:
    """Freeze what the states hold now."""
    return StreamsResult(
        active={id_: tuple(sorted(state.active)) for id_, state in states.items()},
        standby={id_: tuple(sorted(state.standby)) for id_, state in states.items()},
        warmup={id_: tuple(sorted(tasks)) for id_, tasks in (warmup or {}).items()},
        followup_rebalance=followup_rebalance,
        flow=flow,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def check_streams_problem(problem: StreamsProblem) -> None:
    """Raise ``BadProblem`` naming the first contradiction: ids twice, no threads, unknown tasks, costs out of range."""
    _check_once("task", problem.tasks)
    _check_once("stateful task", problem.stateful)
    _check_once("client", [client.id for client in problem.clients])
    tasks = set(problem.tasks)
    for task in problem.stateful:
        if task not in tasks:
            raise BadProblem(f"stateful task {task} is not among the tasks; list it there too")
    same: dict[tuple[int, int], str] = {}
    for client in problem.clients:
        other = same.setdefault(process_key(client.id), client.id)
        if other != client.id:
            raise BadProblem(f"clients {other} and {client.id} are one process; list it once")
        if client.capacity < 1:
            raise BadProblem(f"client {client.id} has capacity {client.capacity}; a process has at least one thread")
        if twice := sorted(set(client.assigned_active) & set(client.assigned_standby)):
            raise BadProblem(f"client {client.id} has task {twice[0]} as active and as standby; one copy is the most")
        _check_tags(client)
    _check_configs(problem.configs)


def _check_tags(client: StreamsClient) -> None:
    """The limits of KIP-708: with more, the application would not start."""
    if len(client.tags) > MOST_TAGS:
        raise BadProblem(f"client {client.id} has {len(client.tags)} client tags; Kafka allows at most {MOST_TAGS}")
    for key, value in client.tags.items():
        if len(key) > TAG_KEY_LENGTH:
            raise BadProblem(
                f"client tag {key!r} of {client.id} is longer than {TAG_KEY_LENGTH} characters; shorten it"
            )
        if len(value) > TAG_VALUE_LENGTH:
            raise BadProblem(
                f"client tag {key} of {client.id} is {value!r}, longer than {TAG_VALUE_LENGTH} characters; shorten it"
            )


def _check_configs(configs: AssignmentConfigs) -> None:
    for name in ("acceptable_recovery_lag", "num_standby_replicas"):
        if not 0 <= getattr(configs, name) <= LONG_MAX:
            raise BadProblem(f"{name} is {getattr(configs, name)}; give a number from 0 on")
    if configs.max_warmup_replicas < 1:
        raise BadProblem(f"max_warmup_replicas is {configs.max_warmup_replicas}; Kafka asks for at least 1")
    if configs.rack_aware_assignment_strategy not in (NO_STRATEGY, MIN_TRAFFIC, BALANCE_SUBTOPOLOGY):
        raise BadProblem(
            f"rack_aware_assignment_strategy is {configs.rack_aware_assignment_strategy!r}; "
            f"Kafka knows {NO_STRATEGY}, {MIN_TRAFFIC} and {BALANCE_SUBTOPOLOGY}"
        )
    if len(configs.rack_aware_assignment_tags) > MOST_TAGS:
        raise BadProblem(
            f"rack_aware_assignment_tags lists {len(configs.rack_aware_assignment_tags)} tags; "
            f"Kafka allows at most {MOST_TAGS}"
        )
    for name in ("rack_aware_assignment_traffic_cost", "rack_aware_assignment_non_overlap_cost"):
        cost = getattr(configs, name)
        if cost is not None and not 0 <= cost < 2**31:
            raise BadProblem(f"{name} is {cost}; a cost is a number from 0 to {2**31 - 1}")


def _check_once(what: str, ids: Iterable[object]) -> None:
    seen = set()
    for id_ in ids:
        if id_ in seen:
            raise BadProblem(f"{what} {id_} is listed twice; an id stands for one thing")
        seen.add(id_)


def _texts(tasks: Iterable[TaskId]) -> str:
    return "[" + ", ".join(map(str, sorted(tasks))) + "]"
