"""How far is each group from the best possible assignment? By Kafka's measure and by where bytes are really read.

Every group gets an answer: an assessment, or the reason why there is none. Most groups are as good as they can be, and
that is shown by a bound in microseconds; only a group with a gap is given to the exact solver. A group whose value,
topics and brokers' racks did not change since the last cycle costs a look into the memo.

Invariants
- An unknown rack is neither local nor crossing; a gap counts only what falls out of "crossing" *and* adds to "local".
- Where nothing can be gained the optimum shown is the present assignment itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from agent.detect.assess_consumers import assess_consumers
from agent.detect.assess_tasks import assess_tasks
from agent.detect.assessment import Assessment, NotAssessed
from agent.detect.locality import Ground, RackBits, TopicMasks, rack_bits, topic_masks
from agent.detect.traffic import topic_rates, with_bytes
from agent.limits import Limits
from agent.memo import Memo
from agent.model.snapshot import ConsumerGroup, Group, OtherGroup, Snapshot, StreamsGroup, TopicState


def assess_groups(snapshot: Snapshot, limits: Limits, memo: Memo | None) -> Mapping[str, Assessment]:
    """Every group of the snapshot against its optimum, in the snapshot's order."""
    memo = memo or Memo()
    bits = memo.of(
        ("bits",),
        (snapshot.brokers, snapshot.selector_is_rack_aware),
        lambda: rack_bits(snapshot.brokers, selector_is_rack_aware=snapshot.selector_is_rack_aware),
    )
    return {name: _assess(group, snapshot, bits, limits, memo) for name, group in snapshot.groups.items()}


def topics_of(group: Group) -> tuple[str, ...]:
    """The topics that decide a group's assessment: subscribed, assigned, or read by its tasks; sorted."""
    names: set[str] = set()
    match group:
        case ConsumerGroup():
            for member in group.members:
                names.update(member.topics)
                for topic, _ in member.assigned or ():
                    names.add(topic)
        case StreamsGroup() if group.topology is not None:
            names.update(tp.topic for task in group.topology.tasks for tp in task.sources)
        case _:
            pass
    return tuple(sorted(names))


def ground_of(names: Iterable[str], topics: Mapping[str, TopicState], bits: RackBits, memo: Memo) -> Ground:
    """Where those topics have their replicas, as far as the snapshot has them."""
    masks: dict[str, TopicMasks] = {}
    for name in names:
        topic = topics.get(name)
        if topic is not None:
            masks[name] = memo.of(("masks", name), (topic, bits), partial(topic_masks, topic, bits))
    return Ground(bits, masks)


def _assess(group: Group, snapshot: Snapshot, bits: RackBits, limits: Limits, memo: Memo) -> Assessment:
    if isinstance(group, OtherGroup):
        return Assessment(group_id=group.id, why_not=NotAssessed.OTHER_KIND)
    if limits.excludes_group(group.id):
        return Assessment(group_id=group.id, why_not=NotAssessed.EXCLUDED)
    if group.hidden or not group.members:
        why = NotAssessed.HIDDEN if group.hidden else NotAssessed.EMPTY
        return Assessment(group_id=group.id, why_not=why)

    names = memo.of(("topics", group.id), (group,), lambda: topics_of(group))
    ground = ground_of(names, snapshot.topics, bits, memo)
    settings = limits.group(group.id)
    judged = memo.of(
        ("group", group.id),
        (group, bits, settings, *ground.masks.values()),
        lambda: (
            assess_consumers(group, ground)
            if isinstance(group, ConsumerGroup)
            else assess_tasks(group, ground, settings)
        ),
    )
    if not snapshot.bytes_per_s or judged.why_not is not None:
        return judged
    rates = topic_rates([snapshot.topics[name] for name in ground.masks], snapshot.bytes_per_s)
    if rates is None:
        return judged
    return memo.of(
        ("bytes", group.id),
        (judged, rates, group, bits, settings, *ground.masks.values()),
        lambda: with_bytes(judged, group, dict(rates), ground, settings),
    )
