"""observe: everything the brokers tell, as raw rows, with a gap for each thing that they do not tell.

Bulk answers and groups are read by the wire client: one request for all topics, one per coordinator for its groups,
one per leader for its end offsets. librdkafka's admin client reads the configs of brokers and groups.
"""

from agent.observe.clients import Clients
from agent.observe.look import observe
from agent.observe.recall import Recall
from agent.observe.scope import Scope

__all__ = ["Clients", "Recall", "Scope", "observe"]
