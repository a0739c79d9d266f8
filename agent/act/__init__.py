"""act: carry out what the guard allowed. The only stage whose clients may change a cluster."""

from agent.act.hands import Hands, NoHands, Outcome, act

__all__ = ["Hands", "NoHands", "Outcome", "act"]
