"""Was the last prediction right? What was foretold of a group, kept small, and compared once it has rebalanced.

Only where something was set or assumed, or where Kafka is deterministic: a prediction that comes out wrong there means
that the group does not run what rackwise believes. A group whose readers or topics have changed since proves nothing,
and neither does one that is still handing work over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from zlib import crc32

from agent.values.kafka import STABLE
from agent.values.memory import Foretold
from agent.values.snapshot import ConsumerGroup, Group, ReaderGroup, Snapshot, StreamsGroup
from agent.values.words import counted
from assignors.problem import TopicPartition

if TYPE_CHECKING:  # what predicts reads this package
    from agent.values.prediction import Given, Prediction

Reads = Mapping[str, Iterable[TopicPartition]]


def foretold_of(prediction: Prediction, group: Group, snapshot: Snapshot, before: Foretold | None) -> Foretold | None:
    """What is to be remembered of a prediction; None where it proves nothing or cannot be compared."""
    if not isinstance(group, ReaderGroup) or prediction.first is None or prediction.settled is None:
        return None
    exact = prediction.certainty.name == "EXACT"
    if not exact and prediction.basis.name == "READ":
        return None
    rebalance = _rebalance(group)
    if rebalance is None:
        return None
    return Foretold(
        rebalance=rebalance,
        subject=_subject(group, snapshot),
        by=", ".join(part for part in (prediction.assignor, prediction.settings) if part),
        basis=prediction.basis.value,
        crossing=_crossing(prediction.settled.reads, group, snapshot),
        outcomes=tuple(
            dict.fromkeys(
                _outcome(given.reads, _copies(given), group, snapshot, exact=exact)
                for given in (prediction.first, prediction.settled)
            )
        ),
        exact=exact,
        missed=before.missed if before is not None and before.rebalance == rebalance else None,
    )


def missed(foretold: Foretold, group: Group | None, snapshot: Snapshot) -> str | None:
    """How the group's last rebalance differs from what was foretold, as a clause; None where nothing says so."""
    if not isinstance(group, ReaderGroup) or group.hidden or group.state != STABLE:
        return foretold.missed
    if _rebalance(group) == foretold.rebalance:
        return foretold.missed
    reads = _reads(group)
    if _subject(group, snapshot) != foretold.subject or not _complete(group, reads):
        return None
    copies = sum(len(p.standby) + len(p.warmup) for p in group.processes) if isinstance(group, StreamsGroup) else 0
    if _outcome(reads, copies, group, snapshot, exact=foretold.exact) in foretold.outcomes:
        return None
    got = _crossing(reads, group, snapshot)
    return (
        f"{foretold.by} ({foretold.basis}) predicted {counted(foretold.crossing, 'read')} across racks; after the "
        f"rebalance the group has another assignment, with {got}"
    )


def after_look(foretold: Foretold, group: Group | None, snapshot: Snapshot) -> Foretold | None:
    """What stays remembered after a look that predicted nothing new; None once it has been proven right or void."""
    if not isinstance(group, ReaderGroup):
        return None
    rebalance = _rebalance(group)
    if group.hidden or group.state != STABLE or rebalance is None or rebalance == foretold.rebalance:
        return foretold
    reads = _reads(group)
    if _subject(group, snapshot) == foretold.subject and not _complete(group, reads):
        return foretold  # work is still being handed over
    why = missed(foretold, group, snapshot)
    return None if why is None else foretold._replace(rebalance=rebalance, missed=why)


def _rebalance(group: ReaderGroup) -> str | None:
    """Tells one rebalance from the next; None where nothing does."""
    if isinstance(group, StreamsGroup):
        return group.join
    if group.assignment_epoch is not None:
        return f"epoch {group.assignment_epoch}"
    generations = [member.generation for member in group.members if member.generation is not None]
    return f"generation {max(generations)}" if generations else None


def _subject(group: ReaderGroup, snapshot: Snapshot) -> int:
    """Digest of who shares what: readers, and where the replicas of their topics are."""
    parts = sorted(reader.id for reader in group.readers)
    for topic in sorted({tp.topic for held in _reads(group).values() for tp in held}):
        state = snapshot.topics.get(topic)
        parts.append(f"{topic} {[one.replicas for one in state.partitions] if state is not None else None}")
    return crc32("\n".join(parts).encode(errors="surrogatepass"))


def _reads(group: ReaderGroup) -> Reads:
    if isinstance(group, ConsumerGroup):
        return {member.id: member.assigned or () for member in group.members}
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology is not None else {}
    return {process.id: [tp for t in process.active for tp in sources.get(t, ())] for process in group.processes}


def _complete(group: ReaderGroup, reads: Reads) -> bool:
    """Whether nothing is waiting to be handed over: all tasks run, or each partition up to the highest is read."""
    if isinstance(group, StreamsGroup):
        tasks = {task.id for task in group.topology.tasks} if group.topology is not None else set()
        return {task for process in group.processes for task in process.active} == tasks
    numbers: dict[str, set[int]] = {}
    for held in reads.values():
        for topic, number in held:
            numbers.setdefault(topic, set()).add(number)
    return bool(numbers) and all(len(seen) == max(seen) + 1 for seen in numbers.values())


def _outcome(reads: Reads, copies: int, group: ReaderGroup, snapshot: Snapshot, *, exact: bool) -> str:
    """What two equal assignments have in common: who reads what, or only loads and cost; and the number of copies."""
    if exact:
        text = "\n".join(f"{name} {sorted(held)}" for name, held in sorted(reads.items()))
        return f"{crc32(text.encode(errors='surrogatepass')):08x} {copies}"
    loads = sorted(len(list(held)) for held in reads.values())
    return f"{crc32(repr(loads).encode()):08x} {_crossing(reads, group, snapshot)} {copies}"


def _copies(given: Given) -> int:
    return sum(len(held) for kind in (given.standby, given.warmup) for held in kind.values())


def _crossing(reads: Reads, group: ReaderGroup, snapshot: Snapshot) -> int:
    """Reads without a replica in the rack that the reader tells."""
    rack_of = {reader.id: reader.rack.told for reader in group.readers}
    told = {broker.id: broker.rack.told for broker in snapshot.brokers if broker.rack.told}
    crossing = 0
    for name, held in reads.items():
        for topic, number in held:
            state = snapshot.topics.get(topic)
            if state is not None and number < len(state.partitions):
                crossing += rack_of.get(name) not in {told.get(broker) for broker in state.partitions[number].replicas}
    return crossing
