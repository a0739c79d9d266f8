"""The document of ``simulate``: the outcome of simulated changes. Pure; unknown stays None."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, cast

from agent.documents.status import look_document
from agent.simulate.evaluation import StageEvaluation
from agent.simulate.rack_loss import RackLoss, loss_sentence
from agent.simulate.simulate import AddedCopies, AssignmentOutcome, GroupSimulation, SimulationResult
from agent.values.cycle import figures_rest_on
from agent.values.finding import Finding
from agent.values.limits import Limits
from agent.values.plan import merged_notes
from agent.values.proposal import Proposal

if TYPE_CHECKING:
    from agent.documents import plan as documents
    from agent.documents.plan import WarmupCost


def simulation_answer(simulation: SimulationResult, look: StageEvaluation) -> documents.SimulationAnswer:
    """The outcome of changes of a look, with that look."""
    return {
        "simulation": simulation_to_json(simulation, look.limits),
        "look": look_document(look),
        "figures": figures_rest_on(simulation.proposals),
    }


def simulation_to_json(simulation: SimulationResult, limits: Limits) -> documents.SimulationDocument:
    """Groups under each assignor, findings that come and go, proposals, and racks whose loss costs something else."""
    return {
        "changes": list(simulation.changes),
        "groups": [_group(group) for group in simulation.groups],
        "findings": [
            *(_finding("new", finding) for finding in simulation.found),
            *(_finding("gone", finding) for finding in simulation.gone),
        ],
        "proposals": _proposals(simulation),
        "copies": [_copies(row, limits) for row in simulation.copies],
        "racks": [
            {"rack": rack, "now": _loss(now), "then": _loss(then)}
            for rack, now, then in simulation.losses
            if _loss(now) != _loss(then)
        ],
    }


def _proposals(simulation: SimulationResult) -> list[documents.SimulatedProposal]:
    """Those of then, and after them those of now that are not made any more."""
    now = {_same(proposal) for proposal in simulation.proposals_now}
    then = {_same(proposal) for proposal in simulation.proposals}
    return [
        *(_proposal("unchanged" if _same(one) in now else "new", one) for one in simulation.proposals),
        *(_proposal("gone", one) for one in simulation.proposals_now if _same(one) not in then),
    ]


def _same(proposal: Proposal) -> tuple[str, str, str]:
    """What two proposals share that say the same."""
    return proposal.kind.value, str(proposal.subject), proposal.sentence


def _copies(row: AddedCopies, limits: Limits) -> documents.SimulatedCopies:
    return {
        "topic": row.topic,
        "replicas_added": row.replicas,
        "bytes_to_copy": row.bytes_to_copy,
        "cross_rack_bytes_per_s_now": None if row.traffic_before.unknown else row.traffic_before.bytes_per_s,
        "cross_rack_bytes_per_s_then": None if row.traffic_after.unknown else row.traffic_after.bytes_per_s,
        "usd_per_day_now": None if row.traffic_before.unknown else row.traffic_before.usd_per_day(limits),
        "usd_per_day_then": None if row.traffic_after.unknown else row.traffic_after.usd_per_day(limits),
    }


def _group(group: GroupSimulation) -> documents.SimulatedGroup:
    prediction = group.prediction
    answered = prediction is not None and prediction.settled is not None
    warmups = prediction.warmups if prediction is not None else None
    notes = list(prediction.notes) if prediction is not None else []
    certainty = f"the prediction is {prediction.certainty.value}" if prediction is not None else ""
    return {
        "group": group.group_id,
        "kind": group.kind,
        "now": _outcome(group.now),
        "own_assignor": _outcome(group.own),
        "plugin": _outcome(group.plugin),
        "plugin_gain": group.plugin_gain,
        "optimum": _outcome(group.optimum),
        "waiting": group.waiting,
        "note": group.why_not or "; ".join(merged_notes(notes)) or certainty,
        "prediction": None
        if prediction is None or not answered
        else {
            "assignor": prediction.assignor,
            "settings": prediction.settings,
            "basis": prediction.basis.value,
            "certainty": prediction.certainty.value,
            "rebalances": prediction.rebalances,
            "notes": notes,
        },
        "warmups": None if warmups is None else cast("WarmupCost", asdict(warmups)),
    }


def _outcome(outcome: AssignmentOutcome | None) -> documents.SimulatedOutcome | None:
    if outcome is None:
        return None
    cost, standbys = outcome.cost, outcome.standbys
    return {
        "reads": outcome.reads,
        "crossing": cost.crossing,
        "unknown": cost.unknown,
        "crossing_bytes_per_s": cost.crossing_bytes_per_s,
        "usd_per_day": cost.usd_per_day,
        "moved": cost.moved,
        "standbys": None if standbys is None else standbys.copies,
        "standbys_sharing_a_rack": None if standbys is None else standbys.sharing_a_rack,
    }


def _finding(change: Literal["new", "gone"], finding: Finding) -> documents.SimulatedFinding:
    return {
        "change": change,
        "severity": finding.severity.value,
        "finding": finding.reason.value,
        "subject": str(finding.subject),
        "sentence": finding.sentence,
    }


def _proposal(change: Literal["new", "gone", "unchanged"], proposal: Proposal) -> documents.SimulatedProposal:
    return {
        "change": change,
        "kind": proposal.kind.value,
        "subject": str(proposal.subject),
        "sentence": proposal.sentence,
    }


def _loss(loss: RackLoss | None) -> str | None:
    return None if loss is None else loss_sentence(loss)
