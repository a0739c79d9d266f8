"""What ends a finding, by its reason: for one that no setting line and no proposal of the look answers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent.values.finding import FindingReason

ENDS: Mapping[FindingReason, str] = {
    FindingReason.BROKER_ABSENT: (
        "The broker comes back. Nothing is moved because of it before `racks.broker_absent_for`."
    ),
    FindingReason.BROKER_RACK_CHANGED: (
        "Nothing, where it was meant; after `racks.stable_for` the replicas that it holds are planned anew."
    ),
    FindingReason.BROKER_RACK_MISSING: "Set it, and restart the broker.",
    FindingReason.RACK_FLAPPING: "Find what sets it; nothing is planned from it meanwhile.",
    FindingReason.RACK_SPELLING: "One spelling for brokers and clients, or an `alias` locator.",
    FindingReason.RACK_LOCATORS_DISAGREE: "Correct the one that is wrong; the first in `rack.locator.class` wins.",
    FindingReason.SELECTOR_NOT_RACK_AWARE: "`replica.selector.class` of all brokers, and a restart of each.",
    FindingReason.REPLICA_RACKS_CHANGED: (
        "Nothing, where it was meant. Where replicas share a rack now, that is a finding of its own."
    ),
    FindingReason.REPLICAS_SHARE_RACK: (
        "Approve the `reassign` proposal, or move them by `kafka-reassign-partitions.sh`."
    ),
    FindingReason.UNDER_MIN_ISR: "Bring its replicas back in sync; rackwise moves nothing of it meanwhile.",
    FindingReason.AT_MIN_ISR: "Bring the missing replica back in sync.",
    FindingReason.FOREIGN_REASSIGNMENT: "It ends by itself; rackwise never cancels it.",
    FindingReason.THROTTLE_LEFT_BEHIND: (
        "The `kafka-configs.sh` line of the advice; throttles of rackwise itself are removed by the agent."
    ),
    FindingReason.LEADER_SKEW: "Approve the `leaders` proposal; no data moves.",
    FindingReason.MEMBER_WITHOUT_RACK: "`client.rack` of each client; a rack locator tells rackwise alone.",
    FindingReason.MEMBER_IN_NO_BROKERS_RACK: (
        "`client.rack` spelled as the brokers' `broker.rack`, or brokers in that rack."
    ),
    FindingReason.SUBSCRIPTION_TOO_OLD: (
        "A newer client; for kafka-python and aiokafka the [assignors for Python](../clients.md)."
    ),
    FindingReason.PARTITION_CLAIMED_TWICE: "The group's next rebalance; if it lasts, the clients' assignor.",
    FindingReason.ASSIGNED_WHAT_IS_NOT_THERE: "The group's next rebalance, or the missing topic.",
    FindingReason.ASSIGNMENT_WORSE_THAN_OPTIMUM: (
        "A `trigger` where one rebalance brings it; else another assignor, replicas or leaders."
    ),
    FindingReason.ASSIGNOR_WOULD_NOT_FIX: "The assignor that the advice names; a rebalance alone changes nothing.",
    FindingReason.GROUP_KIND_IGNORES_RACKS: (
        "Where the gain is worth it `group.protocol=classic`, or for KIP-848 the [plug-in for brokers](../plugin.md): "
        "`rackwise groups` says what it would bring; or replicas and leaders near the members. Members in a rack "
        "without brokers need another `client.rack` first, or brokers there."
    ),
    FindingReason.PREDICTION_MISSED: "Set below `groups.<application.id>` what the application really uses.",
    FindingReason.RACK_AWARENESS_OFF: (
        "What the sentence names: `client.rack`, `broker.rack`, an assignor or a strategy."
    ),
    FindingReason.MIXED_VERSIONS: "The end of the upgrade; then it goes by itself.",
    FindingReason.GROUP_STUCK_IN_REBALANCE: (
        "The members that do not join: long polls, crashes, `max.poll.interval.ms`."
    ),
    FindingReason.GROUP_UNDECODABLE: (
        "Nothing for unknown assignors: the group is left alone. Else look at the client."
    ),
    FindingReason.STATE_UNKNOWN: (
        "`groups.<application.id>.topology.*`, or the right to describe its changelog topics."
    ),
    FindingReason.WARMUP_PROMOTABLE: (
        "A `trigger` of the agent, or the application's own `probing.rebalance.interval.ms`."
    ),
    FindingReason.WARMUP_UNSURE: "`groups.<application.id>.application.endpoints` makes lags certain.",
    FindingReason.WARMUP_NEVER: "Faster restoring on that instance, or a larger `acceptable.recovery.lag`.",
    FindingReason.STANDBY_LAG_GROWS: "The instance that runs it: disk, network, threads.",
    FindingReason.COPIES_SHARE_RACK: (
        "`rack.aware.assignment.tags` and client tags; under KIP-1071 there is no setting for it."
    ),
    FindingReason.RIGHTS_MISSING: "The [right](rights.md) that the sentence names.",
    FindingReason.PART_MISSING: "The next look, if it was a passing fault; else the broker that the sentence names.",
    FindingReason.WEIGHTS_UNUSED: "Run the pipeline, or set `weights.enabled=false`.",
}
"""As Markdown of docs/reference/findings.md."""
_MARKED = re.compile(r"`([^`]*)`|\[([^]]*)\]\([^)]*\)")


def ends_by(reason: FindingReason) -> str:
    """The same as plain text."""
    return _MARKED.sub(lambda found: found[1] or found[2], ENDS[reason])
