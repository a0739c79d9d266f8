"""Faults on real brokers while rackwise acts: whatever happens, nothing is lost, doubled or left behind."""
