"""What crosses racks, whose it is, and what it costs a day: by group, topic, rack and path. Pure."""
