"""Rebalance triggers of groups."""
