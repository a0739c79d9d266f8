"""weights: what the pipeline has learned about traffic and restores, as it comes back to the agent. Pure.

`values` are the records of the weights topic, `codec` their bytes and keys, `schema` their JSON Schema (committed
as docs/schemas/weights.v1.json), `kept` what the agent keeps of them.
"""
