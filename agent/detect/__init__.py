"""Detectors of rack faults: findings with evidence and age, and an assessment per group."""
