"""Predictions of assignments: Kafka's assignors run on the groups of a snapshot."""
