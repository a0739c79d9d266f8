"""Errors of embedded clusters.

::

    ClusterError     exit 1   something is missing on this machine, or a broker did not do what was requested
    └── BadSpec      exit 2   the requested cluster is impossible
"""

from __future__ import annotations

from agent.errors import GaveUp


class ClusterError(GaveUp):
    """The embedded cluster could not do what was requested."""


class BadSpec(ClusterError):  # noqa: N818 named for the fault
    """The requested cluster cannot be started."""

    exit_code = 2
