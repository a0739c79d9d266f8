"""Plans of workloads: the demo's, a small one, and one with every part of a topology.

The demo needs four brokers in the racks a, b, c, a: with one broker per rack no two replicas can share a rack. On
three brokers it runs too, and names what it left out.

======================  =======================================  ==================================================
topic                   placed                                   read by
======================  =======================================  ==================================================
orders                  well, RF 3                               Streams applications shop, shop-next
payments                both replicas in one rack (4 brokers)    billing (range), ledger (Java, racks)
clicks                  well, RF 2                               audit (cooperative-sticky), search (KIP-848)
views                   RF 3, all leaders in the first rack      mailer (librdkafka), exports (Java), both rackless
======================  =======================================  ==================================================
"""

from __future__ import annotations

from dataclasses import replace

from testbed.demo.workload.facts import ClusterFacts
from testbed.demo.workload.placement import crowded, leaders_in_rack, spread
from testbed.demo.workload.plan import (
    GroupProtocol,
    JavaGroupPlan,
    LibrdkafkaGroupPlan,
    LoadPlan,
    StreamsPlan,
    TopicPlan,
    TopologyPlan,
    WorkloadFault,
    WorkloadFaultKind,
    WorkloadPlan,
)

DEMO_RACKS = ("a", "b", "c", "a")
"""Racks of the demo's brokers, in the order of their ids."""

_PARTITIONS = 6
# Only so much may be missing for a task to move: less than the preload of a task, so that warm-ups are needed.
_ACCEPTABLE_RECOVERY_LAG = 1_000


def demo_plan(facts: ClusterFacts) -> WorkloadPlan:
    """Every kind of group, one Streams application under each protocol, and one fault of each kind."""
    members = _member_racks(facts)
    topics, faults, left_out = _demo_topics(facts)
    return WorkloadPlan(
        topics=topics,
        loads=(
            LoadPlan(topic="orders", records_per_s=150, value_bytes=120, skew=0.5, preload_records=60_000),
            LoadPlan(topic="payments", records_per_s=120, value_bytes=300),
            LoadPlan(topic="clicks", records_per_s=150, value_bytes=200),
            LoadPlan(topic="views", records_per_s=100, value_bytes=250),
        ),
        librdkafka_groups=(
            LibrdkafkaGroupPlan(group="billing", topic="payments", racks=members, protocol=GroupProtocol.RANGE),
            LibrdkafkaGroupPlan(
                group="audit", topic="clicks", racks=members, protocol=GroupProtocol.COOPERATIVE_STICKY
            ),
            LibrdkafkaGroupPlan(group="search", topic="clicks", racks=members, protocol=GroupProtocol.CONSUMER),
            LibrdkafkaGroupPlan(
                group="mailer", topic="views", racks=(None, None, None), protocol=GroupProtocol.COOPERATIVE_STICKY
            ),
        ),
        java_groups=(
            JavaGroupPlan(group="ledger", topic="payments", racks=members),
            JavaGroupPlan(group="exports", topic="views", racks=(None, None)),
        ),
        streams=(
            classic_application(facts, "shop", newcomer_restore_records_per_s=800),
            streams_application(facts, "shop-next"),
        ),
        faults=(
            *faults,
            WorkloadFault(kind=WorkloadFaultKind.MEMBER_WITHOUT_RACK, subject="mailer"),
            WorkloadFault(kind=WorkloadFaultKind.MEMBER_WITHOUT_RACK, subject="exports"),
            WorkloadFault(kind=WorkloadFaultKind.GROUP_IGNORES_RACKS, subject="search"),
            WorkloadFault(kind=WorkloadFaultKind.GROUP_IGNORES_RACKS, subject="shop-next"),
        ),
        left_out=left_out,
    )


def small_plan(
    facts: ClusterFacts, *, newcomer_restore_records_per_s: int = 0, preload_records: int = 12_000
) -> WorkloadPlan:
    """One topic, one librdkafka group and the classic Streams application on two racks: up in a few seconds."""
    return WorkloadPlan(
        topics=(TopicPlan(name="orders", replicas=spread(facts.racks, _PARTITIONS, 2)),),
        loads=(LoadPlan(topic="orders", records_per_s=100, value_bytes=100, preload_records=preload_records),),
        librdkafka_groups=(
            LibrdkafkaGroupPlan(
                group="audit", topic="orders", racks=_member_racks(facts), protocol=GroupProtocol.COOPERATIVE_STICKY
            ),
        ),
        streams=(classic_application(facts, "shop", newcomer_restore_records_per_s=newcomer_restore_records_per_s),),
    )


def parts_plan(facts: ClusterFacts) -> WorkloadPlan:
    """One instance of the Streams application with every optional part; shares no name with the other scenes."""
    app = classic_application(facts, "parts")
    topology = TopologyPlan(
        input="returns",
        stateless_input="audits",
        stateless_output="audits-seen",
        table_input="products",
        unlogged_input="sightings",
    )
    names = ("returns", "audits", "audits-seen", "products", "sightings")
    return WorkloadPlan(
        topics=tuple(
            TopicPlan(
                name=name,
                replicas=spread(facts.racks, _PARTITIONS, 2),
                configs={"cleanup.policy": "compact"} if name == "products" else {},
            )
            for name in names
        ),
        loads=tuple(LoadPlan(topic=name, records_per_s=30, value_bytes=100) for name in names if name != "audits-seen"),
        streams=(replace(app, racks=app.racks[:1], topology=topology),),
    )


def classic_application(facts: ClusterFacts, name: str, *, newcomer_restore_records_per_s: int = 0) -> StreamsPlan:
    """The application under the classic protocol: standbys by tag, warm-ups, a long wait between probing rebalances."""
    return StreamsPlan(
        application=name,
        topology=TopologyPlan(input="orders"),
        newcomer_restore_records_per_s=newcomer_restore_records_per_s,
        racks=_member_racks(facts)[:2],
        settings={
            "acceptable.recovery.lag": str(_ACCEPTABLE_RECOVERY_LAG),
            "max.warmup.replicas": "2",
            "num.standby.replicas": "1",
            "probing.rebalance.interval.ms": "600000",
            "rack.aware.assignment.strategy": "min_traffic",
            "rack.aware.assignment.tags": "zone",
            "replication.factor": str(min(3, len(facts.racks))),
        },
    )


def streams_application(facts: ClusterFacts, name: str) -> StreamsPlan:
    """The same application under KIP-1071: standbys are a config of the group."""
    return StreamsPlan(
        application=name,
        topology=TopologyPlan(input="orders"),
        racks=_member_racks(facts)[:2],
        streams_protocol=True,
        settings={"replication.factor": str(min(3, len(facts.racks)))},
        group_configs={"streams.num.standby.replicas": "1"},
    )


def _demo_topics(facts: ClusterFacts) -> tuple[tuple[TopicPlan, ...], tuple[WorkloadFault, ...], tuple[str, ...]]:
    racks, faults, left_out = facts.racks, [], []
    payments = crowded(racks, _PARTITIONS)
    if payments is None:
        payments = spread(racks, _PARTITIONS, 2)
        left_out.append("Topic payments has no replicas that share a rack: that needs a rack with two brokers.")
    else:
        faults.append(WorkloadFault(kind=WorkloadFaultKind.REPLICAS_SHARE_RACK, subject="payments"))
    names = facts.rack_names
    if len(names) > 1:
        views = leaders_in_rack(racks, names[0], _PARTITIONS, 3)
        faults.append(WorkloadFault(kind=WorkloadFaultKind.LEADERS_IN_ONE_RACK, subject="views"))
    else:
        views = spread(racks, _PARTITIONS, 3)
        left_out.append("Topic views has its leaders in all racks: leader skew needs at least two racks.")
    topics = (
        TopicPlan(name="orders", replicas=spread(racks, _PARTITIONS, 3)),
        TopicPlan(name="payments", replicas=payments, configs={"min.insync.replicas": "1"}),
        TopicPlan(name="clicks", replicas=spread(racks, _PARTITIONS, 2), configs={"min.insync.replicas": "1"}),
        TopicPlan(name="views", replicas=views),
    )
    return topics, tuple(faults), tuple(left_out)


def _member_racks(facts: ClusterFacts) -> tuple[str | None, ...]:
    """One member per rack, at most three; without racks three members that send none."""
    return facts.rack_names[:3] or (None, None, None)
