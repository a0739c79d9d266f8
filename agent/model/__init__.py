"""What is the cluster like now? Answers and decoded bytes become one immutable, sorted snapshot."""

from agent.model.take import take_snapshot

__all__ = ["take_snapshot"]
