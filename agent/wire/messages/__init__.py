"""Schemas of the calls that kafka-python does not know, in its own JSON form."""
