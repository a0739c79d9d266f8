"""What can go wrong while brokers are kept on this machine.

::

    ClusterError     exit 1   something is missing on this machine, or a broker did not do as it was told
    └── BadSpec      exit 2   the cluster that was asked for cannot be
"""

from __future__ import annotations

from agent.errors import GaveUp


class ClusterError(GaveUp):
    """The embedded cluster could not do what was asked."""


class BadSpec(ClusterError):  # noqa: N818 the name says what is wrong
    """What was asked for is no cluster that could be started."""

    exit_code = 2
