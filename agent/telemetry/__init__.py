"""telemetry: what a cycle leaves for others, as plain events; written by record, read by replays and the pipeline.

Pure. A look's events rebuild exactly what went into its cycle.
"""
