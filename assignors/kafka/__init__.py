"""Ports of Kafka's own assignors and replica placers, one module each.

Each is a pure function from a problem to a result that equals Kafka's, tie for tie where the input determines it.
"""
