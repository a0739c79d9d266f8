"""The test bed: Kafka brokers on this machine, a workload, and the demo. The agent does not import it."""
