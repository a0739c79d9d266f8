"""Unit tests of the alerts, as a table.

For each alert: when it fires, is quiet, resolves, what it says of series that are absent, and what a restart of the
agent does to it.
"""

from __future__ import annotations

from tests.deploy.alert_scenarios import (
    CLUSTER,
    CONSUME,
    AlertCase,
    Labels,
    Scenario,
    cycles,
    joined,
    lives,
    of_gauge,
    risen,
    series,
    two,
)

_B: Labels = {**CLUSTER, "instance": "b:9464"}
_A: Labels = {**CLUSTER, "instance": "a:9464"}
_SUCCESS = "rackwise_last_success_timestamp_seconds"
_ALIVE, _ABSENT = {"state": "alive"}, {"state": "absent"}
_NOT_DONE = {"kind": "reassign", "outcome": "not done"}
_TRIGGERS = {"kind": "trigger", "outcome": "not done"}

AGENT = (
    AlertCase(
        "RackwiseNoAgent",
        CLUSTER,
        (
            Scenario(series("up", "1x5 0x10"), (9,), (3, 7)),
            Scenario(two("up", "1x20", "0x20"), (), (1, 20)),
            Scenario(series("up", "1x5 0x5 1x10"), (9,), (13,)),
            Scenario({}, (5,), (1,), ({},)),
            Scenario(series("up", "1x5 0 1x20"), (), (6, 8, 20)),
        ),
        (  # the targets are gone from the configuration, those of another cluster are not
            Scenario(joined(series("up", "1x5 stale"), series("up", "1x90", cluster="other")), (10, 60), (4, 70)),
            Scenario(joined(series("up", "1x20"), series("up", "0x20", job="node")), (), (20,)),
        ),
    ),
    AlertCase(
        "RackwiseAgentDown",
        _B,
        (
            Scenario(two("up", "1x9", "0x9"), (6,), (4,)),
            Scenario(two("up", "0x9", "0x9"), (), (9,)),  # RackwiseNoAgent says so
            Scenario(two("up", "1x20", "0x9 1x10"), (9,), (11,)),
            Scenario(series("up", "1x9"), (), (9,)),
            Scenario(two("up", "1x20", "1x3 0 0 1x9"), (), (5, 6, 12)),
        ),
    ),
    AlertCase(
        "RackwiseNoSuccess",
        CLUSTER,
        (
            Scenario(series(_SUCCESS, "0+60x5 300x20"), (11,), (7, 8)),
            Scenario(two(_SUCCESS, "0x20", "0+60x20"), (), (20,)),
            Scenario(series(_SUCCESS, "0x10 660+60x9"), (10,), (12,)),
            Scenario(series("rackwise_build_info", "1x20", version="1.0"), (3,), (1,)),
            Scenario(
                joined(
                    series("rackwise_build_info", "1x5 stale 1x20", version="1.0"),
                    series(_SUCCESS, "0+60x5 stale _ 480+60x20"),
                ),
                (),
                (6, 7, 8, 20),
            ),
        ),
        (Scenario({}, (), (9,)),),  # RackwiseNoAgent says so
    ),
    AlertCase(
        "RackwiseAgentWithoutSuccess",
        _B,
        (
            Scenario(two(_SUCCESS, "0+60x20", "0x20"), (12,), (4, 9)),
            Scenario(two(_SUCCESS, "0x20", "0x20"), (), (20,)),  # RackwiseNoSuccess says so
            Scenario(two(_SUCCESS, "0+60x30", "0x14 900+60x9"), (14,), (16,)),
            Scenario(
                joined(two("rackwise_build_info", "1x9", "1x9", version="1.0"), series(_SUCCESS, "0+60x9")), (6,), (4,)
            ),
            Scenario(
                joined(
                    two("rackwise_build_info", "1x20", "1x5 stale 1x20", version="1.0"),
                    two(_SUCCESS, "0+60x20", "0+60x5 stale _ 480+60x20"),
                ),
                (),
                (7, 12, 20),
            ),
        ),
    ),
    AlertCase(
        "RackwiseCyclesFail",
        _A,
        (
            Scenario(cycles("0+3x90", metric="rackwise_cycles_total"), (20,), (10,)),
            Scenario(cycles("0+1x90", metric="rackwise_cycles_total"), (), (20, 60)),
            Scenario(cycles("0+3x30 93x60", metric="rackwise_cycles_total"), (30,), (50,)),
            Scenario(series("rackwise_cycles_total", "0+6x90", outcome="succeeded"), (), (60,)),
            Scenario(
                cycles("0+3x12 stale 0+3x60", "0+6x12 stale 0+6x60", metric="rackwise_cycles_total"), (20, 40), (10,)
            ),
        ),
    ),
    AlertCase(
        "RackwiseCyclesOverrun",
        _A,
        (
            Scenario(cycles("0+4x90"), (20,), (10,)),
            Scenario(cycles("0+2x90"), (), (20, 60)),
            Scenario(cycles("0+4x30 124x60"), (30,), (50,)),
            Scenario(cycles("_x90"), (), (60,)),
            Scenario(cycles("0+4x12 stale 0+4x60", "0+6x12 stale 0+6x60"), (20, 40), (10,)),
        ),
    ),
    AlertCase(
        "RackwiseRestarts",
        CLUSTER,
        (
            Scenario(series("process_start_time_seconds", "1 2 3 4 5x20"), (5, 20), (3,)),
            Scenario(series("process_start_time_seconds", "1 2 3x90"), (), (3, 60)),
            Scenario(series("process_start_time_seconds", "1 2 3 4 5x90"), (20,), (70,)),
            Scenario(series("process_start_time_seconds", "1 2 3 4 5x9", job="node"), (), (5, 9)),
            Scenario(series("process_start_time_seconds", "1x5 stale 400x9"), (), (7, 15)),
        ),
    ),
    AlertCase(
        "RackwiseVersionsDiffer",
        CLUSTER,
        (
            Scenario(
                joined(
                    series("rackwise_build_info", "1x90", version="1.0"),
                    series("rackwise_build_info", "1x90", "b", version="1.1"),
                ),
                (61,),
                (59,),
            ),
            Scenario(two("rackwise_build_info", "1x90", "1x90", version="1.0"), (), (90,)),
            Scenario(
                joined(
                    series("rackwise_build_info", "1x70 stale", version="1.0"),
                    series("rackwise_build_info", "_x71 1x20", version="1.1"),
                    series("rackwise_build_info", "1x90", "b", version="1.1"),
                ),
                (65,),
                (72,),
            ),
            Scenario(series("up", "1x90"), (), (90,)),
            Scenario(
                joined(
                    series("rackwise_build_info", "1x9 stale", version="1.0"),
                    series("rackwise_build_info", "_x11 1x90", version="1.1"),
                ),
                (),
                (11, 90),
            ),
        ),
    ),
    AlertCase(
        "RackwiseRecordsLost",
        {**CLUSTER, "outcome": "dropped"},
        (
            Scenario(series("rackwise_records_total", "0x5 10+10x9", outcome="dropped"), (8,), (5,)),
            Scenario(series("rackwise_records_total", "0+100x20", outcome="written"), (), (5, 20)),
            Scenario(series("rackwise_records_total", "0x5 10x30", outcome="dropped"), (8,), (20,)),
            Scenario(lives(20), (), (5, 20)),
            Scenario(series("rackwise_records_total", "0x5 stale 0x9", outcome="dropped"), (), (5, 7, 12)),
        ),
    ),
)

SEEN = (
    of_gauge(
        "RackwisePartsUnseen", "rackwise_gaps", 15, kept=True, part="groups", cause="no answer in time",
        labels={"part": "groups", "cause": "no answer in time"},
    )._replace(
        further=(
            Scenario(series("rackwise_gaps", "1x60", part="group configs", cause="not supported"), (), (60,)),
            # a new gap each quarter of an hour is none that lasts
            Scenario(series("rackwise_gaps", "1 stale _x13 1 stale _x13 1", part="groups", cause="no answer in time"),
                     (), (16, 31)),
        )
    ),
    AlertCase(
        "RackwiseFiguresOld",
        {**CLUSTER, "figures": "groups"},
        (
            Scenario(series("rackwise_seen_timestamp_seconds", "0x30", figures="groups"), (18,), (14, 16)),
            Scenario(series("rackwise_seen_timestamp_seconds", "0+60x60", figures="groups"), (), (20, 60)),
            Scenario(series("rackwise_seen_timestamp_seconds", "0x20 1260+60x9", figures="groups"), (20,), (22,)),
            Scenario(lives(30), (), (30,)),
            # a standby agent has seen them
            Scenario(joined(series("rackwise_seen_timestamp_seconds", "0x5 stale 420x30", figures="groups"),
                            series("rackwise_seen_timestamp_seconds", "0+60x60", "b", figures="groups")), (), (18, 30)),
        ),
    ),
    of_gauge("RackwiseReadsUnknown", "rackwise_cross_rack_unknown", 360, kept=True, path="consume",
             labels={"path": "consume"}),
    of_gauge("RackwiseTaskLagUnknown", "rackwise_task_copies_lag_unknown", 60, kept=True, group="app",
             labels={"group": "app"}),
)  # fmt: skip

RACKS = (
    AlertCase(
        "RackwiseRackLost",
        {**CLUSTER, "rack": "c"},
        (
            Scenario(joined(series("rackwise_brokers", "2x30", rack="a", **_ALIVE),
                            series("rackwise_brokers", "2x5 stale", rack="c", **_ALIVE),
                            series("rackwise_brokers", "_x6 2x24", rack="c", **_ABSENT)), (9, 30), (5, 7)),
            Scenario(joined(series("rackwise_brokers", "2x30", rack="a", **_ALIVE),
                            series("rackwise_brokers", "1x30", rack="c", **_ALIVE),
                            series("rackwise_brokers", "1x30", rack="c", **_ABSENT)), (), (5, 30)),
            Scenario(joined(series("rackwise_brokers", "2x30", rack="a", **_ALIVE),
                            series("rackwise_brokers", "2x5 stale _x5 1x9", rack="c", **_ALIVE)), (9,), (13,)),
            # without any count of brokers the agent is meant, not the rack
            Scenario(joined(series("rackwise_brokers", "2x5 stale", rack="a", **_ALIVE),
                            series("rackwise_brokers", "2x5 stale", rack="c", **_ALIVE)), (), (9, 30)),
            # the agent is new and has never seen the rack alive
            Scenario(joined(series("rackwise_brokers", "2x5 stale stale 2x30", rack="a", **_ALIVE),
                            series("rackwise_brokers", "2x5 stale", rack="c", **_ALIVE)), (11, 30), (5, 7)),
        ),
        (
            # replicas are left in it: it is lost for longer than the hour too
            Scenario(joined(series("rackwise_brokers", "2x300", rack="a", **_ALIVE),
                            series("rackwise_brokers", "1x300", rack="c", **_ABSENT)), (3, 300), (1,)),
            # given up: no replica names it any more
            Scenario(joined(series("rackwise_brokers", "2x300", rack="a", **_ALIVE),
                            series("rackwise_brokers", "2x5 stale", rack="c", **_ALIVE)), (60,), (70,)),
            Scenario(series("rackwise_brokers", "1x30", rack="", **_ABSENT), (), (30,)),
        ),
    ),
    of_gauge("RackwiseBrokerAbsent", "rackwise_brokers", 15, kept=True, rack="a", state="absent", labels={"rack": "a"})
    ._replace(further=(
        Scenario(series("rackwise_brokers", "2x60", rack="a", **_ALIVE), (), (60,)),
        Scenario(series("rackwise_brokers", "1x30", rack="", **_ABSENT), (20,), (), (CLUSTER,)),
    )),
    of_gauge("RackwiseFindingCritical", "rackwise_findings", 2, reason="under min ISR", severity="critical",
             labels={"reason": "under min ISR"})
    ._replace(further=(Scenario(series("rackwise_findings", "1x60", reason="r", severity="warning"), (), (50,)),)),
    of_gauge("RackwiseFindingWarning", "rackwise_findings", 60, kept=True, reason="member without rack",
             severity="warning", labels={"reason": "member without rack"})
    ._replace(further=(Scenario(series("rackwise_findings", "1x99", reason="r", severity="info"), (), (90,)),)),
)  # fmt: skip

_USD, _BYTES = "rackwise_cross_rack_usd_per_day", "rackwise_cross_rack_bytes_per_second"
_SHARE, _BEST = "rackwise_group_cross_rack_share", "rackwise_group_optimal_cross_rack_share"
_READS = {"group": "billing", "measure": "read-local", "unit": "bytes_per_s"}


COST = (
    risen("RackwiseCrossRackCostRisen", _USD, "10", "20", "14")._replace(
        further=(Scenario(series(_USD, "1x1499 4x300", **CONSUME), (), (1_700,)),)  # three dollars more page no one
    ),
    risen("RackwiseCrossRackBytesRisen", _BYTES, "10000000", "20000000", "14000000")._replace(
        further=(  # with a price the cost alone speaks
            Scenario(joined(series(_BYTES, "10000000x1499 20000000x300", **CONSUME),
                            series(_USD, "10x1799", **CONSUME)), (), (1_700,)),
        )
    ),
    AlertCase(
        "RackwiseGroupFarFromBest",
        {**CLUSTER, "group": "billing"},
        (
            Scenario(joined(series(_SHARE, "0.7x400", **_READS), series(_BEST, "0.25x400", **_READS)), (370,), (350,)),
            Scenario(joined(series(_SHARE, "0.7x400", **_READS), series(_BEST, "0.6x400", **_READS)), (), (370,)),
            Scenario(joined(series(_SHARE, "0.7x380 0.3x99", **_READS), series(_BEST, "0.25x480", **_READS)),
                     (370,), (390,)),
            Scenario(series(_SHARE, "0.7x400", **_READS), (), (370,)),  # the best share is unknown
            Scenario(joined(series(_SHARE, "0.7x99 stale stale 0.7x400", **_READS),
                            series(_BEST, "0.25x99 stale stale 0.25x400", **_READS)), (370,), (350,)),
        ),
    ),
)  # fmt: skip

_TREND, _LAG = "rackwise_task_lag_trend_records_per_second", "rackwise_task_lag_records"
_WARMUP = {"group": "app", "task": "0_1", "role": "warm-up"}
_STANDBY = {"group": "app", "task": "0_1", "role": "standby"}
_HOSTILE = 'a"b\\ {{ $value }} <b>\n- alert: x'
_TASK = {"group": "app", "task": "0_1"}
_APP: Labels = {**CLUSTER, "group": "app"}

STREAMS = (
    AlertCase(
        "RackwiseWarmupStuck",
        _APP,
        (
            Scenario(series(_TREND, "-5x30", **_WARMUP), (17,), (13,)),
            Scenario(series(_TREND, "5x30", **_WARMUP), (), (20, 30)),
            Scenario(series(_TREND, "0x20 400x20", **_WARMUP), (17,), (22,)),
            # the rate is unknown; the warm-up has caught up
            Scenario(joined(series(_LAG, "9000x30", **_WARMUP), lives(30)), (), (30,)),
            Scenario(series(_TREND, "-5x9 stale stale -5x30", **_WARMUP), (17,), (13,)),
        ),
        (
            Scenario(joined(series(_TREND, "0x30", **_WARMUP), series("rackwise_task_promotable", "1x30", **_TASK)),
                     (), (30,)),
            Scenario(series(_TREND, "-5x30", **_STANDBY), (), (30,)),
            # a stranger chose the name: it is text, whatever it says
            Scenario(series(_TREND, "-5x30", **{**_WARMUP, "group": _HOSTILE}), (17,), (),
                     ({**CLUSTER, "group": _HOSTILE},)),
        ),
    ),
    AlertCase(
        "RackwiseWarmupWaits",
        _APP,
        (
            Scenario(series("rackwise_task_promotable", "0x5 1x40", **_TASK), (27,), (20, 24)),
            Scenario(series("rackwise_task_promotable", "0x40", **_TASK), (), (40,)),
            Scenario(series("rackwise_task_promotable", "1x25 stale", **_TASK), (22,), (32,)),
            Scenario(lives(40), (), (40,)),
            Scenario(series("rackwise_task_promotable", "1x9 stale stale 1x40", **_TASK), (22,), (18,)),
        ),
    ),
    AlertCase(
        "RackwiseStandbyFallsBehind",
        _APP,
        (
            Scenario(joined(series(_TREND, "-5x60", **_STANDBY), series(_LAG, "20000x60", **_STANDBY)), (32,), (28,)),
            Scenario(joined(series(_TREND, "-5x60", **_STANDBY), series(_LAG, "500x60", **_STANDBY)), (), (60,)),
            Scenario(joined(series(_TREND, "-5x40 9x20", **_STANDBY), series(_LAG, "20000x60", **_STANDBY)),
                     (35,), (42,)),
            Scenario(series(_LAG, "20000x60", **_STANDBY), (), (60,)),
            Scenario(joined(series(_TREND, "-5x9 stale stale -5x60", **_STANDBY),
                            series(_LAG, "20000x9 stale stale 20000x60", **_STANDBY)), (32,), (28,)),
        ),
    ),
)  # fmt: skip

_ACTS = "rackwise_acts_total"

ACTING = (
    AlertCase(
        "RackwiseNothingLeads",
        CLUSTER,
        (
            Scenario(two("rackwise_leads", "1x5 stale", "0x20"), (9,), (5, 7)),
            Scenario(two("rackwise_leads", "1x20", "0x20"), (), (20,)),
            Scenario(two("rackwise_leads", "0x20", "0x9 1x9"), (9,), (11,)),
            Scenario(lives(20), (), (20,)),  # not in mode execute
            Scenario(series("rackwise_leads", "1x5 stale 0 1x20"), (), (6, 8, 20)),
        ),
        (  # a leader of another cluster is none of this one
            Scenario(joined(series("rackwise_leads", "0x20"), series("rackwise_leads", "1x20", cluster="other")), (9,)),
        ),
    ),
    AlertCase(
        "RackwiseTwoLead",
        CLUSTER,
        (
            Scenario(two("rackwise_leads", "1x20", "1x20"), (6,), (4,)),
            Scenario(two("rackwise_leads", "1x20", "0x20"), (), (20,)),
            Scenario(two("rackwise_leads", "1x20", "1x9 0x9"), (9,), (11,)),
            Scenario(lives(20), (), (20,)),
            # the next one leads while the last sample of the former is still there
            Scenario(two("rackwise_leads", "1x6 stale 0x9", "0x4 1x12"), (), (6, 8, 16)),
        ),
    ),
    of_gauge("RackwiseActingFails", "rackwise_acting_fails", 5, what="journal", labels={"what": "journal"})
    ._replace(further=(Scenario(series("rackwise_acting_fails", "1x30", what="lead"), (), (30,)),)),
    of_gauge("RackwiseCannotLead", "rackwise_acting_fails", 10, what="lead",
             labels={"instance": "a:9464", "what": "lead"})
    ._replace(further=(Scenario(series("rackwise_acting_fails", "1x30", what="look"), (), (30,)),)),
    AlertCase(
        "RackwiseActNotDone",
        {**CLUSTER, "kind": "reassign"},
        (
            Scenario(joined(lives(60), series(_ACTS, "1x19 2x40", **_NOT_DONE)), (22,), (19,)),
            Scenario(joined(lives(60), series(_ACTS, "0+1x60", kind="reassign", outcome="done")), (), (5, 30)),
            Scenario(joined(lives(60), series(_ACTS, "1x19 2x40", **_NOT_DONE)), (25,), (40,)),
            # the first of its kind: a series that begins with 1
            Scenario(joined(lives(60), series(_ACTS, "_x20 1x40", **_NOT_DONE)), (20, 30), (19, 40)),
            Scenario(joined(series("process_start_time_seconds", "1x29 stale 1860x60"),
                            series("rackwise_cycles_total", "0+6x29 stale 0+6x60", outcome="succeeded"),
                            series(_ACTS, "3x29 stale _x10 1x40", **_NOT_DONE)), (42,), (28, 35, 58)),
        ),
        (Scenario(joined(lives(60), series(_ACTS, "_x20 1x40", **_TRIGGERS)), (), (25,)),),
    ),
    AlertCase(
        "RackwiseTriggersNotDone",
        CLUSTER,
        (
            Scenario(series(_ACTS, "1x9 2+1x9", **_TRIGGERS), (19,), (9,)),
            Scenario(series(_ACTS, "1x29 2x40", **_TRIGGERS), (), (40,)),
            Scenario(series(_ACTS, "1x9 2+1x9 11x90", **_TRIGGERS), (19,), (90,)),
            Scenario(lives(60), (), (60,)),
            Scenario(series(_ACTS, "9x9 stale 1x90", **_TRIGGERS), (), (9, 14, 60)),
        ),
    ),
    of_gauge("RackwisePlanHeld", "rackwise_plans_waiting", 720, kept=True),
    AlertCase(
        "RackwisePlanStands",
        CLUSTER,
        (
            Scenario(series("rackwise_plan_partitions_left", "9x200"), (92,), (88,)),
            Scenario(series("rackwise_plan_partitions_left", "200-1x190"), (), (92, 180)),
            Scenario(series("rackwise_plan_partitions_left", "9x100 8x90"), (95,), (102,)),
            Scenario(lives(200), (), (200,)),
            Scenario(series("rackwise_plan_partitions_left", "9x40 stale stale 9x160"), (92,), (88,)),
        ),
        (
            Scenario(joined(series("rackwise_plan_partitions_left", "9x200"),
                            series("rackwise_plans_waiting", "1x200")), (), (200,)),
        ),
    ),
    of_gauge("RackwiseThrottleLeft", "rackwise_throttles_set", 10)._replace(
        further=(
            Scenario(joined(series("rackwise_throttles_set", "4x30"), series("rackwise_plans_open", "1x30")),
                     (), (30,)),
            Scenario(joined(series("rackwise_throttles_set", "4x30"), series("rackwise_plans_open", "0x30")),
                     (12,), ()),
        )
    ),
    AlertCase(
        "RackwiseJournalForeignRecords",
        CLUSTER,
        (
            Scenario(series("rackwise_journal_records_ignored", "0x9 3x9"), (12,), (9,)),
            Scenario(series("rackwise_journal_records_ignored", "3x90"), (), (5, 90)),
            Scenario(series("rackwise_journal_records_ignored", "0x9 3x90"), (12,), (80,)),
            Scenario(lives(60), (), (60,)),  # records are not signed
            Scenario(series("rackwise_journal_records_ignored", "3x9 stale stale 3x30"), (), (9, 14, 30)),
        ),
    ),
)  # fmt: skip

CASES: tuple[AlertCase, ...] = (*AGENT, *SEEN, *RACKS, *COST, *STREAMS, *ACTING)
