"""One look's answers become one snapshot: racks, topics, groups, lags and rates, in this order.

Invariants: equal observations (and equal memories) give equal snapshots, with a memo or without; what did not change is
the same object as before. Nothing is believed to be gone only because it is no longer shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from agent.decode.values import DecodedGroups
from agent.model.groups import Groups, groups_of
from agent.model.lags import Clock, Offsets, copies_of
from agent.model.located import located, locator_states
from agent.model.racks import brokers_of, selector_is_rack_aware
from agent.model.rates import byte_rates
from agent.model.streams import NO_OFFSETS
from agent.model.topics import sizes_of, topics_of
from agent.model.weights import rates_with, weighed
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.observation import Gap, GapCause, Observation, Part, RawApplicationLag
from agent.values.snapshot import Reassignment, Snapshot, StreamsGroup, TaskCopy
from agent.values.weights import RestoreWeight
from assignors.problem import TopicPartition

_Value = TypeVar("_Value")


def take_snapshot(
    observation: Observation, decoded: DecodedGroups, memory: Memory, limits: Limits, memo: Memo | None = None
) -> Snapshot:
    """The cluster as one value. With a memo, only what changed since the last call is built again."""
    memo = memo if memo is not None else Memo()
    topics = topics_of(observation, limits, memo)
    by_locators = located(observation, limits.rack_locators, memo)
    groups = groups_of(
        observation, decoded, topics.by_name, memory=memory, limits=limits, memo=memo, located=by_locators
    )
    weights, weights_state = weighed(observation, limits, memo)
    brokers = _same("brokers", brokers_of(observation, topics.brokers, memory, by_locators), memo)
    return Snapshot(
        cluster_id=observation.cluster_id,
        controller=observation.controller,
        brokers=brokers,
        topics=topics.by_name,
        groups=groups.by_id,
        copies=_copies(observation, groups, memory, limits, weights.restores),
        reassignments=_reassignments(observation, memory),
        broker_configs=observation.broker_configs,
        group_configs=observation.group_configs,
        selector_is_rack_aware=selector_is_rack_aware(brokers, observation.broker_configs),
        end_offsets=observation.end_offsets,
        committed_offsets=observation.committed_offsets,
        size_bytes=sizes_of(observation, memo),
        sizes_fresh=Part.LOG_DIRS not in observation.ages_ms,
        bytes_per_s=rates_with(weights, byte_rates(observation.end_offsets, memory, observation.monotonic_ms)),
        weighed=weights,
        weights=weights_state,
        rack_locators=locator_states(observation, limits.rack_locators),
        rights=observation.rights,
        vanished_topics=observation.vanished_topics,
        vanished_groups=observation.vanished_groups,
        gaps=_same("gaps", _gaps(observation), memo),
        taken_ms=observation.taken_ms,
        monotonic_ms=observation.monotonic_ms,
    )


def _same(name: str, value: _Value, memo: Memo) -> _Value:
    """The object of last time when this one is equal to it, so that later stages see at once that nothing changed."""
    return memo.of((name,), (value,), lambda: value)


def _copies(
    observation: Observation,
    groups: Groups,
    memory: Memory,
    limits: Limits,
    restores: Mapping[str, tuple[RestoreWeight, ...]],
) -> Mapping[str, tuple[TaskCopy, ...]]:
    told: dict[str, list[RawApplicationLag]] = {}
    for row in observation.application_lags:
        told.setdefault(row.group_id, []).append(row)
    clock = Clock(observation.taken_ms, observation.monotonic_ms)
    none: Sequence[RawApplicationLag] = ()
    copies = {}
    for name in sorted(groups.offsets):
        group = groups.by_id[name]
        if isinstance(group, StreamsGroup):
            facts = groups.offsets.get(name, NO_OFFSETS)
            offsets = Offsets(observation.end_offsets, observation.committed_offsets.get(name))
            copies[name] = copies_of(
                group,
                facts,
                offsets,
                told.get(name, none),
                memory=memory,
                settings=limits.group(name),
                clock=clock,
                learned=restores.get(name, ()),
            )
    return copies


def _reassignments(observation: Observation, memory: Memory) -> Mapping[TopicPartition, Reassignment]:
    moves = {}
    for raw in sorted(observation.reassignments):
        running = memory.reassignments.get(raw.id)
        own = raw.id in memory.own_reassignments or (running is not None and running.own)
        moves[raw.id] = Reassignment(raw.id, raw.replicas, raw.adding, raw.removing, own)
    return moves


def _gaps(observation: Observation) -> tuple[Gap, ...]:
    """The gaps of the look; an answer without brokers is one too, because a cluster always has some."""
    gaps = list(observation.gaps)
    if not observation.brokers and not any(gap.part is Part.BROKERS for gap in gaps):
        sentence = "the metadata lists no broker; brokers count as unknown, not as gone"
        gaps.append(Gap(Part.BROKERS, GapCause.DOUBTED, "", sentence))
    return tuple(sorted(set(gaps), key=lambda gap: (gap.part, gap.cause, gap.subject, gap.detail)))
