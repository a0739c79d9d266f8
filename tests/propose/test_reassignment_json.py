"""Files for kafka-reassign-partitions: written, read back, and refused where the tool would refuse them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.propose.codec import BadReassignmentFile, read_reassignment_json, reassignment_json, rollback_json
from agent.values.proposal import ProposalKind
from tests.plan.random_clusters import random_clusters
from tests.plan.test_properties import proposed
from tests.propose.test_propose import shared_rack
from tests.snapshots import tp


@given(random_clusters())
def test_files_carry_the_plan_out_and_back(snapshot):
    _, plan, proposals = proposed(snapshot)
    wanted = {change.id: change for placement in plan.placements for change in placement.changes}
    assert {change.id: change for one in proposals for change in one.placements} == wanted
    assert read_reassignment_json(reassignment_json(proposals)) == {p: wanted[p].after for p in sorted(wanted)}
    assert read_reassignment_json(rollback_json(proposals)) == {p: wanted[p].before for p in sorted(wanted)}


def test_the_file_is_what_the_tool_documents():
    _, _, proposals = proposed(shared_rack().topic("t", (1, 4)).snapshot())
    moved = [p for p in proposals if p.kind is ProposalKind.REASSIGN]
    data = json.loads(rollback_json(moved))
    assert data == {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 4]}]}


def test_two_proposals_about_one_partition_make_no_file():
    _, _, proposals = proposed(shared_rack().snapshot())
    moved = next(p for p in proposals if p.kind is ProposalKind.REASSIGN)
    with pytest.raises(BadReassignmentFile, match="more than one proposal changes t-0"):
        reassignment_json([moved, moved._replace(id="p-other")])


def test_advice_and_rebalances_are_left_out():
    _, _, proposals = proposed(shared_rack().snapshot())
    others = [p for p in proposals if p.kind not in (ProposalKind.REASSIGN, ProposalKind.LEADERS)]
    assert read_reassignment_json(reassignment_json(others)) == {}


def test_log_dirs_are_left_to_the_brokers_and_partitions_are_sorted():
    text = json.dumps(
        {
            "partitions": [
                {"topic": "t", "partition": 1, "replicas": [2, 3], "log_dirs": ["any", "any"]},
                {"topic": "t", "partition": 0, "replicas": [3]},
            ]
        }
    )
    assert read_reassignment_json(text) == {tp("t-0"): (3,), tp("t-1"): (2, 3)}


def entry(**changes: object) -> str:
    return json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], **changes}]})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("{", "not JSON", id="half a file"),
        pytest.param("[]", "expected", id="a list"),
        pytest.param('{"version": 2, "partitions": []}', "expected", id="another version"),
        pytest.param('{"version": 1, "partitions": [3]}', r"partitions\[0\] is no object", id="a number for an entry"),
        pytest.param(entry(topic=""), "topic is no name", id="no topic"),
        pytest.param(entry(partition=-1), "partition is no number", id="a negative partition"),
        pytest.param(entry(partition=True), "partition is no number", id="a truth for a number"),
        pytest.param(entry(replicas=[]), "replicas is no list", id="no replicas"),
        pytest.param(entry(replicas=[1, 1]), "names a broker twice", id="a broker twice"),
        pytest.param(
            json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}] * 2}), "t-0 is listed twice",
            id="a partition twice",
        ),
    ],
)  # fmt: skip
def test_a_file_that_the_tool_would_refuse_says_where(text, says):
    with pytest.raises(BadReassignmentFile, match=says):
        read_reassignment_json(text)


@given(st.text(max_size=100))
def test_foreign_text_raises_only_bad_reassignment_file(text):
    with pytest.raises(BadReassignmentFile):
        read_reassignment_json(text)
