"""Explains a group: the rules of its rebalance, and the racks that each of its readers reads from."""

from __future__ import annotations

from agent.detect.assess_consumers import racks_by_partition
from agent.plan.gain_thresholds import (
    AWAY,
    ComparisonColumn,
    GroupComparison,
    assignment_gain,
    brings_worth,
    group_comparison,
    group_locality,
    more_local_worth,
    optimum_worth,
    total_reads,
)
from agent.plan.plan_context import PlanContext
from agent.plan.plugin_gain import gain_with_plugin, plugin_answer, plugin_question
from agent.plan.triggers import own_answer
from agent.values.assessment import UNKNOWN, Assessment, Locality, LocalityMeasure
from agent.values.kafka import COOPERATIVE_ASSIGNORS, NO_STRATEGY, RACK_AWARE_ASSIGNORS, RACK_BLIND_ASSIGNORS, STABLE
from agent.values.number_format import counted, in_full, records, sized
from agent.values.plan import ExplainedRule, Plan, Prediction, RuleAnswer, merged_notes, yes_or_no
from agent.values.snapshot import (
    CLASSIC_KINDS,
    ConsumerGroup,
    GroupKind,
    Rack,
    RackState,
    ReaderGroup,
    StreamsGroup,
    TaskRole,
    runs_plugin,
)
from assignors.problem import ConsumerResult, TaskResult, TopicPartition

LOCAL_BY = {
    LocalityMeasure.KAFKA: "as local as possible by Kafka's rule (a replica in the rack)",
    LocalityMeasure.READ_LOCAL: "as local as possible as read (leader or follower fetch in the rack)",
}


def about_group(name: str, context: PlanContext, plan: Plan) -> list[ExplainedRule]:
    """Locality, then the rules for a rebalance, then reads, then warm-ups."""
    group = context.snapshot.groups.get(name)
    assessment = context.detection.assessments.get(name)
    if group is None:
        return []
    about = f"group/{name}"
    if not isinstance(group, ReaderGroup):
        why = "the group assigns no partitions to readers"
        if group.kind is GroupKind.SHARE:
            why = "it is a share group (KIP-932): its members read the same partitions, so none is given to one of them"
        return [ExplainedRule(about, "assessed", RuleAnswer.NO, why)]
    rows = _locality(about, assessment, "task" if isinstance(group, StreamsGroup) else "partition")
    rows += _columns(about, group, assessment, context)
    rows += _plugin(about, group, assessment, context)
    rows += _rebalance_rules(about, group, assessment, context)
    why = ", ".join(trigger.reason.value for trigger in plan.triggers if trigger.group_id == name)
    what = f"one rebalance is proposed: {why}" if why else "no rebalance is proposed"
    rows.append(ExplainedRule(about, "rebalance planned", yes_or_no(bool(why)), what))
    if assessment is not None and assessment.why_not is None:
        rows += _reads(group, assessment, context)
    return rows + _warmups(name, context)


def _locality(about: str, assessment: Assessment | None, what: str) -> list[ExplainedRule]:
    if assessment is None or assessment.why_not is not None:
        why = "it was not assessed" if assessment is None or assessment.why_not is None else assessment.why_not.value
        return [ExplainedRule(about, "assessed", RuleAnswer.NO, why)]
    rows = [
        ExplainedRule(
            about,
            LOCAL_BY[now.measure] + (", in bytes" if now.unit == "bytes_per_s" else ""),
            _as_far_as_known(now.local >= best.local, now.unknown),
            _shares(now, best),
        )
        for now, best in zip(assessment.current, assessment.optimal, strict=True)
    ]
    proven = _proven(assessment, proven=assessment.lower_bound == assessment.optimal_crossing)
    sentence = (
        f"{counted(assessment.crossing, 'read crosses', 'reads cross')} racks now, {assessment.optimal_crossing} at "
        f"the optimum ({proven}), which moves {counted(assessment.moved, what)}"
    )
    weighing = assessment.weighing
    if weighing is not None:
        proven = _proven(assessment, proven=weighing.optimal_crossing <= weighing.lower_bound)
        sentence = (
            f"{sized(weighing.crossing)}/s cross racks now, {sized(weighing.optimal_crossing)}/s at the optimum "
            f"({proven}, by weights of the pipeline), which moves {counted(assessment.moved, what)}"
        )
    answer = RuleAnswer.YES if assessment.at_optimum else RuleAnswer.NO if assessment.improvable else RuleAnswer.UNKNOWN
    if answer is RuleAnswer.UNKNOWN:
        sentence += f"; unknown: the locality of {counted(round(assessment.unknown), 'read')}, or the rack of a replica"
    if assessment.away:
        sentence += f"; {counted(assessment.away, *AWAY)} all across racks"
    return [*rows, ExplainedRule(about, "at its optimum", answer, sentence)]


def _proven(assessment: Assessment, *, proven: bool) -> str:
    """Whether the bound proves the optimum; it proves nothing about reads of unknown rack."""
    if not proven:
        return "not proven"
    return "proven" if assessment.at_optimum or assessment.improvable else "proven for the known racks alone"


def _shares(now: Locality, best: Locality) -> str:
    """``3 of 6 reads are local now, 6 at best``, or the same in bytes per second."""
    if now.unit == "bytes_per_s":
        unknown = f", of {sized(now.unknown)}/s it is unknown" if now.unknown else ""
        return f"{sized(now.local)}/s of {sized(now.total)}/s are local now, {sized(best.local)}/s at best{unknown}"
    unknown = f", of {now.unknown:,.12g} it is unknown" if now.unknown else ""
    reads, verb = counted(round(now.total), "read"), "is" if now.local == 1 else "are"
    return f"{now.local:,.12g} of {reads} {verb} local now, {best.local:,.12g} at best{unknown}"


def _as_far_as_known(best: bool, unknown: float) -> RuleAnswer:  # noqa: FBT001 (two facts, one answer)
    """Yes only where nothing is unknown."""
    return RuleAnswer.UNKNOWN if best and unknown else yes_or_no(best)


def _columns(about: str, group: ReaderGroup, assessment: Assessment | None, view: PlanContext) -> list[ExplainedRule]:
    """Reads across racks now, by its own assignor and at the optimum; assumptions; whether a rebalance pays."""
    prediction = view.predictions.get(group.id)
    shown = group_comparison(group, assessment, prediction, view.snapshot, view.limits, view.memo)
    if shown.now is None or shown.optimum is None:
        return []
    what = "task" if isinstance(group, StreamsGroup) else "partition"
    rows = [ExplainedRule(about, "reads across racks now", RuleAnswer.FACT, _cost(shown.now))]
    if prediction is not None:
        rows.append(_own_column(about, shown, prediction, what))
        rows += [
            ExplainedRule(about, "prediction", RuleAnswer.UNKNOWN, note) for note in merged_notes(prediction.notes)
        ]
    sentence = f"{_cost(shown.optimum)}; {_moved(shown.optimum.moved, what)}"
    rows.append(ExplainedRule(about, "reads across racks at the optimum", RuleAnswer.FACT, sentence))
    gained = shown.own is not None and shown.own.crossing < shown.now.crossing
    return [*rows, ExplainedRule(about, "worth a rebalance for reads across racks", yes_or_no(gained), shown.worth)]


def _plugin(about: str, group: ReaderGroup, assessment: Assessment | None, view: PlanContext) -> list[ExplainedRule]:
    """What the plug-in for brokers would bring; nothing for a group that it does not concern."""
    asked = plugin_question(group, assessment, view.snapshot, view.limits, view.memo)
    if asked is None:
        return []
    answer, gained = plugin_answer(asked), gain_with_plugin(asked)
    known = RuleAnswer.FACT if gained.is_known else RuleAnswer.UNKNOWN
    rows = [ExplainedRule(about, "gain with the plug-in for brokers", known, gained.sentence)]
    if answer is not None:
        cost = f"{_cost(answer.cost)}; {_moved(answer.cost.moved, 'partition')}"
        rows.append(ExplainedRule(about, "reads across racks with the plug-in for brokers", RuleAnswer.FACT, cost))
    return rows


def _own_column(about: str, shown: GroupComparison, prediction: Prediction, what: str) -> ExplainedRule:
    name = f"reads across racks with its own assignor, {prediction.assignor or 'not shown'}"
    if shown.own is None or shown.now is None:
        why = prediction.why_not.value if prediction.why_not is not None else "no prediction was asked for"
        return ExplainedRule(about, name, RuleAnswer.UNKNOWN, f"unknown: {why}")
    rebalances = {None: "many rebalances", 1: "one rebalance"}
    after = rebalances.get(prediction.rebalances, counted(prediction.rebalances or 0, "rebalance"))
    parts = [_cost(shown.own), f"{_moved(shown.own.moved, what)} in {after}"]
    parts.append(f"certainty: {prediction.certainty.value}; assignor and settings are {prediction.basis.value}")
    parts += [f"settings: {prediction.settings}"] if prediction.settings else []
    if (warmups := prediction.warmups) is not None:
        size = (
            "of unknown size"
            if warmups.disk_bytes is None
            else f"with {sized(warmups.disk_bytes)} of state, read from brokers"
        )
        warming = counted(warmups.tasks, "task warms up", "tasks warm up")
        parts.append(f"{warming} on the way, {warmups.at_once} at once, {size}")
    return ExplainedRule(about, name, RuleAnswer.FACT, "; ".join(parts))


def _cost(column: ComparisonColumn) -> str:
    rate = column.crossing_bytes_per_s
    in_bytes = "" if rate is None else f", {sized(rate)}/s as read"
    unknown = f", of {column.unknown} it is unknown" if column.unknown else ""
    return f"{counted(column.crossing, 'read crosses', 'reads cross')} racks by Kafka's rule{unknown}{in_bytes}"


def _moved(number: int, what: str) -> str:
    return counted(number, f"{what} moves", f"{what}s move")


def _rebalance_rules(
    about: str, group: ReaderGroup, assessment: Assessment | None, context: PlanContext
) -> list[ExplainedRule]:
    """The rules of a proposed rebalance in the order in which they are asked."""
    classic = group.kind in CLASSIC_KINDS
    stable = group.state == STABLE and not group.hidden
    static = sum(member.instance_id is not None for member in group.members)
    cooperative = group.assignor in COOPERATIVE_ASSIGNORS
    rows = [
        ExplainedRule(about, "classic group", yes_or_no(classic), f"it is a group of kind {group.kind.value}"),
        ExplainedRule(about, "stable", RuleAnswer.YES if stable else RuleAnswer.WAIT, f"the group is {group.state}"),
        ExplainedRule(
            about,
            "no static members",
            yes_or_no(not static),
            f"{static:,} of {counted(len(group.members), 'member')} {'has' if static == 1 else 'have'} "
            "a group.instance.id",
        ),
        ExplainedRule(about, "keeps partitions in a rebalance", _if_shown(group, holds=cooperative), _protocol(group)),
        _looks_at_racks(about, group, context),
        _racks_known(about, group),
    ]
    if isinstance(group, StreamsGroup) and len(group.metadata_versions) > 1:
        versions = ", ".join(map(str, group.metadata_versions))
        rows.append(
            ExplainedRule(
                about,
                "one version",
                RuleAnswer.WAIT,
                f"members are being upgraded: their metadata has versions {versions}",
            )
        )
    if assessment is not None and assessment.why_not is None:
        rows += _gain(about, group, assessment, context)
    return rows


def _if_shown(group: ReaderGroup, *, holds: bool) -> RuleAnswer:
    """Of a rule about the assignor: unknown where the group shows none, as during a rebalance."""
    return RuleAnswer.UNKNOWN if group.assignor is None else yes_or_no(holds)


def _protocol(group: ReaderGroup) -> str:
    if group.assignor is None:
        return "the group shows no assignor"
    if group.kind not in CLASSIC_KINDS:
        return f"brokers assign its partitions ({group.assignor}), and no member can be asked for a rebalance"
    if group.assignor in COOPERATIVE_ASSIGNORS:
        return f"assignor {group.assignor}: members keep their partitions during a rebalance"
    return f"assignor {group.assignor}: members give up all partitions in a rebalance"


def _looks_at_racks(about: str, group: ReaderGroup, context: PlanContext) -> ExplainedRule:
    rule = "assignor looks at racks"
    if isinstance(group, StreamsGroup):
        settings = context.limits.group(group.id)
        strategy = settings.rack_aware_assignment_strategy
        known = "set in rackwise's settings" if settings.known else "Kafka's default, assumed"
        classic = group.kind is GroupKind.CLASSIC_STREAMS
        sentence = (
            f"rack.aware.assignment.strategy is {strategy} ({known})"
            if classic
            else "brokers assign its tasks without regard to racks"
        )
        return ExplainedRule(about, rule, yes_or_no(classic and strategy != NO_STRATEGY), sentence)
    looks = group.kind is GroupKind.CLASSIC_CONSUMER and group.assignor in RACK_AWARE_ASSIGNORS
    looks = looks or runs_plugin(group)
    verb = "looks" if looks else "is not known to look" if group.kind is GroupKind.CLASSIC_CONSUMER else "does not look"
    verb = "does not look" if group.assignor in RACK_BLIND_ASSIGNORS else verb
    sentence = f"assignor {group.assignor} {verb} at racks" if group.assignor else "the group shows no assignor"
    return ExplainedRule(about, rule, _if_shown(group, holds=looks), sentence)


def _racks_known(about: str, group: ReaderGroup) -> ExplainedRule:
    if group.hidden:
        members = counted(len(group.members), "member")
        sentence = f"the racks of {members} are not shown while the group is {group.state}"
        return ExplainedRule(about, "racks known", RuleAnswer.UNKNOWN, sentence)
    known = sum(reader.rack.state is RackState.KNOWN for reader in group.readers)
    sending = sum(reader.rack.state is RackState.KNOWN and not reader.rack.silent for reader in group.readers)
    consumers = isinstance(group, ConsumerGroup)
    of = counted(len(group.readers), "member") if consumers else counted(len(group.readers), "process", "processes")
    sentence = f"{sending} of {of} send their rack"
    if sending < known:
        sentence += f", and locators know {known - sending} more, which Kafka's assignors do not"
    return ExplainedRule(about, "racks known", yes_or_no(known == len(group.readers)), sentence)


def _gain(about: str, group: ReaderGroup, assessment: Assessment, context: PlanContext) -> list[ExplainedRule]:
    limits, total = context.limits, total_reads(assessment)
    enough = optimum_worth(assessment, limits)
    sentence = (
        f"the optimum makes {assessment.gap} more of {counted(round(total), 'read')} local by Kafka's rule; the least "
        f"gain is {counted(limits.gain.min_partitions, 'read')} and {limits.gain.min_share * 100:g} % of them"
    )
    if assessment.weighing is not None:
        total = assessment.weighing.total
        sentence = (
            f"the optimum makes {sized(assessment.weighing.gained)}/s more of {sized(total)}/s local by Kafka's rule "
            f"and weights of the pipeline; the least gain is {sized(limits.gain.min_bytes_per_s)}/s and "
            f"{limits.gain.min_share * 100:g} % of them"
        )
    rows = [ExplainedRule(about, "gain above the threshold", yes_or_no(enough), sentence)]
    predicted = own_answer(context.predictions.get(group.id))
    gain = assignment_gain(group, assessment, group_locality(group, context.snapshot, context.memo), predicted)
    if predicted is not None and gain is not None:
        own = yes_or_no(brings_worth(gain.kafka, assessment, limits))
        brings = gain.kafka.brings()
        brought_text = f"{brings:,.0f} more of {counted(round(total), 'read')}"
        if assessment.weighing is not None:
            brought_text = f"{sized(brings)}/s more of {sized(total)}/s"
        sentence = f"its own assignor is predicted to make {brought_text} local by Kafka's rule"
        rows.append(ExplainedRule(about, "its own assignor brings the gain", own, sentence))
    if gain is not None:
        read = gain.read
        rows.append(
            ExplainedRule(
                about,
                "more reads stay in the rack, as read",
                yes_or_no(more_local_worth(read, limits)),
                f"{read.before.local:,} of {counted(read.after.total, 'read')} "
                f"{'is' if read.before.local == 1 else 'are'} local as read now, "
                f"{read.after.local} afterwards",
            )
        )
    return rows


def _reads(group: ReaderGroup, assessment: Assessment, context: PlanContext) -> list[ExplainedRule]:
    """Each read: local, crossing or unknown by Kafka's measure, and its reader at the optimum."""
    locality = group_locality(group, context.snapshot, context.memo)
    racks = racks_by_partition(locality, LocalityMeasure.KAFKA)
    target = _owners(group, assessment)
    rows: list[ExplainedRule] = []
    for reader, rack, partitions in _readers(group):
        bit = locality.bits.reader(rack)
        for partition in partitions:
            shown = 0 <= partition.partition < len(racks.get(partition.topic, ()))
            mask = locality.masks[partition.topic].kafka[partition.partition] if shown else UNKNOWN
            near = sorted(racks[partition.topic][partition.partition]) if shown else []
            sentence = f"{_reader(rack)}, {_replicas(near)}"
            if target.get(partition, reader) != reader:
                sentence += f"; the optimum gives it to {target[partition]}"
            rows.append(ExplainedRule(f"{reader} {partition}", "local", _local(bit, mask), sentence))
    return rows


def _reader(rack: Rack) -> str:
    return f"reader in rack {rack.name}" if rack.name is not None else f"reader in {rack.state.value} rack"


def _replicas(racks: list[str]) -> str:
    if not racks:
        return "no replica in a known rack"
    return f"replicas in rack{'' if len(racks) == 1 else 's'} {in_full(racks)}"


def _local(bit: int, mask: int) -> RuleAnswer:
    if bit and mask & bit:
        return RuleAnswer.YES
    return RuleAnswer.UNKNOWN if not bit or mask & UNKNOWN else RuleAnswer.NO


def _readers(group: ReaderGroup) -> list[tuple[str, Rack, tuple[TopicPartition, ...]]]:
    if isinstance(group, ConsumerGroup):
        return [(member.id, member.rack, member.assigned or ()) for member in group.members]
    sources = {task.id: task.sources for task in group.topology.tasks} if group.topology else {}
    return [
        (process.id, process.rack, tuple(source for task in process.active for source in sources.get(task, ())))
        for process in group.processes
    ]


def _owners(group: ReaderGroup, assessment: Assessment) -> dict[TopicPartition, str]:
    match assessment.result:
        case ConsumerResult() as result:
            return {partition: member for member, held in result.assignment.items() for partition in held}
        case TaskResult() as result if isinstance(group, StreamsGroup) and group.topology is not None:
            sources = {task.id: task.sources for task in group.topology.tasks}
            return {p: process for process, tasks in result.active.items() for task in tasks for p in sources[task]}
        case _:
            return {}


def _warmups(name: str, context: PlanContext) -> list[ExplainedRule]:
    acceptable = context.limits.group(name).acceptable_recovery_lag
    rows: list[ExplainedRule] = []
    for copy in context.snapshot.copies.get(name, ()):
        if copy.role is not TaskRole.WARMUP:
            continue
        lag = "its lag is unknown" if copy.lag is None else f"its lag is {records(copy.lag)}"
        source = f" ({copy.lag_source.value})" if copy.lag_source is not None else ""
        answer = {True: RuleAnswer.YES, False: RuleAnswer.WAIT, None: RuleAnswer.UNKNOWN}[copy.caught_up]
        sentence = f"{lag}{source}, acceptable.recovery.lag is {counted(acceptable, 'record')}"
        rows.append(ExplainedRule(f"{copy.task} on {copy.process_id}", "warm-up caught up", answer, sentence))
    return rows
