"""Assignors: what Kafka's own assignors answer, and what the best possible answer is. Usable alone."""
