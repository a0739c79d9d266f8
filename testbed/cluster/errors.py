"""Errors of embedded clusters.

::

    ClusterError     exit 1   something is missing on this machine, or a broker did not do what was asked of it
    └── BadSpec      exit 2   the cluster that was asked for cannot be
"""

from __future__ import annotations

from agent.errors import GaveUp


class ClusterError(GaveUp):
    """The embedded cluster could not do what was asked."""


class BadSpec(ClusterError):  # noqa: N818 the name says what is wrong
    """What was asked for is no cluster that could be started."""

    exit_code = 2
