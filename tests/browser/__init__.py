"""The page of a live agent in a real browser."""
