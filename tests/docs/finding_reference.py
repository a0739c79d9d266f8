"""docs/reference/findings.md, read off the code. Write it anew: python -m tests.docs.finding_reference"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent.values.finding import FindingReason, FindingSeverity
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


class FindingRemedy(NamedTuple):
    """What a reason means, and what ends it."""

    means: str
    mends: str


REMEDIES: Mapping[str, FindingRemedy] = {
    "BROKER_ABSENT": FindingRemedy(
        "A broker that holds replicas, or was seen earlier, is not live.",
        "The broker comes back. Nothing is moved because of it before `racks.broker_absent_for`.",
    ),
    "BROKER_RACK_CHANGED": FindingRemedy(
        "A broker is in another rack than before.",
        "Nothing, where it was meant; after `racks.stable_for` the replicas that it holds are planned anew.",
    ),
    "BROKER_RACK_MISSING": FindingRemedy("A broker has no `broker.rack`.", "Set it, and restart the broker."),
    "RACK_FLAPPING": FindingRemedy(
        "A broker's rack changed `racks.flap_changes` times within `racks.flap_window`.",
        "Find what sets it; nothing is planned from it meanwhile.",
    ),
    "RACK_SPELLING": FindingRemedy(
        "One rack seems to be written in several ways.", "One spelling for brokers and clients, or an `alias` locator."
    ),
    "RACK_LOCATORS_DISAGREE": FindingRemedy(
        "Two rack locators give one broker or member different racks.",
        "Correct the one that is wrong; the first in `rack.locator.class` wins.",
    ),
    "SELECTOR_NOT_RACK_AWARE": FindingRemedy(
        "Brokers let consumers read from leaders only.",
        "`replica.selector.class` of all brokers, and a restart of each.",
    ),
    "REPLICA_RACKS_CHANGED": FindingRemedy(
        "The racks of a partition's replicas are others than before; or partitions are new (info).",
        "Nothing, where it was meant. Where replicas share a rack now, that is a finding of its own.",
    ),
    "REPLICAS_SHARE_RACK": FindingRemedy(
        "Replicas of a partition share a rack while another rack is free.",
        "Approve the `reassign` proposal, or move them by `kafka-reassign-partitions.sh`.",
    ),
    "UNDER_MIN_ISR": FindingRemedy(
        "A partition refuses writes with `acks=all`, or has no leader.",
        "Bring its replicas back in sync; rackwise moves nothing of it meanwhile.",
    ),
    "AT_MIN_ISR": FindingRemedy(
        "One in-sync replica less, and writes with `acks=all` stop.", "Bring the missing replica back in sync."
    ),
    "FOREIGN_REASSIGNMENT": FindingRemedy(
        "A reassignment of another tool is in progress.", "It ends by itself; rackwise never cancels it."
    ),
    "THROTTLE_LEFT_BEHIND": FindingRemedy(
        "A replication throttle is set and no reassignment needs it.",
        "The `kafka-configs.sh` line of the advice; throttles of rackwise itself are removed by the agent.",
    ),
    "LEADER_SKEW": FindingRemedy(
        "Preferred leaders are uneven over the racks.", "Approve the `leaders` proposal; no data moves."
    ),
    "MEMBER_WITHOUT_RACK": FindingRemedy(
        "Members send no rack, so they fetch from leaders and are assigned without regard to racks.",
        "`client.rack` of each client; a rack locator tells rackwise alone.",
    ),
    "MEMBER_IN_NO_BROKERS_RACK": FindingRemedy(
        "A member sends a rack that no broker has: all that it reads crosses racks.",
        "`client.rack` spelled as the brokers' `broker.rack`.",
    ),
    "SUBSCRIPTION_TOO_OLD": FindingRemedy(
        "A client is too old to send a rack in its subscription.",
        "A newer client; for kafka-python and aiokafka the [assignors for Python](../clients.md).",
    ),
    "PARTITION_CLAIMED_TWICE": FindingRemedy(
        "Two members of a group hold one partition.", "The group's next rebalance; if it lasts, the clients' assignor."
    ),
    "ASSIGNED_WHAT_IS_NOT_THERE": FindingRemedy(
        "Members hold partitions of topics that do not exist.", "The group's next rebalance, or the missing topic."
    ),
    "ASSIGNMENT_WORSE_THAN_OPTIMUM": FindingRemedy(
        "Another assignment of the same balance reads less across racks.",
        "A `trigger` where one rebalance brings it; else another assignor, replicas or leaders.",
    ),
    "ASSIGNOR_WOULD_NOT_FIX": FindingRemedy(
        "The group's own assignor would not find the better assignment.",
        "The assignor that the advice names; a rebalance alone changes nothing.",
    ),
    "GROUP_KIND_IGNORES_RACKS": FindingRemedy(
        "The brokers assign this group (KIP-848, KIP-1071), and their assignors do not look at racks.",
        "`group.protocol=classic` where the gain is worth it, or replicas and leaders near the members.",
    ),
    "PREDICTION_MISSED": FindingRemedy(
        "The group was assigned otherwise than rackwise predicted.",
        "Set below `groups.<application.id>` what the application really uses.",
    ),
    "RACK_AWARENESS_OFF": FindingRemedy(
        "The group's assignor does not look at racks, for the reason in the sentence.",
        "What the sentence names: `client.rack`, `broker.rack`, an assignor or a strategy.",
    ),
    "MIXED_VERSIONS": FindingRemedy(
        "Members run different versions of their client.", "The end of the upgrade; then it goes by itself."
    ),
    "GROUP_STUCK_IN_REBALANCE": FindingRemedy(
        "A group rebalances for longer than `detect.stuck_rebalance_after`.",
        "The members that do not join: long polls, crashes, `max.poll.interval.ms`.",
    ),
    "GROUP_UNDECODABLE": FindingRemedy(
        "Metadata of a member cannot be read by any known version.",
        "Nothing for unknown assignors: the group is left alone. Else look at the client.",
    ),
    "STATE_UNKNOWN": FindingRemedy(
        "It is not known which of the application's tasks have state, so standbys and lags are not either.",
        "`groups.<application.id>.topology.*`, or the right to describe its changelog topics.",
    ),
    "WARMUP_PROMOTABLE": FindingRemedy(
        "A warm-up has caught up and waits for a probing rebalance.",
        "A `trigger` of the agent, or the application's own `probing.rebalance.interval.ms`.",
    ),
    "WARMUP_UNSURE": FindingRemedy(
        "Whether a warm-up has caught up is not certain.",
        "`groups.<application.id>.application.endpoints` makes lags certain.",
    ),
    "WARMUP_NEVER": FindingRemedy(
        "A warm-up falls behind at its rate and will not catch up.",
        "Faster restoring on that instance, or a larger `acceptable.recovery.lag`.",
    ),
    "STANDBY_LAG_GROWS": FindingRemedy(
        "A standby falls further and further behind.", "The instance that runs it: disk, network, threads."
    ),
    "COPIES_SHARE_RACK": FindingRemedy(
        "Copies of a task share a rack or tag while another is free.",
        "`rack.aware.assignment.tags` and client tags; under KIP-1071 there is no setting for it.",
    ),
    "RIGHTS_MISSING": FindingRemedy(
        "rackwise lacks a right, so a part of the cluster is unknown.",
        "The [right](rights.md) that the sentence names.",
    ),
    "PART_MISSING": FindingRemedy(
        "A part of the cluster did not answer, or an answer was doubted.",
        "The next look, if it was a passing fault; else the broker that the sentence names.",
    ),
    "WEIGHTS_UNUSED": FindingRemedy(
        "Weights of the pipeline are not used, or in part.", "Run the pipeline, or set `weights.enabled=false`."
    ),
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
            *REMEDIES[one.name],
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
