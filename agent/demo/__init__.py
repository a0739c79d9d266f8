"""What a newcomer watches: a live cluster with work on it, and the agent beside it."""
