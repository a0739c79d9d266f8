"""Operators' commands: identity of the sender, effects and answers. Pure."""
