"""Settings, logging and the example files an operator starts from. Knows nothing of the project."""
