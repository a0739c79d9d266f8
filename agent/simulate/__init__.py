"""Simulation: the pure stages on one look, a recorded look or a changed snapshot. Pure."""
