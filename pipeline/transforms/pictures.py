"""What a look shows of a partition's replicas: arrays in the order of the replicas, and what can be read out of them.

Only functions that Spark compiles: it interprets those with lambdas, element by element, and they took a sixth of
the time of tasks in the largest world.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def picture() -> Column:
    """Of a row of silver.partitions with the racks of its look; a struct.

    ``brokers``, ``broker_racks`` and ``broker_bytes`` are of all replicas, ``adding`` brokers that a reassignment adds.
    """
    return F.struct(
        "leader",
        "leader_rack",
        F.col("replicas").alias("brokers"),
        F.col("replica_racks").alias("broker_racks"),
        F.col("replica_bytes").alias("broker_bytes"),
        F.coalesce("adding", F.array().cast("array<int>")).alias("adding"),
        "isr",
        "isr_racks",
        "isr_told_racks",
        F.col("leader_selector").alias("selector"),
        "racks",
        "known_racks",
        "size_bytes",
        "size_fresh",
    )


def placement(seen: Column) -> Column:
    """The part of a picture that the ledger goes by: it hardly ever changes from look to look."""
    names = ("leader", "leader_rack", "brokers", "broker_racks", "adding", "isr", "racks", "known_racks")
    return F.when(seen.isNotNull(), F.struct(*(seen[name].alias(name) for name in names)))


def at_broker(seen: Column, name: str, broker: Column) -> Column:
    """What ``name``, an array in the order of ``brokers``, has of that broker; null where it is none of them."""
    return F.get(seen[name], (F.array_position(seen["brokers"], broker) - 1).cast("int"))


def settled_brokers(seen: Column) -> Column:
    """The replicas that no reassignment adds."""
    return F.array_except(seen["brokers"], seen["adding"])


def followers(seen: Column) -> Column:
    """Their brokers, without those that a reassignment adds."""
    return F.array_except(settled_brokers(seen), F.array(seen["leader"]))


def racks_beyond(seen: Column) -> Column:
    """The rack of each follower that is not in the leader's rack, null where it is unknown."""
    settled = F.when(F.size(seen["adding"]) == 0, seen["broker_racks"]).otherwise(
        F.transform(settled_brokers(seen), lambda broker: at_broker(seen, "broker_racks", broker))
    )
    return F.array_remove(settled, seen["leader_rack"])


def has_unknown(values: Column, any_value: Column) -> Column:
    """Whether one of the values is null. ``any_value`` is of their type, and not null."""
    # To ask for what is not in it has no answer where something unknown might be it.
    return F.array_contains(F.array_remove(values, any_value), any_value).isNull()
