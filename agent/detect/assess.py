"""Assessments of groups: reads by rack now and at the optimum, by Kafka's rule and as really read.

A bound in microseconds clears most groups; the exact solver runs only for a group with a gap. An unknown rack is
neither local nor crossing; a gap counts only what leaves "crossing" and joins "local". Where nothing can be gained the
optimum is the present assignment. A group without an assessment has a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import compress, repeat
from operator import itemgetter

from agent.detect.assess_consumers import assess_consumers
from agent.detect.assess_tasks import assess_tasks
from agent.detect.traffic import Rates, rates_of, topic_rates, with_bytes, with_weights
from agent.values.assessment import Assessment, GroupLocality, NotAssessed, RackBits, TopicMasks, rack_bits, topic_masks
from agent.values.limits import GroupLimits, Limits
from agent.values.memo import Memo, each
from agent.values.snapshot import ConsumerGroup, Group, OtherGroup, Rack, Snapshot, topics_of
from agent.values.weights import RateColumn
from assignors.problem import BadProblem, TopicPartition

_ID = itemgetter(0)
_Row = tuple[Group, GroupLimits, tuple[str, ...], tuple[TopicMasks | None, ...], RackBits]
"""A group, its settings, its topics, their masks, the racks as bits: all that its assessment depends on."""
_BytesRow = tuple[
    Assessment, _Row, Rates | None, tuple[RateColumn | None, ...] | None, Mapping[TopicPartition, float] | None
]
"""An assessment, its group and context, and rates by topic and by the group's own reads."""


def assess_groups(snapshot: Snapshot, limits: Limits, memo: Memo | None) -> Mapping[str, Assessment]:
    """Every group of the snapshot against its optimum, in the snapshot's order."""
    memo = memo if memo is not None else Memo()
    bits = bits_of(snapshot, memo)
    groups, names = snapshot.groups.values(), topics_by_group(snapshot, memo).values()
    bits_by_group = _bits_by_group(snapshot, bits, memo)
    known = {}
    for one in (kinds := dict.fromkeys(bits_by_group)):
        read = names if len(kinds) == 1 else [of for of, seen in zip(names, bits_by_group, strict=True) if seen is one]
        known[one] = _masks(tuple(read), snapshot, one, memo)
    masks = each(
        memo,
        "assess masks by group",
        list(zip(snapshot.groups, names, bits_by_group, strict=True)),
        _ID,
        lambda row: tuple(map(known[row[2]].get, row[1])),
        context=(known,),
    )
    settings = map(limits.groups.get, snapshot.groups, repeat(limits.default_group))
    rows: list[_Row] = list(zip(groups, settings, names, masks, bits_by_group, strict=True))
    judged = each(memo, "assess", rows, _row_id, partial(_assess, limits), context=(limits,))
    if snapshot.bytes_per_s:
        judged = _with_bytes(judged, rows, snapshot, memo)
    return dict(zip(snapshot.groups, judged, strict=True))


def bits_of(snapshot: Snapshot, memo: Memo) -> RackBits:
    """The snapshot's racks as bits; one object as long as its brokers and selector stay."""
    return _bits(snapshot.selector_is_rack_aware, snapshot, memo)


def bits_for(groups: Iterable[Group], snapshot: Snapshot, memo: Memo) -> RackBits:
    """The context of a group's readers: the nearest replica serves only readers that send their rack."""
    bits = bits_of(snapshot, memo)
    if not snapshot.rack_locators:
        return bits
    return _bits(bits.serves([rack for group in groups for rack in _reader_racks(group)]), snapshot, memo)


def topics_by_group(snapshot: Snapshot, memo: Memo) -> Mapping[str, tuple[str, ...]]:
    """Group -> the topics that decide its assessment; worked out once per cycle."""
    groups = snapshot.groups
    return memo.of(
        ("topics by group",),
        (groups,),
        lambda: dict(zip(groups, each(memo, "group topics", groups.values(), _ID, topics_of), strict=True)),
    )


def locality_of(names: Iterable[str], bits: RackBits, snapshot: Snapshot, memo: Memo) -> GroupLocality:
    """Where those topics have their replicas, as far as the snapshot has them."""
    masks: dict[str, TopicMasks] = {}
    for name in names:
        topic = snapshot.topics.get(name)
        if topic is not None:
            key = ("assess masks", name, bits.selector_is_rack_aware)
            masks[name] = memo.of(key, (topic, bits), partial(topic_masks, topic, bits))
    return GroupLocality(bits, masks)


def _bits(selector: bool | None, snapshot: Snapshot, memo: Memo) -> RackBits:  # noqa: FBT001 (three-valued)
    return memo.of(
        ("assess bits", selector),
        (snapshot.brokers, selector),
        lambda: rack_bits(snapshot.brokers, selector_is_rack_aware=selector),
    )


def _bits_by_group(snapshot: Snapshot, bits: RackBits, memo: Memo) -> list[RackBits]:
    if not snapshot.rack_locators:
        return [bits] * len(snapshot.groups)
    groups = snapshot.groups.values()
    served = each(memo, "assess served", groups, _ID, lambda group: bits.serves(_reader_racks(group)), context=(bits,))
    by_selector = {selector: _bits(selector, snapshot, memo) for selector in dict.fromkeys(served)}
    return [by_selector[selector] for selector in served]


def _reader_racks(group: Group) -> list[Rack]:
    if isinstance(group, OtherGroup):
        return []
    return [reader.rack for reader in group.readers]


def _masks(read: tuple[tuple[str, ...], ...], snapshot: Snapshot, bits: RackBits, memo: Memo) -> dict[str, TopicMasks]:
    names: frozenset[str] = memo.of(
        ("topics read", bits.selector_is_rack_aware), read, lambda: frozenset().union(*read)
    )
    topics = list(compress(snapshot.topics.values(), map(names.__contains__, snapshot.topics)))
    name = f"assess masks {bits.selector_is_rack_aware}"
    masks = each(memo, name, topics, _ID, lambda topic: topic_masks(topic, bits), context=(bits,))
    return dict(zip(map(_ID, topics), masks, strict=True))


def _assess(limits: Limits, row: _Row) -> Assessment:
    group, settings, topics, masks, bits = row
    if isinstance(group, OtherGroup):
        return Assessment(group_id=group.id, why_not=NotAssessed.OTHER_KIND)
    if limits.excludes_group(group.id):
        why = NotAssessed.OWN if limits.owns(group.id) else NotAssessed.EXCLUDED
        return Assessment(group_id=group.id, why_not=why)
    if group.hidden or not group.members:
        why = NotAssessed.HIDDEN if group.hidden else NotAssessed.EMPTY
        return Assessment(group_id=group.id, why_not=why)
    locality = _locality(bits, topics, masks)
    try:
        if isinstance(group, ConsumerGroup):
            return assess_consumers(group, locality)
        return assess_tasks(group, locality, settings)
    except BadProblem:  # one group that contradicts itself must not hide all the others
        return Assessment(group_id=group.id, why_not=NotAssessed.CONTRADICTORY)


def _with_bytes(judged: Iterable[Assessment], rows: Iterable[_Row], snapshot: Snapshot, memo: Memo) -> list[Assessment]:
    """The same assessments with bytes, where every rate of a group's topics is known: by weights, else by own rates."""
    columns, reads = snapshot.weighed.topics.get, snapshot.weighed.groups.get
    known: list[_BytesRow] = []
    for assessment, row in zip(judged, rows, strict=True):
        of = tuple(map(columns, row[2]))
        if None not in of and not any(None in column for column in of if column is not None):
            known.append((assessment, row, None, of, reads(assessment.group_id)))
        else:
            topics = [snapshot.topics[name] for name in row[2] if name in snapshot.topics]
            known.append((assessment, row, topic_rates(topics, snapshot), None, None))
    return each(memo, "assess bytes", known, lambda row: row[0].group_id, _weigh)


def _weigh(row: _BytesRow) -> Assessment:
    assessment, (group, settings, topics, masks, bits), rates, columns, reads = row
    if assessment.why_not is not None or isinstance(group, OtherGroup):
        return assessment
    locality = _locality(bits, topics, masks)
    if columns is not None:
        of = {topic: column for topic, column in zip(topics, columns, strict=True) if column is not None}
        return with_weights(assessment, group, rates_of(of, reads), locality, settings)
    return assessment if rates is None else with_bytes(assessment, group, dict(rates), locality, settings)


def _locality(bits: RackBits, topics: tuple[str, ...], masks: tuple[TopicMasks | None, ...]) -> GroupLocality:
    return GroupLocality(bits, {topic: of for topic, of in zip(topics, masks, strict=True) if of is not None})


def _row_id(row: _Row) -> str:
    return row[0].id
