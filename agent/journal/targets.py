"""A plan in the journal: a header that is written again with every change, and its partitions, which never change.

``plan/<plan>`` says everything of a plan but its partitions, and how many of these there are, in how many entries, with
which digest. ``targets/<plan>/<number>``, from 1, are those entries, each far below the size of a record, written in
the same transaction as the first header. So a plan that was written once can be written whatever becomes of it.
Invariant: a header whose entries are incomplete, too many, or of another digest is `UnreadableError`, and nothing else;
only an ended plan may have none at all, because the oldest are deleted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from agent.journal.columns import columns, runs, targets_of
from agent.journal.kept import Kept
from agent.values.journal import Entry, View, Write
from agent.values.reassignment import Plan, Target
from agent.values.typed_json import UnreadableError, from_json, to_json
from agent.values.words import counted

TARGETS = "targets"
"""First part of the keys."""
MOST_TARGETS = 100_000
"""Partitions of one plan."""
PART_BYTES = 400_000
"""Of one entry; compressed records of brokers with smaller limits than Kafka's default are not thought of."""
_MOST_PARTS = 10_000
NOT_SAID = ("targets", "dropped")
"""Fields of a plan that its header does not have."""
_MOST_KEPT = 1_500_000
"""Targets in memory beside those of open plans, at most; they are read again where that is not enough."""


class Split(NamedTuple):
    """What a header says of the partitions of its plan."""

    partitions: int
    parts: int
    """Number of entries."""
    bytes: int
    """Of all of them, as JSON."""
    digest: str
    """SHA-256 of them, in hexadecimal digits."""


class _Read(NamedTuple):
    """Partitions as they were read, and digest and size of what they were read from."""

    targets: tuple[Target, ...]
    digest: str
    bytes: int


_SPLITS: Kept[Split] = Kept(_MOST_KEPT)
_READ: Kept[_Read] = Kept(_MOST_KEPT)
_PLANS: Kept[Plan] = Kept(_MOST_KEPT)


def split_of(targets: tuple[Target, ...]) -> Split:
    """What a header says of these partitions; worked out once for the same tuple."""
    return _SPLITS.of((targets,), lambda: _split(targets), lambda _: len(targets) + 1)


def part_writes(name: str, targets: tuple[Target, ...]) -> tuple[Write, ...]:
    """The entries with the partitions of a plan of that name."""
    return tuple(
        Write(f"{TARGETS}/{name}/{number}", TARGETS, value) for number, value in enumerate(_values(targets), 1)
    )


def header_value(plan: Plan) -> Mapping[str, Any]:
    """Everything of a plan but its partitions, of which it says what `Split` has."""
    value = to_json(Plan, plan._replace(targets=()))
    told = {name: one for name, one in value.items() if name not in NOT_SAID}
    return {**told, **split_of(plan.targets)._asdict()}


def plan_in(entry: Entry, parts: Sequence[Entry]) -> Plan:
    """The plan of a header, with its partitions from these entries. Raises UnreadableError."""
    return _PLANS.of((entry, *parts), lambda: _plan(entry, parts), lambda plan: len(plan.targets) + 1)


def parts_in(view: View, name: str | None = None) -> dict[str, list[Entry]]:
    """Plan -> the entries with its partitions, of one plan or of all."""
    found: dict[str, list[Entry]] = {}
    begin = f"{TARGETS}/" if name is None else f"{TARGETS}/{name}/"
    for key, entry in view.items():
        if key.startswith(begin):
            found.setdefault(owner(key), []).append(entry)
    return found


def owner(key: str) -> str:
    """Of which plan an entry has partitions."""
    return key.removeprefix(f"{TARGETS}/").rpartition("/")[0]


def digest_in(header: Entry) -> object:
    """The digest that a header names, whatever it is."""
    return header.value.get("digest")


def size_in(header: Entry) -> int:
    """Bytes of the partitions of a plan that can be read."""
    return from_json(Split, header.value).bytes


def _values(targets: tuple[Target, ...]) -> Iterator[Mapping[str, Any]]:
    return (columns(run) for run in runs(targets, PART_BYTES))


def _split(targets: tuple[Target, ...]) -> Split:
    texts = [_text(value) for value in _values(targets)]
    return Split(len(targets), len(texts), sum(map(len, texts)), hashlib.sha256(b"\n".join(texts)).hexdigest())


def _text(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _plan(entry: Entry, parts: Sequence[Entry]) -> Plan:
    plan = from_json(Plan, {**entry.value, "targets": [], "dropped": 0})
    told = from_json(Split, entry.value)
    name = entry.key.partition("/")[2]
    if plan.proposal_id != name:
        raise UnreadableError(f"the record of plan {name[:80]} is of another plan")
    if not (0 <= told.partitions <= MOST_TARGETS and 0 <= told.parts <= _MOST_PARTS):
        told_of = f"{counted(told.partitions, 'partition')} in {counted(told.parts, 'record')}"
        raise UnreadableError(f"plan {name[:80]}: its header counts {told_of}")
    if plan.ended and not parts and told.parts:
        return plan._replace(dropped=told.partitions)
    wanted = [f"{TARGETS}/{name}/{number}" for number in range(1, told.parts + 1)]
    by_key = {part.key: part for part in parts}
    if by_key.keys() != set(wanted):
        there = len(by_key.keys() & set(wanted))
        of = counted(told.parts, "record")
        raise UnreadableError(f"of the partitions of plan {name[:80]} the journal has {there} of {of}")
    ordered = tuple(by_key[key] for key in wanted)
    targets, digest, size = _READ.of(ordered, lambda: _joined(ordered), lambda found: len(found.targets) + 1)
    if (digest, size, len(targets)) != (told.digest, told.bytes, told.partitions):
        raise UnreadableError(f"the records of partitions of plan {name[:80]} are not those that it was accepted with")
    _SPLITS.put((targets,), told, len(targets) + 1)
    return plan._replace(targets=targets)


def _joined(parts: Sequence[Entry]) -> _Read:
    texts = [_text(part.value) for part in parts]
    digest = hashlib.sha256(b"\n".join(texts)).hexdigest()
    return _Read(tuple(chain.from_iterable(targets_of(part.value) for part in parts)), digest, sum(map(len, texts)))
