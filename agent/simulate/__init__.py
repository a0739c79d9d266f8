"""The pure stages outside of the loop: on the look of a command, a recorded look, and a changed cluster. Pure."""
