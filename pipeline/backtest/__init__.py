"""backtest: recorded history, replayed through the agent's own stages under other settings."""
