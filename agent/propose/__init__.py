"""Propose: each part of the plan as a value that says everything a reader needs to decide."""
