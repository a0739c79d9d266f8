"""Errors of the workload."""

from __future__ import annotations

from agent.errors import RackwiseError


class WorkloadError(RackwiseError):
    """A part of the workload could not be started, stopped or queried."""
