"""Real work for a Kafka cluster: producers, consumer groups of every kind, and a Kafka Streams application.

The demo, the tests and the compose file run this same code, so that what is shown is what is tested. Everything it
starts ends with the process that started it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.demo.workload.errors import WorkloadError
    from agent.demo.workload.facts import ClusterFacts
    from agent.demo.workload.plan import WorkloadPlan
    from agent.demo.workload.scenes import demo_plan, parts_plan, small_plan
    from agent.demo.workload.workload import Workload

_HOMES = {
    "ClusterFacts": "facts",
    "Workload": "workload",
    "WorkloadError": "errors",
    "WorkloadPlan": "plan",
    "demo_plan": "scenes",
    "parts_plan": "scenes",
    "small_plan": "scenes",
}

__all__ = ["ClusterFacts", "Workload", "WorkloadError", "WorkloadPlan", "demo_plan", "parts_plan", "small_plan"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
