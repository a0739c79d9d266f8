"""What did the agent know before it was restarted? The last memory that its telemetry holds.

Memory events always lie in partition 0, so a restart reads one partition from its end, in steps that grow, until a
whole memory is found or the time is over. Without one the agent starts with an empty memory; `agent.memory` says what
that forgets. The memory found is the one that went *into* the last look that was recorded in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import KafkaException

from agent.memory.codec import after_restart
from agent.record.librdkafka import in_words
from agent.record.reader import Span, TopicReader, open_reader
from agent.telemetry.events import Kind, from_lines
from agent.telemetry.looks import memory_of
from agent.values.clock import Instant
from agent.values.memory import Memory
from agent.values.typed_json import UnreadableError
from agent.values.words import lasted

MEMORY_PARTITION = 0
_FIRST_STEP = 500
_GROWTH = 8


class Restored(NamedTuple):
    """The memory to begin with, and a sentence that says where it is from."""

    memory: Memory
    sentence: str
    found: bool


def restore(
    config: Mapping[str, str | int], topic: str, cluster: str, now: Instant, *, prefix: str, timeout_ms: int
) -> Restored:
    """The memory of the telemetry topic on this process's clock; an empty one, with the reason, when there is none."""
    try:
        with open_reader(config, topic, prefix=prefix, timeout_ms=timeout_ms) as reader:
            found, whole, left_out = _last_memory(reader, cluster)
    except KafkaException as error:
        return Restored(
            Memory(), f"no memory was restored: {topic} could not be read ({in_words(error.args[0])})", found=False
        )
    if found is None:
        why = f"{topic} holds no memory" if whole else f"no memory was found in the last records of {topic} in time"
        if left_out:
            why = f"{why}; {len(left_out)} of its records could not be read: {left_out[-1]}"
        return Restored(Memory(), f"no memory was restored: {why}", found=False)
    memory = after_restart(found, now.wall_ms, now.monotonic_ms)
    return Restored(
        memory, f"restored the memory of look {found.cycle}, {lasted(now.wall_ms - found.taken_ms)} ago", found=True
    )


def _last_memory(reader: TopicReader, cluster: str) -> tuple[Memory | None, bool, list[str]]:
    """The newest memory of that cluster, whether everything was looked through, and what could not be read."""
    left_out: list[str] = []
    span = next((span for span in reader.spans() if span.partition == MEMORY_PARTITION), None)
    if span is None:
        return None, True, left_out
    step, start = _FIRST_STEP, span.end
    while start > span.first and reader.in_time:
        start = max(span.first, span.end - step)
        tail = Span(MEMORY_PARTITION, start, span.end)
        left_out = []
        memory = newest_memory((read.value for read in reader.read((tail,)) if read.value), cluster, left_out.append)
        if memory is not None:
            return memory, True, left_out
        step *= _GROWTH
    return None, start <= span.first, left_out


def newest_memory(values: Iterable[bytes], cluster: str, left_out: Callable[[str], None]) -> Memory | None:
    """The last memory of that cluster that can be read; what cannot is reported, and hides no older one."""
    told = [one for one in from_lines(values, left_out) if one.kind is Kind.MEMORY and one.cluster == cluster]
    for event in reversed(told):
        try:
            return memory_of(event)
        except UnreadableError as error:
            left_out(str(error))
    return None
