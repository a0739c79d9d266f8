"""Traffic across racks and its cost per day: by group, topic, rack and path. Pure."""
