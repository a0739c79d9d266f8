"""The HTTP API of the running agent: the documents of the command line, as JSON."""
