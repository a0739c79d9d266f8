"""The protocol of a reassignment as a pure state machine: what to do next, given what was seen. Pure."""
