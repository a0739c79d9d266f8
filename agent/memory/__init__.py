"""What has been seen before? Ages, steadiness, history: the one value that a cycle hands to the next.

It travels with each cycle's telemetry and is read back after a restart (`memory_from_json`, then `after_restart`).
Where it cannot be read back, the agent starts with an empty one and finds the same faults; lost until it has looked
again are:

- the ages of findings: they start anew;
- racks of brokers that are absent at that moment: unknown until the broker is back;
- rack changes, new partitions and reassignments of the time without looks: without the memory no change is
  reported at all; with it, what differs is reported once, at the time of the first look, with the cause as far as it
  can still be seen (a reassignment that began and ended unseen has no start time);
- how long racks have held still: racks of the first look count as steady;
- which group is a Streams application while it rebalances: it counts as a consumer group until it is stable;
- when an application last rebalanced, its lag history, restore rates and byte rates: lags are ranges from zero until
  the next rebalance or reading;
- what was predicted of a group's next rebalance: a wrong guess about it shows one rebalance later;
- how long a throttle was left behind, a group stuck, and the last acts: they count from the first look;
- which topics and groups there were, so that a world that shrank between two looks is believed.
"""
