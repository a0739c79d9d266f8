"""Commands of operators: from their topic, or from a directory."""
