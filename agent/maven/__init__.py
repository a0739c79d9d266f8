"""Jars by Maven: which tools this machine has, where jars are kept, and how a set of them gets there."""
