"""observe: everything the brokers tell, as raw rows, with a gap for each thing that they do not tell.

One request for all topics, one per coordinator for two hundred of its groups, one per leader for its end offsets. All
of it goes through `agent.wire`; librdkafka writes and consumes (`agent.record`), and reads nothing here
(`docs/decisions/0004-one-client-looks.md`).
"""
