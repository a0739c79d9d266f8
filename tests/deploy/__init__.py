"""Packages and what they are made of."""
