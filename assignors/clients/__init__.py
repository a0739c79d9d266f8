"""Drop-in assignors for Python consumers, one module per client: import the one for the client that is installed."""
