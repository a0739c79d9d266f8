"""Command inboxes: the commands topic and the commands directory."""
