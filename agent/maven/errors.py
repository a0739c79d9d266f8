"""What can go wrong while jars are got.

::

    ToolError     exit 1   something is missing on this machine, or Maven could not get a jar
"""

from __future__ import annotations

from agent.errors import GaveUp


class ToolError(GaveUp):
    """Java, Maven or a jar could not be had."""
