"""record: what was seen and decided, written to rackwise's own topics, a file and the log."""
