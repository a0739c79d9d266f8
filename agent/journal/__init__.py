"""Journal entries as frozen values, one module per kind. Pure."""
