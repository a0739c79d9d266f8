"""The data pipeline on Spark: telemetry in, tables and knowledge out."""
