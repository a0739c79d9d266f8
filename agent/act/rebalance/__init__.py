"""Triggers rebalances of groups."""
