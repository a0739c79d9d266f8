"""The process of the agent: made of its settings, run on a schedule, ended by a signal."""
