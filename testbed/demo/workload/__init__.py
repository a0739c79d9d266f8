"""The workload: producers, consumer groups of every kind, and a Kafka Streams application.

The demo, the tests and the compose file run this same code, so that what is shown is what is tested. Everything it
starts ends with the process that started it.
"""

from __future__ import annotations

from testbed.demo.workload.errors import WorkloadError
from testbed.demo.workload.facts import ClusterFacts
from testbed.demo.workload.plan import WorkloadPlan
from testbed.demo.workload.scenes import demo_plan, parts_plan, small_plan
from testbed.demo.workload.workload import ClusterWorkload

__all__ = ["ClusterFacts", "ClusterWorkload", "WorkloadError", "WorkloadPlan", "demo_plan", "parts_plan", "small_plan"]
