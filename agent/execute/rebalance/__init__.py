"""Whether and how a rebalance of a group is triggered: refusals, the probe's bytes, what came of it. Pure."""
