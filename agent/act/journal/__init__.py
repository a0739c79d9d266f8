"""Journal stores: a compacted Kafka topic or a local file."""
