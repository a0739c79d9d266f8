"""Decisions of execute mode: reassignments, rebalances and commands as pure functions of observations."""
