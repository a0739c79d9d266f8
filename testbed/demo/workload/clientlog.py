"""Where librdkafka's own lines go: to a logger that says nothing unless somebody listens.

Its default is standard error, where lines about a broker that was stopped on purpose would drown what is to be read.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("rackwise.workload")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False
