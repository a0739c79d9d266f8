"""jobs: thin runners, which read tables, call transforms and write tables."""
