"""The document of ``doctor``: every check of one look, with the cost of its faults. Pure; unknown stays None."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from agent.documents.views import plugin_gains
from agent.explain.doctor import CheckState, diagnose, risks
from agent.explain.doctor_fixes import NO_COST, fault_cost
from agent.money.costs import CrossRackCosts, costs_of
from agent.values.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent.documents.cluster import CheckDocument
    from agent.explain.doctor import DoctorCheck
    from agent.simulate.evaluation import StageEvaluation


def doctor_checks(look: StageEvaluation, gains: Mapping[str, str] | None = None) -> tuple[DoctorCheck, ...]:
    """Every check of ``doctor`` on one look: faults, then risks.

    ``gains``: `plugin_gains` of the look, where they are there already.
    """
    faults = diagnose(
        look.snapshot,
        look.detection,
        look.plan or Plan(),
        look.limits,
        look.before,
        proposals=look.proposals,
        gains=plugin_gains(look) if gains is None else gains,
    )
    return (*faults, *risks(look.snapshot))


def doctor_rows(
    found: Iterable[DoctorCheck], look: StageEvaluation, costs: CrossRackCosts | None = None
) -> list[CheckDocument]:
    """Checks with what their faults cost."""
    marks: dict[CheckState, Literal["ok", "nothing", "once", "FAULT", "risk", "unknown"]] = {
        CheckState.OK: "ok",
        CheckState.NOTHING: "nothing",
        CheckState.SEEN_ONCE: "once",
        CheckState.FAULT: "FAULT",
        CheckState.RISK: "risk",
        CheckState.UNKNOWN: "unknown",
    }
    costs, rows = costs or costs_of(look.snapshot), []
    for check in found:
        cost = NO_COST
        if check.state is CheckState.FAULT:
            cost = fault_cost(check.name, check.who, costs, look)
        row: CheckDocument = {
            "state": marks[check.state],
            "check": check.name,
            "sentence": check.sentence,
            "sentences": list(check.sentences),
            "who": list(check.who),
            "line": check.line,
            "fixes": [{"who": list(fix.who), "lines": list(fix.lines)} for fix in check.fixes],
            "cross_rack_bytes_per_s": cost.bytes_per_s,
            "usd_per_day": cost.usd_per_day,
            "at_most_usd_per_day": cost.at_most_usd_per_day,
            "always_shown": check.always_shown,
        }
        rows.append(row)
    return rows
