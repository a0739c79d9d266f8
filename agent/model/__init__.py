"""What is the cluster like now? Answers and decoded bytes become one immutable, sorted snapshot."""
