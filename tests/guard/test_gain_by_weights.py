"""Least gains of triggers by weights are asked of bytes, all others of partitions."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from agent.guard.cluster_checks import WORTH_CHECKS
from agent.values.limits import GainLimits, Limits
from agent.values.proposal import CheckPassed, Hold, HoldReason, Proposal, ProposalReason
from tests.propose.test_basis import HEAVY, only, proposals, swapped
from tests.telemetry.weight_rates import reading_of

RECORDS = SimpleNamespace(view={}, moved={})


def judged(proposal: Proposal, limits: Limits) -> CheckPassed | Hold | None:
    """What the check of the least gain says."""
    ground = SimpleNamespace(limits=limits, records=RECORDS, now_ms=proposal.created_ms)
    (check,) = [check for check in WORTH_CHECKS if check.__name__ == "_enough_gain"]
    return check(proposal, ground)


@pytest.fixture
def weighed() -> Proposal:
    return only(proposals(swapped(reading_of({"t": HEAVY}))), ProposalReason.REBALANCE_IMPROVES)


def test_by_weights_the_share_is_one_of_bytes(weighed: Proposal) -> None:
    found = judged(weighed, Limits(gain=GainLimits(min_share=0.5, min_partitions=100)))
    assert isinstance(found, CheckPassed)
    assert found.sentence == "it makes 1.8 kB/s of 1.8 kB/s local; the least gain is 910 B/s"


def test_too_few_bytes_are_held(weighed: Proposal) -> None:
    before, after = weighed.predicted.before, weighed.predicted.after
    little = weighed._replace(predicted=replace(weighed.predicted, after=before))
    found = judged(little, Limits(gain=GainLimits(min_share=0.5)))
    assert isinstance(found, Hold)
    assert found.reason is HoldReason.TOO_LITTLE_GAIN
    assert "makes 0 B/s of 1.8 kB/s local" in found.sentence
    assert after != before


def test_without_weights_partitions_are_asked_for() -> None:
    counted = only(proposals(swapped(None)), ProposalReason.REBALANCE_IMPROVES)
    found = judged(counted, Limits(gain=GainLimits(min_partitions=5)))
    assert isinstance(found, Hold)
    assert "makes 4 of 4 partitions local; the least gain is 5.0" in found.sentence
