"""Recording: telemetry, proposals and weights in rackwise's own topics, a file and the log."""
