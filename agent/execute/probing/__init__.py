"""Probing: when a rebalance of a Streams application is worth a trigger (KIP-441). Pure."""
