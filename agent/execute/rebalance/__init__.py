"""Rebalance triggers: refusals, the probe's bytes and the judgement. Pure."""
