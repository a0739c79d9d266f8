"""Findings about groups that rebalanced otherwise than was predicted: they run something else than is believed."""

from __future__ import annotations

from agent.detect.ground import View
from agent.memory.foretold import missed
from agent.values.finding import Finding, FindingReason, Severity, Subject


def foretold_findings(view: View) -> list[Finding]:
    """One finding for each group whose last rebalance differs from its prediction."""
    findings = []
    for name, foretold in view.memory.foretold.items():
        if view.limits.excludes_group(name):
            continue
        why = missed(foretold, view.snapshot.groups.get(name), view.snapshot)
        if why is not None:
            findings.append(
                Finding(
                    reason=FindingReason.PREDICTION_MISSED,
                    subject=Subject("group", name),
                    sentence=f"group {name} was predicted wrongly: {why}; the configured or assumed settings are "
                    "probably not those that it runs with",
                    evidence=(
                        ("predicted by", foretold.by),
                        ("known from", foretold.basis),
                        ("crossing predicted", foretold.crossing),
                        ("prediction", "exact assignment" if foretold.exact else "cost only"),
                    ),
                    severity=Severity.INFO,
                    since_ms=view.snapshot.taken_ms,
                )
            )
    return findings
