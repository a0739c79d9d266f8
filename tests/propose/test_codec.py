"""The proposal document: canonical bytes, there and back, and a schema that matches the code."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.propose.codec import (
    BadProposalDocument,
    proposal_from_json,
    proposal_to_bytes,
    proposal_to_json,
)
from agent.values.proposal import Proposal, ProposalKind, ProposalReason
from tests.docs.schemas import proposal_schema
from tests.plan.random_clusters import random_cluster, random_clusters
from tests.plan.test_properties import proposed

SCHEMA_FILE = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "proposal.v1.json"


def some_proposals() -> list[Proposal]:
    """Proposals of every reason that random worlds give."""
    found: dict[ProposalReason, Proposal] = {}
    for seed in range(200):
        for proposal in proposed(random_cluster(random.Random(seed)))[2]:
            found.setdefault(proposal.reason, proposal)
    return list(found.values())


PROPOSALS = some_proposals()


def test_the_samples_cover_every_kind():
    assert {proposal.kind for proposal in PROPOSALS} == set(ProposalKind)
    assert len({proposal.reason for proposal in PROPOSALS}) >= 8


@pytest.mark.parametrize("proposal", PROPOSALS, ids=lambda p: p.reason.name.lower())
def test_a_proposal_survives_the_way_there_and_back(proposal):
    data = proposal_to_bytes(proposal)
    assert proposal_from_json(data) == proposal
    assert proposal_from_json(data.decode()) == proposal
    assert proposal_from_json(proposal_to_json(proposal)) == proposal
    assert proposal_to_bytes(proposal_from_json(data)) == data


def test_the_committed_schema_is_the_code():
    assert json.loads(SCHEMA_FILE.read_text()) == proposal_schema(), (
        f"{SCHEMA_FILE.name} differs from the code: if the change is additive, make schemas writes it anew"
    )


@pytest.mark.parametrize("proposal", PROPOSALS, ids=lambda p: p.reason.name.lower())
def test_every_proposal_fits_the_schema(proposal):
    jsonschema.Draft202012Validator(proposal_schema()).validate(json.loads(proposal_to_bytes(proposal)))


@given(random_clusters())
def test_proposals_of_any_world_fit_the_schema_and_come_back(snapshot):
    validator = jsonschema.Draft202012Validator(proposal_schema())
    for proposal in proposed(snapshot)[2]:
        data = proposal_to_bytes(proposal)
        validator.validate(json.loads(data))
        assert proposal_from_json(data) == proposal


def test_fields_come_in_a_fixed_order_and_without_spaces():
    data = proposal_to_bytes(PROPOSALS[0])
    assert data.startswith(b'{"schema_version":1,"id":"p-')
    assert list(json.loads(data)) == list(proposal_schema()["properties"])


def test_fields_of_a_later_minor_release_are_left_aside():
    document = proposal_to_json(PROPOSALS[0])
    document["mood"] = "sunny"
    document["subject"]["colour"] = "blue"
    assert proposal_from_json(document) == PROPOSALS[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"schema_version": 2}, "use a newer release", id="a newer version"),
        pytest.param({"schema_version": 0}, "schema version 0", id="a version that never was"),
        pytest.param({"kind": "dance"}, "kind", id="an unknown kind"),
        pytest.param({"reason": "boredom"}, "there is no reason 'boredom'", id="an unknown reason"),
        pytest.param({"before": None}, "before", id="a missing list"),
        pytest.param({"created_ms": "yesterday"}, "created_ms", id="a text for a number"),
        pytest.param({"predicted": {}}, "predicted.before", id="an empty prediction"),
    ],
)
def test_a_document_that_is_no_proposal_says_where(change, says):
    with pytest.raises(BadProposalDocument, match=says):
        proposal_from_json({**proposal_to_json(PROPOSALS[0]), **change})


ROW = {"key": "t-0", "value": [1, 2]}


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        pytest.param([], [ROW], "no row 't-0'", id="a partition whose replicas before are not told"),
        pytest.param([ROW], [{"key": "t-0", "value": [1, "2"]}], "'t-0' has no list of", id="a text for a broker"),
        pytest.param([ROW], [{"key": "t-0", "value": [1, 1]}], "'t-0' has no list of", id="a broker twice"),
        pytest.param([ROW], [{"key": "t-0", "value": []}], "'t-0' has no list of", id="no replicas"),
        pytest.param([ROW], [{"key": "t-0", "value": [1, 2**31]}], "'t-0' has no list of", id="no broker's number"),
        *(
            pytest.param([{**ROW, "key": key}], [{**ROW, "key": key}], f"'{key}' is no partition", id=key or "no name")
            for key in ("", "t", "-0", "t-", "t-00", "t-x", "t-\u0661", f"t-{2**31}", "t-99999999999")
        ),
    ],
)
def test_a_placement_is_read_from_its_rows_once_or_refused(before, after, says):
    moved = next(one for one in PROPOSALS if one.kind is ProposalKind.REASSIGN)
    document = proposal_to_json(moved)
    assert proposal_from_json(document).placements == moved.placements != ()
    with pytest.raises(BadProposalDocument, match=re.escape(says)):
        proposal_from_json({**document, "before": before, "after": after})


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_foreign_bytes_raise_only_bad_proposal_document(data):
    with pytest.raises(BadProposalDocument):
        proposal_from_json(data)
