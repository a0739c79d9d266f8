"""Telemetry: the events of a cycle, for replays and the pipeline. Pure.

A look's events rebuild exactly the input of its cycle.
"""
