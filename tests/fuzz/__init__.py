"""Searches for bytes that a decoder or a reader cannot take."""
