"""Decoders of members' bytes: a blob becomes a value or `Undecodable`, never an exception."""
