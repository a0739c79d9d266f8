"""Reassignment protocol as a pure state machine: the next commands from state and event."""
