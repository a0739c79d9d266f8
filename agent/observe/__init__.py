"""observe: the brokers' raw answers, with a gap for each missing one, all through `agent.wire`.

One request for all topics, one per coordinator for two hundred of its groups, one per leader for its end offsets.
librdkafka only writes and consumes (`docs/decisions/0004-one-client-looks.md`).
"""
