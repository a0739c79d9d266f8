"""Whether bytes leave their zone: the ``zone`` of a row of the ledger. Zones are racks."""

from __future__ import annotations

SAME_ZONE = "SAME_ZONE"
CROSS_ZONE = "CROSS_ZONE"
UNKNOWN_ZONE = "UNKNOWN"
"""One of the two racks is not known; ``why_unknown`` says why."""
