"""docs/reference/findings.md, read off the code. Write it anew: python -m tests.docs.finding_reference"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from agent.values.finding import ENDS, FindingReason, FindingSeverity
from tests.docs.house import files, tree_of
from tests.docs.reference_pages import table, write

HEAD = """\
# Findings

A finding is a fault or a notable fact, with a sentence, its evidence and its age. The reasons and their severities
are read off the code; several severities: the sentence and its evidence decide. *held*: a finding that hysteresis
holds is shown, and nothing is planned from it. What needs more than one look is found by `rackwise run` alone;
`rackwise doctor` does not report its absence.

`rackwise doctor` has the exact line for your cluster, [proposals](proposals.md) what rackwise does about it.
"""
_ORDER = [FindingSeverity.CRITICAL, FindingSeverity.WARNING, FindingSeverity.INFO]


MEANS: Mapping[str, str] = {
    "BROKER_ABSENT": "A broker that holds replicas, or was seen earlier, is not live.",
    "BROKER_RACK_CHANGED": "A broker is in another rack than before.",
    "BROKER_RACK_MISSING": "A broker has no `broker.rack`.",
    "RACK_FLAPPING": "A broker's rack changed `racks.flap_changes` times within `racks.flap_window`.",
    "RACK_SPELLING": "One rack seems to be written in several ways.",
    "RACK_LOCATORS_DISAGREE": "Two rack locators give one broker or member different racks.",
    "SELECTOR_NOT_RACK_AWARE": "Brokers let consumers read from leaders only.",
    "REPLICA_RACKS_CHANGED": (
        "The racks of a partition's replicas are others than before; or partitions are new (info)."
    ),
    "REPLICAS_SHARE_RACK": "Replicas of a partition share a rack while another rack is free.",
    "UNDER_MIN_ISR": "A partition refuses writes with `acks=all`, or has no leader.",
    "AT_MIN_ISR": "One in-sync replica less, and writes with `acks=all` stop.",
    "FOREIGN_REASSIGNMENT": "A reassignment of another tool is in progress.",
    "THROTTLE_LEFT_BEHIND": "A replication throttle is set and no reassignment needs it.",
    "LEADER_SKEW": "Preferred leaders are uneven over the racks.",
    "MEMBER_WITHOUT_RACK": (
        "Members send no rack, so they fetch from leaders and are assigned without regard to racks."
    ),
    "MEMBER_IN_NO_BROKERS_RACK": "A member sends a rack that no broker has: all that it reads crosses racks.",
    "SUBSCRIPTION_TOO_OLD": "A client is too old to send a rack in its subscription.",
    "PARTITION_CLAIMED_TWICE": "Two members of a group hold one partition.",
    "ASSIGNED_WHAT_IS_NOT_THERE": "Members hold partitions of topics that do not exist.",
    "ASSIGNMENT_WORSE_THAN_OPTIMUM": "Another assignment of the same balance reads less across racks.",
    "ASSIGNOR_WOULD_NOT_FIX": "The group's own assignor would not find the better assignment.",
    "GROUP_KIND_IGNORES_RACKS": (
        "The brokers assign this group (KIP-848, KIP-1071), and Kafka's own assignors there do not look at racks."
    ),
    "PREDICTION_MISSED": "The group was assigned otherwise than rackwise predicted.",
    "RACK_AWARENESS_OFF": "The group's assignor does not look at racks, for the reason in the sentence.",
    "MIXED_VERSIONS": "Members run different versions of their client.",
    "GROUP_STUCK_IN_REBALANCE": "A group rebalances for longer than `detect.stuck_rebalance_after`.",
    "GROUP_UNDECODABLE": "Metadata of a member cannot be read by any known version.",
    "STATE_UNKNOWN": (
        "It is not known which of the application's tasks have state, so standbys and lags are not either."
    ),
    "WARMUP_PROMOTABLE": "A warm-up has caught up and waits for a probing rebalance.",
    "WARMUP_UNSURE": "Whether a warm-up has caught up is not certain.",
    "WARMUP_NEVER": "A warm-up falls behind at its rate and will not catch up.",
    "STANDBY_LAG_GROWS": "A standby falls further and further behind.",
    "COPIES_SHARE_RACK": "Copies of a task share a rack or tag while another is free.",
    "RIGHTS_MISSING": "rackwise lacks a right, so a part of the cluster is unknown.",
    "PART_MISSING": "A part of the cluster did not answer, or an answer was doubted.",
    "WEIGHTS_UNUSED": "Weights of the pipeline are not used, or in part.",
}
"""By the reason's name; the tests compare them with the reasons."""
_SURE = {
    "UNDER_MIN_ISR": {FindingSeverity.CRITICAL},
    "AT_MIN_ISR": {FindingSeverity.WARNING},
    "RIGHTS_MISSING": {FindingSeverity.CRITICAL, FindingSeverity.WARNING},
    "PART_MISSING": {FindingSeverity.CRITICAL, FindingSeverity.WARNING, FindingSeverity.INFO},
}
"""Where a function decides that several reasons share, or by the part of the cluster (`agent/detect/rights.py`)."""


def page() -> str:
    """A table of all reasons, the gravest first."""
    found = severities()
    reasons = sorted(FindingReason, key=lambda one: (min(map(_ORDER.index, found[one.name])), one.value))
    rows = [
        (
            one.value,
            " or ".join(severity.value for severity in _ORDER if severity in found[one.name]),
            MEANS[one.name],
            ENDS[one],
        )
        for one in reasons
    ]
    return f"{HEAD}\n{table(('reason', 'severity', 'means', 'ends by'), rows)}\n"


def severities() -> Mapping[str, set[FindingSeverity]]:
    """Reason -> severities of the findings that code makes for it."""
    found: dict[str, set[FindingSeverity]] = {one.name: set() for one in FindingReason}
    for path in files("agent"):
        for reasons, made in _made(tree_of(path)):
            for reason in reasons:
                found[reason] |= made
    return {reason: _SURE.get(reason, made) for reason, made in found.items()}


def _made(tree: ast.Module) -> Iterator[tuple[set[str], set[FindingSeverity]]]:
    """Reasons and severities of each call that makes findings: its own severities, or those of its helper."""
    helpers = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        helper = helpers.get(call.func.id)
        if helper is None and call.func.id != "Finding":
            continue
        given = [*call.args, *(one.value for one in call.keywords)]
        reasons = {name for one in given for name in _named(one, "FindingReason")}
        made = {name for one in given for name in _named(one, "FindingSeverity")}
        if helper is not None:
            reasons = reasons or (set(_named(helper, "FindingReason")) if made else set())
            made = made or (set(_named(helper, "FindingSeverity")) if reasons else set())
        yield reasons, {FindingSeverity[name] for name in made}


def _named(node: ast.AST, enum: str) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == enum:
            yield one.attr


if __name__ == "__main__":
    write("findings.md", page())
