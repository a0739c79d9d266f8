"""The test bed: Kafka brokers on this machine, a workload on them, and the demo. The agent does not import it."""
