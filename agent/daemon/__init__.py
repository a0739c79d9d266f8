"""The agent's process: made from its settings, run on a schedule, ended by a signal."""
