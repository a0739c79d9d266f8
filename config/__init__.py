"""Settings, logging and the example file. Imports nothing of the project."""
