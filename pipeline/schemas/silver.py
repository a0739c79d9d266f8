"""Silver: what each look showed, as rows; decoded and modelled by the agent's own stages.

Every table has ``cluster``, ``look`` and ``taken_ms``. A look whose events did not all arrive has a row in
``silver.looks`` and nowhere else.
"""

from __future__ import annotations

from pyspark.sql import types as t

from pipeline.schemas.table import BOOLEAN, DOUBLE, INT, INTS, LONG, LONGS, STRING, STRINGS, TableSpec, column, columns

_LOOK = (
    column("cluster", STRING, "Cluster id.", required=True),
    column("look", STRING, "Id of the look.", required=True),
    column("taken_ms", LONG, "When the look began, epoch milliseconds.", required=True),
)
_DAY = column("day", STRING, "UTC day of taken_ms, yyyy-mm-dd.", required=True)


def _table(name: str, comment: str, key: tuple[str, ...], *fields: t.StructField) -> TableSpec:
    return TableSpec(f"silver.{name}", comment, columns(*_LOOK, *fields, _DAY), ("cluster", "look", *key), ("day",))


LOOKS = _table(
    "looks",
    "Looks, and whether they are complete.",
    (),
    column("monotonic_ms", LONG, "The agent's monotonic clock at the look; comparable within one instance only."),
    column("instance", STRING, "The agent's instance: what precedes the dash in the look's id."),
    column(
        "complete",
        BOOLEAN,
        "Whether it can be rebuilt: false of a look in short (full is false), and where events are missing.",
        required=True,
    ),
    column("full", BOOLEAN, "False where the agent recorded task copies and a report only; null while unknown."),
    column("problem", STRING, "Why it is not complete or could not be read; null otherwise."),
    column("gaps", INT, "Parts that did not answer."),
    column("gap_parts", STRINGS, "Their names, each once, sorted."),
    column("brokers", INT, "Brokers alive."),
    column("racks", INT, "Racks with a live broker; null while the rack of one is unknown."),
    column("known_racks", INT, "Racks of live brokers that are known, each once: the least that there are."),
    column("topics", INT, "Topics seen."),
    column("groups", INT, "Groups seen."),
    column(
        "selector_is_rack_aware",
        BOOLEAN,
        "Whether every live broker serves reads from the nearest replica; routes go by the leader's own.",
    ),
    column("limits_digest", STRING, "Digest of the limits in force."),
)

BROKERS = _table(
    "brokers",
    "Brokers with their racks.",
    ("broker",),
    column("broker", INT, "Id.", required=True),
    column("rack", STRING, "Rack of the broker by the rack locators; null unless known."),
    column("rack_state", STRING, "known, unknown or conflicting.", required=True),
    column("alive", BOOLEAN, "False for one that only replica lists name."),
    column("told_rack", STRING, "broker.rack, which client.rack is compared with."),
    column(
        "selector_is_rack_aware",
        BOOLEAN,
        "Whether it serves reads of the partitions that it leads from the nearest replica; null while unknown.",
    ),
)

PARTITIONS = _table(
    "partitions",
    "Partitions with their replicas, end offsets and sizes.",
    ("topic", "partition"),
    column("topic", STRING, "Topic.", required=True),
    column("partition", INT, "Partition.", required=True),
    column("topic_id", STRING, "Topic id; another one is another topic of the same name."),
    column("own", BOOLEAN, "Whether the topic is one of rackwise's own."),
    column("leader", INT, "Leader; null while there is none."),
    column("leader_rack", STRING, "Its rack; null unless known."),
    column("leader_selector", BOOLEAN, "Whether the leader serves reads from the nearest replica; null while unknown."),
    column("replicas", INTS, "Replicas in order."),
    column("replica_racks", STRINGS, "Their racks in the same order, null where unknown."),
    column("isr", INTS, "Replicas in sync."),
    column("isr_racks", STRINGS, "Their racks in the same order, null where unknown."),
    column("isr_told_racks", STRINGS, "The racks that they tell themselves, in the same order."),
    column("adding", INTS, "Replicas that a reassignment is adding; null where none runs."),
    column("removing", INTS, "Replicas that a reassignment is removing; null where none runs."),
    column("reassigned_by_us", BOOLEAN, "Whether that reassignment is rackwise's own."),
    column("end_offset", LONG, "Log end offset (high watermark)."),
    column("size_bytes", LONG, "Size on disk of its largest replica."),
    column("replica_bytes", LONGS, "Size of each replica, in the order of replicas; null where no log dir reports it."),
    column("size_fresh", BOOLEAN, "Whether the size was asked in this very look."),
    column("compacted", BOOLEAN, "Whether its topic is compacted; null when configs did not answer."),
    column("learned_bytes_per_record", DOUBLE, "What the agent had learned of its topic by then."),
)

GROUPS = _table(
    "groups",
    "Groups and the rebalance that they are in.",
    ("group",),
    column("group", STRING, "Group id.", required=True),
    column("kind", STRING, "Kind of the group, as telemetry and commands have it.", required=True),
    column("state", STRING, "State in Kafka's spelling."),
    column("assignor", STRING, "Assignor in use; null when hidden."),
    column("members", INT, "Number of members."),
    column("hidden", BOOLEAN, "Whether the coordinator shows no member bytes at the moment."),
    column("rebalance", STRING, "Identifies the last rebalance; null while unknown."),
    column("assignment_digest", STRING, "Digest of the assignment; null while hidden."),
)

HIDDEN, UNASSIGNED = "hidden", "unassigned"
"""Roles of reads of which only commits tell."""

READS = _table(
    "reads",
    "Reads: member and partition, or what a group has committed without a member that is shown.",
    ("group", "member", "role", "topic", "partition"),
    column("group", STRING, "Group id.", required=True),
    column(
        "member",
        STRING,
        "Member id; the process id where a task's member is unknown; empty where only commits tell of the read.",
        required=True,
    ),
    column(
        "role",
        STRING,
        "active, or standby or warm-up of a task that restores from it; where only commits tell of the read hidden "
        "(the group is rebalancing) or unassigned (no member is shown to read the partition).",
        required=True,
    ),
    column("client_id", STRING, "Client id."),
    column("rack", STRING, "Rack of the member; null unless known."),
    column("told_rack", STRING, "The client.rack that the member sends; null when it sends none."),
    column("topic", STRING, "Topic.", required=True),
    column("partition", INT, "Partition.", required=True),
    column("committed_offset", LONG, "What the group has committed there; null for nothing."),
)

COPIES = _table(
    "copies",
    "Copies of stateful tasks, with their lag.",
    ("group", "process", "task", "role"),
    column("group", STRING, "Application id.", required=True),
    column("process", STRING, "Process id.", required=True),
    column("rack", STRING, "The process's rack; null unless known, and in looks that were not written in full."),
    column("task", STRING, "Task, subtopology_partition.", required=True),
    column("role", STRING, "active, standby or warm-up.", required=True),
    column("role_certain", BOOLEAN, "False where a warm-up could still be a standby."),
    column("lag_low", DOUBLE, "Records behind, at least."),
    column("lag", DOUBLE, "Records behind, likely."),
    column("lag_high", DOUBLE, "Records behind, at most."),
    column("lag_source", STRING, "Where the lag comes from."),
    column("rate", DOUBLE, "Records per second by which it closes in; negative when it falls behind."),
    column("eta_s", DOUBLE, "Seconds until it has caught up, likely."),
    column("caught_up", BOOLEAN, "Whether it is certain that it has caught up, certain that not, or neither."),
    column("end_offset_sum", LONG, "End offsets of its changelogs, summed."),
    column("changelogs", STRINGS, "Its changelog topics, sorted; null where unknown."),
)

FINDINGS = _table(
    "findings",
    "Findings of the agent.",
    ("id",),
    column("id", STRING, "Id of the finding.", required=True),
    column("reason", STRING, "Reason.", required=True),
    column("severity", STRING, "Severity."),
    column("subject", STRING, "kind/name."),
    column("sentence", STRING, "The finding's sentence."),
    column("since_ms", LONG, "When it began, epoch milliseconds."),
    column("held", BOOLEAN, "Whether no proposal follows from it until racks are stable and absent brokers are back."),
)

LOCALITY = _table(
    "locality",
    "How local each group's work is, and could be.",
    ("group", "measure", "unit"),
    column("group", STRING, "Group id.", required=True),
    column("measure", STRING, "Measure: which replicas count as local.", required=True),
    column("unit", STRING, "partitions or bytes_per_s.", required=True),
    column("local", DOUBLE, "Near."),
    column("total", DOUBLE, "All."),
    column("unknown", DOUBLE, "Of readers or replicas whose rack is unknown."),
    column("optimal_local", DOUBLE, "Near under the best possible assignment."),
)

LOOK_IDS = columns(column("cluster", STRING, "Cluster id."), column("look", STRING, "Id of the look."))
"""Identity of a look."""

SILVER = (LOOKS, BROKERS, PARTITIONS, GROUPS, READS, COPIES, FINDINGS, LOCALITY)
