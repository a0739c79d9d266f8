"""Reassignments: the executor's thread, its requests, and the progress of moves."""
