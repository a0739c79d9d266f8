"""Plan header and partition entries in the journal, partitions as columns, and the size bounds of plans.

``plan/<plan>`` holds everything but the partitions, with their number, number of entries and digest.
``targets/<plan>/<number>``, from 1, hold the partitions, written once in the transaction of the first header.
Invariant: incomplete, surplus or differing entries are `UnreadableError`; only an ended plan may have none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from agent.journal.entries import Entry, JournalState, JournalWrite, under
from agent.values.memo import IdentityMemo
from agent.values.number_format import counted, sized
from agent.values.proposal import Proposal
from agent.values.reassignment import ENDED, ReassignmentPlan, ReassignmentTarget, attempt
from agent.values.typed_json import UnreadableError, from_json, to_json
from assignors.problem import TopicPartition

TARGETS = "targets"
"""First part of the keys."""
MOST_TARGETS = 100_000
"""Partitions of one plan."""
PART_BYTES = 400_000
"""Of one entry; compressed records of brokers with smaller limits than Kafka's default are not thought of."""
_MOST_PARTS = 10_000
NOT_SAID = ("targets", "dropped", "attempt")
"""Fields of a plan that its header does not have."""
_MOST_KEPT = 1_500_000
"""Targets in memory beside those of open plans, at most; they are read again where that is not enough."""


class TargetManifest(NamedTuple):
    """Number, size and digest of a plan's partitions, in its header."""

    partitions: int
    parts: int
    """Number of entries."""
    bytes: int
    """Bytes of all parts, as JSON."""
    digest: str
    """SHA-256 of them, in hexadecimal digits."""


class _Read(NamedTuple):
    """Partitions as they were read, and digest and size of what they were read from."""

    targets: tuple[ReassignmentTarget, ...]
    digest: str
    bytes: int


_SPLITS: IdentityMemo[TargetManifest] = IdentityMemo(_MOST_KEPT)
_READ: IdentityMemo[_Read] = IdentityMemo(_MOST_KEPT)
_PLANS: IdentityMemo[ReassignmentPlan] = IdentityMemo(_MOST_KEPT)


def split_of(targets: tuple[ReassignmentTarget, ...]) -> TargetManifest:
    """The header's manifest of these partitions; computed once for the same tuple."""
    return _SPLITS.of((targets,), lambda: _split(targets), lambda _: len(targets) + 1)


def part_writes(name: str, targets: tuple[ReassignmentTarget, ...]) -> tuple[JournalWrite, ...]:
    """The entries with the partitions of a plan of that name."""
    return tuple(
        JournalWrite(f"{TARGETS}/{name}/{number}", TARGETS, value) for number, value in enumerate(_values(targets), 1)
    )


def header_value(plan: ReassignmentPlan) -> Mapping[str, Any]:
    """Everything of a plan but its partitions, of which it has the `TargetManifest`."""
    value = to_json(ReassignmentPlan, plan._replace(targets=()))
    written = {name: one for name, one in value.items() if name not in NOT_SAID}
    return {**written, **split_of(plan.targets)._asdict()}


def plan_in(entry: Entry, parts: Sequence[Entry]) -> ReassignmentPlan:
    """The plan of a header, with its partitions from these entries. Raises UnreadableError."""
    return _PLANS.of((entry, *parts), lambda: _plan(entry, parts), lambda plan: len(plan.targets) + 1)


def parts_in(view: JournalState, name: str | None = None) -> dict[str, list[Entry]]:
    """Plan -> the entries with its partitions, of one plan or of all."""
    found: dict[str, list[Entry]] = {}
    begin = f"{TARGETS}/" if name is None else f"{TARGETS}/{name}/"
    for key, entry in view.items():
        if key.startswith(begin):
            found.setdefault(owner(key), []).append(entry)
    return found


def owner(key: str) -> str:
    """Name of the plan whose partitions the entry of this key has."""
    return key.removeprefix(f"{TARGETS}/").rpartition("/")[0]


def size_in(header: Entry) -> int:
    """Bytes of the partitions of a plan that can be read."""
    return from_json(TargetManifest, header.value).bytes


def _values(targets: tuple[ReassignmentTarget, ...]) -> Iterator[Mapping[str, Any]]:
    return (columns(run) for run in runs(targets, PART_BYTES))


def _split(targets: tuple[ReassignmentTarget, ...]) -> TargetManifest:
    texts = [_text(value) for value in _values(targets)]
    return TargetManifest(len(targets), len(texts), sum(map(len, texts)), hashlib.sha256(b"\n".join(texts)).hexdigest())


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _plan(entry: Entry, parts: Sequence[Entry]) -> ReassignmentPlan:
    name = entry.key.partition("/")[2]
    plan = from_json(ReassignmentPlan, {**entry.value, "targets": [], "dropped": 0, "attempt": attempt(name).number})
    manifest = from_json(TargetManifest, entry.value)
    if plan.proposal_id != name:
        raise UnreadableError(f"the record of plan {name[:80]} is of another plan")
    if not (0 <= manifest.partitions <= MOST_TARGETS and 0 <= manifest.parts <= _MOST_PARTS):
        announced = f"{counted(manifest.partitions, 'partition')} in {counted(manifest.parts, 'record')}"
        raise UnreadableError(f"plan {name[:80]}: its header counts {announced}")
    if plan.ended and not parts and manifest.parts:
        return plan._replace(dropped=manifest.partitions)
    wanted = [f"{TARGETS}/{name}/{number}" for number in range(1, manifest.parts + 1)]
    by_key = {part.key: part for part in parts}
    if by_key.keys() != set(wanted):
        there = len(by_key.keys() & set(wanted))
        of = counted(manifest.parts, "record")
        raise UnreadableError(f"of the partitions of plan {name[:80]} the journal has {there} of {of}")
    ordered = tuple(by_key[key] for key in wanted)
    targets, digest, size = _READ.of(ordered, lambda: _joined(ordered), lambda found: len(found.targets) + 1)
    if (digest, size, len(targets)) != (manifest.digest, manifest.bytes, manifest.partitions):
        raise UnreadableError(f"the records of partitions of plan {name[:80]} are not those that it was accepted with")
    _SPLITS.put((targets,), manifest, len(targets) + 1)
    return plan._replace(targets=targets)


def _joined(parts: Sequence[Entry]) -> _Read:
    texts = [_text(part.value) for part in parts]
    digest = hashlib.sha256(b"\n".join(texts)).hexdigest()
    return _Read(tuple(chain.from_iterable(targets_of(part.value) for part in parts)), digest, sum(map(len, texts)))


# A plan is accepted only if every state that it can reach fits in the journal.

MOST_OPEN_BYTES = 64_000_000
"""Partitions of all plans that have not ended, some million of them; their batches take twice as much."""
MOST_HEADER_BYTES = 400_000
"""Of a plan that is accepted; its sentences and what it has moved come to it."""
_ROW_BYTES = 100
_BROKER_BYTES = 13
"""A broker's id has ten digits at most."""
_ENDED = frozenset(state.value for state in ENDED)


def open_bytes(view: JournalState) -> int:
    """Bytes that the partitions of plans take that have not ended. Raises UnreadableError."""
    return sum(size_in(entry) for entry in under(view, "plan") if entry.kind not in _ENDED)


class PlanSize(NamedTuple):
    """Size of a plan in the journal."""

    partitions: int
    replicas: int
    """Replicas that its partitions name, before and after."""
    bytes: int
    """Bytes of its partitions in the journal, or more."""
    header_bytes: int = 0


def plan_size(plan: ReassignmentPlan) -> PlanSize:
    """Size of that plan in the journal."""
    named = sum(len(target.before) + len(target.after) for target in plan.targets)
    return PlanSize(plan.partitions, named, split_of(plan.targets).bytes, len(json.dumps(header_value(plan))))


def estimated_plan_size(proposal: Proposal) -> PlanSize:
    """What the plan of a reassignment is going to take at most, worked out quickly."""
    named = sum(len(row.value) for row in (*proposal.before, *proposal.after))
    names = len(json.dumps(proposal.subject.name)) * (1 + len(proposal.after) // 1_000)
    return PlanSize(len(proposal.after), named, _ROW_BYTES * len(proposal.after) + _BROKER_BYTES * named + names)


def too_large_reason(need: PlanSize) -> str | None:
    """Why no journal has room for such a plan; None when one has."""
    if need.partitions > MOST_TARGETS:
        return f"it moves {counted(need.partitions, 'partition')}, and one plan may move {MOST_TARGETS:,}"
    if need.replicas > MOST_NAMED:
        return f"its partitions name {counted(need.replicas, 'replica')}, and those of one plan may name {MOST_NAMED:,}"
    if need.bytes > MOST_OPEN_BYTES:
        return f"its partitions take {sized(need.bytes)} in the journal, and plans may take {sized(MOST_OPEN_BYTES)}"
    if need.header_bytes > MOST_HEADER_BYTES:
        return f"its reason and racks take {sized(need.header_bytes)}, and may take {sized(MOST_HEADER_BYTES)}"
    return None


def no_room_reason(view: JournalState, need: PlanSize) -> str | None:
    """Why there is no room beside the plans that have not ended; None when there is. Raises UnreadableError."""
    taken = open_bytes(view)
    if taken + need.bytes <= MOST_OPEN_BYTES:
        return None
    return (
        f"its partitions take {sized(need.bytes)} in the journal, and those of plans that have not ended take"
        f" {sized(taken)} of {sized(MOST_OPEN_BYTES)}: it can begin when one of them has ended"
    )


# Columns write each topic and replica list once, about 60 bytes per target. Invariants:
# `targets_of(columns(targets)) == targets`; foreign columns give valid targets or `UnreadableError` in linear time.

MOST_NAMED = 4_000_000
"""Replicas that the targets of one value name together; lists are shared, so few bytes could name very many."""
_MOST_ID = 2**31 - 1
"""Of a partition or a broker, as Kafka has them."""


class TargetColumns(NamedTuple):
    """Partitions that are to move, as columns of the same length, and the two tables that they point into."""

    topic: tuple[int, ...]
    """Number of its row in ``topics``, from 0."""
    partition: tuple[int, ...]
    before: tuple[int, ...]
    """Number of its row in ``replicas``, from 0."""
    after: tuple[int, ...]
    bytes: tuple[int | None, ...]
    """Size of one replica; null when unknown."""
    bytes_per_s: tuple[float | None, ...]
    """Bytes per second that producers write; null when unknown."""
    gain: tuple[float, ...]
    topics: tuple[tuple[str, str], ...]
    """Name and topic id."""
    replicas: tuple[tuple[int, ...], ...]
    """Brokers in order; the first is the preferred leader."""


def columns(targets: Sequence[ReassignmentTarget]) -> Mapping[str, Any]:
    """The targets as JSON-ready columns, beside tables of topics and replica lists; the order stays."""
    topics: dict[tuple[str, str], int] = {}
    lists: dict[tuple[int, ...], int] = {}
    return {
        "topic": [topics.setdefault((one.id.topic, one.topic_id), len(topics)) for one in targets],
        "partition": [one.id.partition for one in targets],
        "before": [lists.setdefault(one.before, len(lists)) for one in targets],
        "after": [lists.setdefault(one.after, len(lists)) for one in targets],
        "bytes": [one.bytes for one in targets],
        "bytes_per_s": [one.bytes_per_s for one in targets],
        "gain": [one.gain for one in targets],
        "topics": [list(topic) for topic in topics],
        "replicas": [list(replicas) for replicas in lists],
    }


def targets_of(value: Mapping[str, Any]) -> tuple[ReassignmentTarget, ...]:
    """The targets. Raises UnreadableError."""
    try:
        return _targets(from_json(TargetColumns, value))
    except ValueError as error:
        raise UnreadableError(f"no columns of partitions: {error}") from error


class EncodedSize:
    """Bytes of JSON that targets take as columns, one after the other; never fewer than they take."""

    def __init__(self, each: int = 0) -> None:
        """``each`` are bytes that every one of them takes beside its columns."""
        self.bytes = 0
        self._each = each
        self._seen: set[object] = set()

    def more(self, one: ReassignmentTarget) -> int:
        """Bytes that the target adds: numbers of tables below a million, and what the tables do not have yet."""
        cost = self._each + 3 * 7 + len(str(one.id.partition)) + 4
        cost += sum(
            len(repr(number)) for number in (one.bytes, one.bytes_per_s, one.gain)
        )  # `None` is as long as `null`
        if (topic := (one.id.topic, one.topic_id)) not in self._seen:
            cost += len(json.dumps(topic)) + 2
        for replicas in {one.before, one.after} - self._seen:
            cost += sum(len(str(broker)) + 2 for broker in replicas) + 3
        return cost

    def add(self, one: ReassignmentTarget) -> None:
        """Take it in."""
        self.bytes += self.more(one)
        self._seen.update(((one.id.topic, one.topic_id), one.before, one.after))


def runs(targets: Iterable[ReassignmentTarget], most_bytes: int, each: int = 0) -> Iterator[list[ReassignmentTarget]]:
    """The targets in order, cut into runs of at most so many bytes of JSON; none is empty.

    A single target that has more is a run of its own.
    """
    run: list[ReassignmentTarget] = []
    size = EncodedSize(each)
    for one in targets:
        if run and size.bytes + size.more(one) > most_bytes:
            yield run
            run, size = [], EncodedSize(each)
        run.append(one)
        size.add(one)
    if run:
        yield run


def _targets(table: TargetColumns) -> tuple[ReassignmentTarget, ...]:
    """The targets of columns that point into their tables. Raises ValueError for all others."""
    cells, (topics, lists) = table[:-2], table[-2:]
    if len(set(map(len, cells))) != 1:
        raise ValueError("they are of different lengths")
    for indexes, rows in ((table.topic, topics), (table.before, lists), (table.after, lists)):
        if indexes and not 0 <= min(indexes) <= max(indexes) < len(rows):
            raise ValueError("a row of a table is missing")
    for ids in (table.partition, *lists):
        if ids and not 0 <= min(ids) <= max(ids) <= _MOST_ID:
            raise ValueError("a partition or broker has no such id")
    if any(len(set(replicas)) != len(replicas) or not replicas for replicas in lists):
        raise ValueError("a partition has no replicas, or two on one broker")
    if sum(len(lists[index]) for column in (table.before, table.after) for index in column) > MOST_NAMED:
        raise ValueError("they name too many replicas")
    return tuple(
        ReassignmentTarget(
            TopicPartition(topics[at][0], partition), topics[at][1], lists[was], lists[will], size, rate, gain
        )
        for at, partition, was, will, size, rate, gain in zip(*cells, strict=True)
    )
