"""Plan: what would mend what was found, as the smallest change that is worth it."""
