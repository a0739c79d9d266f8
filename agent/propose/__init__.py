"""propose: plans as proposals, deterministic to the byte."""
