"""Proposals: sentence, rows, moves, predictions in both measures, bytes and money."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.detect.find import detect
from agent.plan.make import make_plan
from agent.propose.make import propose
from agent.values.assessment import DetectionResult, Locality, LocalityMeasure
from agent.values.finding import Finding, FindingReason, FindingSeverity, SubjectId
from agent.values.limits import GroupLimits, Limits, PlanLimits, PriceLimits, ProposalLimits
from agent.values.memory import Memory
from agent.values.number_format import counted, sized
from agent.values.proposal import Proposal, ProposalKind, ProposalMove, ProposalReason, ProposalRow
from agent.values.snapshot import GroupKind, LagSource, Range
from tests.plan.test_triggers import copy, warming
from tests.snapshots import NOW_MS, Builder, a_cluster, member, process, task

LIMITS = Limits()


def proposed(built: Builder, *extra: Finding, limits: Limits = LIMITS) -> tuple[Proposal, ...]:
    snapshot = built.snapshot()
    detection = detect(snapshot, Memory(), limits, None)
    detection = DetectionResult(findings=(*detection.findings, *extra), assessments=detection.assessments)
    return propose(snapshot, make_plan(snapshot, detection, limits, None), detection, limits, None)


def only(proposals: tuple[Proposal, ...], reason: ProposalReason) -> Proposal:
    found = [proposal for proposal in proposals if proposal.reason is reason]
    assert len(found) == 1, f"one proposal with {reason.name}, but {[p.reason.name for p in proposals]}"
    return found[0]


def crossing(shares: tuple[Locality, ...], measure: LocalityMeasure, unit: str = "partitions") -> float:
    found = [share for share in shares if share.measure is measure and share.unit == unit]
    assert len(found) == 1
    return found[0].total - found[0].local - found[0].unknown


def six_brokers() -> Builder:
    return a_cluster(a=(1, 4), b=(2, 5), c=(3, 6))


# --- replicas -------------------------------------------------------------------------------------------------


def shared_rack() -> Builder:
    """t-0 has two copies in rack a and a reader in rack c; 100 bytes/s come in."""
    built = six_brokers().topic("t", (1, 4), (2, 3), size=5_000_000, rate=100.0)
    return built.group("g", member("m1", "c", "t-0"), member("m2", "b", "t-1"), assignor="range")


def test_a_reassignment_says_what_moves_and_what_it_costs():
    proposal = only(proposed(shared_rack()), ProposalReason.MEND_RACK_SPREAD)
    assert proposal.kind is ProposalKind.REASSIGN
    assert proposal.subject == SubjectId("topic", "t")
    assert proposal.sentence == (
        "Move 1 of 4 replicas of t, so that no rack holds more copies of a partition than it must; 5.0 MB are copied; "
        "no preferred leader changes; traffic across racks stays at 200 B/s ($0.00035 a day at $0.02/GB)"
    )
    assert proposal.before == (ProposalRow("t-0", (1, 4)),)
    (after,) = proposal.after
    (move,) = proposal.moves
    assert after.key == "t-0"
    assert (move.what, move.subject, move.bytes) == ("replica", "t-0", 5_000_000)
    assert move.source in ("1", "4")
    assert int(move.target or 0) in after.value
    assert (proposal.lower_bound, proposal.optimal) == (5_000_000.0, True)
    assert proposal.findings == ("replicas_share_rack:topic/t",)
    assert proposal.line is None
    assert proposal.predicted.bytes_to_move == 5_000_000
    assert proposal.predicted.seconds == 0.1
    assert dict(proposal.evidence)["replica_racks_before"] == ("t-0: a a",)


def test_a_reassignment_predicts_reads_and_bytes_by_path():
    # Before: t-0 is replicated inside a (free), and read from c (100 across). t-1 is replicated b -> c (100 across).
    # After: t-0 is replicated across too, and its reader finds a copy only if the new one is in c.
    proposal = only(proposed(shared_rack()), ProposalReason.MEND_RACK_SPREAD)
    (after,) = proposal.after
    near = bool({3, 6} & set(after.value))
    predicted = proposal.predicted
    assert predicted.cross_rack_bytes_per_s_before == 200.0
    assert predicted.cross_rack_bytes_per_s_after == (200.0 if near else 300.0)
    assert crossing(predicted.before, LocalityMeasure.KAFKA) == 1
    assert crossing(predicted.after, LocalityMeasure.KAFKA) == (0 if near else 1)
    usd = 200.0 * 86_400 / 1e9 * 0.02
    assert predicted.usd_per_day_before == round(usd, 8)


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        pytest.param(
            {"rate": None}, ("cross_rack_bytes_per_s_before", "usd_per_day_before", "usd_per_day_after"), id="a rate"
        ),
        pytest.param({"size": None}, ("bytes_to_move", "seconds"), id="a size"),
    ],
)
def test_what_is_not_known_is_none_and_never_zero(change, unknown):
    built = six_brokers().topic("t", (1, 4), **{"size": 10, "rate": 1.0, **change})
    proposal = only(proposed(built), ProposalReason.MEND_RACK_SPREAD)
    for name in unknown:
        assert getattr(proposal.predicted, name) is None
    if "size" in change:
        assert "unknown" in proposal.sentence
        assert proposal.lower_bound == 1.0, "an unknown size counts as one byte"


def test_prices_per_pair_of_racks_are_used_and_no_price_means_no_money():
    built = a_cluster().topic("t", (1, 2), rate=1e9 / 86_400).broker(4, "a").topic("u", (1, 4), rate=1e9 / 86_400)
    one_pair = Limits(price=PriceLimits(between={("a", "b"): 5.0, ("a", "c"): 7.0}))
    proposal = only(proposed(built, limits=one_pair), ProposalReason.MEND_RACK_SPREAD)
    (after,) = proposal.after
    assert proposal.predicted.usd_per_day_after in (5.0, 7.0)
    assert proposal.predicted.usd_per_day_before == 0.0
    free = only(proposed(built, limits=Limits(price=PriceLimits(usd_per_gb=None))), ProposalReason.MEND_RACK_SPREAD)
    assert free.predicted.usd_per_day_after is None
    assert free.predicted.cross_rack_bytes_per_s_after is not None
    assert after.key == "u-0"


def test_a_leaders_proposal_moves_no_data():
    built = a_cluster().topic("t", (1, 2, 3), rate=10.0).group("g", member("m", "b", "t-0"))
    built.selector = False
    proposal = only(proposed(built), ProposalReason.LEADERS_TO_READERS)
    assert proposal.kind is ProposalKind.LEADERS
    assert (proposal.before, proposal.after) == ((ProposalRow("t-0", (1, 2, 3)),), (ProposalRow("t-0", (2, 1, 3)),))
    assert proposal.moves == (ProposalMove("leader", "t-0", "1", "2", 0),)
    assert crossing(proposal.predicted.before, LocalityMeasure.READ_LOCAL) == 1
    assert crossing(proposal.predicted.after, LocalityMeasure.READ_LOCAL) == 0
    assert proposal.predicted.cross_rack_bytes_per_s_before == 30.0, "two followers and one reader"
    assert proposal.predicted.cross_rack_bytes_per_s_after == 20.0
    assert "reads across racks fall from 1 of 1 to 0 of 1; no data moves" in proposal.sentence
    assert (proposal.predicted.bytes_to_move, proposal.predicted.seconds) == (0, None)


# --- groups ---------------------------------------------------------------------------------------------------


def test_a_rebalance_says_what_the_groups_own_assignor_brings():
    built = a_cluster().topic("t", (1,), (2,), (3,), rate=100.0)
    built.group("g", member("m1", "b", "t-0"), member("m2", "a", "t-1"), member("m3", "c", "t-2"))
    proposal = only(proposed(built), ProposalReason.REBALANCE_IMPROVES)
    assert proposal.sentence == (
        "Rebalance g once: its own assignor, cooperative-sticky, makes 2 of 3 reads local by Kafka's measure "
        "(crossing 2 -> 0, at best 0), moving 2 partitions, though the exact assignment may differ"
    )
    columns = {name: value for name, value in proposal.evidence if name.startswith(("crossing", "moved"))}
    assert columns == {
        "crossing_now": 2, "crossing_bytes_per_s_now": 200.0,
        "crossing_own": 0, "crossing_bytes_per_s_own": 0.0, "moved_own": 2,
        "crossing_at_best": 0, "crossing_bytes_per_s_at_best": 0.0, "moved_at_best": 2,
    }  # fmt: skip
    assert proposal.before == (ProposalRow("m1", ("t-0",)), ProposalRow("m2", ("t-1",))), "m3 keeps what it has"
    assert proposal.after == (ProposalRow("m1", ("t-1",)), ProposalRow("m2", ("t-0",)))
    assert proposal.moves == (
        ProposalMove("partition", "t-0", "m1", "m2", 0),
        ProposalMove("partition", "t-1", "m2", "m1", 0),
    )
    assert (proposal.lower_bound, proposal.optimal) == (0.0, True)
    assert proposal.predicted.cross_rack_bytes_per_s_before == 200.0
    assert proposal.predicted.cross_rack_bytes_per_s_after == 0.0
    assert crossing(proposal.predicted.after, LocalityMeasure.READ_LOCAL, "bytes_per_s") == 0.0


def test_where_the_own_assignor_cannot_be_told_the_optimum_stands_in_and_the_sentence_says_so():
    built = a_cluster().topic("t", (1,), (2,)).group("g", member("m1", "b", "t-0"), member("m2", "a", "t-1"))
    proposal = only(proposed(built, limits=Limits(plan=PlanLimits(predict_limit=3))), ProposalReason.REBALANCE_IMPROVES)
    assert proposal.sentence == (
        "Rebalance g once: at best its own assignor makes 2 of 2 reads local by Kafka's measure (crossing 2 -> 0), "
        "moving 2 partitions; its exact result is unknown: it is larger than plan.predict_limit"
    )
    assert dict(proposal.evidence)["crossing_own"] is None


def test_a_task_to_restore_costs_an_unknown_number_of_bytes():
    topology = [task("0_0", "t-0"), task("0_1", "t-1")]
    built = a_cluster().topic("t", (1,), (2,))
    built.streams("g", process("p1", "b", "0_0"), process("p2", "a", "0_1"), topology=topology)
    limits = Limits(groups={"g": GroupLimits(rack_aware_assignment_strategy="min_traffic", known=True)})
    proposal = only(proposed(built, limits=limits), ProposalReason.REBALANCE_IMPROVES)
    assert proposal.predicted.bytes_to_move is None
    assert {move.bytes for move in proposal.moves} == {None}
    assert proposal.before == (ProposalRow("p1", ("0_0",)), ProposalRow("p2", ("0_1",)))


def test_a_promotion_is_certain_and_copies_nothing():
    built = warming(copy("p2", "0_1", caught_up=True, lag=12.0), next_rebalance_ms=NOW_MS + 500_000)
    proposal = only(proposed(built), ProposalReason.WARMUP_PROMOTABLE)
    assert proposal.sentence == (
        "Rebalance g once: 1 warm-up has caught up and can take over now instead of at the application's next probing "
        "rebalance"
    )
    assert proposal.before == (ProposalRow("p1 0_1 active", ("a",)), ProposalRow("p2 0_1 warm-up", ("b",)))
    assert proposal.after == (ProposalRow("p2 0_1 active", ("b",)),)
    assert proposal.moves == (ProposalMove("task", "0_1", "p1", "p2", 0),)
    assert crossing(proposal.predicted.before, LocalityMeasure.KAFKA) == 1
    assert crossing(proposal.predicted.after, LocalityMeasure.KAFKA) == 0
    evidence = dict(proposal.evidence)
    assert evidence["lags"] == ("0_1 on p2: 12 records behind (application endpoint)",)
    assert evidence["acceptable_recovery_lag_is"] == "Kafka's default, assumed"
    assert evidence["next_probing_rebalance_ms"] == NOW_MS + 500_000
    assert (proposal.lower_bound, proposal.optimal) == (None, None)


def test_a_rebalance_that_only_tells_says_so():
    probably = copy("p2", "0_1", caught_up=None)._replace(lag=Range(0, 500, 90_000), lag_source=LagSource.MODEL)
    proposal = only(proposed(warming(probably, next_rebalance_ms=NOW_MS + 500_000)), ProposalReason.WARMUP_PROMOTABLE)
    assert proposal.sentence == (
        "Rebalance g once: 1 warm-up may have caught up, which is unknown until a rebalance; those that have "
        "take over, and the others report their lag"
    )
    assert proposal.findings == ("warmup_unsure:group/g",)


# --- advice ---------------------------------------------------------------------------------------------------


def test_advice_has_the_line_and_names_who_it_concerns():
    built = a_cluster().topic("t", (1,), (2,)).group("g", member("m1", None, "t-0"), member("m2", "b", "t-1"))
    proposal = only(proposed(built), ProposalReason.SET_CLIENT_RACK)
    assert proposal.kind is ProposalKind.ADVISE
    assert proposal.line == "client.rack=<a|b|c>"
    assert proposal.sentence.startswith("Set client.rack for 1 client of g: ")
    assert (proposal.before, proposal.after) == (
        (ProposalRow("client.rack", ()),),
        (ProposalRow("client.rack", ("<a|b|c>",)),),
    )
    assert proposal.moves == (ProposalMove("setting", "client-m1", None, "<a|b|c>", None),)


def test_advice_about_a_kip_848_group_predicts_its_measured_gap():
    built = a_cluster().topic("t", (1,), (2,))
    built.group(
        "g", member("m1", "b", "t-0"), member("m2", "a", "t-1"), kind=GroupKind.CONSUMER, assignor="uniform"
    )  # fmt: skip
    proposal = only(proposed(built), ProposalReason.CHANGE_ASSIGNOR)
    assert crossing(proposal.predicted.before, LocalityMeasure.KAFKA) == 2
    assert crossing(proposal.predicted.after, LocalityMeasure.KAFKA) == 0
    assert proposal.predicted.moves == 2


def test_advice_about_the_selector_predicts_what_reads_become_local():
    built = a_cluster().topic("t", (1, 2, 3)).group("g", member("m", "b", "t-0"))
    built.selector = False
    built.broker_configs = {1: {}, 2: {}, 3: {}}
    proposal = only(proposed(built), ProposalReason.SET_SELECTOR)
    assert crossing(proposal.predicted.before, LocalityMeasure.READ_LOCAL) == 1
    assert crossing(proposal.predicted.after, LocalityMeasure.READ_LOCAL) == 0


def test_a_throttle_is_removed_by_a_command():
    built = a_cluster().topic("t", (1,), leader_throttle="0:1")
    left = Finding(
        reason=FindingReason.THROTTLE_LEFT_BEHIND, subject=SubjectId("topic", "t"), sentence="left", evidence=(),
        severity=FindingSeverity.WARNING, since_ms=NOW_MS,
    )  # fmt: skip
    proposal = only(proposed(built, left), ProposalReason.REMOVE_THROTTLE)
    assert proposal.line is not None
    assert proposal.line.startswith("kafka-configs.sh --bootstrap-server host1:9092 ")
    assert proposal.before == (ProposalRow("leader.replication.throttled.replicas", ("0:1",)),)


# --- identity -------------------------------------------------------------------------------------------------


def test_an_id_changes_with_what_the_proposal_rests_on_and_with_nothing_else():
    first = only(proposed(shared_rack()), ProposalReason.MEND_RACK_SPREAD)
    larger = shared_rack()
    larger.sizes = {partition: size * 2 for partition, size in larger.sizes.items()}
    larger.rates = {}
    assert only(proposed(larger), ProposalReason.MEND_RACK_SPREAD).id == first.id
    regrouped = shared_rack().group("g2", member("n", "a", "t-0"))
    assert only(proposed(regrouped), ProposalReason.MEND_RACK_SPREAD).id == first.id
    recreated = shared_rack()
    recreated.topics["t"] = recreated.topics["t"]._replace(topic_id="another")
    assert only(proposed(recreated), ProposalReason.MEND_RACK_SPREAD).id != first.id


def test_dates_come_from_the_snapshot():
    proposal = proposed(shared_rack(), limits=Limits(proposals=ProposalLimits(ttl_ms=60_000)))[0]
    assert (proposal.created_ms, proposal.expires_ms) == (NOW_MS, NOW_MS + 60_000)
    later = replace(shared_rack().snapshot(), taken_ms=NOW_MS + 7)
    detection = detect(later, Memory(), LIMITS, None)
    again = propose(later, make_plan(later, detection, LIMITS, None), detection, LIMITS, None)[0]
    assert (again.id, again.created_ms) == (proposal.id, NOW_MS + 7)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (123_000, "123 kB"), (12.3e9, "12.3 GB"), (3e18, "3000 PB")],
)
def test_sizes_read_as_people_write_them(size, text):
    assert sized(size) == text


def test_counts_have_their_plural():
    assert [counted(1, "replica"), counted(0, "replica"), counted(2, "entry", "entries")] == [
        "1 replica", "0 replicas", "2 entries"
    ]  # fmt: skip
