"""The journal: in its topic, or in a file."""
