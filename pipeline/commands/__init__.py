"""One module per command of `rackwise spark`: each has ``command(app)``, which adds it to the application."""
