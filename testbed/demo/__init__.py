"""The demo: a live cluster with a workload, and the agent."""
