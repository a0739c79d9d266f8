"""Names of plans in Spark beside the agent's own functions that write them and take them apart."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from agent.journal.plan_entries import change_writes
from agent.values import reassignment
from agent.values.reassignment import Batch, ReassignmentPlan, ReassignmentTarget
from assignors.problem import TopicPartition
from pipeline.transforms.journal_entries import attempt, plan_name

NAMES = (
    *("p-0123456789ab", "p-0123456789ab.2", "p-0123456789ab.10", "p-0123456789ab.999999999"),
    *("p-1-back", "p-1-back.2", "p-1.2-back", "p-1.2-back.3", "p-1.2-back-back.4"),
    # The agent names no plan like this.
    *("", ".", ".2", "..2", "2", "p.", "p.0", "p.1", "p.02", "p.-2", "p.2.3", "p.2.", "p.1000000000", "p.2 ", "p. 2"),
    *("p\n.2", "p.2\n", "\n", "p\r.2", "p.2\r", "p\u0085.2", "p\u2028.2", "p\u2029", "p.\u0662", "\U0001f600.2"),
    *("p/1", "p/1.2", "/", "$0.2", "\\.2"),
)


def test_a_name_is_taken_apart_as_the_agent_does(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(name,) for name in NAMES], "name string")
    found = rows.withColumn("attempt", attempt(F.col("name"))).collect()
    of_agent = {name: reassignment.attempt(name)._asdict() for name in NAMES}
    assert {row["name"]: row["attempt"].asDict() for row in found} == of_agent


def test_a_key_names_its_plan(spark: SparkSession) -> None:
    target = ReassignmentTarget(TopicPartition("orders", 3), "id", (1, 4), (1, 2))
    names = [name for name in NAMES if name.startswith("p-")]
    keys = [
        (name, write.key)
        for name in names
        for change in (ReassignmentPlan(name, (target,)), Batch(name, 12, (target,)))
        for write in change_writes(change)
    ]
    assert {key.partition("/")[0] for _, key in keys} == {"plan", "targets", "batch"}
    found = spark.createDataFrame(keys, "name string, key string").select("name", plan_name(F.col("key")).alias("of"))
    assert [row.asDict() for row in found.where("name <> of").collect()] == []
