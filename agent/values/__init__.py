"""Values that every stage may import, and nothing else of agent/: the floor of the house."""
