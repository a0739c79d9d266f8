"""Streaming runners: topics into bronze, and silver and gold kept up with it."""
