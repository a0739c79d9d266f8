"""Carries out reassignments: plans, their requests, their progress."""
