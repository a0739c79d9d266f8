"""When is a rebalance of a Streams application worth asking for (KIP-441)? Pure."""

from agent.probing.check import Held, probing_check
from agent.probing.decide import Ground, decide, decisions
from agent.probing.explain import about_probing
from agent.probing.look import next_look_ms
from agent.probing.past import NO_ANCHORS, Anchors, past_triggers
from agent.probing.values import Decision, Off, OffReason, Past, Reason, TriggerNow, Wait, WaitReason

__all__ = [
    "NO_ANCHORS",
    "Anchors",
    "Decision",
    "Ground",
    "Held",
    "Off",
    "OffReason",
    "Past",
    "Reason",
    "TriggerNow",
    "Wait",
    "WaitReason",
    "about_probing",
    "decide",
    "decisions",
    "next_look_ms",
    "past_triggers",
    "probing_check",
]
