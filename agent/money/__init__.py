"""What crosses racks, whose it is, and what it costs a day: by group, topic, rack and path. Pure."""

from agent.money.costs import Costs, Reading, TopicCost, costs_of
from agent.money.lags import Lag, lag_of
from agent.money.traffic import NO_TRAFFIC, Traffic

__all__ = [
    "NO_TRAFFIC",
    "Costs",
    "Lag",
    "Reading",
    "TopicCost",
    "Traffic",
    "costs_of",
    "lag_of",
]
