"""What can go wrong while brokers are kept on this machine."""

from __future__ import annotations


class ClusterError(Exception):
    """The embedded cluster could not do what was asked; the sentence says what, why and what to do."""
