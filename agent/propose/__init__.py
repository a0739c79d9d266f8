"""Proposals: each part of the plan with its before, after, gain, cost, evidence and expiry. Pure."""
