"""Which weights of the pipeline are fresh, and what they say of each topic, group and application.

Weights are as old as the last look that they rest on, by the wall clocks of both sides. Those that are too old, or that
come from a time which has not come yet by more than the same bound, count for nothing, record by record; and when none
is left, one clause says why.

Invariants: as long as the same weights are fresh, the same object is given back, so that nothing is judged anew; what
is laid out is no larger than the topics that the cluster shows and the records that were read, whatever these claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.observation import Observation
from agent.values.weighed import NOT_WEIGHED, Column, Weighed, WeightsState
from agent.values.weights import GroupRates, Told, TopicRates
from agent.values.words import counted, lasted
from assignors.problem import TopicPartition


def weighed(observation: Observation, limits: Limits, memo: Memo) -> tuple[Weighed, WeightsState | None]:
    """The fresh weights laid out by name, and what became of the rest."""
    told = observation.weights
    if told is None:
        return NOT_WEIGHED, None
    now_ms, most_ms = observation.taken_ms, limits.weights.max_age_ms
    topics = tuple([one for one in told.topics if _is_fresh(one, now_ms, most_ms)])
    groups = tuple([one for one in told.groups if _is_fresh(one, now_ms, most_ms)])
    laid_out = NOT_WEIGHED
    if topics:
        sizes = {topic.name: len(topic.partitions) for topic in observation.topics}
        laid_out = memo.of(("weighed",), (topics, groups, sizes), lambda: _lay_out(topics, groups, sizes))
    fresh: tuple[TopicRates | GroupRates, ...] = (*topics, *groups) if topics else ()
    state = WeightsState(
        to_ms=max([one.to_ms for one in fresh], default=None),
        from_ms=min([one.from_ms for one in fresh], default=None),
        why_not=None if fresh else _why_not(told, now_ms, most_ms),
        silent=not fresh and not told.topics and not told.groups and not told.unreadable,
        stale=len(told.topics) + len(told.groups) - len(topics) - len(groups),
        unreadable=told.unreadable,
        example=told.example,
    )
    return laid_out, state


def rates_with(weights: Weighed, own: Mapping[TopicPartition, float]) -> Mapping[TopicPartition, float]:
    """The rate of every partition of which there is one: by weights, else by what the agent itself saw."""
    if not own:
        return weights.bytes_per_s
    return {**own, **weights.bytes_per_s} if weights.bytes_per_s else own


def _is_fresh(one: TopicRates | GroupRates, now_ms: int, most_ms: int) -> bool:
    return abs(now_ms - one.to_ms) <= most_ms


def _why_not(told: Told, now_ms: int, most_ms: int) -> str:
    """The newest of the weights decides."""
    ends = [*[one.to_ms for one in told.topics], *[one.to_ms for one in told.groups]]
    if told.missing is None and ends:
        return _too_old(min((now_ms - end for end in ends), key=abs), most_ms)
    if told.missing is None and told.unreadable:
        return f"0 of {counted(told.unreadable, 'record')} in {told.topic} can be read; example: {told.example}"
    return told.missing or f"{told.topic} holds {'weights of other clusters only' if told.others else 'no weights'}"


def _too_old(age_ms: int, most_ms: int) -> str:
    if age_ms < -most_ms:
        return f"they come from {lasted(-age_ms)} after this look, so one of the two clocks is wrong"
    if age_ms <= most_ms:
        return "they contain groups only, and no topic"
    return f"they are {lasted(age_ms)} old, {lasted(age_ms - most_ms)} more than weights.max_age allows"


def _lay_out(topics: Sequence[TopicRates], groups: Sequence[GroupRates], sizes: Mapping[str, int]) -> Weighed:
    columns: dict[str, Column] = {}
    for topic in topics:
        size = sizes.get(topic.topic, 0)
        if size:
            columns[topic.topic] = _column(columns.get(topic.topic) or (None,) * size, topic)
    restores = {group.group: group.restores for group in groups if group.restores}
    return Weighed(
        topics=columns,
        groups=_reads(groups, columns),
        restores=dict(sorted(restores.items())),
        bytes_per_s={
            TopicPartition(topic, number): rate
            for topic, column in columns.items()
            for number, rate in enumerate(column)
            if rate is not None
        },
    )


def _column(before: Column, topic: TopicRates) -> Column:
    """The column with these rates in it; partitions that the topic does not have are left aside."""
    column = list(before)
    for number, rate in zip(topic.partitions, topic.bytes_per_s, strict=True):
        if number < len(column):
            column[number] = rate
    return tuple(column)


def _reads(groups: Iterable[GroupRates], columns: Mapping[str, Column]) -> dict[str, dict[TopicPartition, float]]:
    """What groups read, where that is not what the topic takes in."""
    reads: dict[str, dict[TopicPartition, float]] = {}
    for group in groups:
        for topic, partitions, rates in group.reads:
            inbound = columns.get(topic)
            if inbound is None:
                continue
            for number, rate in zip(partitions, rates, strict=True):
                if number < len(inbound) and rate != inbound[number]:
                    reads.setdefault(group.group, {})[TopicPartition(topic, number)] = rate
    return reads
