"""backtest: recorded history, lived through again by the agent's own stages under other settings."""
