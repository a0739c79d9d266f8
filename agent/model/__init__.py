"""model: one immutable, sorted snapshot out of what was observed and decoded."""
