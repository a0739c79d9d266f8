"""Prometheus metrics of the last cycle and of what was last confirmed, computed at each scrape.

Series are bounded: groups and tasks beyond the largest are summed up as ``other``; no label is a member, client or
process id, and none a topic but in `LAG_METRICS`, which are asked for. A series ends with its subject; an unknown has
no sample. docs/metrics.md has `METRICS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agent.values.assessment import Locality, LocalityMeasure
from agent.values.cycle import Cycle
from agent.values.last_known import LastKnown, is_listed
from agent.values.observation import ObservationPart
from agent.values.plan import ExecuteState
from agent.values.proposal import Allow, Verdict
from agent.values.snapshot import Snapshot, TaskCopy, TaskRole
from agent.web.agent_view import LoopState
from agent.web.money_metrics import (
    LAG_METRICS,
    MONEY_METRICS,
    OTHER,
    ConsumerLags,
    LagDetail,
    MetricDescription,
    Sample,
    SampledLooks,
    label,
    money_samples,
    split_top,
    unique_labels,
)

METRICS: tuple[MetricDescription, ...] = (
    MetricDescription("rackwise_build_info", "gauge", ("version",), "Always 1; the version is a label."),
    MetricDescription(
        "rackwise_last_success_timestamp_seconds", "gauge", (),
        "Unix time at which a cycle last succeeded.",
    ),
    MetricDescription("rackwise_cycles_total", "counter", ("outcome",), "Cycles by outcome: succeeded or failed."),
    MetricDescription(
        "rackwise_looks_skipped_total", "counter", (),
        "Looks skipped because the previous cycle was still running.",
    ),
    MetricDescription("rackwise_cycles_overrun_total", "counter", (), "Cycles that took longer than poll.interval."),
    MetricDescription("rackwise_stage_seconds_total", "counter", ("stage",), "Seconds spent in each stage."),
    MetricDescription("rackwise_cycle_seconds", "gauge", (), "Duration of the last cycle, without recording."),
    MetricDescription(
        "rackwise_records_total", "counter", ("outcome",),
        "Telemetry and proposal records written, failed or dropped.",
    ),
    MetricDescription(
        "rackwise_records_waiting", "gauge", (),
        "Records that the brokers had not confirmed at the end of the last cycle.",
    ),
    MetricDescription(
        "rackwise_notifications_total", "counter", ("outcome",),
        "Messages to targets of notifications: sent, retried (a try failed) or given_up; dropped counts notifications.",
    ),
    MetricDescription(
        "rackwise_seen_timestamp_seconds", "gauge", ("figures",),
        "Unix time of the last look that confirmed all brokers, topics, groups or findings counted here.",
    ),
    MetricDescription(
        "rackwise_samples_timestamp_seconds", "gauge", (),
        "Unix time of the look that shares, bytes, costs and lags are of; above 2,000 groups it may be a former one.",
    ),
    MetricDescription("rackwise_brokers", "gauge", ("rack", "state"), "Brokers by rack (empty: unknown) and state."),
    MetricDescription("rackwise_topics", "gauge", (), "Topics observed."),
    MetricDescription("rackwise_partitions", "gauge", (), "Partitions observed."),
    MetricDescription("rackwise_groups", "gauge", ("kind",), "Consumer groups by kind."),
    MetricDescription(
        "rackwise_gaps", "gauge", ("part", "cause"),
        "Parts of the last look that are unknown, by part and cause.",
    ),
    MetricDescription("rackwise_findings", "gauge", ("reason", "severity"), "Current findings by reason and severity."),
    MetricDescription("rackwise_proposals", "gauge", ("kind",), "Proposals of the last planning by kind."),
    MetricDescription(
        "rackwise_unplanned", "gauge", ("reason",),
        "Changes that the last planning left out, by reason.",
    ),
    MetricDescription(
        "rackwise_verdicts", "gauge", ("verdict", "reason"),
        "Verdicts of the guard on the last planning's proposals (allow, hold or refuse), by reason.",
    ),
    MetricDescription("rackwise_leads", "gauge", (), "Mode execute: 1 on the leading agent, 0 on a standby agent."),
    MetricDescription(
        "rackwise_acts_total", "counter", ("kind", "outcome"),
        "Proposals executed, by kind and outcome (done or not done).",
    ),
    MetricDescription("rackwise_plans_open", "gauge", (), "Reassignment plans that have not ended."),
    MetricDescription(
        "rackwise_acting_fails", "gauge", ("what",),
        "Mode execute: 1 while it fails to lead, or as leader to look, write the journal or carry plans out; else 0.",
    ),
    MetricDescription(
        "rackwise_plans_waiting", "gauge", (),
        "Open plans that a window, a pause, a budget or the state of the cluster holds, not those that move or queue.",
    ),
    MetricDescription(
        "rackwise_plan_partitions_left", "gauge", (),
        "Partitions of open plans that have not moved yet.",
    ),
    MetricDescription(
        "rackwise_throttles_set", "gauge", (),
        "Replication throttle settings that rackwise has set and not yet removed.",
    ),
    MetricDescription(
        "rackwise_journal_records_ignored", "gauge", (),
        "Records of the journal's topic that no agent wrote, ignored by the leading agent.",
    ),
    MetricDescription(
        "rackwise_group_cross_rack_share", "gauge", ("group", "measure", "unit"),
        "Share of a group's reads that cross racks now, by measure; reads of unknown rack are not counted.",
    ),
    MetricDescription(
        "rackwise_group_optimal_cross_rack_share", "gauge", ("group", "measure", "unit"),
        "The same share under the best possible assignment.",
    ),
    MetricDescription(
        "rackwise_group_unknown_rack_share", "gauge", ("group", "measure", "unit"),
        "Share of a group's reads for which it is unknown whether they cross racks.",
    ),
    MetricDescription(
        "rackwise_group_cross_rack_bytes_per_second", "gauge", ("group", "measure"),
        "Bytes per second that a group reads across racks, where rates are known.",
    ),
    MetricDescription(
        "rackwise_task_lag_records", "gauge", ("group", "task", "role"),
        "Lag in records of the copy of a task with the highest lag, by role.",
    ),
    MetricDescription(
        "rackwise_task_lag_trend_records_per_second", "gauge", ("group", "task", "role"),
        "Records per second by which that copy catches up; negative when it falls behind.",
    ),
    MetricDescription(
        "rackwise_task_caught_up_eta_seconds", "gauge", ("group", "task", "role"),
        "Seconds until that copy is within acceptable.recovery.lag.",
    ),
    MetricDescription(
        "rackwise_task_promotable", "gauge", ("group", "task"),
        "1 when a warm-up of the task has certainly caught up, 0 when none has; no sample when unknown.",
    ),
    MetricDescription(
        "rackwise_task_copies_lag_unknown", "gauge", ("group",),
        "Copies of stateful tasks whose lag is unknown.",
    ),
    MetricDescription(
        "rackwise_task_series_left_out", "gauge", (),
        "Tasks (by group and role) without series of their own, beyond metrics.top_tasks.",
    ),
    *MONEY_METRICS,
    *LAG_METRICS,
)  # fmt: skip


class SeriesCaps(NamedTuple):
    """How many subjects get series of their own."""

    groups: int = 100
    tasks: int = 1_000
    lags: int = 500
    consumer_lag: LagDetail = "none"


class RackwiseCollector(Collector):
    """Reads the loop's state at each scrape."""

    def __init__(self, state: Callable[[], LoopState], version: str, caps: SeriesCaps) -> None:
        self._state = state
        self._version = version
        self._caps = caps
        self._lags = ConsumerLags(caps.consumer_lag, caps.lags)
        self._looks = SampledLooks(self._of_cycle)
        """Between two looks the samples are the same at each scrape."""

    def describe(self) -> Iterable[Metric]:
        """Nothing: names are not checked at registration, which would need a cycle."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every metric that has a sample now."""
        samples = self.samples()
        for described in METRICS:
            found = samples.get(described.name, ())
            if found:
                yield _family(described, found)

    def samples(self) -> dict[str, Sequence[Sample]]:
        """Metric name -> its samples (label values, value)."""
        state = self._state()
        found: dict[str, Sequence[Sample]] = {"rackwise_build_info": [((self._version,), 1)], **_loop(state)}
        if state.cycle is not None:
            gaps = Counter((gap.part.value, gap.cause.value) for gap in state.cycle.snapshot.gaps)
            found["rackwise_cycle_seconds"] = [((), state.cycle.took_ms / 1_000)]
            found["rackwise_gaps"] = _by_many(gaps)
            sampled = self._looks.of(state.cycle)
            found["rackwise_samples_timestamp_seconds"] = [((), sampled.cycle.snapshot.taken_ms / 1_000)]
            found |= sampled.of
        if state.known is not None:
            found |= _known(state.known)
        if state.planned is not None:
            found |= _planned(state.planned)
        return found

    @property
    def is_behind(self) -> bool:
        """Whether `catch_up` has something to do: the last answer was of a former look."""
        cycle = self._state().cycle
        return cycle is not None and self._looks.is_behind(cycle)

    def catch_up(self) -> None:
        """Make the samples of the newest look, unless a thread makes some already."""
        cycle = self._state().cycle
        if cycle is not None:
            self._looks.catch_up(cycle)

    def _of_cycle(self, cycle: Cycle) -> Mapping[str, Sequence[Sample]]:
        groups, tasks = _groups(cycle, self._caps.groups), _tasks(cycle.snapshot, self._caps.tasks)
        return {**groups, **tasks, **money_samples(cycle, self._caps.groups), **self._lags.samples(cycle)}


def _family(described: MetricDescription, samples: Iterable[Sample]) -> Metric:
    kind = CounterMetricFamily if described.kind == "counter" else GaugeMetricFamily
    family = kind(described.name.removesuffix("_total"), described.sentence, labels=described.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _loop(state: LoopState) -> dict[str, Sequence[Sample]]:
    found: dict[str, Sequence[Sample]] = {
        "rackwise_cycles_total": [(("succeeded",), state.succeeded), (("failed",), state.failed)],
        "rackwise_looks_skipped_total": [((), state.skipped)],
        "rackwise_cycles_overrun_total": [((), state.overran)],
        "rackwise_stage_seconds_total": [((stage,), spent) for stage, spent in sorted(state.seconds.items())],
    }
    if state.notifications:
        outcomes = sorted(state.notifications.items())
        found["rackwise_notifications_total"] = [((outcome,), number) for outcome, number in outcomes]
    if state.acts:
        found["rackwise_acts_total"] = [(names, number) for names, number in sorted(state.acts.items())]
    if state.acting is not None:
        found |= _acting(state.acting)
    if state.last_success is not None:
        found["rackwise_last_success_timestamp_seconds"] = [((), state.last_success.wall_ms / 1_000)]
    if state.recording is not None:
        counts = state.recording.counts._asdict()
        found["rackwise_records_total"] = [((outcome,), number) for outcome, number in counts.items()]
        found["rackwise_records_waiting"] = [((), state.recording.waiting)]
    return found


def _acting(now: ExecuteState) -> dict[str, Sequence[Sample]]:
    values = {
        "rackwise_leads": float(now.leads),
        "rackwise_plans_open": now.plans,
        "rackwise_plan_partitions_left": now.partitions_left,
        "rackwise_throttles_set": now.throttles,
        "rackwise_plans_waiting": now.waiting,
        "rackwise_journal_records_ignored": now.records_ignored,
    }
    found: dict[str, Sequence[Sample]] = {name: [((), value)] for name, value in values.items() if value is not None}
    troubles = [((trouble.value,), float(trouble in now.troubles)) for trouble in sorted(now.known_faults)]
    return {**found, "rackwise_acting_fails": troubles}


def _known(known: LastKnown) -> dict[str, Sequence[Sample]]:
    """Last confirmed figures, with the time of their look."""
    found: dict[str, Sequence[Sample]] = {"rackwise_findings": _by_many(known.count_findings())}
    if known.brokers is not None:
        brokers = Counter((rack, "alive" if alive else "absent") for rack, alive in known.brokers.values())
        racks = unique_labels({rack for rack, _ in brokers})
        found["rackwise_brokers"] = [((racks[rack], state), count) for (rack, state), count in sorted(brokers.items())]
    if known.topics is not None:
        topics, partitions = known.topics
        found |= {"rackwise_topics": [((), topics)], "rackwise_partitions": [((), partitions)]}
    if known.groups is not None:
        found["rackwise_groups"] = _by_one(Counter(known.groups.values()))
    seen_ms = {
        "brokers": known.brokers_ms, "findings": known.findings_ms, "groups": known.groups_ms, "topics": known.topics_ms
    }  # fmt: skip
    found["rackwise_seen_timestamp_seconds"] = [((of,), at / 1_000) for of, at in seen_ms.items() if at is not None]
    return found


def _planned(cycle: Cycle) -> dict[str, Sequence[Sample]]:
    unplanned = cycle.plan.unplanned if cycle.plan is not None else ()
    return {
        "rackwise_proposals": _by_one(Counter(proposal.kind.value for proposal in cycle.proposals)),
        "rackwise_unplanned": _by_one(Counter(reason.value for _, reason in unplanned)),
        "rackwise_verdicts": _by_many(Counter(_verdict(verdict) for verdict in cycle.verdicts)),
    }


def _verdict(verdict: Verdict) -> tuple[str, str]:
    if isinstance(verdict, Allow):
        return "allow", "rule" if verdict.rule is not None else "approved"
    return type(verdict).__name__.lower(), verdict.reason.value


def _groups(cycle: Cycle, most: int) -> dict[str, Sequence[Sample]]:
    judged = {name: found for name, found in cycle.detection.assessments.items() if found.why_not is None}
    shown, others = split_top(judged, most, lambda one: max((share.total for share in one.current), default=0.0))
    labels = unique_labels(shown)
    found: dict[str, list[Sample]] = {}
    for name, assessment in shown.items():
        _add_localities(found, labels[name], assessment.current, assessment.optimal)
    if others and is_listed(cycle.snapshot, ObservationPart.GROUPS):  # else it is unknown of how many the sum is
        current = _summed(assessment.current for assessment in others)
        _add_localities(found, OTHER, current, _summed(assessment.optimal for assessment in others))
    return dict(found)


def _summed(all_localities: Iterable[Sequence[Locality]]) -> tuple[Locality, ...]:
    """Localities of many groups as those of one; only equal measures and units are added up."""
    sums: dict[tuple[LocalityMeasure, str], list[float]] = {}
    for localities in all_localities:
        for measure, unit, local, total, unknown in localities:
            sum_ = sums.setdefault((measure, unit), [0, 0, 0])
            sum_[0] += local
            sum_[1] += total
            sum_[2] += unknown
    return tuple(Locality(*kind, *sum_) for kind, sum_ in sorted(sums.items()))


def _add_localities(
    found: dict[str, list[Sample]], group: str, current: Sequence[Locality], optimal: Sequence[Locality]
) -> None:
    def add(metric: str, labels: tuple[str, ...], value: float) -> None:
        found.setdefault(metric, []).append(((group, *labels), value))

    for one in current:
        labels = (one.measure.value, one.unit)
        known = one.total - one.unknown
        if known > 0:
            add("rackwise_group_cross_rack_share", labels, (known - one.local) / known)
        if one.total > 0:
            add("rackwise_group_unknown_rack_share", labels, one.unknown / one.total)
        if one.unit == "bytes_per_s" and (known > 0 or one.total == 0):
            add("rackwise_group_cross_rack_bytes_per_second", labels[:1], known - one.local)
    for one in optimal:
        known = one.total - one.unknown
        if known > 0:
            share = (known - one.local) / known
            add("rackwise_group_optimal_cross_rack_share", (one.measure.value, one.unit), share)


def _tasks(snapshot: Snapshot, most: int) -> dict[str, Sequence[Sample]]:
    """The worst copy by group, task and role; of all tasks the ones that lag most, of all groups the unknown ones."""
    worst: dict[tuple[str, str, str], TaskCopy] = {}
    promotable: dict[tuple[str, str], set[bool | None]] = {}
    unknown: Counter[str] = Counter()
    for copy in (copy for copies in snapshot.copies.values() for copy in copies):
        task = copy.group_id, label(str(copy.task))
        if copy.lag is None:
            unknown[copy.group_id] += 1
        else:
            key = *task, copy.role.value
            worst[key] = max(worst.get(key, copy), copy, key=_likely_lag)
        if copy.role is TaskRole.WARMUP:
            promotable.setdefault(task, set()).add(copy.caught_up)
    kept = sorted(worst, key=lambda key: (-_likely_lag(worst[key]), key))[:most]
    decided = sorted((task, True in known) for task, known in promotable.items() if True in known or None not in known)
    decided = decided[:most]
    tasks = {key[:2] for key in kept} | {task for task, _ in decided}
    groups = unique_labels(sorted({group for group, _ in tasks} | set(sorted(unknown)[:most])))
    found = _task_samples({(groups[key[0]], *key[1:]): worst[key] for key in sorted(kept)})
    found["rackwise_task_promotable"] = [((groups[group], task), float(known)) for (group, task), known in decided]
    found["rackwise_task_copies_lag_unknown"] = [
        ((groups[group],), count) for group, count in sorted(unknown.items())[:most]
    ]
    if is_listed(snapshot, ObservationPart.GROUPS) and is_listed(snapshot, ObservationPart.TOPICS):
        found["rackwise_task_series_left_out"] = [((), len(worst) - len(kept))]
    return found


def _task_samples(copies: Mapping[tuple[str, ...], TaskCopy]) -> dict[str, Sequence[Sample]]:
    lags = [(key, copy.lag.likely) for key, copy in copies.items() if copy.lag is not None]
    rates = [(key, copy.rate_per_s.likely) for key, copy in copies.items() if copy.rate_per_s is not None]
    etas = [(key, copy.eta_s.likely) for key, copy in copies.items() if copy.eta_s is not None]
    return {
        "rackwise_task_lag_records": lags,
        "rackwise_task_lag_trend_records_per_second": rates,
        "rackwise_task_caught_up_eta_seconds": etas,
    }


def _likely_lag(copy: TaskCopy) -> float:
    return copy.lag.likely if copy.lag is not None else -1.0


def _by_one(counts: Counter[str]) -> list[Sample]:
    return [((name,), count) for name, count in sorted(counts.items())]


def _by_many(counts: Counter[tuple[str, str]]) -> list[Sample]:
    return [(names, count) for names, count in sorted(counts.items())]
