"""Explanations: the reasons of findings, proposals and their absence, and doctor's checks. Pure."""
