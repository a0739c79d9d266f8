"""What will a group's own assignor give it? The parity assignors, asked about a group of a snapshot."""

from agent.predict.predict import predict, predict_groups

__all__ = ["predict", "predict_groups"]
