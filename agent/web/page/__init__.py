"""The page: what a running agent sees, as HTML that a browser can read without script."""
