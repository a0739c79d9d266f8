"""What will a group's own assignor give it? The parity assignors, asked about a group of a snapshot."""

from agent.predict.predict import predict, predict_groups
from agent.predict.prediction import Basis, Certainty, Given, NotPredicted, Prediction, WarmUps

__all__ = ["Basis", "Certainty", "Given", "NotPredicted", "Prediction", "WarmUps", "predict", "predict_groups"]
