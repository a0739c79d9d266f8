"""weights: what the pipeline has learned about traffic and restores, as it comes back to the agent. Pure.

`values` are the records of the weights topic, `codec` their bytes and keys, `schema` their JSON Schema (committed
as docs/schemas/weights.v1.json).
"""

from __future__ import annotations

from agent.weights.codec import UnreadableWeightsError, key_of, keys_of, to_records, weights_of
from agent.weights.values import (
    GroupWeights,
    PartitionWeight,
    ReadWeight,
    RestoreWeight,
    TopicWeights,
    Weights,
)

__all__ = [
    "GroupWeights",
    "PartitionWeight",
    "ReadWeight",
    "RestoreWeight",
    "TopicWeights",
    "UnreadableWeightsError",
    "Weights",
    "key_of",
    "keys_of",
    "to_records",
    "weights_of",
]
