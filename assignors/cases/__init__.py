"""Recorded cases of Kafka's assignors, run against the ports."""
