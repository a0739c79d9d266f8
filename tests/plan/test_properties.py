"""What holds for every plan and every proposal, on random clusters with faults of every kind."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from agent.detect.find import detect
from agent.plan.make import make_plan
from agent.propose.codec import proposal_to_bytes
from agent.propose.make import propose
from agent.values.assessment import DetectionResult
from agent.values.finding import FindingReason
from agent.values.limits import Limits, ProposalLimits, ScopeLimits
from agent.values.memo import Memo
from agent.values.memory import Memory
from agent.values.plan import Plan, Unplanned
from agent.values.proposal import Proposal, ProposalKind
from agent.values.snapshot import RackState, Snapshot
from agent.values.throttles import crowding, rack_room
from tests.plan.random_clusters import a_quiet_cluster, mixed_findings, random_clusters, shuffled

LIMITS = Limits(scope=ScopeLimits(exclude_topics=("private*",)))
SLOW = settings(suppress_health_check=[HealthCheck.too_slow])


def proposed(snapshot: Snapshot, limits: Limits = LIMITS) -> tuple[DetectionResult, Plan, tuple[Proposal, ...]]:
    detection = detect(snapshot, Memory(), limits, None)
    plan = make_plan(snapshot, detection, limits, None)
    return detection, plan, propose(snapshot, plan, detection, limits, None)


def written(proposals: tuple[Proposal, ...]) -> list[bytes]:
    return [proposal_to_bytes(proposal) for proposal in proposals]


def carried_out(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The snapshot once all placements are done and in sync."""
    after = {change.id: change.after for placement in plan.placements for change in placement.changes}
    topics = {
        name: topic._replace(
            partitions=tuple(
                state._replace(replicas=after[state.id], isr=after[state.id], leader=after[state.id][0])
                if state.id in after
                else state
                for state in topic.partitions
            )
        )
        for name, topic in snapshot.topics.items()
    }
    return replace(snapshot, topics=topics)


@SLOW
@given(random_clusters(), st.integers(0, 99))
def test_the_same_world_in_any_order_gives_byte_same_proposals(snapshot, seed):
    detection, plan, proposals = proposed(snapshot)
    other = shuffled(snapshot, seed)
    mixed = DetectionResult(findings=mixed_findings(detection.findings, seed), assessments=detection.assessments)
    plan_again = make_plan(other, mixed, LIMITS, None)
    assert plan_again == plan
    assert written(propose(other, plan_again, mixed, LIMITS, None)) == written(proposals)
    for proposal in proposals:
        event(f"{proposal.kind.value}: {proposal.reason.name}")


@SLOW
@given(random_clusters(), random_clusters())
def test_a_memo_never_changes_a_plan_or_a_proposal(before, snapshot):
    memos = [Memo(), Memo()]
    for world in (before, snapshot, snapshot):
        detection = detect(world, Memory(), LIMITS, None)
        plan = make_plan(world, detection, LIMITS, memos[0])
        proposals = propose(world, plan, detection, LIMITS, memos[1])
        assert plan == make_plan(world, detection, LIMITS, None)
        assert written(proposals) == written(propose(world, plan, detection, LIMITS, None))
        for memo in memos:
            memo.turn()


@SLOW
@given(random_clusters())
def test_placements_touch_only_what_they_may(snapshot):
    _, plan, _ = proposed(snapshot)
    states = {state.id: state for topic in snapshot.topics.values() for state in topic.partitions}
    brokers = {broker.id: broker for broker in snapshot.brokers}
    seen: set[object] = set()
    for placement in plan.placements:
        assert not placement.topic.startswith(("private", "rackwise")), "excluded and own topics are left out"
        assert placement.findings, "no plan without a finding"
        for change in placement.changes:
            assert change.id not in seen, "one change per partition"
            seen.add(change.id)
            assert change.id not in snapshot.reassignments, "running reassignments are left alone"
            assert change.before == states[change.id].replicas
            assert change.before != change.after
            assert len(set(change.after)) == len(change.before), "the replication factor stays, no broker twice"
            if placement.leaders_only:
                assert sorted(change.after) == sorted(change.before)
                assert change.after[0] in states[change.id].isr
                assert brokers[change.after[0]].alive
                continue
            racks = [brokers[b].rack for b in {*change.before, *change.after} if b in brokers]
            assert all(rack.state is RackState.KNOWN for rack in racks), "no move rests on an unknown rack"
            for taker in set(change.after) - set(change.before):
                broker = brokers[taker]
                assert broker.alive
                assert not broker.fenced
                assert not broker.cordoned


@SLOW
@given(random_clusters())
def test_a_plan_carried_out_removes_the_findings_it_answers(snapshot):
    _, plan, _ = proposed(snapshot)
    after = carried_out(snapshot, plan)
    room = rack_room(after.brokers)
    mended = {p.topic for p in plan.placements if not p.leaders_only}
    left = {key for key, _ in plan.unplanned}
    for name in mended:
        for state in after.topics[name].partitions:
            if state.id not in left and state.id not in snapshot.reassignments:
                assert crowding(state.replicas, room) is None, f"{state.id} still shares a rack: {state.replicas}"
    again = make_plan(after, detect(after, Memory(), LIMITS, None), LIMITS, None)
    assert not [p for p in again.placements if not p.leaders_only], "once carried out, nothing more is to be moved"


@SLOW
@given(random_clusters())
def test_no_plan_moves_more_than_the_rule_needs(snapshot):
    _, plan, _ = proposed(snapshot)
    rack_of = {b.id: b.rack.name for b in snapshot.brokers if b.rack.state is RackState.KNOWN}
    racks = len(set(rack_of.values()))
    for placement in plan.placements:
        if placement.leaders_only:
            continue
        for change in placement.changes:
            held = Counter(rack_of[broker] for broker in change.before)
            after = Counter(rack_of[broker] for broker in change.after)
            most = -(-len(change.before) // racks)
            excess = sum(max(0, count - most) for count in held.values())
            share = len(change.before) // racks
            lacking = sum(max(0, share - held[rack]) for rack in set(rack_of.values()))
            moved = len(set(change.after) - set(change.before))
            gained = sum(max(0, after[rack] - held[rack]) for rack in after)
            assert moved == gained, "nothing moves inside a rack"
            assert moved <= max(excess, lacking)


@SLOW
@given(random_clusters(), st.integers(2, 50))
def test_ids_rest_on_structure_and_not_on_figures(snapshot, factor):
    _, _, proposals = proposed(snapshot)
    later = replace(
        snapshot,
        taken_ms=snapshot.taken_ms + 10_000,
        monotonic_ms=snapshot.monotonic_ms + 10_000,
        size_bytes={partition: size * factor for partition, size in snapshot.size_bytes.items()},
        bytes_per_s={partition: rate * factor for partition, rate in snapshot.bytes_per_s.items()},
        end_offsets={},
    )
    _, _, again = proposed(later)
    assert [p.id for p in again] == [p.id for p in proposals]
    assert [p.snapshot_hash for p in again] == [p.snapshot_hash for p in proposals]
    assert all(p.created_ms == later.taken_ms and p.expires_ms > p.created_ms for p in again)


@SLOW
@given(random_clusters())
def test_every_proposal_explains_itself(snapshot):
    detection, _, proposals = proposed(snapshot)
    known = {finding.id: finding for finding in detection.findings}
    slots = Counter((p.subject, p.kind, p.reason) for p in proposals)
    assert not [slot for slot, count in slots.items() if count > 1], "one proposal per subject, kind and reason"
    assert len({p.id for p in proposals}) == len(proposals)
    assert list(proposals) == sorted(proposals, key=lambda p: (p.kind.value, p.subject))
    for proposal in proposals:
        assert proposal.sentence.strip()
        assert proposal.after
        assert {row.key for row in proposal.before} <= {row.key for row in proposal.after} or proposal.moves
        assert proposal.findings
        assert all(name in known and not known[name].held for name in proposal.findings), "never from a held finding"
        assert (proposal.kind is ProposalKind.ADVISE) == (proposal.line is not None)
        predicted = proposal.predicted
        for share in (*predicted.before, *predicted.after):
            assert 0 <= share.local <= share.total
            assert 0 <= share.unknown <= share.total - share.local
        assert json.loads(proposal_to_bytes(proposal))["id"] == proposal.id


@SLOW
@given(random_clusters())
def test_what_is_found_is_planned_or_listed(snapshot):
    detection, plan, _ = proposed(snapshot)
    answered = {name for part in (plan.placements, plan.triggers, plan.advice) for p in part for name in p.findings}
    listed = {key for key, _ in plan.unplanned}
    for finding in detection.findings:
        if finding.reason is FindingReason.REPLICAS_SHARE_RACK:
            partitions = {state.id for state in snapshot.topics[finding.subject.name].partitions}
            assert finding.id in answered | listed or partitions & listed
        if finding.reason in (FindingReason.MEMBER_WITHOUT_RACK, FindingReason.WARMUP_PROMOTABLE):
            assert finding.id in answered | listed


def test_a_quiet_cluster_gives_nothing_worth_doing():
    detection, plan, proposals = proposed(a_quiet_cluster().snapshot())
    assert (detection.findings, plan, proposals) == ((), Plan(), ())


def test_the_caps_hold_and_what_is_cut_is_listed():
    built = a_quiet_cluster().broker(4, "a").broker(5, "a")
    for number in range(6):
        built.topic(f"bad-{number}", (1, 4, 5))
    _, plan, proposals = proposed(built.snapshot(), Limits(proposals=ProposalLimits(max_per_cycle=4)))
    assert len(proposals) == 4
    assert Counter(why for _, why in plan.unplanned) == {Unplanned.CAPPED: 2}
