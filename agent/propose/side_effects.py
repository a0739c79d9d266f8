"""What a move of replicas or leaders does besides: preferred leaders by broker and rack, and traffic across racks.

Said in every proposal about replica lists, before and after. Where rates are not known, fetches are counted instead:
one for each follower and each reader of a partition that fetches from another rack. Unknown is said, never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from agent.plan.even import Seats
from agent.plan.reading import Readers
from agent.propose.scene import Scene
from agent.values.finding import Evidence
from agent.values.flows import Racks, Reader, add, read_flows, replication_flows
from agent.values.limits import Limits
from agent.values.plan import PlacementPlan
from agent.values.proposal import PlacementChange, Predicted, ProposalReason
from agent.values.snapshot import PartitionState, TopicState
from agent.values.words import counted, few, sized, usd, usd_per_gb
from assignors.problem import TopicPartition

_SHOWN = 6
_KEPT = 50
_LEAST_RATE = 0.5
"""bytes/s; less than that is the rounding of sums, no change."""


class Fetches(NamedTuple):
    """How many fetch across racks; None where a rack or the selector is not known."""

    followers: int | None
    all: int | None
    """Followers and readers."""


class Effects(NamedTuple):
    """Parts of the sentence, each a clause, and the same as evidence."""

    clauses: tuple[str, ...]
    evidence: Evidence


def fetches(topic: TopicState, rows: Iterable[Reader], racks: Racks, *, selector: bool | None) -> Fetches:
    """What is fetched across racks of a topic, counted."""
    ones = dict.fromkeys((state.id for state in topic.partitions), 1.0)
    states = {state.id: state for state in topic.partitions}
    copied = replication_flows(topic.partitions, racks, ones)
    total = add(copied, read_flows(rows, states, racks, ones, selector=selector))
    return Fetches(
        None if copied is None else round(sum(copied.values())), None if total is None else round(sum(total.values()))
    )


def rows_of(readers: Mapping[TopicPartition, Readers]) -> list[Reader]:
    """Readers as flows count them; those of unknown rack have none."""
    rows = [Reader(p, rack, count) for p, of in readers.items() for rack, count in of.by_rack]
    return rows + [Reader(p, None, of.unknown) for p, of in readers.items() if of.unknown]


def side_effects(
    plan: PlacementPlan, before: TopicState, counts: tuple[Fetches, Fetches], predicted: Predicted, scene: Scene
) -> Effects:
    """What the plan does besides what its sentence begins with."""
    changed = [change for change in plan.changes if change.before[0] != change.after[0]]
    led = Counter(state.replicas[0] for state in before.partitions if state.replicas)
    then = led.copy()
    then.subtract(change.before[0] for change in changed)
    then.update(change.after[0] for change in changed)
    racks, racks_then = _by_rack(led, scene.racks), _by_rack(then, scene.racks)
    now, after = counts
    clauses = [_leaders(plan, changed, (led, then), (racks, racks_then)), _traffic(now, after, predicted, scene.limits)]
    if plan.reason is ProposalReason.MEND_RACK_SPREAD:
        clauses += (
            _worse_leaders(changed, predicted.moves, scene)
            if changed
            else _worse_traffic(plan, before, counts, predicted)
        )
    return Effects(
        tuple(clauses),
        (
            ("preferred_leaders_changed", len(changed)),
            ("preferred_leaders_by_broker_before", _rows(led, "broker ")),
            ("preferred_leaders_by_broker_after", _rows(then, "broker ")),
            ("preferred_leaders_by_rack_before", _rows(racks, "rack ")),
            ("preferred_leaders_by_rack_after", _rows(racks_then, "rack ")),
            ("fetches_across_racks_before", now.all),
            ("fetches_across_racks_after", after.all),
        ),
    )


def _by_rack(led: Counter[int], racks: Racks) -> Counter[str]:
    by_rack: Counter[str] = Counter()
    for broker, count in led.items():
        by_rack[racks.get(broker, "?")] += count
    return by_rack


def _rows(led: Counter[Any], word: str) -> tuple[str, ...]:
    shown = [f"{word}{name}: {led[name]:,}" for name in sorted(led)]
    return (*shown[:_KEPT], *([f"and {len(shown) - _KEPT:,} more"] if len(shown) > _KEPT else []))


def _leaders(
    plan: PlacementPlan,
    changed: list[PlacementChange],
    brokers: tuple[Counter[int], Counter[int]],
    racks: tuple[Counter[str], Counter[str]],
) -> str:
    if not changed:
        return "no preferred leader changes"
    by_broker, by_rack = _differences(*brokers), _differences(*racks)
    head = f"{counted(len(changed), 'preferred leader')} {'changes' if len(changed) == 1 else 'change'}"
    if not by_broker:
        return f"{head}, and each broker leads as many partitions of {plan.topic} as before"
    racks_told = f", by rack: {by_rack}" if by_rack else ", and each rack leads as many as before"
    return f"{head}, by broker: {by_broker}{racks_told}"


def _differences(before: Counter[Any], after: Counter[Any]) -> str:
    names = [name for name in sorted({*before, *after}) if before[name] != after[name]]
    return few([f"{name} from {before[name]:,} to {after[name]:,}" for name in names], _SHOWN)


def _traffic(now: Fetches, then: Fetches, predicted: Predicted, limits: Limits) -> str:
    before, after = predicted.cross_rack_bytes_per_s_before, predicted.cross_rack_bytes_per_s_after
    if before is not None and after is not None:
        return f"traffic across racks {_rates(before, after)}{_money(predicted, limits)}"
    if now.all is not None and then.all is not None:
        return f"fetches across racks by followers and readers {_counts(now.all, then.all)}, their bytes are unknown"
    if now.followers is not None and then.followers is not None:
        counts = _counts(now.followers, then.followers)
        return f"fetches across racks by followers {counts}, those by readers and their bytes are unknown"
    return "the change in traffic across racks is unknown"


def _rates(before: float, after: float) -> str:
    """The change of a rate in bytes/s; one that its rounded figures would hide is said by its size."""
    if abs(after - before) < _LEAST_RATE:
        return f"stays at {sized(after)}/s"
    if sized(before) == sized(after):
        return f"{_change(before, after)}s by {sized(abs(after - before))}/s to {sized(after)}/s"
    return f"{_change(before, after)}s from {sized(before)}/s to {sized(after)}/s"


def _counts(before: int, after: int) -> str:
    return f"{_change(before, after)} {f'at {after:,}' if before == after else f'from {before:,} to {after:,}'}"


def _change(before: float, after: float) -> str:
    if before == after:
        return "stay"
    return "rise" if after > before else "fall"


def _money(predicted: Predicted, limits: Limits) -> str:
    before, after = predicted.usd_per_day_before, predicted.usd_per_day_after
    if before is None or after is None:
        return ""
    now, then = usd(before), usd(after)
    set_price = limits.price
    price = "the prices set" if set_price.between or set_price.usd_per_gb is None else usd_per_gb(set_price.usd_per_gb)
    if now != then:
        return f" ({now} to {then} a day at {price})"
    apart = abs((predicted.cross_rack_bytes_per_s_after or 0) - (predicted.cross_rack_bytes_per_s_before or 0))
    return f" ({then} a day{' before and after' if apart >= _LEAST_RATE else ''} at {price})"


def _worse_leaders(changed: list[PlacementChange], moves: int, scene: Scene) -> list[str]:
    """Brokers that lead more than now and more than an even share, where that could not be avoided."""
    seats = Seats(scene.snapshot, frozenset(), scene.limits)
    most, _ = seats.most_even()
    now = seats.of_broker.copy()
    for change in changed:
        seats.give(change.before[0], change.after[0])
    worse = [broker for broker in sorted(seats.of_broker) if seats.of_broker[broker] > most.get(broker, now[broker])]
    if not worse:
        return []
    shown = ", ".join(f"{broker} from {now[broker]:,} to {seats.of_broker[broker]:,}" for broker in worse[:_SHOWN])
    more = f" and of {len(worse) - _SHOWN:,} more" if len(worse) > _SHOWN else ""
    what = f"no set of {counted(moves, 'move')} off brokers that are away"
    return [f"{what} keeps all others from leading more partitions of the cluster: broker {shown}{more}"]


def _worse_traffic(
    plan: PlacementPlan, before: TopicState, counts: tuple[Fetches, Fetches], predicted: Predicted
) -> list[str]:
    """Where more crosses racks, what the choice of moves rests on: fetches, and not their bytes."""
    now, after = counts
    states: dict[TopicPartition, PartitionState] = {state.id: state for state in before.partitions}
    led = all(states[change.id].leader == change.before[0] for change in plan.changes)
    if not led or now.all is None or after.all is None:
        return []
    if after.all > now.all:
        return [f"no set of {counted(predicted.moves, 'move')} has fewer fetches across racks"]
    rate, rate_then = predicted.cross_rack_bytes_per_s_before, predicted.cross_rack_bytes_per_s_after
    if rate is None or rate_then is None or rate_then - rate < _LEAST_RATE:
        return []
    told = _counts(now.all, after.all)
    return [f"moves are chosen by the number of fetches across racks, which {told}, and not by their bytes"]
