"""The logger of librdkafka's own lines, silent unless a handler is set.

Its default is standard error, where lines about a broker that was stopped on purpose would drown what is to be read.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("rackwise.workload")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False
