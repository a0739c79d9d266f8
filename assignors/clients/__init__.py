"""Rack-aware assignors for Python consumers, one module per client library."""
