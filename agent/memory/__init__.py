"""The memory of earlier observations, which one cycle passes to the next.

It travels in each cycle's telemetry. An agent that cannot read it back after a restart finds the same faults, but
starts anew with ages, steadiness of racks, lag and rate history, predictions and last acts; it does not know racks of
absent brokers or the kind of rebalancing groups, and reports no change of the time without observations.
"""
