"""Routes: the rack from which a reader gets its bytes.

From an in-sync replica in its client.rack, where the leader's broker has Kafka's ``RackAwareReplicaSelector``
(KIP-392), whatever other brokers have; else from the leader. A replica that is not in sync never serves. client.rack is
compared with broker.rack letter by letter, before either is mapped to a known rack. An unknown route has a reason.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipeline.schemas.zones import CROSS_ZONE, SAME_ZONE, UNKNOWN_ZONE

READER_UNKNOWN = "the rack of the reader is not known"
MEMBERS_HIDDEN = "the group is rebalancing, and its members are hidden meanwhile"
NO_MEMBER = "no member of the group is shown to read the partition, only commits tell of it"
LEADER_UNKNOWN = "the rack of the leader is not known"
FOLLOWER_UNKNOWN = "the rack of a follower is not known"
PRODUCER_UNKNOWN = "the rack of the producers is not known"
SELECTOR_UNKNOWN = "whether the leader's broker sends reads to the nearest replica is not known"
REPLICA_UNKNOWN = "the rack of the replica that serves is not known"


def nearest(picture: Column, client_rack: Column) -> Column:
    """The place of the first replica in sync in that rack, from 1; 0 where none is."""
    return F.coalesce(F.array_position(picture["isr_told_racks"], client_rack), F.lit(0))


def route(picture: Column, rack: Column, client_rack: Column, place: Column, no_rack: Column) -> Column:
    """struct(source, target, why) of a reader in ``rack`` with ``client_rack``; ``why`` is null when known.

    ``place`` is a column of `nearest`, which is named so often that it would be worked out a dozen times;
    ``no_rack`` is why the rack of the reader is unknown, where it is.
    """
    near = F.get(picture["isr_racks"], (place - 1).cast("int"))
    leader, selector = picture["leader_rack"], picture["selector"]
    nearby = client_rack.isNotNull() & (place > 0)
    undecided = nearby & selector.isNull() & ~near.eqNullSafe(leader)
    source = F.when(nearby & selector, near).when(~undecided, leader)
    why = (
        F.when(rack.isNull(), no_rack)
        .when(undecided, SELECTOR_UNKNOWN)
        .when(nearby & selector & near.isNull(), REPLICA_UNKNOWN)
        .when(source.isNull(), LEADER_UNKNOWN)
    )
    return F.struct(source.alias("source"), rack.alias("target"), why.alias("why"))


def zone(source: Column, target: Column, why: Column) -> Column:
    """A word of ``pipeline.schemas.zones``."""
    return F.when(why.isNotNull(), UNKNOWN_ZONE).when(source == target, SAME_ZONE).otherwise(CROSS_ZONE)
