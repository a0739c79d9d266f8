"""act: carry out what the guard allowed. The only stage whose clients may change a cluster."""

from agent.act.hands import Hands, NoHands, act

__all__ = ["Hands", "NoHands", "act"]
