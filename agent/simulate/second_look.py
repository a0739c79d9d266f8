"""A look that follows another one: with rates, although the size of a record is learned from these very two.

The agent knows the size of a record one look later than it could: its loop learns it when it remembers. A command that
looks twice has no third look, so it learns first.
"""

from __future__ import annotations

from dataclasses import replace

from agent.decode.members import decode_members
from agent.memory.codec import after_restart
from agent.memory.rate_bases import MAX_PARTITIONS, WINDOW_MS, learned_bytes_per_record, rate_base, size_base
from agent.memory.remember import remember
from agent.model.take import take_snapshot
from agent.simulate.evaluation import Seen, see
from agent.values.clock import Instant
from agent.values.limits import Limits
from agent.values.memory import Memory
from agent.values.observation import Observation
from agent.values.rates import Rates, RatesFrom, judged
from agent.values.words import counted, lasted

OLDEST_BASE_MS = 600_000
"""What the agent saw longer ago says nothing of the traffic now."""
_AHEAD_MS = 1_000
"""Two clocks differ by as much; where they differ by more, bytes per second would be those of another time."""


def first_memory(observation: Observation, limits: Limits) -> Memory:
    """What the second look is to know of the first: as the agent's loop remembers it, in a cluster of any size."""
    first = see(observation, Memory(), limits, planning=False)
    after = remember(Memory(), first.snapshot, first.detection)
    return replace(after, rate_bases=(rate_base(first.snapshot),), size_base=size_base(first.snapshot))


def second_look(observation: Observation, memory: Memory, limits: Limits, *, planning: bool = True) -> Seen:
    """What the second look shows, with rates."""
    snapshot = take_snapshot(observation, decode_members(observation, None), memory, limits, None)
    knowing = replace(memory, bytes_per_record=learned_bytes_per_record(memory, snapshot))
    seen = see(observation, knowing, limits, planning=planning)
    base_ms = knowing.rate_bases[0].monotonic_ms if knowing.rate_bases else None
    seconds = None if base_ms is None else (observation.monotonic_ms - base_ms) / 1000
    return seen._replace(rates=judged(Rates(RatesFrom.COMMAND, seconds), seen.snapshot))


def next_look(observation: Observation, memory: Memory, limits: Limits) -> tuple[Seen, Memory]:
    """One more look with rates over the last minute, and the memory for the next."""
    seen = second_look(observation, memory, limits, planning=False)
    snapshot, after = seen.snapshot, remember(seen.before, seen.snapshot, seen.detection)
    young = [base for base in memory.rate_bases if snapshot.monotonic_ms - base.monotonic_ms < WINDOW_MS]
    bases = (*young, rate_base(snapshot)) if snapshot.end_offsets else memory.rate_bases
    return seen, replace(after, rate_bases=bases, size_base=after.size_base or memory.size_base)


def base_of_agent(memory: Memory, look: str, taken_ms: int, now: Instant) -> tuple[Memory, Rates]:
    """Of the agent's memory what rates need, on this process's clock, and who measured; else why there is none.

    ``look``, ``taken_ms``: the look that the memory went into. The rest of what the agent remembers stays with it: what
    this command finds is what this command sees.
    """
    age_ms = max(0, now.wall_ms - taken_ms)
    if (ahead_ms := taken_ms - now.wall_ms) > _AHEAD_MS:
        why = f"is {lasted(ahead_ms)} in the future, so the time since it is unknown"
        return Memory(), Rates(why_not=f"the newest look in the agent's telemetry {why}")
    moved = after_restart(memory, now.wall_ms, now.monotonic_ms)
    bases = tuple(base for base in moved.rate_bases if now.monotonic_ms - base.monotonic_ms <= OLDEST_BASE_MS)
    if not bases:
        return Memory(), Rates(why_not=f"the newest full look in the agent's telemetry {_no_base(moved, age_ms)}")
    kept = Memory(rate_bases=bases, bytes_per_record=moved.bytes_per_record)
    seconds = (now.monotonic_ms - bases[0].monotonic_ms) / 1000
    return kept, Rates(RatesFrom.AGENT, seconds, look, age_ms)


def _no_base(memory: Memory, age_ms: int) -> str:
    if memory.rate_bases:
        return f"is {lasted(age_ms)} old"
    if not memory.cycle:
        return f"is its first, {lasted(age_ms)} old, and rates need two, record.full_every apart"
    return f"keeps no end offsets: none were read, or those of more than {counted(MAX_PARTITIONS, 'partition')}"
