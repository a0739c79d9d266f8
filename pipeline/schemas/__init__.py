"""The tables of the pipeline, written out: every column with its type, unit and meaning."""
