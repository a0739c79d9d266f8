"""What rackwise's plug-in for brokers (docs/plugin.md) would bring a KIP-848 group, as a sentence and as a column.

The plug-in counts any replica in the rack of a member as local, so it pays only where members fetch from followers.
Reads in sentences count as they really go; unknown ones are named and never gained.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from agent.detect.assess_consumers import COPARTITIONING, LocalityCounts, count_reads, gain
from agent.detect.detect_context import named
from agent.detect.traffic import current_reads
from agent.plan.gain_thresholds import ComparisonColumn, assignment_column, given_reads, group_rates, moved_by
from agent.predict.applications import RackSets
from agent.predict.broker_groups import plugin_problem, registered_racks
from agent.values.assessment import UNKNOWN, Assessment, GroupLocality
from agent.values.limits import Limits
from agent.values.memo import Memo
from agent.values.number_format import counted, listed, usd
from agent.values.plan import NotPredicted, PredictedAssignment
from agent.values.snapshot import ConsumerGroup, Group, GroupKind, Member, Snapshot, runs_plugin
from assignors.optimal import optimal_consumer
from assignors.problem import BadProblem, ConsumerResult, TopicPartition


class PluginGain(NamedTuple):
    """What the plug-in would bring, or why it brings nothing, or why that is unknown."""

    text: str
    is_known: bool = True
    runs: bool = False
    """Whether the group runs the plug-in already."""

    @property
    def sentence(self) -> str:
        """For operators; one that is unknown begins with that word, behind that the group runs the plug-in."""
        sentence = self.text if self.is_known else f"unknown: {self.text}"
        return f"runs the plug-in; {sentence}" if self.runs else sentence


NO_FETCHING = PluginGain("cannot help: no follower fetching (replica.selector.class)")
UNKNOWN_FETCHING = PluginGain(
    "it is not known whether reads go to the nearest replica (replica.selector.class)", is_known=False
)
NO_CLIENT_RACK = PluginGain("cannot help: no member sends client.rack")
OTHER_RACKS = PluginGain("cannot help: no client.rack is the broker.rack of a broker")
MIXED_RACKS = PluginGain("locators know racks of members or brokers that Kafka does not", is_known=False)
NOTHING_TO_GAIN = PluginGain("nothing to gain: every rack has a replica")
LOCAL_ANYHOW = PluginGain("nothing to gain: every rack of its members has a replica of all that it reads")


class PluginQuestion(NamedTuple):
    """All that the gain of one KIP-848 group rests on."""

    group: ConsumerGroup
    assessment: Assessment | None
    snapshot: Snapshot
    limits: Limits
    memo: Memo
    own: PredictedAssignment | None = None
    """What its own assignor gives it, to compare with; None: what it has now."""


class PluginAnswer(NamedTuple):
    """The plug-in's assignment and its cost."""

    given: PredictedAssignment
    cost: ComparisonColumn


def plugin_question(  # noqa: PLR0917 (a group, what is known of it, and the world)
    group: Group,
    assessment: Assessment | None,
    snapshot: Snapshot,
    limits: Limits,
    memo: Memo,
    own: PredictedAssignment | None = None,
) -> PluginQuestion | None:
    """None for a group that the plug-in does not concern: of another kind, or left out by the settings."""
    if group.kind is not GroupKind.CONSUMER or not isinstance(group, ConsumerGroup) or limits.excludes_group(group.id):
        return None
    return PluginQuestion(group, assessment, snapshot, limits, memo, own)


def plugin_sentence(of: PluginQuestion) -> str:
    """What `gain_with_plugin` answers, for a row of a table."""
    return gain_with_plugin(of).sentence


def gain_with_plugin(of: PluginQuestion) -> PluginGain:
    """What the plug-in would bring this group."""
    return (_no_help(of) or _gained(of))._replace(runs=runs_plugin(of.group))


def merged_gains(gains: Iterable[tuple[str, str]]) -> list[str]:
    """``plug-in for brokers, groups a and b: …`` for (group, its sentence); groups with the same sentence together."""
    alike: dict[str, list[str]] = {}
    for group, sentence in gains:
        alike.setdefault(sentence, []).append(group)
    return [
        f"plug-in for brokers, group{'' if len(names) == 1 else 's'} {listed(names)}: {sentence}"
        for sentence, names in alike.items()
    ]


def plugin_answer(of: PluginQuestion) -> PluginAnswer | None:
    """None where it cannot help, and where its answer is unknown: the sentence has the reason."""
    locality = _locality(of)
    given = None if _no_help(of) not in (None, NOTHING_TO_GAIN, LOCAL_ANYHOW) else _given(of)
    if locality is None or not isinstance(given, PredictedAssignment):
        return None
    return PluginAnswer(given, _cost(of, given, locality))


def _locality(of: PluginQuestion) -> GroupLocality | None:
    return None if of.assessment is None or of.assessment.why_not is not None else of.assessment.locality


def _no_help(of: PluginQuestion) -> PluginGain | None:
    """Why there is nothing to count; None where there is something."""
    selector, members = of.snapshot.selector_is_rack_aware, of.group.members
    if selector is not True:
        return UNKNOWN_FETCHING if selector is None else NO_FETCHING
    if members and not of.group.hidden and all(member.rack.silent for member in members):
        return NO_CLIENT_RACK
    locality = _locality(of)
    if locality is None:
        why_not = None if of.assessment is None else of.assessment.why_not
        return PluginGain("it was not assessed" if why_not is None else why_not.value, is_known=False)
    served = locality.bits.selector_is_rack_aware
    if served is not True:
        return MIXED_RACKS if served is None else OTHER_RACKS
    if locality.blurred:
        return PluginGain(_unknown_replicas(of, locality), is_known=False)
    return _local_anyhow(members, locality)


def _local_anyhow(members: Iterable[Member], locality: GroupLocality) -> PluginGain | None:
    """Whether no assignment can cross racks, whatever member or whichever of these reads what."""
    masks = [mask for one in locality.masks.values() for mask, _ in one.kafka_histogram]

    def have(bits: Iterable[int]) -> bool:
        return all(bit and mask & bit for bit in bits for mask in masks)

    if have(bit for bit in locality.bits.broker_bits.values() if bit != UNKNOWN):
        return NOTHING_TO_GAIN
    return LOCAL_ANYHOW if have({locality.bits.reader(member.rack) for member in members}) else None


def _unknown_replicas(of: PluginQuestion, locality: GroupLocality) -> str:
    brokers = {
        broker
        for name in locality.masks
        for state in of.snapshot.topics[name].partitions
        for broker in state.replicas
        if locality.bits.broker_bits.get(broker, UNKNOWN) == UNKNOWN
    }
    if not brokers:
        return "not all partitions of its topics are described"
    rack, is_not = ("rack", "is not") if len(brokers) == 1 else ("racks", "are not")
    return f"the {rack} of {named('broker', sorted(brokers))} {is_not} known"


def _gained(of: PluginQuestion) -> PluginGain:
    locality, given = _locality(of), _given(of)
    if locality is None or not isinstance(given, PredictedAssignment):
        why = given.value if isinstance(given, NotPredicted) else "it was not assessed"
        return PluginGain(why, is_known=False)
    reads = current_reads(of.group, locality) if of.own is None else given_reads(of.group, locality, of.own)
    before = count_reads(reads, locality.masks)[1]
    after = count_reads(given_reads(of.group, locality, given), locality.masks)[1]
    if not gain(before, after):
        return _nothing(of, before, after)
    when = "its next assignment has" if runs_plugin(of.group) else "with the plug-in"
    share = f"{when} {_local(after)} local instead of {_local(before)}"
    return PluginGain(f"{share}{_saved(of, given, locality)}{_not_counted(of, after)}")


def _local(reads: LocalityCounts) -> str:
    return f"{reads.local:,} of {reads.total:,}"


def _are_local(reads: LocalityCounts) -> str:
    return f"{_local(reads)} {'is' if reads.local == 1 else 'are'} local"


def _nothing(of: PluginQuestion, before: LocalityCounts, after: LocalityCounts) -> PluginGain:
    """Unknown reads may hide a gain."""
    if unknown := max(before.unknown, after.unknown):
        text = f"no gain is known, and {counted(unknown, 'read')} of {before.total:,} may be local or not"
        return PluginGain(text + _why_unknown(of), is_known=False)
    return PluginGain(_known_nothing(of, before))


def _known_nothing(of: PluginQuestion, before: LocalityCounts) -> str:
    if runs_plugin(of.group):
        return f"{_local(before)} local"
    if of.own is not None:
        return f"nothing to gain: its own assignor makes as many local, {_local(before)}"
    if before.crossing:
        return f"nothing to gain now: {_are_local(before)}, and with the plug-in no more would be"
    own = of.group.assignor or "the brokers' assignor"
    return f"nothing to gain now: {_are_local(before)}; {own} does not look at racks when it assigns next"


def _not_counted(of: PluginQuestion, after: LocalityCounts) -> str:
    return f"; of {after.unknown:,} it is unknown{_why_unknown(of)}" if after.unknown else ""


def _why_unknown(of: PluginQuestion) -> str:
    silent = sum(member.rack.silent for member in of.group.members)
    return f" ({counted(silent, 'member sends', 'members send')} no client.rack)" if silent else ""


def _saved(of: PluginQuestion, given: PredictedAssignment, locality: GroupLocality) -> str:
    """Dollars a day, by the code that prices every column; nothing where a rate or a price is unknown.

    Of several assignments with the same counts the plug-in may choose another, with other bytes.
    """
    before = _cost(of, of.own, locality).usd_per_day
    after = _cost(of, given, locality).usd_per_day
    if before is None or after is None:
        return ""
    return (
        f", saves about {usd(before - after)}/day"
        if after <= before
        else f", costs about {usd(after - before)}/day more"
    )


def _cost(of: PluginQuestion, given: PredictedAssignment | None, locality: GroupLocality) -> ComparisonColumn:
    """The cost of an assignment; None: of the present one."""
    reads = current_reads(of.group, locality) if given is None else given_reads(of.group, locality, given)
    rates = group_rates(of.assessment, [of.snapshot.topics[name] for name in locality.masks], of.snapshot)
    moved = 0 if given is None else moved_by(of.group, given)
    return assignment_column(
        reads, moved, locality=locality, rates=rates, snapshot=of.snapshot, limits=of.limits
    )[0]  # fmt: skip


def _given(of: PluginQuestion) -> PredictedAssignment | NotPredicted:
    """The plug-in's assignment, worked out once; the optimum of the assessment where that is the same."""
    known = None if of.assessment is None else _as_assessed(of, of.assessment)
    if known is not None:
        return known
    sets = of.memo.of(
        ("registered sets", "plug-in"),
        (of.snapshot.brokers,),
        lambda: RackSets(registered_racks(of.snapshot.brokers)),
    )
    return of.memo.of(("plug-in", of.group.id), (of.group, sets, of.snapshot.topics), lambda: _solved(of, sets))


def _solved(of: PluginQuestion, sets: RackSets) -> PredictedAssignment | NotPredicted:
    problem = plugin_problem(of.group, of.snapshot.topics, sets)
    if isinstance(problem, NotPredicted):
        return problem
    try:
        return PredictedAssignment(optimal_consumer(problem).assignment)
    except BadProblem:
        return NotPredicted.REFUSED


def _as_assessed(of: PluginQuestion, assessment: Assessment) -> PredictedAssignment | None:
    """The assessment's optimum or, where none is better, the present; None where the plug-in may see another problem.

    It sees targets, Kafka's racks and no weights, and deals without regard to copartitioning.
    """
    group = of.group
    several = assessment.locality is None or len(assessment.locality.masks) > 1
    if assessment.weighing is not None or of.snapshot.rack_locators or (group.assignor in COPARTITIONING and several):
        return None
    if any(member.target not in (None, member.assigned) for member in group.members):
        return None
    if isinstance(assessment.result, ConsumerResult):
        return PredictedAssignment(assessment.result.assignment)
    return _present(group, of.snapshot) if assessment.at_optimum else None


def _present(group: ConsumerGroup, snapshot: Snapshot) -> PredictedAssignment | None:
    """What members have, where it is complete and even; None otherwise, and where members subscribe differently."""
    if len({(member.topics, member.topic_regex) for member in group.members}) > 1 or group.members[0].topic_regex:
        return None
    held: dict[str, tuple[TopicPartition, ...]] = {member.id: member.assigned or () for member in group.members}
    loads = [*map(len, held.values())]
    every = {state.id for name in group.members[0].topics if name in snapshot.topics
             for state in snapshot.topics[name].partitions}  # fmt: skip
    even = max(loads) - min(loads) <= 1 and sum(loads) == len(every)
    return PredictedAssignment(held) if even and every == frozenset().union(*held.values()) else None
