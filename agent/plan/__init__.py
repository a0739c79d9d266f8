"""plan: what would mend the findings, exactly and with the fewest moves."""
